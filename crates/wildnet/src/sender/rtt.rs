//! The round trip to the peer.

use chappe_core::{Duration, Instant};

/// Probe timeout until the first sample (kInitialRtt of RFC 9002, 6.2.2).
const INITIAL: Duration = Duration::from_millis(333);
/// How long a queue must stand to count as one: reports come about every 10 ms, and some are lost.
const LATELY: Duration = Duration::from_millis(100);
/// How long a minimum counts: a path may become longer permanently.
const LONG: Duration = Duration::from_secs(10);

/// Smoothed round trip and its variation (RFC 6298, 2), and the minima over two stretches of time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rtt {
    pub smoothed: Duration,
    pub variation: Duration,
    latest: Option<(Duration, Instant)>,
    /// What hosts add to it, since they get their turns late: smoothed, and its variation.
    hosts: (Duration, Duration),
    lately: Stretches,
    long: Stretches,
}

impl Rtt {
    /// The least of the latest 10 to 20 s; `None` before the first sample.
    pub fn least(&self) -> Option<Duration> {
        self.long.min()
    }

    /// The least of the latest 100 to 200 ms with samples.
    pub fn lately(&self) -> Option<Duration> {
        self.lately.min()
    }

    /// The latest sample, and when it came.
    pub fn latest(&self) -> Option<(Duration, Instant)> {
        self.latest
    }

    /// Notes how long a report was kept waiting at both hosts. That is no part of the round trip, which the path makes.
    pub fn note_hosts(&mut self, waited: Duration) {
        let (smoothed, variation) = self.hosts;
        let off = waited.max(smoothed).saturating_sub(waited.min(smoothed));
        self.hosts = ((smoothed * 7 + waited) / 8, (variation * 3 + off) / 4);
    }

    /// The longest likely wait at both hosts, by the same rule as the probe timeout's.
    pub fn host_delay(&self) -> Duration {
        self.hosts.0 + self.hosts.1 * 4
    }

    pub fn note(&mut self, now: Instant, sample: Duration) {
        self.latest = Some((sample, now));
        let first = self.least().is_none();
        self.lately.note(now, sample, LATELY);
        self.long.note(now, sample, LONG);
        if first {
            // RFC 6298, 2.2: the first sample stands for both.
            (self.smoothed, self.variation) = (sample, sample / 2);
            return;
        }
        let off = sample
            .max(self.smoothed)
            .saturating_sub(sample.min(self.smoothed));
        // RFC 6298, 2.3: the deviation is from the old mean, so the variation comes first.
        self.variation = (self.variation * 3 + off) / 4;
        self.smoothed = (self.smoothed * 7 + sample) / 8;
    }

    /// The probe timeout: after this time a report is overdue that may wait for `delay` at the peer (RFC 9002, 6.2.1, with its
    /// timer granularity of 1 ms).
    pub fn pto(&self, delay: Duration) -> Duration {
        match self.least() {
            Some(_) => {
                let hosts = delay + self.host_delay();
                self.smoothed + self.variation * 4 + hosts + Duration::from_millis(1)
            }
            None => INITIAL,
        }
    }
}

/// The least sample of the present stretch of time and of the one before: a sliding minimum in constant memory.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stretches {
    least: [Option<Duration>; 2],
    since: Instant,
}

impl Stretches {
    pub fn note(&mut self, now: Instant, sample: Duration, length: Duration) {
        let [present, _] = self.least;
        if now.saturating_since(self.since) >= length {
            (self.least, self.since) = ([Some(sample), present], now);
            return;
        }
        self.least[0] = Some(present.map_or(sample, |least| least.min(sample)));
    }

    pub fn min(&self) -> Option<Duration> {
        self.least.into_iter().flatten().min()
    }
}
