//! The sending half of a TCP, after Linux's: CUBIC with HyStart's delay rule, selective acknowledgements, loss detection by
//! the order of transmission, and a retransmission timeout. It always has data to send.
//!
//! Omitted: tail loss probes, proportional rate reduction (the window falls at once), undo of spurious reductions, pacing,
//! and the peer's window. None of them determines the goodput on a path whose queues exceed its bandwidth-delay product.

use std::collections::VecDeque;

use chappe_core::{Duration, Instant, Wake};

use super::packet::Packet;

/// The initial window in segments (RFC 6928).
const WINDOW_FIRST: f64 = 10.0;
/// RFC 9438, section 4.1: the growth constant C, and the factor by which a loss reduces the window.
const CUBIC_C: f64 = 0.4;
const CUBIC_BETA: f64 = 0.7;
/// Linux's least and initial timeout, TCP_RTO_MIN and TCP_TIMEOUT_INIT (include/net/tcp.h), and the longest (RFC 6298).
const RTO_MIN: Duration = Duration::from_millis(200);
const RTO_FIRST: Duration = Duration::from_secs(1);
const RTO_MAX: Duration = Duration::from_secs(120);
/// Linux's CUBIC leaves slow start when the least of eight round-trip times exceeds the least of all by an eighth, clamped
/// to 4 to 16 ms, in windows of at least 16 segments (net/ipv4/tcp_cubic.c, HYSTART_*).
const EXIT_WINDOW: f64 = 16.0;
const EXIT_SAMPLES: u32 = 8;
const EXIT_LEAST: f64 = 0.004;
const EXIT_MOST: f64 = 0.016;
/// Segments that must arrive beyond a gap before it counts as lost: DupThresh of RFC 6675.
const DUPLICATES: usize = 3;

/// The sender of one TCP connection.
#[derive(Clone, Debug)]
pub struct Sender {
    me: usize,
    to: usize,
    len: usize,
    /// SND.UNA: the first unacknowledged segment, where the flight begins.
    first: u32,
    flight: VecDeque<Segment>,
    window: f64,
    threshold: f64,
    /// During recovery, the segment whose acknowledgement ends it.
    recovery: Option<u32>,
    /// Whether a timeout began the recovery. Then the window grows during recovery.
    timed_out: bool,
    /// When the most recently sent of the arrived segments was sent.
    newest: Instant,
    cubic: Cubic,
    exit: Exit,
    smoothed: Option<(f64, f64)>,
    backoffs: u32,
    timeout: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    sent: Instant,
    arrived: bool,
    lost: bool,
}

/// CUBIC's state since the last loss.
#[derive(Clone, Copy, Debug, Default)]
struct Cubic {
    most: f64,
    epoch: Option<(Instant, f64)>,
    reno: f64,
}

/// HyStart's delay rule: when to leave slow start.
#[derive(Clone, Copy, Debug)]
struct Exit {
    least: f64,
    current: f64,
    samples: u32,
    round_ends: u32,
}

impl Sender {
    /// Creates the sender on node `me` of packets of `len` octets, headers included, to node `to`.
    pub fn new(me: usize, to: usize, len: usize) -> Sender {
        Sender {
            me,
            to,
            len,
            first: 0,
            flight: VecDeque::new(),
            window: WINDOW_FIRST,
            threshold: f64::INFINITY,
            recovery: None,
            timed_out: false,
            newest: Instant::ZERO,
            cubic: Cubic::default(),
            exit: Exit {
                least: f64::INFINITY,
                current: f64::INFINITY,
                samples: 0,
                round_ends: 0,
            },
            smoothed: None,
            backoffs: 0,
            timeout: None,
        }
    }

    /// Handles an acknowledgement of the receiver.
    pub fn handle_ack(&mut self, now: Instant, ack: &Packet) {
        let newly = ack.number.saturating_sub(self.first) as usize;
        if newly > self.flight.len() {
            return;
        }
        for segment in self.flight.drain(..newly) {
            self.newest = self.newest.max(segment.sent);
        }
        self.first += newly as u32;
        for (first, end) in ack.blocks {
            for number in first..end {
                let place = number.checked_sub(self.first).map(|place| place as usize);
                if let Some(segment) = place.and_then(|place| self.flight.get_mut(place)) {
                    (segment.arrived, segment.lost) = (true, false);
                    self.newest = self.newest.max(segment.sent);
                }
            }
        }
        let round_trip = now.saturating_since(ack.stamp).as_secs_f64();
        self.measure(round_trip);
        if self.recovery.is_some_and(|end| self.first >= end) {
            (self.recovery, self.timed_out) = (None, false);
        }
        let lost = self.find_losses();
        if lost && self.recovery.is_none() {
            self.reduce();
        } else if newly > 0 && (self.recovery.is_none() || self.timed_out) {
            self.grow(now, newly as f64, round_trip);
        }
        if newly > 0 {
            self.backoffs = 0;
            self.timeout = (!self.flight.is_empty()).then(|| now + self.timeout_after());
        }
    }

    /// Marks lost segments: those sent before a segment that has arrived, once [`DUPLICATES`] segments have arrived beyond
    /// the gap.
    fn find_losses(&mut self) -> bool {
        let beyond = self.flight.iter().filter(|segment| segment.arrived).count();
        if beyond < DUPLICATES && self.recovery.is_none() {
            return false;
        }
        let mut found = false;
        for segment in &mut self.flight {
            if !segment.arrived && !segment.lost && segment.sent < self.newest {
                (segment.lost, found) = (true, true);
            }
        }
        found
    }

    fn reduce(&mut self) {
        self.recovery = Some(self.first + self.flight.len() as u32);
        // RFC 9438, section 4.7 (fast convergence): a flow that loses before it regains W_max releases more capacity.
        self.cubic.most = match self.window < self.cubic.most {
            true => self.window * (1.0 + CUBIC_BETA) / 2.0,
            false => self.window,
        };
        self.cubic.epoch = None;
        self.window = (self.window * CUBIC_BETA).max(2.0);
        self.threshold = self.window;
    }

    fn grow(&mut self, now: Instant, newly: f64, round_trip: f64) {
        if self.window < self.threshold {
            self.window += newly;
            if self
                .exit
                .is_due(round_trip, self.window, self.first, self.flight.len())
            {
                self.threshold = self.window;
            }
            return;
        }
        let (since, start) = *self.cubic.epoch.get_or_insert((now, self.window));
        if since == now {
            self.cubic.reno = self.window;
        }
        let most = self.cubic.most.max(start);
        // RFC 9438, section 4.2: the window of the curve one round trip from now.
        let inflection = ((most - start) / CUBIC_C).cbrt();
        let at = now.saturating_since(since).as_secs_f64() + round_trip - inflection;
        let target = (most + CUBIC_C * at.powi(3)).clamp(self.window, self.window * 1.5);
        self.window += newly * (target - self.window) / self.window;
        // Section 4.3: at least the window that Reno would have.
        let alpha = 3.0 * (1.0 - CUBIC_BETA) / (1.0 + CUBIC_BETA);
        self.cubic.reno += alpha * newly / self.cubic.reno.max(1.0);
        self.window = self.window.max(self.cubic.reno);
    }

    /// RFC 6298, with Linux's rule that the variance term is at least RTO_MIN.
    fn measure(&mut self, round_trip: f64) {
        self.smoothed = Some(match self.smoothed {
            None => (round_trip, round_trip / 2.0),
            Some((mean, spread)) => {
                let spread = 0.75 * spread + 0.25 * (mean - round_trip).abs();
                (0.875 * mean + 0.125 * round_trip, spread)
            }
        });
    }

    fn timeout_after(&self) -> Duration {
        let plain = self.smoothed.map_or(RTO_FIRST, |(mean, spread)| {
            Duration::from_secs_f64(mean + (4.0 * spread).max(RTO_MIN.as_secs_f64()))
        });
        (plain * (1 << self.backoffs.min(10))).min(RTO_MAX)
    }

    /// Handles the retransmission timeout, if it has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.timeout.is_none_or(|at| at > now) {
            return;
        }
        self.timeout = None;
        self.backoffs += 1;
        // RFC 5681, section 3.1: repeated timeouts of the same data reduce the threshold only once.
        if self.backoffs == 1 {
            self.reduce();
        }
        for segment in &mut self.flight {
            segment.lost = !segment.arrived;
        }
        self.recovery = Some(self.first + self.flight.len() as u32);
        (self.window, self.timed_out) = (1.0, true);
    }

    /// When the retransmission timeout is due.
    pub fn poll_timeout(&self) -> Option<Wake> {
        let why = "retransmission";
        self.timeout.map(|at| Wake { at, why })
    }

    /// Returns the next segment to send: a lost one, or else a new one.
    pub fn poll(&mut self, now: Instant) -> Option<Packet> {
        // The segments still in the network: `pipe` of RFC 6675.
        let open = self.flight.iter().filter(|s| !s.arrived && !s.lost).count();
        if open as f64 + 1.0 > self.window {
            return None;
        }
        let fresh = Segment {
            sent: now,
            arrived: false,
            lost: false,
        };
        let place = match self.flight.iter().position(|segment| segment.lost) {
            Some(place) => {
                self.flight[place] = fresh;
                place
            }
            None => {
                self.flight.push_back(fresh);
                self.flight.len() - 1
            }
        };
        if self.timeout.is_none() {
            self.timeout = Some(now + self.timeout_after());
        }
        let number = self.first + place as u32;
        Some(Packet::data(self.me, self.to, number, now, self.len))
    }
}

impl Exit {
    /// Records a round-trip time, and returns whether slow start should end.
    fn is_due(&mut self, round_trip: f64, window: f64, first: u32, flight: usize) -> bool {
        self.least = self.least.min(round_trip);
        if first >= self.round_ends {
            self.round_ends = first + flight as u32;
            (self.current, self.samples) = (f64::INFINITY, 0);
        }
        if window < EXIT_WINDOW {
            return false;
        }
        self.current = self.current.min(round_trip);
        self.samples += 1;
        let margin = (self.least / 8.0).clamp(EXIT_LEAST, EXIT_MOST);
        self.samples >= EXIT_SAMPLES && self.current > self.least + margin
    }
}

#[cfg(test)]
mod tests {
    use super::super::Receiver;
    use super::*;

    /// Runs a path that carries one packet each `slot_ms`, with a queue and a delay, and loses those for which `lost` is true.
    /// Returns the segments that arrived in order within `end_ms`.
    fn path(slot_ms: u64, queue: usize, end_ms: u64, mut lost: impl FnMut(u64) -> bool) -> u64 {
        let (mut sender, mut receiver) = (Sender::new(0, 1, 1052), Receiver::new(1, 0, 1));
        let (mut waiting, mut back) = (VecDeque::new(), VecDeque::new());
        let mut served = 0;
        for ms in 0..end_ms {
            let now = Instant::from_millis(ms);
            if ms % slot_ms == 0
                && let Some(packet) = waiting.pop_front()
            {
                served += 1;
                if !lost(served) {
                    receiver.handle_data(now, &packet);
                }
            }
            receiver.handle_timeout(now);
            back.extend(receiver.poll(now).map(|ack| (ms + 10, ack)));
            while back.front().is_some_and(|(at, _)| *at <= ms) {
                let (_, ack) = back.pop_front().unwrap();
                sender.handle_ack(now, &ack);
            }
            sender.handle_timeout(now);
            while let Some(packet) = sender.poll(now) {
                if waiting.len() < queue {
                    waiting.push_back(packet);
                }
            }
        }
        receiver.octets()
    }

    /// The sender fills a path whose only losses are those of its full queue.
    #[test]
    fn a_path_without_random_loss_is_filled() {
        let got = path(5, 20, 20_000, |_| false);
        assert!(got > 3800, "{got} of 4000");
    }

    /// A loss of one in a hundred costs little on a short path. A loss of one in three does not stall the connection.
    #[test]
    fn lost_segments_are_repaired() {
        let got = path(5, 20, 20_000, |served| served % 100 == 50);
        assert!(got > 3300, "{got} of 4000");
        let got = path(5, 20, 60_000, |served| served % 3 == 0);
        assert!(got > 100, "{got}");
    }

    /// The window follows CUBIC: a loss at 100 segments reduces it to 70, and it is back at 100 after cbrt(30 / 0.4) s.
    #[test]
    fn the_window_grows_as_in_rfc_9438() {
        let mut sender = Sender::new(0, 1, 1052);
        (sender.window, sender.threshold) = (100.0, 50.0);
        sender.reduce();
        assert!((sender.window - 70.0).abs() < 1e-9);
        sender.recovery = None;
        let back = (30.0f64 / CUBIC_C).cbrt();
        // Round trips are so long that Reno would be slower. In each, a whole window is acknowledged.
        for step in 0..=(back * 5.0) as u64 {
            let now = Instant::from_millis(1000 + step * 200);
            sender.grow(now, sender.window, 0.2);
        }
        assert!((sender.window - 100.0).abs() < 2.0, "{}", sender.window);
    }
}
