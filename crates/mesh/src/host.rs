//! The host's packets on their way into the mesh: a queue for each flow, served in turn, with controlled delay.
//!
//! The mesh takes packets at the rate that the price of the path allows. What is more waits here, where each flow has its own
//! queue (deficit round robin; RFC 8290), so that a bulk transfer delays only itself. A queue that stays longer than its
//! target reacts: packets are marked if their sender takes marks, otherwise dropped (CoDel, RFC 8289). Flows that send
//! little go first, here and at every relay.

use std::collections::{BTreeMap, VecDeque};

use chappe_core::{Duration, Instant};

use crate::packet::{self, Facts, Urgency};

/// Octets that a flow may send in its turn: a packet.
const QUANTUM: i64 = 1514;
/// Most flows; one without packets makes room.
const FLOWS_MAX: usize = 1024;
/// Most octets that wait in all: a second at 16 Mbit/s.
const OCTETS_MAX: usize = 2 << 20;
/// A packet that has waited for this long is dropped, whatever its sender. At 300 ms a path that stood still for as long lost
/// all segments of a TCP window at once.
const WAIT_MAX: Duration = Duration::from_secs(1);
/// CoDel's target and interval (RFC 8289, 4.3 and 4.4).
const TARGET: Duration = Duration::from_millis(5);
const INTERVAL: Duration = Duration::from_millis(100);
/// A flow that sends more than this goes first no longer: 100 kbit/s, a voice call or a stream of acknowledgements (ours).
const LITTLE: f64 = 12_500.0;
/// What it may send at once: two full packets.
const LITTLE_BURST: f64 = 3000.0;
/// A flow that has sent much goes first again after a second, so that its packets do not overtake each other.
const REST: Duration = Duration::from_secs(1);
/// Flows are forgotten after this time without a packet.
const FORGET: Duration = Duration::from_secs(10);

/// A destination node and a flow to it.
pub type Key = (u16, u16);

/// All flows of the host.
#[derive(Debug, Default)]
pub struct Host {
    /// How long a segment that only acknowledges waits for the next one, which replaces it.
    hold: Duration,
    /// Until when all of them wait, if that is sooner or later.
    hold_until: Option<Instant>,
    flows: BTreeMap<Key, Flow>,
    /// Flows with packets: those that began lately, then the others, each in its turn.
    fresh: VecDeque<Key>,
    turn: VecDeque<Key>,
    /// Flows that yield to all others.
    least: VecDeque<Key>,
    octets: usize,
    /// Destinations that take nothing now, and until when.
    blocked: BTreeMap<u16, (Instant, Block)>,
    counters: HostCounters,
}

/// Counters of the host's packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCounters {
    /// Packets that were queued.
    pub queued: u64,
    /// Packets that the mesh took.
    pub taken: u64,
    /// Packets marked because their queue stood.
    pub marked: u64,
    /// Packets dropped because their queue stood and their sender takes no marks.
    pub dropped: u64,
    /// Packets dropped because they had waited too long.
    pub late: u64,
    /// Packets dropped because the host's memory was full: those of the longest queue.
    pub overflowed: u64,
    /// Packets that went first.
    pub first: u64,
    /// Segments that only acknowledge, replaced by later ones before they left.
    pub replaced: u64,
}

/// Why a destination takes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    /// Its rate allows no packet.
    Rate,
    /// Its rate allows few, which leave together. Packets that go first do not wait.
    Together,
    /// There is no room for it, which may come sooner.
    Full,
}

#[derive(Debug)]
struct Flow {
    packets: VecDeque<(Instant, Facts, Vec<u8>)>,
    octets: usize,
    deficit: i64,
    codel: Codel,
    used: Instant,
    /// When a packet left last, and the smoothed time from one to the next while others waited, in seconds.
    left: Option<Instant>,
    every: f64,
    /// Octets that it may still send as a flow that sends little.
    little: f64,
    /// When it last sent more.
    much_at: Option<Instant>,
}

/// CoDel's state (RFC 8289, 5).
#[derive(Clone, Copy, Debug, Default)]
struct Codel {
    /// When the delay has been above the target for an interval.
    above_until: Option<Instant>,
    dropping: bool,
    next: Instant,
    count: u32,
    last_count: u32,
}

/// The packet at the head of the flow whose turn it is.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// Its destination node and flow.
    pub key: Key,
    /// Whether it goes first.
    pub first: bool,
    /// The octets of the packet.
    pub packet: &'a [u8],
}

impl Host {
    /// No flow yet. A segment that only acknowledges waits up to `hold` for a later one, which replaces it: each costs a frame
    /// at every hop, and the later one says as much (as CAKE's ACK filter).
    pub fn new(hold: Duration) -> Host {
        Host {
            hold,
            ..Host::default()
        }
    }

    /// Sets how long a segment that only acknowledges waits for a later one.
    pub fn hold_for(&mut self, hold: Duration) {
        self.hold = hold;
    }

    /// Segments that only acknowledge wait until then; `None`: as long as they wait by themselves.
    pub fn hold_acks(&mut self, until: Option<Instant>) {
        self.hold_until = until;
    }

    /// Queues a packet for a node.
    pub fn offer(&mut self, now: Instant, node: u16, facts: Facts, packet: &[u8]) {
        let key = (node, facts.flow);
        if !self.flows.contains_key(&key) && self.flows.len() >= FLOWS_MAX {
            self.forget(now);
            if self.flows.len() >= FLOWS_MAX {
                self.counters.overflowed += 1;
                return;
            }
        }
        let flow = self.flows.entry(key).or_insert_with(|| Flow::new(now));
        flow.earn(now);
        let was_empty = flow.packets.is_empty();
        if let Some(before) = flow.replace(packet) {
            flow.octets = flow.octets + packet.len() - before;
            self.octets = self.octets + packet.len() - before;
            self.counters.queued += 1;
            self.counters.replaced += 1;
            return;
        }
        flow.packets.push_back((now, facts, packet.to_vec()));
        flow.octets += packet.len();
        self.octets += packet.len();
        self.counters.queued += 1;
        if was_empty {
            flow.deficit = QUANTUM;
            match facts.urgency() {
                Urgency::Least => self.least.push_back(key),
                _ => self.fresh.push_back(key),
            }
        }
        while self.octets > OCTETS_MAX {
            self.shorten();
        }
    }

    /// The packet whose turn it is, after marks and drops; `None` if nothing waits that may leave now.
    pub fn head(&mut self, now: Instant) -> Option<Head<'_>> {
        self.blocked.retain(|_, (until, _)| *until > now);
        let key = self.next(now)?;
        let flow = self.flows.get_mut(&key)?;
        let first = flow.goes_first(now);
        let (_, _, packet) = flow.packets.front()?;
        Some(Head { key, first, packet })
    }

    /// The mesh took the head of a flow.
    pub fn taken(&mut self, now: Instant, key: Key, first: bool) {
        let Some(flow) = self.flows.get_mut(&key) else {
            return;
        };
        let Some(len) = flow.pop() else { return };
        self.octets = self.octets.saturating_sub(len);
        flow.spend(now, len);
        flow.served(now);
        flow.deficit -= len as i64;
        self.counters.taken += 1;
        self.counters.first += u64::from(first);
    }

    /// The head of a flow cannot be carried.
    pub fn refuse(&mut self, key: Key) {
        if let Some(len) = self.flows.get_mut(&key).and_then(Flow::pop) {
            self.octets = self.octets.saturating_sub(len);
            self.counters.dropped += 1;
        }
    }

    /// The rate of a destination allows nothing until then.
    pub fn block(&mut self, node: u16, until: Instant) {
        self.blocked.insert(node, (until, Block::Rate));
    }

    /// The rate of a destination allows few packets: those that do not go first leave together then.
    pub fn block_together(&mut self, node: u16, until: Instant) {
        self.blocked.insert(node, (until, Block::Together));
    }

    /// The mesh has no room for a destination: it takes nothing until then, or until there is room.
    pub fn block_full(&mut self, node: u16, until: Instant) {
        self.blocked.insert(node, (until, Block::Full));
    }

    /// The mesh takes something again for those destinations that had no room and have some now.
    pub fn make_room(&mut self, has_room: impl Fn(u16) -> bool) {
        self.blocked
            .retain(|&node, &mut (_, why)| !(why == Block::Full && has_room(node)));
    }

    /// When a destination may take something again, if anything waits.
    pub fn deadline(&self) -> Option<Instant> {
        let blocked = self.blocked.values().filter(|_| self.octets > 0);
        let blocked = blocked.map(|&(until, _)| until);
        let waiting = self
            .flows
            .iter()
            .filter(|(key, flow)| flow.packets.len() == 1 && !self.blocked.contains_key(&key.0));
        let held = waiting.filter_map(|(_, flow)| flow.held_until(self.hold, self.hold_until));
        blocked.chain(held).min()
    }

    /// Octets of all packets that wait.
    pub fn waiting(&self) -> usize {
        self.octets
    }

    /// The flows with packets: key, packets, octets, the longest wait.
    pub fn flows(&self, now: Instant) -> impl Iterator<Item = (Key, usize, usize, Duration)> + '_ {
        self.flows.iter().filter_map(move |(&key, flow)| {
            let (came, _, _) = flow.packets.front()?;
            Some((
                key,
                flow.packets.len(),
                flow.octets,
                now.saturating_since(*came),
            ))
        })
    }

    /// The counters since the start.
    pub fn counters(&self) -> HostCounters {
        self.counters
    }

    /// The flow whose turn it is.
    fn next(&mut self, now: Instant) -> Option<Key> {
        let (hold, until) = (self.hold, self.hold_until);
        for list in [List::Fresh, List::Turn, List::Least] {
            let mut rounds = 2 * self.list(list).len();
            while rounds > 0 {
                rounds -= 1;
                let Some(&key) = self.list(list).front() else {
                    break;
                };
                let block = self.blocked.get(&key.0).map(|(_, why)| *why);
                let Some(flow) = self.flows.get_mut(&key) else {
                    self.list(list).pop_front();
                    continue;
                };
                let blocked = match block {
                    Some(Block::Together) => !flow.goes_first(now),
                    other => other.is_some(),
                };
                let held = flow.packets.len() == 1
                    && flow
                        .held_until(hold, until)
                        .is_some_and(|until| until > now);
                if blocked || held {
                    self.list(list).rotate_left(1);
                    continue;
                }
                if flow.deficit <= 0 {
                    flow.deficit += QUANTUM;
                    self.list(list).pop_front();
                    let behind = if matches!(list, List::Least) {
                        List::Least
                    } else {
                        List::Turn
                    };
                    self.list(behind).push_back(key);
                    rounds = rounds.max(1);
                    continue;
                }
                let dropped = flow.control(now, &mut self.counters);
                self.octets = self.octets.saturating_sub(dropped);
                if flow.packets.is_empty() {
                    self.list(list).pop_front();
                    continue;
                }
                return Some(key);
            }
        }
        None
    }

    fn list(&mut self, list: List) -> &mut VecDeque<Key> {
        match list {
            List::Fresh => &mut self.fresh,
            List::Turn => &mut self.turn,
            List::Least => &mut self.least,
        }
    }

    /// Drops the oldest packet of the longest queue.
    fn shorten(&mut self) {
        let longest = self.flows.values_mut().max_by_key(|flow| flow.octets);
        let Some(len) = longest.and_then(Flow::pop) else {
            self.octets = 0;
            return;
        };
        self.octets = self.octets.saturating_sub(len);
        self.counters.overflowed += 1;
    }

    fn forget(&mut self, now: Instant) {
        let old = |flow: &Flow| now.saturating_since(flow.used) > FORGET;
        self.flows
            .retain(|_, flow| !flow.packets.is_empty() || !old(flow));
        if self.flows.len() >= FLOWS_MAX {
            self.flows.retain(|_, flow| !flow.packets.is_empty());
        }
    }
}

#[derive(Clone, Copy)]
enum List {
    Fresh,
    Turn,
    Least,
}

impl Flow {
    fn new(now: Instant) -> Flow {
        Flow {
            packets: VecDeque::new(),
            octets: 0,
            deficit: QUANTUM,
            codel: Codel::default(),
            used: now,
            left: None,
            every: 0.0,
            little: LITTLE_BURST,
            much_at: None,
        }
    }

    /// Replaces the last packet, if it and the new one only acknowledge, and the new one more. Returns the length of the old.
    fn replace(&mut self, packet: &[u8]) -> Option<usize> {
        let (_, _, last) = self.packets.back_mut()?;
        let (before, after) = (packet::pure_ack(last)?, packet::pure_ack(packet)?);
        // Equal numbers are duplicates, which tell of a loss.
        if !(1..1 << 31).contains(&after.wrapping_sub(before)) {
            return None;
        }
        let len = last.len();
        last.clear();
        last.extend_from_slice(packet);
        Some(len)
    }

    /// Until when the first packet waits for one that replaces it.
    fn held_until(&self, hold: Duration, until: Option<Instant>) -> Option<Instant> {
        let (came, _, packet) = self.packets.front()?;
        packet::pure_ack(packet)?;
        Some(until.unwrap_or(*came + hold))
    }

    fn pop(&mut self) -> Option<usize> {
        let (_, _, packet) = self.packets.pop_front()?;
        self.octets = self.octets.saturating_sub(packet.len());
        Some(packet.len())
    }

    fn earn(&mut self, now: Instant) {
        let span = now.saturating_since(self.used).as_secs_f64();
        self.little = (self.little + LITTLE * span).min(LITTLE_BURST);
        self.used = self.used.max(now);
    }

    fn spend(&mut self, now: Instant, len: usize) {
        self.earn(now);
        self.little -= len as f64;
        if self.little < 0.0 {
            self.little = 0.0;
            self.much_at = Some(now);
        }
    }

    /// A packet left: measures the service while packets wait.
    fn served(&mut self, now: Instant) {
        if let Some(left) = self.left {
            let span = now.saturating_since(left).as_secs_f64();
            self.every += (span - self.every) / 8.0;
        }
        self.left = (!self.packets.is_empty()).then_some(now);
    }

    fn goes_first(&self, now: Instant) -> bool {
        let Some((_, facts, packet)) = self.packets.front() else {
            return false;
        };
        let rested = self
            .much_at
            .is_none_or(|at| now.saturating_since(at) >= REST);
        let little = rested && self.little >= packet.len() as f64;
        match facts.urgency() {
            // A sender that calls much urgent has no more than others.
            Urgency::Urgent | Urgency::Usual => little,
            Urgency::Least => false,
        }
    }

    /// Drops and marks at the head as CoDel and the longest wait ask. Returns the octets dropped.
    fn control(&mut self, now: Instant, counters: &mut HostCounters) -> usize {
        let mut dropped = 0;
        while let Some((came, _, _)) = self.packets.front() {
            if now.saturating_since(*came) <= WAIT_MAX {
                break;
            }
            dropped += self.pop().unwrap_or(0);
            counters.late += 1;
        }
        // Four packets may always wait: the time of one is the least (RFC 8289, 4.4), and TCP sends two at a time.
        let target = TARGET.max(Duration::from_secs_f64(4.0 * self.every));
        while let Some((came, facts, _)) = self.packets.front() {
            let facts = *facts;
            let wait = now.saturating_since(*came);
            let standing = wait >= target && self.packets.len() > 1;
            if !self.codel.signals(now, standing) {
                break;
            }
            if facts.takes_marks() {
                if let Some((_, facts, packet)) = self.packets.front_mut() {
                    packet::mark(packet);
                    facts.ecn = 3;
                }
                counters.marked += 1;
                break;
            }
            dropped += self.pop().unwrap_or(0);
            counters.dropped += 1;
        }
        dropped
    }
}

impl Codel {
    /// Whether the packet at the head must be dropped or marked.
    fn signals(&mut self, now: Instant, standing: bool) -> bool {
        if !standing {
            (self.above_until, self.dropping) = (None, false);
            return false;
        }
        let until = *self.above_until.get_or_insert(now + INTERVAL);
        if now < until {
            return false;
        }
        if !self.dropping {
            self.dropping = true;
            // It continues near the rate that controlled the queue before (RFC 8289, 5.5).
            let lately = now.saturating_since(self.next) < INTERVAL * 16;
            let more = self.count.saturating_sub(self.last_count);
            self.count = if lately && more > 1 { more } else { 1 };
            self.last_count = self.count;
            self.next = self.after(now);
            return true;
        }
        if now < self.next {
            return false;
        }
        self.count = self.count.saturating_add(1);
        self.next = self.after(self.next);
        true
    }

    fn after(&self, from: Instant) -> Instant {
        from + INTERVAL.mul_f64(1.0 / f64::from(self.count.max(1)).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    /// A UDP packet of `len` octets with these ECN bits, from a port.
    fn udp(port: u16, ecn: u8, len: usize) -> Vec<u8> {
        let mut packet = vec![0; len];
        (packet[0], packet[1], packet[9]) = (0x45, ecn, 17);
        packet[16..20].copy_from_slice(&[10, 0, 0, 9]);
        packet[20..22].copy_from_slice(&port.to_be_bytes());
        packet
    }

    fn offer(host: &mut Host, now: Instant, packet: &[u8]) -> Key {
        let facts = Facts::of(packet).unwrap();
        host.offer(now, 9, facts, packet);
        (9, facts.flow)
    }

    /// Goal: a burst of a fast host does not wait for the clock when the mesh has room again. Method: a destination without room.
    #[test]
    fn room_ends_a_wait_and_a_rate_does_not() {
        let mut host = Host::new(Duration::ZERO);
        offer(&mut host, at(0), &udp(1, 0, 1000));
        host.block_full(9, at(2));
        host.make_room(|_| false);
        assert!(host.head(at(1)).is_none());
        host.make_room(|node| node == 9);
        assert!(host.head(at(1)).is_some());
        host.block(9, at(2));
        host.make_room(|_| true);
        assert!(host.head(at(1)).is_none() && host.head(at(2)).is_some());
    }

    /// Goal: what a low rate lets leave together holds no packet that goes first. Method: a flow that has sent much, and one that begins.
    #[test]
    fn packets_that_go_first_do_not_wait_with_others() {
        let mut host = Host::new(Duration::ZERO);
        let much = offer(&mut host, at(0), &udp(1, 0, 1400));
        for _ in 0..4 {
            offer(&mut host, at(0), &udp(1, 0, 1400));
        }
        for _ in 0..3 {
            host.head(at(0)).unwrap();
            host.taken(at(0), much, false);
        }
        host.block_together(9, at(5));
        assert!(host.head(at(1)).is_none());
        let few = offer(&mut host, at(1), &udp(2, 0, 100));
        let head = host.head(at(1)).unwrap();
        assert!(head.key == few && head.first);
        // Its rate allows no packet at all.
        host.block(9, at(5));
        assert!(host.head(at(4)).is_none());
        assert_eq!(host.head(at(5)).unwrap().key, few);
    }

    /// Serves a packet each `every` ms while a flow offers twice as many. Returns the waits in the second half.
    fn served(ecn: u8, every: u64) -> (Host, Vec<u64>) {
        let (mut host, mut waits) = (Host::new(Duration::ZERO), Vec::new());
        for ms in 0..10_000u64 {
            if ms.is_multiple_of(every / 2) {
                offer(&mut host, at(ms), &udp(1, ecn, 1400));
            }
            if ms.is_multiple_of(every) {
                let wait = host.flows(at(ms)).map(|flow| flow.3).next();
                let head = host.head(at(ms)).map(|head| (head.key, head.first));
                if let Some((key, first)) = head {
                    host.taken(at(ms), key, first);
                    waits.extend(
                        wait.filter(|_| ms > 5000)
                            .map(|wait| wait.nanos() / 1_000_000),
                    );
                }
            }
        }
        (host, waits)
    }

    /// Goal: a flow that does not react is held to a bounded delay by drops, and one that takes marks is marked first.
    #[test]
    fn delay_is_bounded_and_marks_come_before_drops() {
        let (host, waits) = served(0, 10);
        assert!(
            waits.iter().all(|&wait| wait <= 310),
            "{:?}",
            waits.iter().max()
        );
        assert!(host.counters().dropped > 100, "{:?}", host.counters());
        assert_eq!(host.counters().marked, 0);
        let (host, waits) = served(1, 10);
        assert!(waits.iter().all(|&wait| wait <= 1010));
        let counters = host.counters();
        assert!(
            counters.marked > 100 && counters.dropped == 0 && counters.late > 0,
            "{counters:?}"
        );
    }

    /// A flow that sends little passes one that fills its queue, and goes first.
    #[test]
    fn a_flow_that_sends_little_does_not_wait_for_one_that_sends_much() {
        let mut host = Host::default();
        let bulk = (0..50)
            .map(|_| offer(&mut host, at(0), &udp(1, 0, 1400)))
            .last()
            .unwrap();
        for _ in 0..4 {
            let (key, first) = host.head(at(1)).map(|head| (head.key, head.first)).unwrap();
            host.taken(at(1), key, first);
            assert_eq!(key, bulk);
        }
        let small = offer(&mut host, at(2), &udp(2, 0, 84));
        let head = host.head(at(2)).unwrap();
        assert_eq!((head.key, head.first), (small, true));
        host.taken(at(2), small, true);
        assert_eq!(
            host.head(at(3)).map(|head| (head.key, head.first)),
            Some((bulk, false))
        );
        host.block(9, at(50));
        assert!(host.head(at(4)).is_none());
        assert_eq!(host.deadline(), Some(at(50)));
        assert!(host.head(at(50)).is_some());
    }

    #[test]
    fn two_flows_share_by_octets() {
        let (mut host, mut octets) = (Host::default(), BTreeMap::new());
        for n in 0..600 {
            offer(
                &mut host,
                at(0),
                &udp(1, 0, if n % 2 == 0 { 1400 } else { 300 }),
            );
            offer(&mut host, at(0), &udp(2, 0, 200));
            offer(&mut host, at(0), &udp(2, 0, 200));
        }
        for _ in 0..800 {
            let (key, len) = host
                .head(at(1))
                .map(|head| (head.key, head.packet.len()))
                .unwrap();
            host.taken(at(1), key, false);
            *octets.entry(key).or_insert(0usize) += len;
        }
        let shares: Vec<_> = octets.values().copied().collect();
        let (least, most) = (
            shares[0].min(shares[1]) as f64,
            shares[0].max(shares[1]) as f64,
        );
        assert!(least > 0.95 * most, "{shares:?}");
    }

    #[test]
    fn floods_fill_neither_memory_nor_the_table() {
        let mut host = Host::default();
        for n in 0..5000u16 {
            offer(&mut host, at(u64::from(n)), &udp(n, 0, 1400));
        }
        assert!(host.flows.len() <= FLOWS_MAX && host.waiting() <= OCTETS_MAX);
        for _ in 0..5000 {
            offer(&mut host, at(6000), &udp(3, 0, 1400));
        }
        assert!(host.waiting() <= OCTETS_MAX);
        assert!(host.counters().overflowed > 6000, "{:?}", host.counters());
    }
}
