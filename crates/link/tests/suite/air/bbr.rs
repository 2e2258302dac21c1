//! How many octets BBR has under way, and when it sends them. Where its start does not matter the window alone decides, since the
//! link below paces.
//!
//! draft-cardwell-iccrg-bbr-congestion-control-00 and tcp_bbr.c of Linux 6: twice what the largest delivery rate of ten rounds fills in
//! the least round trip of ten seconds, and what acknowledgements brought at most beyond that rate in five to ten rounds (limited to
//! 100 ms of the rate). Every ten seconds it has four segments under way for 200 ms to see the least round trip
//! again. Its start is a doubling window until the rate no longer grows.

use std::collections::VecDeque;

use chappe_core::{Duration, Instant};

use super::PAYLOAD;

/// Octets: what cwnd_gain makes of a round trip's worth.
const GAIN: f64 = 2.0;
const ROUNDS: usize = 10;
const LEAST_FOR: Duration = Duration::from_secs(10);
const PROBE_FOR: Duration = Duration::from_millis(200);
const EXTRA_MOST: f64 = 0.1;
const LEAST: usize = 4 * PAYLOAD;
/// Pacing: 2/ln 2 in the start, its inverse until the queue of the start is gone, then in turn one round trip each; less one
/// per cent of margin (bbr_high_gain, bbr_drain_gain, bbr_pacing_gain, bbr_pacing_margin_percent).
const HIGH: f64 = 2.885;
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
const MARGIN: f64 = 0.99;

/// The sender's model of the path: rate, round trip and inflight data.
#[derive(Clone, Debug)]
pub struct Bbr {
    /// Segments under way: when sent, where each ends, and what was acknowledged when, as it left.
    sent: VecDeque<(Instant, u32, (u64, Instant))>,
    acked: u32,
    delivered: u64,
    delivered_at: Instant,
    /// Largest rate of each of the latest rounds, octets a second; and largest extra.
    rates: VecDeque<(f64, f64)>,
    round_ends: u64,
    /// What acknowledgements have brought since a moment from which they were faster than the rate.
    epoch: (Instant, f64),
    least: Option<(Duration, Instant)>,
    probing_until: Option<Instant>,
    /// Whether the rate has stopped growing, and the largest before with the rounds that it has stood for.
    full: (bool, f64, u32),
    /// Whether the queue of the start is gone; the phase of the cycle, and since when.
    drained: bool,
    phase: (usize, Instant),
    /// When the next segment may leave.
    free_at: Instant,
}

impl Default for Bbr {
    fn default() -> Bbr {
        Bbr {
            sent: VecDeque::new(),
            acked: 0,
            delivered: 0,
            delivered_at: Instant::ZERO,
            rates: VecDeque::from([(0.0, 0.0)]),
            round_ends: 0,
            epoch: (Instant::ZERO, 0.0),
            least: None,
            probing_until: None,
            full: (false, 0.0, 0),
            drained: false,
            phase: (2, Instant::ZERO),
            free_at: Instant::ZERO,
        }
    }
}

impl Bbr {
    /// Octets that may be under way.
    pub fn window(&self) -> usize {
        let (Some((least, _)), None) = (self.least, self.probing_until) else {
            return if self.least.is_none() {
                10 * PAYLOAD
            } else {
                LEAST
            };
        };
        let gain = if self.full.0 { GAIN } else { HIGH };
        let filled = self.rate() * least.as_secs_f64() * gain;
        (filled + self.extra()) as usize + 3 * PAYLOAD
    }

    /// When the next segment may leave: the pace of the kernel's BBR.
    pub fn free_at(&self) -> Instant {
        self.free_at
    }

    /// Octets a second; nothing before the first round trip, when the first window leaves at once.
    fn pace(&self) -> Option<f64> {
        let gain = match (self.full.0, self.drained) {
            (false, _) => HIGH,
            (true, false) => 1.0 / HIGH,
            (true, true) => CYCLE[self.phase.0],
        };
        self.least?;
        Some((self.rate() * gain * MARGIN).max(1.0))
    }

    /// Goes on in the cycle, once the start's queue is gone.
    fn turn(&mut self, now: Instant) {
        let Some((least, _)) = self.least else { return };
        let under_way = self.sent.len() * PAYLOAD;
        let held = self.rate() * least.as_secs_f64();
        if self.full.0 && !self.drained && under_way as f64 <= held {
            (self.drained, self.phase) = (true, (2, now));
        }
        // The step down ends early once no more is under way than the path holds.
        let over = now.saturating_since(self.phase.1) > least;
        let early = self.phase.0 == 1 && under_way as f64 <= held;
        if self.drained && (over || early) {
            self.phase = ((self.phase.0 + 1) % CYCLE.len(), now);
        }
    }

    fn rate(&self) -> f64 {
        self.rates.iter().map(|round| round.0).fold(0.0, f64::max)
    }

    fn extra(&self) -> f64 {
        let most = self.rates.iter().map(|round| round.1).fold(0.0, f64::max);
        most.min(self.rate() * EXTRA_MOST)
    }

    /// A segment leaves that ends at `end`.
    pub fn on_sent(&mut self, now: Instant, end: u32) {
        if self.sent.is_empty() {
            self.delivered_at = now;
        }
        let then = (self.delivered, self.delivered_at);
        self.sent.push_back((now, end, then));
        if let Some(pace) = self.pace() {
            let time = Duration::from_secs_f64(PAYLOAD as f64 / pace);
            self.free_at = self.free_at.max(now) + time;
        }
    }

    /// All up to `acked` has arrived.
    pub fn on_acknowledgement(&mut self, now: Instant, acked: u32) {
        let octets = acked.wrapping_sub(self.acked);
        if octets == 0 || octets > u32::MAX / 2 {
            return;
        }
        self.acked = acked;
        self.delivered += u64::from(octets);
        self.delivered_at = now;
        let mut newest = None;
        while let Some(first) = self.sent.front().copied()
            && acked.wrapping_sub(first.1) <= u32::MAX / 2
        {
            newest = Some(first);
            self.sent.pop_front();
        }
        let Some((sent, _, (before, before_at))) = newest else {
            return;
        };
        self.note_round(before);
        // The longer of the two spans: neither what was sent nor what was acknowledged in a bunch is a rate.
        let span = now
            .saturating_since(before_at)
            .max(now.saturating_since(sent));
        let rate = (self.delivered - before) as f64 / span.as_secs_f64().max(1e-3);
        self.note_extra(now, f64::from(octets));
        if let Some(round) = self.rates.back_mut() {
            round.0 = round.0.max(rate);
        }
        self.note_round_trip(now, now.saturating_since(sent));
        self.turn(now);
    }

    /// A round ends when something is acknowledged that left after the last one had ended.
    fn note_round(&mut self, before: u64) {
        if before < self.round_ends {
            return;
        }
        self.round_ends = self.delivered;
        let (full, largest, stood) = self.full;
        let rate = self.rate();
        self.full = match rate >= largest * 1.25 {
            true => (full, rate, 0),
            false => (full || stood >= 2, largest, stood + 1),
        };
        self.rates.push_back((0.0, 0.0));
        if self.rates.len() > ROUNDS {
            self.rates.pop_front();
        }
    }

    fn note_extra(&mut self, now: Instant, octets: f64) {
        let (since, brought) = self.epoch;
        let expected = self.rate() * now.saturating_since(since).as_secs_f64();
        if brought <= expected {
            self.epoch = (now, octets);
        } else {
            self.epoch.1 += octets;
        }
        let expected = self.rate() * now.saturating_since(self.epoch.0).as_secs_f64();
        let extra = (self.epoch.1 - expected).min(self.window() as f64);
        if let Some(round) = self.rates.back_mut() {
            round.1 = round.1.max(extra);
        }
    }

    fn note_round_trip(&mut self, now: Instant, sample: Duration) {
        if self.probing_until.is_some_and(|until| now >= until) {
            self.probing_until = None;
        }
        let old = self
            .least
            .is_some_and(|(_, at)| now.saturating_since(at) > LEAST_FOR);
        if old {
            self.probing_until = Some(now + PROBE_FOR);
        }
        if old || self.least.is_none_or(|(least, _)| sample <= least) {
            self.least = Some((sample, now));
        }
    }
}
