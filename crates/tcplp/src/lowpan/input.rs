//! Frames that come: handed up, put together, or passed on.

use core::net::Ipv6Addr;

use chappe_core::{Address, Arrival, HostNode, Instant, Layer, TraceEvent};
use chappe_wire::ipv6::{self, Header};
use chappe_wire::sixlowpan::frag::Fragment;
use chappe_wire::sixlowpan::iphc::{self, Lengths};
use chappe_wire::sixlowpan::{self, Dispatch};

use super::forwarding::SDU_MAX;
use super::interface::note;
use super::output::reach;
use super::reassembly::Put;
use super::red::Verdict;
use super::{Interface, Lost, Route, Routes, node_of};

/// A frame's payload with its headers expanded: at most 127 octets, and 48 for a few.
const EXPANDED_MAX: usize = 176;

impl<
    H: HostNode,
    R: Routes,
    const OUT: usize,
    const IN: usize,
    const FRAMES: usize,
    const MTU: usize,
> Interface<H, R, OUT, IN, FRAMES, MTU>
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

    /// Where a packet goes that came from the link.
    fn route(&self, destination: Ipv6Addr) -> Result<Route, Lost> {
        if destination.is_multicast() || destination == self.config.global() {
            return Ok(Route::Here);
        }
        match self.routes.route(destination) {
            Route::Here => Ok(Route::Here),
            Route::Via(_) if !self.config.forward || destination.is_unicast_link_local() => {
                Err(Lost::NoRoute)
            }
            Route::Nowhere => Err(Lost::NoRoute),
            via => Ok(via),
        }
    }

    /// A packet as it is.
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
                self.pass_packet(now, &header, copy, next)
            }
            _ => {
                self.deliver(now, packet);
                Ok(())
            }
        }
    }

    fn on_compressed(&mut self, now: Instant, arrival: &Arrival<'_>) -> Result<(), Lost> {
        let mut buffer = [0; EXPANDED_MAX];
        let (lengths, len) = self.expand(arrival, arrival.sdu, None, &mut buffer)?;
        let packet = buffer.get_mut(..len).ok_or(Lost::TooBig)?;
        let header = Header::parse(packet).map_err(|_| Lost::Malformed)?;
        debug_assert!(lengths.expanded <= len);
        match self.route(header.destination)? {
            Route::Via(next) => self.pass_packet(now, &header, packet, next),
            _ => {
                self.deliver(now, packet);
                Ok(())
            }
        }
    }

    /// Expands headers and copies the payload behind them; returns how many octets that are.
    fn expand(
        &self,
        arrival: &Arrival<'_>,
        bytes: &[u8],
        size: Option<usize>,
        buffer: &mut [u8],
    ) -> Result<(Lengths, usize), Lost> {
        let known = self.known(arrival.from, arrival.to);
        let lengths = iphc::expand(bytes, &known, size, buffer).map_err(|_| Lost::Malformed)?;
        let payload = bytes.get(lengths.compressed..).unwrap_or_default();
        let end = lengths.expanded + payload.len();
        let place = buffer.get_mut(lengths.expanded..end).ok_or(Lost::TooBig)?;
        place.copy_from_slice(payload);
        Ok((lengths, end))
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
        let len = match Dispatch::of(body) {
            Dispatch::Iphc => self.expand(arrival, body, Some(size), &mut buffer)?.1,
            Dispatch::Ipv6 => {
                let packet = body.get(1..).unwrap_or_default();
                let place = buffer.get_mut(..packet.len()).ok_or(Lost::TooBig)?;
                place.copy_from_slice(packet);
                packet.len()
            }
            _ => return Err(Lost::Malformed),
        };
        let part = buffer.get_mut(..len).ok_or(Lost::TooBig)?;
        let header = Header::parse(part).map_err(|_| Lost::Malformed)?;
        if usize::from(header.payload_len) + ipv6::HEADER_LEN != size || len > size {
            return Err(Lost::Malformed);
        }
        match self.route(header.destination)? {
            Route::Via(next) => self.pass_first(now, arrival.from, fragment, &header, part, next),
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
            // With one fragment lost the others are of no use.
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

    /// One hop less, and congestion marked if RED says so. Changes the packet in place.
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

    /// A packet that came in one frame.
    fn pass_packet(
        &mut self,
        now: Instant,
        header: &Header,
        packet: &mut [u8],
        next: Address,
    ) -> Result<(), Lost> {
        self.prepare(now, header, packet)?;
        self.pass(header, packet, next, None)
    }

    /// A first fragment: its entry is made, and it goes on under a tag of our own.
    fn pass_first(
        &mut self,
        now: Instant,
        from: Address,
        fragment: &Fragment,
        header: &Header,
        part: &mut [u8],
        next: Address,
    ) -> Result<(), Lost> {
        self.prepare(now, header, part)?;
        let onward = Fragment {
            tag: self.next_tag(),
            ..*fragment
        };
        self.pass(header, part, next, Some(onward))?;
        let (losses, trace) = (&mut self.losses, &mut self.trace);
        let incoming = (from, fragment.tag, fragment.size);
        self.forwarding
            .remember(now, incoming, (next, onward.tag), |why| {
                note(losses, trace, why);
            });
        Ok(())
    }

    fn pass(
        &mut self,
        header: &Header,
        packet: &[u8],
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
            // What compression cannot shorten goes as it is, if it fits.
            let (headers, expanded) =
                match iphc::compress(packet, &known, reach, sdu.get_mut(at..)?) {
                    Ok(lengths) => (lengths.compressed, lengths.expanded),
                    Err(_) => {
                        *sdu.get_mut(at)? = sixlowpan::IPV6;
                        (1, 0)
                    }
                };
            let payload = packet.get(expanded..)?;
            let begin = at + headers;
            sdu.get_mut(begin..begin + payload.len())?
                .copy_from_slice(payload);
            Some(begin + payload.len())
        })
    }

    /// Writes a frame to the queue's end. `None` from `write` means that it does not fit.
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
