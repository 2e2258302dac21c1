//! TCP header compression: the context that both ends of the mesh keep for each flow.
//!
//! The two ends are the node that sends a segment and the node that delivers it. Relays forward the compressed header
//! unchanged and keep no state. An end first sends one whole header, its *anchor*, and sends short ones as soon as the other
//! end has confirmed the anchor. Every header in the other direction carries this confirmation. So an end never receives a
//! header that it cannot expand, unless it lost its state. It then reports "none", or nothing at all, and after a
//! retransmission the flow starts over.
//!
//! ```text
//!  sender   whole, anchor 1 ->   plain ->  plain ->        short by 1 ->  ..   whole, anchor 2 ->  short by 1 -> ..
//!  receiver                 <- ack, holds 1                                    <- ack, holds 2      short by 2 -> ..
//! ```

use core::net::Ipv6Addr;

use chappe_wire::ipv6::{self, Header};
use chappe_wire::sixlowpan::iphc::Lengths;
use chappe_wire::sixlowpan::tcphc::{self, Anchor, GENERATIONS, Lead};

use super::Lost;

/// A new anchor is sent when a sequence number has advanced by this much, half of what short headers can express.
const ANCHOR_REACH: u32 = 1 << 14;
/// An anchor that is not confirmed after this many further segments counts as lost: TCPlp's window is four segments, and a
/// confirmation takes a round trip.
const CONFIRM_WITHIN: u8 = 8;

/// Compression of the headers behind IPv6's. `()` does none.
pub trait Headers {
    /// Compresses the header behind the IPv6 header of `packet` to the front of `out`; `None` if it is sent unchanged.
    fn compress(&mut self, packet: &[u8], out: &mut [u8]) -> Option<Lengths>;

    /// Expands a compressed header at the front of `bytes`, of a packet from `source` to `destination`, to the front
    /// of `out`.
    fn expand(
        &mut self,
        source: Ipv6Addr,
        destination: Ipv6Addr,
        bytes: &[u8],
        out: &mut [u8],
    ) -> Result<Lengths, Lost>;
}

impl Headers for () {
    fn compress(&mut self, _packet: &[u8], _out: &mut [u8]) -> Option<Lengths> {
        None
    }

    fn expand(
        &mut self,
        _source: Ipv6Addr,
        _destination: Ipv6Addr,
        _bytes: &[u8],
        _out: &mut [u8],
    ) -> Result<Lengths, Lost> {
        Err(Lost::NoAnchor)
    }
}

/// Compression that is chosen when the node starts: `None` does none.
impl<C: Headers> Headers for Option<C> {
    fn compress(&mut self, packet: &[u8], out: &mut [u8]) -> Option<Lengths> {
        self.as_mut()?.compress(packet, out)
    }

    fn expand(
        &mut self,
        source: Ipv6Addr,
        destination: Ipv6Addr,
        bytes: &[u8],
        out: &mut [u8],
    ) -> Result<Lengths, Lost> {
        let chosen = self.as_mut().ok_or(Lost::NoAnchor)?;
        chosen.expand(source, destination, bytes, out)
    }
}

/// Compresses TCP headers of up to `N` flows; a further flow replaces the one that was idle for longest.
#[derive(Clone, Debug)]
pub struct TcpHeaders<const N: usize> {
    flows: [Option<Flow>; N],
    /// Counts segments, to find the flow that was idle for longest.
    clock: u32,
}

/// An anchor and its number.
type Numbered = (u8, Anchor);

/// One connection, seen from this end.
#[derive(Clone, Copy, Debug)]
struct Flow {
    near: Ipv6Addr,
    far: Ipv6Addr,
    near_port: u16,
    far_port: u16,
    used: u32,
    /// The flow's number in headers we send.
    number: u8,
    /// Its number in headers we receive, once known.
    far_number: Option<u8>,
    outward: Outward,
    inward: Inward,
}

/// The state of the sending direction.
#[derive(Clone, Copy, Debug, Default)]
struct Outward {
    /// The anchor that the other end has confirmed.
    confirmed: Option<Numbered>,
    /// The anchor that was sent and is not confirmed.
    candidate: Option<Numbered>,
    /// Segments since the candidate was sent.
    since: u8,
    /// The number of the last candidate; 0 before the first.
    last: u8,
    /// The sequence number after everything sent so far, to recognise retransmissions.
    end: u32,
    /// Whether the other end has sent a confirmation since the last retransmission.
    heard: bool,
}

/// The state of the receiving direction: the last two anchors, since segments in flight may still refer to the older one.
#[derive(Clone, Copy, Debug, Default)]
struct Inward {
    anchors: [Option<Numbered>; 2],
    newest: u8,
}

/// How a header is sent.
enum Form {
    Short(Numbered),
    Whole(u8),
    Plain,
}

impl Inward {
    fn hold(&mut self, numbered: Numbered) {
        // Replaces, in this order: the same number, an empty place, the older anchor.
        let newest = self.newest;
        let keeps = |place: &Option<Numbered>| match place {
            Some((number, _)) if *number == numbered.0 => 0,
            None => 1,
            Some((number, _)) if *number != newest => 2,
            Some(_) => 3,
        };
        if let Some(place) = self.anchors.iter_mut().min_by_key(|place| keeps(place)) {
            *place = Some(numbered);
        }
        self.newest = numbered.0;
    }

    fn anchor(&self, number: u8) -> Option<&Anchor> {
        let mut held = self.anchors.iter().flatten();
        held.find(|(held, _)| *held == number)
            .map(|(_, anchor)| anchor)
    }
}

impl Outward {
    /// The other end reports the anchor it holds.
    fn confirm(&mut self, held: u8) {
        self.heard = true;
        if let Some(candidate) = self.candidate.take_if(|(number, _)| *number == held) {
            self.confirmed = Some(candidate);
        } else {
            self.confirmed.take_if(|(number, _)| *number != held);
        }
    }

    /// Decides how to send a segment with the header fields `now` and `payload` octets.
    fn form(&mut self, now: &Anchor, payload: usize) -> Form {
        let end = now.seq.wrapping_add(payload as u32);
        // Data that ends at or before the end of what was sent is a retransmission; a pure ACK never is.
        let begun = self.last != 0;
        let repeated = begun && payload > 0 && end.wrapping_sub(self.end).cast_signed() <= 0;
        if !repeated {
            self.end = end;
        }
        self.since = self.since.saturating_add(1);
        self.candidate.take_if(|_| self.since > CONFIRM_WITHIN);
        if repeated {
            // The other end may have lost its state and dropped the short header: send a whole one.
            self.confirmed.take_if(|_| !self.heard);
            self.heard = false;
            return self.whole(now);
        }
        match self.confirmed {
            Some((_, anchor)) if self.candidate.is_none() && is_far(now, &anchor) => {
                self.whole(now)
            }
            Some(confirmed) => Form::Short(confirmed),
            None if self.candidate.is_some() => Form::Plain,
            None => self.whole(now),
        }
    }

    fn whole(&mut self, now: &Anchor) -> Form {
        // The number of the confirmed anchor stays reserved: short headers refer to it until the next one is confirmed.
        let used = self.confirmed.map_or(0, |(number, _)| number);
        let after = |number: u8| number % GENERATIONS + 1;
        let next = match after(self.last) {
            next if next == used => after(next),
            next => next,
        };
        (self.last, self.since) = (next, 0);
        self.candidate = Some((next, *now));
        Form::Whole(next)
    }
}

/// Whether `now` is so far from `anchor` that short headers will soon not express the distance.
fn is_far(now: &Anchor, anchor: &Anchor) -> bool {
    let far =
        |now: u32, then: u32| now.wrapping_sub(then).cast_signed().unsigned_abs() > ANCHOR_REACH;
    far(now.seq, anchor.seq) || far(now.ack, anchor.ack)
}

impl<const N: usize> Default for TcpHeaders<N> {
    fn default() -> Self {
        TcpHeaders {
            flows: [None; N],
            clock: 0,
        }
    }
}

impl<const N: usize> TcpHeaders<N> {
    /// The entry of a flow, made if there is none. `None` if all flow numbers between these two addresses are in use.
    fn place(&mut self, near: Ipv6Addr, far: Ipv6Addr, ports: (u16, u16)) -> Option<&mut Flow> {
        self.clock = self.clock.wrapping_add(1);
        let clock = self.clock;
        let is = |flow: &Flow| {
            (flow.near, flow.far, flow.near_port, flow.far_port) == (near, far, ports.0, ports.1)
        };
        let found = self
            .flows
            .iter()
            .position(|place| place.as_ref().is_some_and(is));
        let at = match found {
            Some(at) => at,
            None => {
                let silence = |flow: &Flow| clock.wrapping_sub(flow.used);
                let (at, _) = self
                    .flows
                    .iter()
                    .enumerate()
                    .max_by_key(|(_, place)| place.as_ref().map_or(u32::MAX, silence))?;
                // Cleared first: its number may be the only one to become free.
                *self.flows.get_mut(at)? = None;
                let number = self.free_number(near, far)?;
                *self.flows.get_mut(at)? = Some(Flow {
                    near,
                    far,
                    near_port: ports.0,
                    far_port: ports.1,
                    used: clock,
                    number,
                    far_number: None,
                    outward: Outward::default(),
                    inward: Inward::default(),
                });
                at
            }
        };
        let flow = self.flows.get_mut(at)?.as_mut()?;
        flow.used = clock;
        Some(flow)
    }

    fn free_number(&self, near: Ipv6Addr, far: Ipv6Addr) -> Option<u8> {
        let taken = |number: u8| {
            let mut flows = self.flows.iter().flatten();
            flows.any(|flow| (flow.near, flow.far, flow.number) == (near, far, number))
        };
        (0..tcphc::FLOWS).find(|&number| !taken(number))
    }

    /// Drops the context of a connection that is opened or reset.
    fn forget(&mut self, near: Ipv6Addr, far: Ipv6Addr, ports: (u16, u16)) {
        for place in &mut self.flows {
            place.take_if(|flow| {
                (flow.near, flow.far, flow.near_port, flow.far_port)
                    == (near, far, ports.0, ports.1)
            });
        }
    }

    /// A whole header arrived: stores it as the anchor of its flow.
    fn learn(
        &mut self,
        lead: Lead,
        source: Ipv6Addr,
        destination: Ipv6Addr,
        anchor: Anchor,
    ) -> Option<&mut Flow> {
        // The other end reuses this flow number: it has dropped the flow that had it.
        for flow in self.flows.iter_mut().flatten() {
            if (flow.near, flow.far, flow.far_number) == (destination, source, Some(lead.flow)) {
                flow.far_number = None;
            }
        }
        let ports = (anchor.destination_port, anchor.source_port);
        let flow = self.place(destination, source, ports)?;
        flow.far_number = Some(lead.flow);
        flow.inward.hold((lead.generation, anchor));
        Some(flow)
    }
}

impl<const N: usize> Headers for TcpHeaders<N> {
    fn compress(&mut self, packet: &[u8], out: &mut [u8]) -> Option<Lengths> {
        let header = Header::parse(packet).ok()?;
        let tcp = packet.get(ipv6::HEADER_LEN..)?;
        if header.next_header != ipv6::next::TCP {
            return None;
        }
        let (now, len) = Anchor::of(tcp).ok()?;
        let ports = (now.source_port, now.destination_port);
        if !tcphc::is_suitable(tcp) {
            self.forget(header.source, header.destination, ports);
            return None;
        }
        let flow = self.place(header.source, header.destination, ports)?;
        let mut lead = Lead {
            whole: false,
            generation: 0,
            held: flow.inward.newest,
            flow: flow.number,
        };
        let payload = tcp.len().saturating_sub(len);
        match flow.outward.form(&now, payload) {
            Form::Plain => return None,
            Form::Whole(number) => (lead.whole, lead.generation) = (true, number),
            Form::Short((number, anchor)) => {
                lead.generation = number;
                if let Ok(lengths) = tcphc::compress(lead, &anchor, tcp, out) {
                    return Some(lengths);
                }
                match flow.outward.whole(&now) {
                    Form::Whole(number) => (lead.whole, lead.generation) = (true, number),
                    _ => return None,
                }
            }
        }
        // The header itself follows unchanged, at the front of the payload.
        *out.first_mut()? = lead.octet();
        Some(Lengths {
            compressed: 1,
            expanded: 0,
        })
    }

    fn expand(
        &mut self,
        source: Ipv6Addr,
        destination: Ipv6Addr,
        bytes: &[u8],
        out: &mut [u8],
    ) -> Result<Lengths, Lost> {
        let lead = Lead::parse(bytes).map_err(|_| Lost::Malformed)?;
        if lead.whole {
            let tcp = bytes.get(1..).unwrap_or_default();
            let (anchor, _) = Anchor::of(tcp).map_err(|_| Lost::Malformed)?;
            if let Some(flow) = self.learn(lead, source, destination, anchor) {
                flow.outward.confirm(lead.held);
            }
            return Ok(Lengths {
                compressed: 1,
                expanded: 0,
            });
        }
        let mut flows = self.flows.iter_mut().flatten();
        let flow = flows.find(|flow| {
            (flow.near, flow.far, flow.far_number) == (destination, source, Some(lead.flow))
        });
        let flow = flow.ok_or(Lost::NoAnchor)?;
        let anchor = flow.inward.anchor(lead.generation);
        let lengths = tcphc::expand(bytes, anchor.ok_or(Lost::NoAnchor)?, out);
        let lengths = lengths.map_err(|_| Lost::NoAnchor)?;
        flow.used = self.clock;
        flow.outward.confirm(lead.held);
        Ok(lengths)
    }
}

#[cfg(test)]
mod tests;
