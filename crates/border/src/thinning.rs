//! Thins out the kernel's acknowledgements of data from motes (RFC 3449 5.2.1). An acknowledgement crosses the data on every hop, and
//! Linux sends one for each segment when segments come further apart than its delayed-ACK timer of 40 ms, as they do over three hops.
//!
//! A pure acknowledgement is held until the kernel acknowledges the next segment too. Then only the second one is sent, as RFC 9293
//! 3.8.6.3 wants it: at least one for every second segment. An acknowledgement that says more than "the next segment arrived" passes at once, and
//! so does everything while the flow has gaps, ends, or seems to wait for what was held.

use std::net::Ipv6Addr;

use chappe_core::{Duration, Instant};
use chappe_tcplp::tcp::{Flags, Segment, Seq};
use chappe_wire::ipv6::{HEADER_LEN, Header, next};

/// Flows that are watched at a time: as many as the border router compresses TCP headers for.
const FLOWS: usize = 32;
/// Octets of an IPv6 header and a TCP header with timestamps (RFC 7323 appendix A): the longest acknowledgement that is held.
const PURE_MAX: usize = HEADER_LEN + TCP_HEADER + TIMESTAMPS;
const TCP_HEADER: usize = 20;
const TIMESTAMPS: usize = 12;
/// The longest hold. An acknowledgement may be delayed by 500 ms (RFC 9293 3.8.6.3), of which Linux takes up to 200
/// (TCP_DELACK_MAX). A flow whose segments come further apart is not thinned.
const HOLD_MAX: Duration = Duration::from_millis(300);
/// Segments that one acknowledgement may stand for (RFC 9293 3.8.6.3).
const SEGMENTS: u8 = 2;
/// Acknowledgements that pass after a hold in vain, which shows a sender that waits. The number begins at the second value, doubles
/// with each such hold, and halves with each hold that was worth it, between the others.
const RESPITE_MIN: u8 = 2;
const RESPITE: u8 = 16;
const RESPITE_MAX: u8 = 64;

/// What to do with a packet from the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// Forward it, after the acknowledgement that was held.
    Pass(Option<Held>),
    /// It is held: forward nothing.
    Hold,
}

/// An acknowledgement that is held: a copy of the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    octets: [u8; PURE_MAX],
    len: usize,
    since: Instant,
    due: Instant,
}

impl Held {
    /// The IPv6 packet as the kernel sent it.
    pub fn packet(&self) -> &[u8] {
        self.octets.get(..self.len).unwrap_or_default()
    }
}

/// The flows with data from motes to the kernel.
#[derive(Debug, Default)]
pub struct Thinning {
    /// At most [`FLOWS`] of them; when full, a new flow replaces the least recent one that holds nothing.
    flows: Vec<Flow>,
    thinned: u64,
}

#[derive(Debug)]
struct Flow {
    ends: Ends,
    /// When the last segment from the mote passed, and the end of the highest one.
    last: Instant,
    highest: Seq,
    spacing: Spacing,
    /// Number and window of the kernel's last acknowledgement.
    acked: Option<(Seq, u16)>,
    /// Segments that passed to the kernel since the last acknowledgement into the mesh.
    segments: u8,
    /// Acknowledgements that still pass without being held.
    respite: u8,
    /// What `respite` becomes after the next hold in vain.
    next_respite: u8,
    held: Option<Held>,
    /// A SYN, FIN or RST came from the mote: the flow is forgotten when it holds nothing.
    ended: bool,
}

/// Address and port of the mote, then of the kernel's side.
type Ends = [(Ipv6Addr, u16); 2];

/// The smoothed time between segments of a flow and its mean deviation, as RFC 6298 2 smoothes round trips.
#[derive(Clone, Copy, Debug, Default)]
struct Spacing {
    mean: Option<Duration>,
    deviation: Duration,
}

impl Spacing {
    fn add(&mut self, interval: Duration) {
        let Some(mean) = self.mean else {
            (self.mean, self.deviation) = (Some(interval), interval / 2);
            return;
        };
        let error = mean.max(interval).saturating_sub(mean.min(interval));
        self.deviation = (self.deviation * 3 + error) / 4;
        self.mean = Some((mean * 7 + interval) / 8);
    }

    /// How long to wait for the next segment; `None` without an estimate.
    fn limit(&self) -> Option<Duration> {
        Some((self.mean? + self.deviation * 4).min(HOLD_MAX))
    }
}

impl Thinning {
    /// Acknowledgements that were not sent, since a later one said the same and more.
    pub fn thinned(&self) -> u64 {
        self.thinned
    }

    /// A packet passes from the mesh to the kernel.
    pub fn arrived(&mut self, now: Instant, header: &Header, packet: &[u8]) {
        let Some(segment) = parse(header, packet) else {
            return;
        };
        let ends = [
            (header.source, segment.source_port),
            (header.destination, segment.destination_port),
        ];
        let found = self.flows.iter().position(|flow| flow.ends == ends);
        let usual = Flags::ACK | Flags::PSH | Flags::ECE | Flags::CWR;
        if segment.flags.without(usual) != Flags::NONE {
            // SYN, FIN, RST: from here on every acknowledgement counts.
            if let Some(place) = found {
                self.end(place);
            }
        } else if !segment.payload.is_empty() {
            match found.and_then(|place| self.flows.get_mut(place)) {
                Some(flow) => flow.arrived(now, &segment),
                None => self.watch(now, ends, &segment),
            }
        }
    }

    /// Forgets a flow once the acknowledgement that it holds was sent, which is now due.
    fn end(&mut self, place: usize) {
        let Some(flow) = self.flows.get_mut(place) else {
            return;
        };
        flow.ended = true;
        match &mut flow.held {
            Some(held) => held.due = held.since,
            None => drop(self.flows.swap_remove(place)),
        }
    }

    /// Begins to watch a flow, in the place of the one that has rested longest if all are taken.
    fn watch(&mut self, now: Instant, ends: Ends, segment: &Segment<'_>) {
        let flow = Flow::new(now, ends, segment);
        if self.flows.len() < FLOWS {
            return self.flows.push(flow);
        }
        let free = self.flows.iter_mut().filter(|flow| flow.held.is_none());
        if let Some(oldest) = free.min_by_key(|flow| flow.last) {
            *oldest = flow;
        }
    }

    /// A packet from the kernel is about to be forwarded into the mesh.
    pub fn judge(&mut self, now: Instant, header: &Header, packet: &[u8]) -> Ruling {
        let Some(segment) = parse(header, packet) else {
            return Ruling::Pass(None);
        };
        let ends = [
            (header.destination, segment.destination_port),
            (header.source, segment.source_port),
        ];
        let Some(flow) = self.flows.iter_mut().find(|flow| flow.ends == ends) else {
            return Ruling::Pass(None);
        };
        if !segment.flags.has(Flags::ACK) {
            return Ruling::Pass(flow.pass());
        }
        let before = flow.acked.replace((segment.ack, segment.window));
        let advances = before.is_some_and(|(ack, _)| segment.ack.after(ack));
        let held = flow.held.take();
        if advances && held.is_some() {
            // The new one acknowledges all that the held one did.
            self.thinned += 1;
            flow.next_respite = (flow.next_respite / 2).max(RESPITE_MIN);
        }
        let is_new = advances && is_pure(&segment, packet);
        let same_window = before.is_some_and(|(_, window)| segment.window == window);
        if is_new && same_window && flow.hold(now, held, packet) {
            return Ruling::Hold;
        }
        flow.segments = 0;
        if !segment.options.sack.as_slice().is_empty() {
            // The mote repairs a loss, and the number of acknowledgements matters to it.
            flow.respite = flow.respite.max(RESPITE_MIN);
        }
        let held = held.filter(|_| !advances);
        if held.is_some() {
            flow.in_vain();
        }
        Ruling::Pass(held)
    }

    /// The earliest time at which [`release`](Self::release) has something.
    pub fn due(&self) -> Option<Instant> {
        let held = self.flows.iter().filter_map(|flow| flow.held);
        held.map(|held| held.due).min()
    }

    /// Takes an acknowledgement that was held in vain: no segment came.
    pub fn release(&mut self, now: Instant) -> Option<Held> {
        let is_due = |flow: &Flow| flow.held.is_some_and(|held| held.due <= now);
        let place = self.flows.iter().position(is_due)?;
        let flow = self.flows.get_mut(place)?;
        flow.in_vain();
        let held = flow.pass();
        if flow.ended {
            self.flows.swap_remove(place);
        }
        held
    }
}

impl Flow {
    fn new(now: Instant, ends: Ends, segment: &Segment<'_>) -> Flow {
        Flow {
            ends,
            last: now,
            highest: segment.seq + segment.payload.len() as u32,
            spacing: Spacing::default(),
            acked: None,
            segments: 1,
            respite: 0,
            next_respite: RESPITE,
            held: None,
            ended: false,
        }
    }

    /// Data from the mote passes to the kernel.
    fn arrived(&mut self, now: Instant, segment: &Segment<'_>) {
        let end = segment.seq + segment.payload.len() as u32;
        let is_new = end.after(self.highest);
        if is_new {
            self.highest = end;
            let interval = now.saturating_since(self.last);
            self.last = now;
            match interval <= HOLD_MAX {
                true => self.spacing.add(interval),
                // The flow rested.
                false => self.spacing = Spacing::default(),
            }
        }
        self.segments = self.segments.saturating_add(1);
        if let Some(held) = &mut self.held {
            held.due = match is_new {
                // The kernel will acknowledge this one too: the held acknowledgement may wait for that.
                true => held.since + HOLD_MAX,
                // The mote sends again what the held one would have acknowledged.
                false => now,
            };
        }
    }

    /// Holds this pure acknowledgement of new data, unless it covers enough segments. `held` is the one it replaces.
    fn hold(&mut self, now: Instant, held: Option<Held>, packet: &[u8]) -> bool {
        if self.ended {
            return false;
        }
        if self.respite > 0 {
            self.respite -= 1;
            return false;
        }
        let Some(limit) = self.spacing.limit().filter(|_| self.segments < SEGMENTS) else {
            return false;
        };
        let since = held.map_or(now, |held| held.since);
        let mut octets = [0; PURE_MAX];
        let Some(room) = octets.get_mut(..packet.len()) else {
            return false;
        };
        room.copy_from_slice(packet);
        self.held = Some(Held {
            octets,
            len: packet.len(),
            since,
            due: since + limit,
        });
        true
    }

    /// What was held has to be sent after all: the mote waits for it, or a segment was lost.
    fn in_vain(&mut self) {
        self.respite = self.next_respite;
        self.next_respite = self.next_respite.saturating_mul(2).min(RESPITE_MAX);
    }

    /// The held acknowledgement is to be sent.
    fn pass(&mut self) -> Option<Held> {
        self.segments = 0;
        self.held.take()
    }
}

/// The TCP segment behind an IPv6 header without extension headers.
fn parse<'a>(header: &Header, packet: &'a [u8]) -> Option<Segment<'a>> {
    let upper = packet.get(HEADER_LEN..)?;
    let is_tcp = header.next_header == next::TCP;
    is_tcp.then(|| Segment::parse(upper).ok()).flatten()
}

/// Whether a segment says nothing but "this has arrived": no flag but ACK, no data, no option but timestamps.
fn is_pure(segment: &Segment<'_>, packet: &[u8]) -> bool {
    let timestamps = match segment.options.timestamps {
        Some(_) => TIMESTAMPS,
        None => 0,
    };
    segment.flags == Flags::ACK && packet.len() == HEADER_LEN + TCP_HEADER + timestamps
}

#[cfg(test)]
pub(crate) mod tests;
