//! The sending half of a TCP, after Linux's: CUBIC with its slow start's exit on delay, losses found by the order of
//! sending, selective acknowledgements, and a retransmission timeout. It always has something to send.
//!
//! Left out: the tail loss probe, proportional rate reduction (the window falls at once), undoing of needless
//! reductions, pacing, and the peer's window. Over a path whose queues are longer than its bandwidth-delay product,
//! none of them decides the goodput.

use std::collections::VecDeque;

use chappe_core::{Duration, Instant, Wake};

use super::packet::Packet;

/// Segments at the start (RFC 6928).
const WINDOW_FIRST: f64 = 10.0;
/// RFC 9438, section 4.1: the window's growth, and what is left of it after a loss.
const CUBIC_C: f64 = 0.4;
const CUBIC_BETA: f64 = 0.7;
/// Linux's least and first timeout, TCP_RTO_MIN and TCP_TIMEOUT_INIT (include/net/tcp.h), and the longest (RFC 6298).
const RTO_MIN: Duration = Duration::from_millis(200);
const RTO_FIRST: Duration = Duration::from_secs(1);
const RTO_MAX: Duration = Duration::from_secs(120);
/// Linux's CUBIC leaves slow start when the least round trip of eight in a row exceeds the least ever by an eighth of
/// it, but by 4 to 16 ms, from 16 segments on (net/ipv4/tcp_cubic.c, HYSTART_*).
const EXIT_WINDOW: f64 = 16.0;
const EXIT_SAMPLES: u32 = 8;
const EXIT_LEAST: f64 = 0.004;
const EXIT_MOST: f64 = 0.016;
/// Segments beyond a gap after which it counts as lost (RFC 6675).
const DUPLICATES: usize = 3;

/// A sender.
#[derive(Clone, Debug)]
pub struct Sender {
    me: usize,
    to: usize,
    len: usize,
    /// First segment that is not acknowledged; the flight begins there.
    first: u32,
    flight: VecDeque<Segment>,
    window: f64,
    threshold: f64,
    /// While a loss is made good: the segment that ends it.
    recovery: Option<u32>,
    /// The loss was found by timeout: the window grows again while it is made good.
    timed_out: bool,
    /// When the latest of the segments that have arrived was sent.
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

/// CUBIC's memory of the last loss.
#[derive(Clone, Copy, Debug, Default)]
struct Cubic {
    most: f64,
    epoch: Option<(Instant, f64)>,
    reno: f64,
}

/// When to leave slow start: HyStart's delay rule.
#[derive(Clone, Copy, Debug)]
struct Exit {
    least: f64,
    current: f64,
    samples: u32,
    round_ends: u32,
}

impl Sender {
    /// Node `me`, which sends packets of `len` octets, headers included, to the node `to`.
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

    pub(super) fn handle_ack(&mut self, now: Instant, ack: &Packet) {
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
            self.timeout = (!self.flight.is_empty()).then(|| now + self.patience());
        }
    }

    /// What was sent before something that has arrived is lost, once three segments say so.
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
        // RFC 9438, section 4.7: a flow that had to give way before it was back leaves more for others.
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
        // RFC 9438, section 4.2: where the curve will be a round trip from now.
        let inflection = ((most - start) / CUBIC_C).cbrt();
        let at = now.saturating_since(since).as_secs_f64() + round_trip - inflection;
        let target = (most + CUBIC_C * at.powi(3)).clamp(self.window, self.window * 1.5);
        self.window += newly * (target - self.window) / self.window;
        // Section 4.3: not slower than Reno would be.
        let alpha = 3.0 * (1.0 - CUBIC_BETA) / (1.0 + CUBIC_BETA);
        self.cubic.reno += alpha * newly / self.cubic.reno.max(1.0);
        self.window = self.window.max(self.cubic.reno);
    }

    /// RFC 6298 with Linux's rule that the variance's share is at least the least timeout.
    fn measure(&mut self, round_trip: f64) {
        self.smoothed = Some(match self.smoothed {
            None => (round_trip, round_trip / 2.0),
            Some((mean, spread)) => {
                let spread = 0.75 * spread + 0.25 * (mean - round_trip).abs();
                (0.875 * mean + 0.125 * round_trip, spread)
            }
        });
    }

    fn patience(&self) -> Duration {
        let plain = self.smoothed.map_or(RTO_FIRST, |(mean, spread)| {
            Duration::from_secs_f64(mean + (4.0 * spread).max(RTO_MIN.as_secs_f64()))
        });
        (plain * (1 << self.backoffs.min(10))).min(RTO_MAX)
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.timeout.is_none_or(|at| at > now) {
            return;
        }
        self.timeout = None;
        self.backoffs += 1;
        if self.backoffs == 1 {
            self.reduce();
        }
        for segment in &mut self.flight {
            segment.lost = !segment.arrived;
        }
        self.recovery = Some(self.first + self.flight.len() as u32);
        (self.window, self.timed_out) = (1.0, true);
    }

    pub(super) fn poll_timeout(&self) -> Option<Wake> {
        let why = "retransmission";
        self.timeout.map(|at| Wake { at, why })
    }

    /// The next segment to send: one that was lost, or a new one.
    pub(super) fn poll(&mut self, now: Instant) -> Option<Packet> {
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
            self.timeout = Some(now + self.patience());
        }
        let number = self.first + place as u32;
        Some(Packet::data(self.me, self.to, number, now, self.len))
    }
}

impl Exit {
    /// Takes down a round trip; true if slow start should end.
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

    /// A path of one packet each `slot_ms`, with a queue and a delay; loses what `lost` says. Returns the segments that
    /// arrived in order within `end_ms`.
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

    /// A path that loses nothing but what its queue cannot hold is filled.
    #[test]
    fn a_clean_path_is_filled() {
        let got = path(5, 20, 20_000, |_| false);
        assert!(got > 3800, "{got} of 4000");
    }

    /// One loss in a hundred costs little on a short path; one in three stops nobody for good.
    #[test]
    fn losses_are_made_good() {
        let got = path(5, 20, 20_000, |served| served % 100 == 50);
        assert!(got > 3300, "{got} of 4000");
        let got = path(5, 20, 60_000, |served| served % 3 == 0);
        assert!(got > 100, "{got}");
    }

    /// The window is CUBIC's: after a loss at 100 segments it is at 70, and back at 100 after cbrt(30 / 0.4) s.
    #[test]
    fn the_window_grows_as_rfc_9438_says() {
        let mut sender = Sender::new(0, 1, 1052);
        (sender.window, sender.threshold) = (100.0, 50.0);
        sender.reduce();
        assert!((sender.window - 70.0).abs() < 1e-9);
        sender.recovery = None;
        let back = (30.0f64 / CUBIC_C).cbrt();
        // Round trips so long that Reno would be slower; in each a window is acknowledged.
        for step in 0..=(back * 5.0) as u64 {
            let now = Instant::from_millis(1000 + step * 200);
            sender.grow(now, sender.window, 0.2);
        }
        assert!((sender.window - 100.0).abs() < 2.0, "{}", sender.window);
    }
}
