//! Fair queueing of host packets: one queue for each flow, as in FQ-CoDel (RFC 8290), with its dropping by length instead of delay.
//!
//! A flow that fills the link only delays itself: flows that have sent little lately are served first, the others in turns
//! by octets. A flow that has more queued than its share of what the link carries in a given time loses its oldest packet, since a
//! loss at the head reaches the sender soonest; and another one only once it can have noticed (CoDel's control law, RFC 8289, 5.3). To
//! drop each packet that is too many drops what is repeated as well, and a flow is stuck.

use std::collections::VecDeque;

use chappe_core::{Duration, Instant};
use chappe_sys::tun::Joined;
use chappe_wildnet::{FLOWS, SERVICES};

use super::{Added, Container, Packer, Rest};

/// Packets up to this many octets wait for others: a TCP acknowledgement has 40 to 80.
const SMALL: usize = 128;
/// This many octets of small packets are worth a separate frame.
const SMALL_MOST: usize = 512;
/// How long a small packet waits for a frame that leaves anyway: as long as a report does ([`chappe_wildnet::Config::ack_delay`]). Beside
/// a transfer a report is always due a little later, since it leaves with the next frame and another one comes up.
const RIDE: Duration = Duration::from_millis(10);
/// Lower and upper bound of a class's queue limit in octets.
const LEAST: usize = 64 << 10;
const MOST: usize = 16 << 20;
/// A flow with no more queued than this does not fill the link: two frames.
const SPARSE: usize = 2 * QUANTUM as usize;
/// The least share of a flow: its first window (RFC 6928).
const SHARE_LEAST: usize = 10 * QUANTUM as usize;
/// So many times its limit a class may have queued while flows slow down: one that starts doubles until it notices.
const OVERSHOOT: usize = 2;
/// Octets that a flow may send before the next one gets its turn: a frame.
const QUANTUM: isize = 1514;

/// The queues of all classes.
#[derive(Clone, Debug)]
pub(crate) struct Queues {
    classes: [Class; SERVICES],
    /// Packets dropped from full queues.
    pub dropped: u64,
    /// Octets of packets that have left.
    pub left: u64,
}

#[derive(Clone, Debug)]
struct Class {
    flows: Vec<Flow>,
    /// New flows, which are served first, and the others (RFC 8290, 4.2). A flow is in at most one list.
    young: VecDeque<usize>,
    old: VecDeque<usize>,
    octets: usize,
    packets: usize,
    /// Packets of more than [`SMALL`] octets, and parts.
    large: usize,
}

#[derive(Clone, Debug, Default)]
struct Flow {
    packets: VecDeque<Queued>,
    /// The rest of a packet that was split, and since when it has waited.
    rest: Option<(Rest, Instant)>,
    octets: usize,
    /// Octets that it may still send in this turn.
    credit: isize,
    listed: bool,
    warned: Warned,
}

/// The signals to a flow that it should slow down.
#[derive(Clone, Copy, Debug, Default)]
struct Warned {
    /// Packets dropped in a row.
    count: u32,
    /// Until then it has not noticed the last one.
    until: Instant,
}

impl Warned {
    /// Whether a flow loses a packet now. `over`: it has too much queued; `span`: how long it takes to notice.
    fn is_due(&mut self, now: Instant, over: bool, span: Duration) -> bool {
        if now < self.until {
            return false;
        }
        if !over {
            self.count = 0;
            return false;
        }
        self.count = self.count.saturating_add(1);
        self.until = now + span.mul_f64(1.0 / f64::from(self.count).sqrt());
        true
    }
}

/// The limit of a class's queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    pub octets: usize,
    /// How long a flow takes to notice that a packet was dropped, as long as the limit is not below [`LEAST`].
    pub span: Duration,
}

impl Limit {
    /// Within the bounds, with the time that the octets take.
    fn bounded(self) -> Limit {
        let octets = self.octets.clamp(LEAST, MOST);
        let longer = (octets as f64 / self.octets.max(1) as f64).max(1.0);
        Limit {
            octets,
            span: self.span.mul_f64(longer),
        }
    }
}

#[derive(Clone, Debug)]
struct Queued {
    octets: Vec<u8>,
    joined: Option<Joined>,
    since: Instant,
}

impl Queues {
    pub fn new() -> Queues {
        let class = Class {
            flows: vec![Flow::default(); FLOWS],
            young: VecDeque::new(),
            old: VecDeque::new(),
            octets: 0,
            packets: 0,
            large: 0,
        };
        Queues {
            classes: std::array::from_fn(|_| class.clone()),
            dropped: 0,
            left: 0,
        }
    }

    /// The number of queued packets.
    pub fn packets(&self) -> usize {
        self.classes.iter().map(|class| class.packets).sum()
    }

    /// Octets that wait in a class.
    pub fn octets(&self, class: usize) -> usize {
        self.classes.get(class).map_or(0, |class| class.octets)
    }

    /// Whether a class would take a packet of 1514 octets without dropping one.
    pub fn has_room(&self, class: usize, limit: Limit) -> bool {
        let limit = limit.bounded().octets;
        self.classes
            .get(class)
            .is_some_and(|class| class.octets + QUANTUM as usize <= limit)
    }

    /// Drops the rests of split packets, whose other parts are lost.
    pub fn forget_parts(&mut self) {
        for class in &mut self.classes {
            for flow in &mut class.flows {
                if let Some((rest, _)) = flow.rest.take() {
                    flow.octets -= rest.len();
                    class.octets -= rest.len();
                    class.packets -= 1;
                    class.large -= 1;
                }
            }
        }
    }

    /// Queues a packet, and drops one if a flow has too much queued.
    pub fn put(
        &mut self,
        now: Instant,
        (class, flow): (usize, usize),
        (packet, joined): (&[u8], Option<Joined>),
        limit: Limit,
    ) {
        let limit = limit.bounded();
        let Some(class) = self.classes.get_mut(class) else {
            return;
        };
        class.put(now, flow, packet, joined);
        if class.warns(now, flow, limit, packet.len()) {
            self.dropped += u64::from(class.drop_one(flow));
            return;
        }
        // What does not slow down loses all that is too much. The longest flow loses a packet when it adds one itself. Packets of other
        // flows count only far above the limit, which may just have shrunk.
        let longest = class.longest();
        let over = match longest == Some(flow) {
            true => limit.octets * OVERSHOOT,
            false => limit.octets * OVERSHOOT * 2,
        };
        if class.octets > over && longest.is_some_and(|longest| class.drop_one(longest)) {
            self.dropped += 1;
        }
    }

    /// When a class may send. Small packets wait until `ride`, when a frame leaves anyway, but not for longer than [`RIDE`].
    pub fn ready_at(&self, class: usize, ride: Option<Instant>) -> Option<Instant> {
        let class = self.classes.get(class).filter(|class| class.packets > 0)?;
        // Large packets, or enough small ones, are worth a frame at once.
        let waits = class.large == 0 && class.octets < SMALL_MOST;
        match ride.filter(|_| waits) {
            None => Some(Instant::ZERO),
            Some(ride) => Some(class.oldest().map_or(ride, |since| ride.min(since + RIDE))),
        }
    }

    /// Fills a container with the next packets of a class. Returns their flow and since when the oldest has waited.
    pub fn fill(
        &mut self,
        class: usize,
        packer: &mut Packer,
        sure: bool,
        into: &mut Container<'_>,
    ) -> Option<(usize, Instant)> {
        let class = self.classes.get_mut(class)?;
        class.fill(packer, sure, into, &mut self.left)
    }
}

impl Class {
    fn put(&mut self, now: Instant, number: usize, packet: &[u8], joined: Option<Joined>) {
        let Some(flow) = self.flows.get_mut(number) else {
            return;
        };
        flow.packets.push_back(Queued {
            octets: packet.to_vec(),
            joined,
            since: now,
        });
        flow.octets += packet.len();
        self.octets += packet.len();
        self.packets += 1;
        self.large += usize::from(packet.len() > SMALL);
        if !flow.listed {
            flow.listed = true;
            flow.credit = QUANTUM;
            self.young.push_back(number);
        }
    }

    /// Since when the oldest packet has waited.
    fn oldest(&self) -> Option<Instant> {
        let listed = self.young.iter().chain(&self.old);
        let flows = listed.filter_map(|&number| self.flows.get(number));
        let oldest = |flow: &Flow| {
            let rest = flow.rest.as_ref().map(|(_, since)| *since);
            rest.or(flow.packets.front().map(|queued| queued.since))
        };
        flows.filter_map(oldest).min()
    }

    /// Whether a flow that adds a packet is to lose its oldest one, since it has more queued than its share.
    fn warns(&mut self, now: Instant, number: usize, limit: Limit, added: usize) -> bool {
        let waits = |flow: &&Flow| flow.octets > SPARSE;
        let sharing = self.flows.iter().filter(waits).count().max(1);
        let share = (limit.octets / sharing).max(SHARE_LEAST) + added;
        let Some(flow) = self.flows.get_mut(number) else {
            return false;
        };
        flow.warned.is_due(now, flow.octets > share, limit.span)
    }

    fn longest(&self) -> Option<usize> {
        (0..self.flows.len())
            .max_by_key(|&number| self.flows.get(number).map_or(0, |flow| flow.octets))
    }

    /// Drops the oldest packet of a flow of which no part has left, if there is one.
    fn drop_one(&mut self, number: usize) -> bool {
        let flow = self.flows.get_mut(number);
        let Some((flow, queued)) = flow.and_then(|flow| {
            let queued = flow.packets.pop_front()?;
            Some((flow, queued))
        }) else {
            return false;
        };
        flow.octets -= queued.octets.len();
        self.forget(queued.octets.len());
        true
    }

    fn forget(&mut self, octets: usize) {
        self.octets -= octets;
        self.packets -= 1;
        self.large -= usize::from(octets > SMALL);
    }

    /// The flow whose turn it is.
    fn turn(&mut self) -> Option<usize> {
        loop {
            let young = !self.young.is_empty();
            let list = if young {
                &mut self.young
            } else {
                &mut self.old
            };
            let number = *list.front()?;
            let flow = self.flows.get_mut(number)?;
            let empty = flow.packets.is_empty() && flow.rest.is_none();
            if !empty && flow.credit > 0 {
                return Some(number);
            }
            list.pop_front();
            if empty && !young {
                flow.listed = false;
            } else {
                // One that began and has nothing more stays for a turn, else it could begin again and again.
                flow.credit += if empty { 0 } else { QUANTUM };
                self.old.push_back(number);
            }
        }
    }

    fn fill(
        &mut self,
        packer: &mut Packer,
        sure: bool,
        into: &mut Container<'_>,
        left: &mut u64,
    ) -> Option<(usize, Instant)> {
        let number = self.turn()?;
        let flow = self.flows.get_mut(number)?;
        let mut since = None;
        if let Some((mut rest, waits)) = flow.rest.take() {
            let before = rest.len();
            let last = rest.continue_in(into);
            flow.octets -= before - rest.len();
            self.octets -= before - rest.len();
            since = Some(waits);
            if last {
                self.packets -= 1;
                self.large -= 1;
            } else {
                flow.rest = Some((rest, waits));
            }
        }
        while flow.rest.is_none()
            && let Some(queued) = flow.packets.pop_front()
        {
            let len = queued.octets.len();
            match packer.add(number, (queued.octets, queued.joined), sure, into) {
                Added::Not(octets) => {
                    flow.packets.push_front(Queued {
                        octets,
                        joined: queued.joined,
                        since: queued.since,
                    });
                    break;
                }
                Added::Whole => {
                    *left += len as u64;
                    flow.octets -= len;
                    self.octets -= len;
                    self.packets -= 1;
                    self.large -= usize::from(len > SMALL);
                }
                Added::Part(rest) => {
                    *left += len as u64;
                    flow.octets = flow.octets + rest.len() - len;
                    self.octets = self.octets + rest.len() - len;
                    self.large += usize::from(len <= SMALL);
                    flow.rest = Some((rest, queued.since));
                }
            }
            since.get_or_insert(queued.since);
        }
        flow.credit -= into.len() as isize;
        since.map(|since| (number, since))
    }
}
