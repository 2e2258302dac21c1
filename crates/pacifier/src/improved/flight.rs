//! Frames in flight to a neighbour, and the lag until its reports cover them.
//!
//! A report covers the frames that its sender had handled when it wrote it. Frames sent since then, or waiting in a queue on
//! either side, are neither received nor lost yet. This lag depends on the load of hosts and routers, not on the protocol,
//! and changes within a transfer. A node measures it as TCP measures its round trip (RFC 6298), by stamps that frames
//! carry and echo ([`Times`](crate::improved::header::Times)).

use alloc::vec;
use alloc::vec::Vec;

use chappe_core::{Duration, Instant};

/// Sums remembered, one for each `lag / PARTS`: those of three lags.
const MARKS: usize = 24;
const PARTS: u64 = 8;
/// Limits of a lag, so that no neighbour's stamps can make a node wait forever.
const LAG_MIN: Duration = Duration::from_millis(1);
const LAG_MAX: Duration = Duration::from_secs(1);
/// A lag is the mean plus this many mean deviations; RFC 6298 has 4 for a retransmission timeout.
const DEVIATIONS: u64 = 2;

/// The smoothed age of a frame when a report covers it, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lag {
    mean: u64,
    deviation: u64,
    measured: bool,
}

impl Lag {
    /// A lag of `guess` until the first measurement.
    pub fn new(guess: Duration) -> Lag {
        Lag {
            mean: guess.nanos(),
            deviation: 0,
            measured: false,
        }
    }

    /// RFC 6298, section 2: gains of 1/8 and 1/4, and half of the first sample as its deviation.
    pub fn measure(&mut self, sample: Duration) {
        let sample = sample.nanos().min(LAG_MAX.nanos());
        if !self.measured {
            (self.mean, self.deviation, self.measured) = (sample, sample / 2, true);
            return;
        }
        // RTTVAR before SRTT: the deviation is from the mean without this sample (RFC 6298, section 2.3).
        let off = self.mean.abs_diff(sample);
        self.deviation = self.deviation - self.deviation / 4 + off / 4;
        self.mean = self.mean - self.mean / 8 + sample / 8;
    }

    /// The lag: a report may not cover younger frames.
    pub fn span(&self) -> Duration {
        let span = self.mean.saturating_add(DEVIATIONS * self.deviation);
        Duration::from_nanos(span).clamp(LAG_MIN, LAG_MAX)
    }
}

/// Expected receptions of one neighbour, batch by batch, as running sums with marks in time.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    pub lag: Lag,
    /// By slot, since the slot got its batch. Empty if lags are not measured.
    sums: Vec<f32>,
    /// Copies of the sums at the times in `times`, the oldest overwritten first.
    marks: Vec<f32>,
    times: [Option<Instant>; MARKS],
    next: usize,
}

impl Flight {
    /// A flight of `slots` batches, with an initial lag of `guess`.
    pub fn new(slots: usize, guess: Duration) -> Flight {
        Flight {
            lag: Lag::new(guess),
            sums: vec![0.0; slots],
            marks: vec![0.0; slots * MARKS],
            times: [None; MARKS],
            next: 0,
        }
    }

    /// Adds the receptions expected of a frame that was sent or heard.
    pub fn note(&mut self, now: Instant, slot: usize, receptions: f32) {
        let last = self.times.get((self.next + MARKS - 1) % MARKS);
        let recent = last.copied().flatten();
        // One mark for each step, however many frames there are: the marks then cover three lags at any rate.
        if recent.is_none_or(|at| now.saturating_since(at) >= self.step()) {
            self.mark(now);
        }
        if let Some(sum) = self.sums.get_mut(slot) {
            *sum += receptions;
        }
    }

    fn step(&self) -> Duration {
        self.lag.span() / PARTS
    }

    fn mark(&mut self, now: Instant) {
        let start = self.next * self.sums.len();
        let marks = self.marks.iter_mut().skip(start);
        for (mark, sum) in marks.zip(&self.sums) {
            *mark = *sum;
        }
        if let Some(time) = self.times.get_mut(self.next) {
            *time = Some(now);
        }
        self.next = (self.next + 1) % MARKS;
    }

    /// The earliest mark that a report which arrives now does not cover, if there is one.
    pub fn uncovered(&self, now: Instant) -> Option<usize> {
        let since = now.saturating_before(self.lag.span() + self.step() / 2);
        let back = (1..=MARKS).map(|back| (self.next + MARKS - back) % MARKS);
        let late = |&mark: &usize| {
            let time = self.times.get(mark).copied().flatten();
            time.is_some_and(|at| at >= since)
        };
        back.take_while(late).last()
    }

    /// Receptions expected since a mark.
    pub fn since(&self, mark: Option<usize>, slot: usize) -> f32 {
        let Some(mark) = mark else { return 0.0 };
        let then = self.marks.get(mark * self.sums.len() + slot);
        match (self.sums.get(slot), then) {
            (Some(sum), Some(then)) => sum - then,
            _ => 0.0,
        }
    }

    /// Clears a slot for another batch, in the marks too: a sum since a mark must not become negative.
    pub fn clear(&mut self, slot: usize) {
        let slots = self.sums.len();
        if let Some(sum) = self.sums.get_mut(slot) {
            *sum = 0.0;
            for mark in self.marks.iter_mut().skip(slot).step_by(slots) {
                *mark = 0.0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_lag_follows_what_is_measured() {
        let mut lag = Lag::new(ms(40));
        assert_eq!(lag.span(), ms(40));
        lag.measure(ms(100));
        assert_eq!(lag.span(), ms(200));
        for _ in 0..60 {
            lag.measure(ms(100));
        }
        assert!(lag.span() >= ms(100) && lag.span() < ms(101), "{lag:?}");
        for _ in 0..100 {
            lag.measure(Duration::ZERO);
        }
        assert_eq!(lag.span(), LAG_MIN);
        lag = Lag::new(ms(1));
        lag.measure(Duration::from_secs(3600));
        assert_eq!(lag.span(), LAG_MAX);
    }

    #[test]
    fn frames_are_covered_when_they_are_old_enough() {
        let mut flight = Flight::new(2, ms(80));
        for at in 0..40 {
            flight.note(Instant::ZERO + ms(10 * at), 1, 1.0);
        }
        let now = Instant::ZERO + ms(400);
        let first = flight.uncovered(now);
        // Those of 320 to 390 ms.
        assert_eq!((flight.since(first, 1), flight.since(first, 0)), (8.0, 0.0));
        assert_eq!(flight.uncovered(now + ms(80)), None);
        assert_eq!(flight.since(None, 1), 0.0);
        flight.clear(1);
        assert_eq!(flight.since(first, 1), 0.0);
    }

    #[test]
    fn nothing_is_known_beyond_the_oldest_mark() {
        let mut flight = Flight::new(1, ms(8));
        for at in 0..100 {
            flight.note(Instant::ZERO + ms(at), 0, 1.0);
        }
        flight.lag = Lag::new(ms(500));
        let first = flight.uncovered(Instant::ZERO + ms(100));
        assert_eq!(flight.since(first, 0), MARKS as f32);
    }
}
