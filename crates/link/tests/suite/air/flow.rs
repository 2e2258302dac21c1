//! A flow of TCP that notices what a full queue dropped and sends it again, so that several can share a link.
//!
//! Cubic (RFC 9438, with its Reno-friendly region and fast convergence), selective acknowledgements (RFC 2018), losses by the order of
//! transmissions (RFC 8985 without a window of reordering, since the link keeps the order of a flow), a retransmission timeout
//! (RFC 6298, at least 200 ms after the smoothed round trip as in Linux's `__tcp_set_rto`), which is taken back if an acknowledgement shows
//! that it was spurious (F-RTO with selective acknowledgements, RFC 5682, 3, or by what it echoes, RFC 3522, as Linux does by default; the
//! response is that of RFC 4015),
//! proportional rate reduction (RFC 6937), an acknowledgement for every second segment, or 40 ms later (RFC 1122). Not modelled: HyStart. A
//! sender always has something to send.

use std::collections::{BTreeMap, BTreeSet};

use chappe_core::{Duration, Instant};

/// Segments of the first window (RFC 6928).
const FIRST: f64 = 10.0;
/// Cubic's C and beta (RFC 9438, 5).
const CUBIC: f64 = 0.4;
const BETA: f64 = 0.7;
/// The retransmission timeout: Linux's least beyond the smoothed round trip, RFC 6298's first, and a most that a run can wait for.
const RTO_LEAST: Duration = Duration::from_millis(200);
const RTO_FIRST: Duration = Duration::from_secs(1);
const RTO_MOST: Duration = Duration::from_secs(60);
/// How long an acknowledgement may wait (Linux's least).
const ACK_LATE: Duration = Duration::from_millis(40);
/// Blocks of an acknowledgement beside a stamp (RFC 2018, 3).
const BLOCKS: usize = 3;

/// The sender. Segments are numbered from 0.
#[derive(Clone, Debug)]
pub struct Sender {
    /// Segments in flight, with the number of the transmission in which they last left; and by that number, when they did.
    open: BTreeMap<u32, u64>,
    sent: BTreeMap<u64, (u32, Instant)>,
    lost: BTreeSet<u32>,
    next: u32,
    acked: u32,
    transmissions: u64,
    /// Segments that may be in flight, by cubic and by the receiver; and where the start ends.
    window: f64,
    most: usize,
    threshold: f64,
    /// The window at the last loss; the begin of the present growth, its K, and the window that Reno would have.
    before: f64,
    growth: Option<(Instant, f64, f64)>,
    /// The end of the present recovery.
    recovered: Option<u32>,
    /// Segments that may still leave in a recovery for the latest acknowledgement: those that it brought and one (RFC 6937, slow start
    /// reduction bound). More at once would overflow the queue again, which drops its oldest packet first.
    allowed: Option<u32>,
    /// Smoothed round trip and its variation; the timeout, and how often it has doubled.
    round_trip: Option<(Duration, Duration)>,
    expires: Option<Instant>,
    doubled: u32,
    /// What the timeout has changed, to be taken back if it was spurious.
    undo: Option<Undo>,
    /// Timeouts, and those of them that were taken back.
    pub timeouts: (u64, u64),
}

/// A sender's state before a timeout.
#[derive(Clone, Debug)]
struct Undo {
    open: BTreeMap<u32, u64>,
    sent: BTreeMap<u64, (u32, Instant)>,
    window: f64,
    threshold: f64,
    before: f64,
    /// When it expired, by the clock of stamps.
    stamp: u32,
}

/// The clock of stamps, in milliseconds.
pub fn stamp(now: Instant) -> u32 {
    (now.saturating_since(Instant::ZERO).nanos() / 1_000_000) as u32
}

impl Sender {
    /// A sender to a receiver that accepts so many segments.
    pub fn new(most: usize) -> Sender {
        Sender {
            open: BTreeMap::new(),
            sent: BTreeMap::new(),
            lost: BTreeSet::new(),
            next: 0,
            acked: 0,
            transmissions: 0,
            window: FIRST,
            most,
            threshold: f64::MAX,
            before: 0.0,
            growth: None,
            recovered: None,
            allowed: None,
            round_trip: None,
            expires: None,
            doubled: 0,
            undo: None,
            timeouts: (0, 0),
        }
    }

    /// The next segment that leaves now, if any may.
    pub fn poll(&mut self, now: Instant) -> Option<u32> {
        if self.open.len() as f64 + 1.0 > self.window || self.allowed == Some(0) {
            return None;
        }
        let again = self.lost.pop_first();
        let room = ((self.next - self.acked) as usize) < self.most;
        let seq = match again {
            Some(seq) => seq,
            None if room => {
                self.next += 1;
                self.next - 1
            }
            None => return None,
        };
        self.allowed = self.allowed.map(|left| left - 1);
        self.open.insert(seq, self.transmissions);
        self.sent.insert(self.transmissions, (seq, now));
        self.transmissions += 1;
        if self.expires.is_none() {
            self.expires = Some(now + self.timeout());
        }
        Some(seq)
    }

    /// All before `acked` and those of the blocks (first, and behind the last) have arrived. `echo`: the stamp of the segment for which
    /// the other end acknowledges.
    pub fn on_acknowledgement(
        &mut self,
        now: Instant,
        acked: u32,
        blocks: &[(u32, u32)],
        echo: u32,
    ) {
        self.notice_spurious(acked, blocks, echo);
        let mut newest = None;
        let mut news = 0;
        for (first, behind) in blocks.iter().copied().chain([(0, acked)]) {
            let here: Vec<u32> = self
                .open
                .range(first..behind.max(first))
                .map(|(seq, _)| *seq)
                .collect();
            for seq in here {
                let transmission = self.open.remove(&seq).unwrap_or_default();
                newest = newest.max(Some((
                    transmission,
                    self.sent.remove(&transmission).map(|sent| sent.1),
                )));
                news += 1;
            }
            // What a timeout took for lost had only been late.
            let late: Vec<u32> = self.lost.range(first..behind.max(first)).copied().collect();
            for seq in late {
                self.lost.remove(&seq);
            }
        }
        self.acked = self.acked.max(acked);
        let Some((transmission, Some(at))) = newest else {
            return;
        };
        self.note_round_trip(now.saturating_since(at));
        self.doubled = 0;
        self.expires = Some(now + self.timeout());
        if self.recovered.is_some_and(|until| self.acked >= until) {
            self.recovered = None;
        }
        self.lose_before(transmission);
        self.allowed = self.recovered.map(|_| news + 1);
        if self.recovered.is_none() {
            self.grow(now, f64::from(news));
        }
    }

    /// Takes the timeout back if something has arrived that it took for lost and that has not left again, or that left before.
    fn notice_spurious(&mut self, acked: u32, blocks: &[(u32, u32)], echo: u32) {
        let mut all = blocks.iter().copied().chain([(0, acked)]);
        let late = |(first, behind): (u32, u32)| {
            let known = self.lost.range(first..behind.max(first));
            let was_open = |seq: &u32| {
                let undo = self.undo.as_ref();
                undo.is_some_and(|undo| undo.open.contains_key(seq))
            };
            known.into_iter().any(was_open)
        };
        let early = |undo: &Undo| acked > self.acked && echo < undo.stamp;
        if !all.any(late) && !self.undo.as_ref().is_some_and(early) {
            return;
        }
        let Some(undo) = self.undo.take() else {
            return;
        };
        for (seq, transmission) in undo.open {
            let again = self.open.remove(&seq);
            again.map(|again| self.sent.remove(&again));
            if self.lost.remove(&seq) || again.is_some() {
                self.open.insert(seq, transmission);
                let sent = undo.sent.get(&transmission);
                self.sent.extend(sent.map(|sent| (transmission, *sent)));
            }
        }
        self.window = self.window.max(undo.window);
        (self.threshold, self.before, self.growth) = (undo.threshold, undo.before, None);
        self.timeouts.1 += 1;
    }

    /// A flow keeps its order: what left before a transmission that has arrived is lost.
    fn lose_before(&mut self, transmission: u64) {
        let rest = self.sent.split_off(&transmission);
        let gone = std::mem::replace(&mut self.sent, rest);
        let news = !gone.is_empty();
        for (seq, _) in gone.into_values() {
            self.open.remove(&seq);
            self.lost.insert(seq);
        }
        // After a timeout, which has reduced the window, what is lost is known already.
        if news && self.recovered.is_none() {
            self.recovered = Some(self.next);
            self.reduce();
        }
    }

    fn reduce(&mut self) {
        self.before = match self.window < self.before {
            true => self.window * (1.0 + BETA) / 2.0,
            false => self.window,
        };
        self.window = (self.window * BETA).max(2.0);
        (self.threshold, self.growth) = (self.window, None);
    }

    fn grow(&mut self, now: Instant, news: f64) {
        if self.window < self.threshold {
            self.window += news;
            return;
        }
        let (window, before) = (self.window, self.before.max(self.window));
        let (since, k, reno) = self
            .growth
            .get_or_insert_with(|| (now, ((before - window) / CUBIC).cbrt(), window));
        let round_trip = self
            .round_trip
            .map_or(0.0, |(smoothed, _)| smoothed.as_secs_f64());
        let t = now.saturating_since(*since).as_secs_f64() + round_trip - *k;
        let target = (CUBIC * t.powi(3) + before).clamp(window, window * 1.5);
        // RFC 9438, 4.3: as fast as Reno once its window is that of before.
        let per_window = if *reno < before {
            3.0 * (1.0 - BETA) / (1.0 + BETA)
        } else {
            1.0
        };
        *reno += per_window * news / window;
        self.window = (window + (target - window) / window * news)
            .max(*reno)
            .min(self.most as f64);
    }

    fn note_round_trip(&mut self, sample: Duration) {
        self.round_trip = Some(match self.round_trip {
            None => (sample, sample / 2),
            Some((smoothed, variation)) => {
                let off = sample.max(smoothed).saturating_sub(sample.min(smoothed));
                ((smoothed * 7 + sample) / 8, (variation * 3 + off) / 4)
            }
        });
    }

    fn timeout(&self) -> Duration {
        let usual = self.round_trip.map_or(RTO_FIRST, |(smoothed, variation)| {
            smoothed + (variation * 4).max(RTO_LEAST)
        });
        (usual * (1 << self.doubled.min(8))).min(RTO_MOST)
    }

    /// When the timeout expires.
    pub fn expires_at(&self) -> Option<Instant> {
        self.expires
    }

    /// Takes all in flight for lost if the timeout has expired.
    pub fn expire(&mut self, now: Instant) {
        if self.expires.is_none_or(|at| at > now) {
            return;
        }
        self.lost.extend(self.open.keys());
        let (window, threshold, before) = (self.window, self.threshold, self.before);
        let (open, sent) = (
            std::mem::take(&mut self.open),
            std::mem::take(&mut self.sent),
        );
        // Of a second timeout in a row the first one's state counts.
        if self.doubled == 0 {
            self.undo = Some(Undo {
                open,
                sent,
                window,
                threshold,
                before,
                stamp: stamp(now),
            });
        }
        self.timeouts.0 += 1;
        self.reduce();
        (self.window, self.recovered, self.allowed) = (1.0, None, None);
        self.doubled += 1;
        self.expires = Some(now + self.timeout());
    }
}

/// The receiving end of a flow.
#[derive(Clone, Debug, Default)]
pub struct Receiver {
    /// Segments received in order.
    next: u32,
    /// Further ones: the first of each block, and what lies behind its last; and the first ones of the latest blocks.
    held: BTreeMap<u32, u32>,
    latest: Vec<u32>,
    unacked: u32,
    acks_at: Option<Instant>,
    /// The stamp to echo, and what has been acknowledged (RFC 7323, 4.3: of the oldest segment that is not acknowledged).
    echo: u32,
    acked: u32,
    /// Segments that have arrived, in order or not.
    arrived: u32,
}

impl Receiver {
    /// Segments that have arrived in order.
    pub fn received(&self) -> u32 {
        self.next
    }

    /// Segments that have arrived, those that wait for an older one included: whether a run ends while many wait is chance.
    pub fn arrived(&self) -> u32 {
        self.arrived
    }

    /// The stamp to echo.
    pub fn echo(&self) -> u32 {
        self.echo
    }

    /// Takes a segment and its stamp; whether it is to be acknowledged at once.
    pub fn on_segment(&mut self, now: Instant, seq: u32, stamp: u32) -> bool {
        if seq <= self.acked {
            self.echo = self.echo.max(stamp);
        }
        let known = self
            .held
            .range(..=seq)
            .next_back()
            .is_some_and(|(_, behind)| seq < *behind);
        if seq < self.next || known {
            return true;
        }
        self.arrived += 1;
        let first = self
            .held
            .range(..seq)
            .next_back()
            .filter(|(_, behind)| **behind == seq);
        let first = first.map_or(seq, |(first, _)| *first);
        let behind = self.held.remove(&(seq + 1)).unwrap_or(seq + 1);
        if first == self.next {
            self.next = behind;
        } else {
            self.held.insert(first, behind);
            self.latest.insert(0, first);
        }
        let held = &self.held;
        let mut seen = BTreeSet::new();
        self.latest
            .retain(|first| held.contains_key(first) && seen.insert(*first));
        self.latest.truncate(BLOCKS);
        self.unacked += 1;
        self.acks_at = Some(now + ACK_LATE);
        self.unacked >= 2 || !self.held.is_empty()
    }

    /// When an acknowledgement has waited long enough.
    pub fn acks_at(&self) -> Option<Instant> {
        self.acks_at
    }

    /// Makes an acknowledgement: all before the first number has arrived, and the blocks.
    pub fn acknowledge(&mut self) -> (u32, Vec<(u32, u32)>) {
        (self.unacked, self.acks_at, self.acked) = (0, None, self.next);
        let block = |first: &u32| Some((*first, *self.held.get(first)?));
        (self.next, self.latest.iter().filter_map(block).collect())
    }
}

/// Both ends of a flow.
#[derive(Clone, Debug)]
pub struct Flow {
    pub sender: Sender,
    pub receiver: Receiver,
}

impl Flow {
    /// A flow whose receiver accepts so many segments.
    pub fn new(most: usize) -> Flow {
        Flow {
            sender: Sender::new(most),
            receiver: Receiver::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// Goal: a flow over a path of 1,000 segments a second and 50 ms, whose queue holds 50, fills it, repeats each segment that the queue
    /// drops, and its timeout does not expire.
    #[test]
    fn a_flow_fills_a_path_and_repeats_what_is_dropped() {
        let mut flow = Flow::new(1_000_000);
        let mut queue = VecDeque::new();
        let mut acks = VecDeque::<(u64, u32, Vec<_>)>::new();
        let (mut dropped, mut before) = (0, 0);
        for ms in 0..30_000 {
            let now = Instant::from_millis(ms);
            assert!(flow.sender.expires_at().is_none_or(|at| at > now), "{ms}");
            while acks.front().is_some_and(|(at, ..)| *at <= ms) {
                let (_, acked, blocks) = acks.pop_front().unwrap();
                flow.sender
                    .on_acknowledgement(now, acked, &blocks, ms as u32);
            }
            while let Some(seq) = flow.sender.poll(now) {
                match queue.len() < 50 {
                    true => queue.push_back(seq),
                    false => dropped += 1,
                }
            }
            if let Some(seq) = queue.pop_front()
                && flow.receiver.on_segment(now, seq, ms as u32)
            {
                let (acked, blocks) = flow.receiver.acknowledge();
                acks.push_back((ms + 50, acked, blocks));
            }
            if ms == 5_000 {
                before = flow.receiver.arrived();
            }
        }
        let received = flow.receiver.arrived() - before;
        println!("{received} received, {dropped} dropped in the start and later");
        assert!(received > 24_000 && dropped > 50, "{received} {dropped}");
    }
}
