//! Incoming frames: delivered, reassembled, or forwarded.

use core::net::Ipv6Addr;

use chappe_core::{Address, Arrival, HostNode, Instant, Layer, TraceEvent};
use chappe_wire::ipv6::{self, Header};
use chappe_wire::sixlowpan::frag::Fragment;
use chappe_wire::sixlowpan::iphc::{self, Network, Next};
use chappe_wire::sixlowpan::{self, Dispatch};

use super::forwarding::SDU_MAX;
use super::interface::note;
use super::output::reach;
use super::reassembly::Put;
use super::red::Verdict;
use super::{Headers, Interface, Lost, Route, Routes, node_of};

/// Octets of a frame's payload with its headers expanded: at most 127, and 40 of IPv6 and 60 of TCP in place of a few.
const EXPANDED_MAX: usize = 228;

/// The beginning of a packet, its headers expanded as far as this node needs them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Expanded {
    len: usize,
    /// Behind the IPv6 header follows a header that is still compressed, for the destination to expand.
    opaque: bool,
}

impl<
    H: HostNode,
    R: Routes,
    const OUT: usize,
    const IN: usize,
    const FRAMES: usize,
    const MTU: usize,
    C: Headers,
> Interface<H, R, OUT, IN, FRAMES, MTU, C>
{
    pub(super) fn on_frame(&mut self, now: Instant, arrival: &Arrival<'_>) {
        self.trace.push(TraceEvent::Received {
            layer: Layer::Link,
            from: arrival.from,
            bytes: arrival.sdu.len() as u32,
        });
        let used = match Dispatch::of(arrival.sdu) {
            Dispatch::Ipv6 => self.on_plain(now, arrival.sdu.get(1..).unwrap_or_default()),
            Dispatch::Iphc => self.on_compressed(now, arrival),
            Dispatch::First | Dispatch::Further => self.on_fragment(now, arrival),
            Dispatch::Mesh | Dispatch::Unknown(_) => Err(Lost::Malformed),
        };
        if let Err(why) = used {
            self.lose(why);
        }
    }

    /// The route of a packet that arrived from the link.
    fn route(&self, destination: Ipv6Addr) -> Result<Route, Lost> {
        if destination.is_multicast() || destination == self.config.global() {
            return Ok(Route::Here);
        }
        match self.routes.route(destination) {
            Route::Here => Ok(Route::Here),
            // Link-local packets must not be forwarded (RFC 4291 2.5.6).
            Route::Via(_) if !self.config.forward || destination.is_unicast_link_local() => {
                Err(Lost::NoRoute)
            }
            Route::Nowhere => Err(Lost::NoRoute),
            via => Ok(via),
        }
    }

    /// An uncompressed packet (dispatch 0x41).
    fn on_plain(&mut self, now: Instant, packet: &[u8]) -> Result<(), Lost> {
        let header = Header::parse(packet).map_err(|_| Lost::Malformed)?;
        if usize::from(header.payload_len) + ipv6::HEADER_LEN > packet.len() {
            return Err(Lost::Malformed);
        }
        match self.route(header.destination)? {
            Route::Via(next) => {
                let mut copy = [0; EXPANDED_MAX];
                let copy = copy.get_mut(..packet.len()).ok_or(Lost::TooBig)?;
                copy.copy_from_slice(packet);
                self.prepare(now, &header, copy)?;
                self.pass(&header, copy, false, next, None)
            }
            _ => {
                self.deliver(now, packet);
                Ok(())
            }
        }
    }

    fn on_compressed(&mut self, now: Instant, arrival: &Arrival<'_>) -> Result<(), Lost> {
        let mut buffer = [0; EXPANDED_MAX];
        let Expanded { len, opaque } = self.expand(arrival, arrival.sdu, None, &mut buffer)?;
        let packet = buffer.get_mut(..len).ok_or(Lost::TooBig)?;
        let header = Header::parse(packet).map_err(|_| Lost::Malformed)?;
        match self.route(header.destination)? {
            Route::Via(next) => {
                self.prepare(now, &header, packet)?;
                self.pass(&header, packet, opaque, next, None)
            }
            _ => {
                self.deliver(now, packet);
                Ok(())
            }
        }
    }

    /// Expands headers and copies the payload behind them.
    fn expand(
        &mut self,
        arrival: &Arrival<'_>,
        bytes: &[u8],
        size: Option<usize>,
        buffer: &mut [u8],
    ) -> Result<Expanded, Lost> {
        let known = self.known(arrival.from, arrival.to);
        let network = Network::parse(bytes, &known).map_err(|_| Lost::Malformed)?;
        if network.next == Next::Tcp {
            return self.expand_tcp(&network, bytes, size, buffer);
        }
        let lengths = iphc::expand(bytes, &known, size, buffer).map_err(|_| Lost::Malformed)?;
        let payload = bytes.get(lengths.compressed..).unwrap_or_default();
        let len = copy_to(buffer, lengths.expanded, payload)?;
        Ok(Expanded { len, opaque: false })
    }

    /// The same with a compressed TCP header, which only the ends of its flow can expand: a relay leaves it compressed.
    fn expand_tcp(
        &mut self,
        network: &Network,
        bytes: &[u8],
        size: Option<usize>,
        buffer: &mut [u8],
    ) -> Result<Expanded, Lost> {
        let rest = bytes.get(network.len..).unwrap_or_default();
        let (source, destination) = (network.header.source, network.header.destination);
        let opaque = matches!(self.route(destination)?, Route::Via(_));
        let at = ipv6::HEADER_LEN;
        let len = match opaque {
            true => copy_to(buffer, at, rest)?,
            false => {
                let out = buffer.get_mut(at..).ok_or(Lost::TooBig)?;
                let lengths = self.headers.expand(source, destination, rest, out)?;
                let payload = rest.get(lengths.compressed..).unwrap_or_default();
                copy_to(buffer, at + lengths.expanded, payload)?
            }
        };
        let payload = size.unwrap_or(len).checked_sub(at);
        let payload_len = payload.and_then(|len| u16::try_from(len).ok());
        let header = Header {
            payload_len: payload_len.ok_or(Lost::Malformed)?,
            ..network.header
        };
        header.emit(buffer).map_err(|_| Lost::TooBig)?;
        Ok(Expanded { len, opaque })
    }

    fn deliver(&mut self, now: Instant, packet: &[u8]) {
        self.counters.packets_received = self.counters.packets_received.wrapping_add(1);
        self.host.handle_packet(now, packet);
    }

    fn on_fragment(&mut self, now: Instant, arrival: &Arrival<'_>) -> Result<(), Lost> {
        let (fragment, at) = Fragment::parse(arrival.sdu).map_err(|_| Lost::Malformed)?;
        let body = arrival.sdu.get(at..).unwrap_or_default();
        match fragment.offset {
            0 => self.on_first(now, arrival, &fragment, body),
            _ => self.on_further(now, arrival, &fragment, body),
        }
    }

    fn on_first(
        &mut self,
        now: Instant,
        arrival: &Arrival<'_>,
        fragment: &Fragment,
        body: &[u8],
    ) -> Result<(), Lost> {
        let mut buffer = [0; EXPANDED_MAX];
        let size = usize::from(fragment.size);
        let Expanded { len, opaque } = match Dispatch::of(body) {
            Dispatch::Iphc => self.expand(arrival, body, Some(size), &mut buffer)?,
            Dispatch::Ipv6 => Expanded {
                len: copy_to(&mut buffer, 0, body.get(1..).unwrap_or_default())?,
                opaque: false,
            },
            _ => return Err(Lost::Malformed),
        };
        let part = buffer.get_mut(..len).ok_or(Lost::TooBig)?;
        let header = Header::parse(part).map_err(|_| Lost::Malformed)?;
        // datagram_size is that of the uncompressed packet (RFC 4944 5.3), so it must agree with the IPv6 header.
        if usize::from(header.payload_len) + ipv6::HEADER_LEN != size || len > size {
            return Err(Lost::Malformed);
        }
        match self.route(header.destination)? {
            Route::Via(next) => {
                self.prepare(now, &header, part)?;
                let onward = Fragment {
                    tag: self.next_tag(),
                    ..*fragment
                };
                self.pass(&header, part, opaque, next, Some(onward))?;
                self.remember(now, arrival.from, fragment, next, onward.tag);
                Ok(())
            }
            _ => {
                let (losses, trace) = (&mut self.losses, &mut self.trace);
                let idle = self.config.slot_idle;
                let put = self
                    .reassembly
                    .first(now, arrival.from, fragment, part, idle, |why| {
                        note(losses, trace, why);
                    });
                self.finish(now, put)
            }
        }
    }

    fn on_further(
        &mut self,
        now: Instant,
        arrival: &Arrival<'_>,
        fragment: &Fragment,
        body: &[u8],
    ) -> Result<(), Lost> {
        // Fragments without a forwarding entry are for this host, or their first one is missing.
        let (tag, size) = (fragment.tag, fragment.size);
        let Some(entry) = self.forwarding.find(now, arrival.from, tag, size) else {
            let put = self.reassembly.further(now, arrival.from, fragment, body);
            return self.finish(now, put);
        };
        let last = fragment.start() + body.len() >= usize::from(size);
        let fits = fragment.start() + body.len() <= usize::from(size);
        let onward = Fragment {
            tag: entry.tag_out,
            ..*fragment
        };
        let queued = match fits && !body.is_empty() {
            true => self.queue(entry.next, Some(entry.tag_out), |sdu| {
                let at = onward.emit(sdu).ok()?;
                let end = at + body.len();
                sdu.get_mut(at..end)?.copy_from_slice(body);
                Some(end)
            }),
            false => Err(Lost::Malformed),
        };
        if last || queued.is_err() {
            // With one fragment lost, the rest of the datagram is useless.
            self.forwarding.forget(entry.tag_out);
        }
        queued
    }

    fn finish(&mut self, now: Instant, put: Put) -> Result<(), Lost> {
        match put {
            Put::Waiting => Ok(()),
            Put::Lost(why) => Err(why),
            Put::Complete(at) => {
                self.counters.packets_received = self.counters.packets_received.wrapping_add(1);
                self.host.handle_packet(now, self.reassembly.take(at));
                Ok(())
            }
        }
    }

    /// Decrements the hop limit, and marks congestion if RED asks for it. Changes the packet in place.
    fn prepare(&mut self, now: Instant, header: &Header, packet: &mut [u8]) -> Result<(), Lost> {
        if header.hop_limit <= 1 {
            return Err(Lost::HopLimit);
        }
        if self.forwarding.is_full() {
            return Err(Lost::QueueFull);
        }
        let mut class = header.traffic_class;
        if let Some(thresholds) = &self.config.red {
            let queue = self.forwarding.len();
            let verdict = self.red.judge(now, queue, thresholds, &mut self.random);
            if verdict == Verdict::Notify {
                // Not-ECT: the sender would not understand a mark (RFC 3168 5).
                if class & 3 == 0 {
                    return Err(Lost::Early);
                }
                class |= 3;
                self.counters.marked = self.counters.marked.wrapping_add(1);
            }
        }
        let onward = Header {
            hop_limit: header.hop_limit - 1,
            traffic_class: class,
            ..*header
        };
        onward.emit(packet).map_err(|_| Lost::Malformed)?;
        self.counters.packets_forwarded = self.counters.packets_forwarded.wrapping_add(1);
        Ok(())
    }

    /// A first fragment is forwarded under a tag of this node: records where the others must follow.
    fn remember(
        &mut self,
        now: Instant,
        from: Address,
        fragment: &Fragment,
        next: Address,
        tag: u16,
    ) {
        let (losses, trace) = (&mut self.losses, &mut self.trace);
        let incoming = (from, fragment.tag, fragment.size);
        self.forwarding
            .remember(now, incoming, (next, tag), |why| note(losses, trace, why));
    }

    /// Queues a packet, or its first fragment. `opaque`: a compressed header follows its IPv6 header.
    fn pass(
        &mut self,
        header: &Header,
        packet: &[u8],
        opaque: bool,
        next: Address,
        fragment: Option<Fragment>,
    ) -> Result<(), Lost> {
        let known = self.known(self.config.address, next);
        let reach = reach(false, node_of(header.destination), next);
        self.queue(next, fragment.map(|fragment| fragment.tag), |sdu| {
            let at = match fragment {
                Some(fragment) => fragment.emit(sdu).ok()?,
                None => 0,
            };
            let room = sdu.get_mut(at..)?;
            let (headers, expanded) = match opaque {
                true => {
                    let onward = Header::parse(packet).ok()?;
                    let len = iphc::compress_before(&onward, &known, reach, room).ok()?;
                    (len, ipv6::HEADER_LEN)
                }
                // What cannot be compressed is sent uncompressed, if it fits.
                false => match iphc::compress(packet, &known, reach, room) {
                    Ok(lengths) => (lengths.compressed, lengths.expanded),
                    Err(_) => {
                        *sdu.get_mut(at)? = sixlowpan::IPV6;
                        (1, 0)
                    }
                },
            };
            let payload = packet.get(expanded..)?;
            let begin = at + headers;
            sdu.get_mut(begin..begin + payload.len())?
                .copy_from_slice(payload);
            Some(begin + payload.len())
        })
    }

    /// Appends a frame to the queue. `write` returns `None` if the frame does not fit.
    fn queue(
        &mut self,
        next: Address,
        tag: Option<u16>,
        write: impl FnOnce(&mut [u8]) -> Option<usize>,
    ) -> Result<(), Lost> {
        let frame_max = self.config.frame_max.min(SDU_MAX);
        let frame = self.forwarding.vacant().ok_or(Lost::QueueFull)?;
        let room = frame.sdu.get_mut(..frame_max).ok_or(Lost::TooBig)?;
        let len = write(room).ok_or(Lost::TooBig)?;
        (frame.next, frame.tag, frame.len) = (next, tag, len as u8);
        self.forwarding.push();
        Ok(())
    }
}

/// Copies `octets` to `at` and returns their end.
fn copy_to(buffer: &mut [u8], at: usize, octets: &[u8]) -> Result<usize, Lost> {
    let end = at + octets.len();
    let place = buffer.get_mut(at..end).ok_or(Lost::TooBig)?;
    place.copy_from_slice(octets);
    Ok(end)
}
