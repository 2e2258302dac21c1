//! How late the emulator was, kept without memory for each sample.
//!
//! Turns alone do not tell: a computer that stands still for a second is late in one turn of thousands. So the time spent
//! beyond the limit is summed as well, and a run counts only if both shares are small.

use chappe_core::Duration;

/// Buckets for each doubling: a percentile is right to a sixteenth.
const STEPS: u32 = 16;
const BUCKETS: usize = 64 * STEPS as usize;

/// A distribution of spans of time. Percentiles are upper ends of buckets that are at most 1/16 wide.
#[derive(Clone, Debug)]
pub struct Lateness {
    counts: Box<[u64; BUCKETS]>,
    samples: u64,
    max: Duration,
    behind: Duration,
}

impl Default for Lateness {
    fn default() -> Lateness {
        Lateness {
            counts: Box::new([0; BUCKETS]),
            samples: 0,
            max: Duration::ZERO,
            behind: Duration::ZERO,
        }
    }
}

impl Lateness {
    /// Above this at the 99th percentile, a run says nothing about the radios that it emulates: 1 ms is as long as an
    /// 802.11b frame of 1500 octets at 11 Mbit/s.
    pub const LIMIT: Duration = Duration::from_millis(1);

    /// The share of turns, and of a run's time, that may be later than [`LIMIT`](Self::LIMIT): what is measured over the
    /// run is wrong by about as much.
    pub const SHARE: f64 = 0.01;

    /// Takes down one span.
    pub fn add(&mut self, late: Duration) {
        if let Some(count) = self.counts.get_mut(bucket(late.nanos())) {
            *count += 1;
        }
        self.samples += 1;
        self.max = self.max.max(late);
        self.behind += late.saturating_sub(Lateness::LIMIT);
    }

    /// How many were taken down.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// The longest; zero if there is none.
    pub fn max(&self) -> Duration {
        self.max
    }

    /// For how long the emulator was later than [`LIMIT`](Self::LIMIT), all turns together: while it stands still, no
    /// host can put anything on the air.
    pub fn behind(&self) -> Duration {
        self.behind
    }

    /// What the given share of them did not exceed; zero if there are none.
    pub fn quantile(&self, share: f64) -> Duration {
        let wanted = (share * self.samples as f64).ceil() as u64;
        let mut seen = 0;
        for (place, &count) in self.counts.iter().enumerate() {
            seen += count;
            if count > 0 && seen >= wanted {
                return self.max.min(Duration::from_nanos(upper_end(place)));
            }
        }
        self.max
    }

    /// Whether a run of this length can stand for what it emulates.
    pub fn is_valid(&self, run: Duration) -> bool {
        self.quantile(1.0 - Lateness::SHARE) <= Lateness::LIMIT
            && self.behind.as_secs_f64() <= Lateness::SHARE * run.as_secs_f64()
    }
}

/// Values below 16 have a bucket each; each doubling above has 16.
fn bucket(nanos: u64) -> usize {
    let doublings = nanos.max(1).ilog2().saturating_sub(STEPS.ilog2());
    (u64::from(doublings * STEPS) + (nanos >> doublings)) as usize
}

/// The largest value of a bucket.
fn upper_end(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let doublings = (bucket / u64::from(STEPS)).saturating_sub(1);
    let step = bucket - doublings * u64::from(STEPS);
    (((u128::from(step) + 1) << doublings) - 1).min(u128::from(u64::MAX)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each value is in the bucket whose ends enclose it, and the bucket is narrow.
    #[test]
    fn buckets_follow_each_other() {
        for shift in 0..64 {
            for value in [
                1u64 << shift,
                (1 << shift) - 1,
                (1 << shift) | (1 << shift >> 1),
            ] {
                let place = bucket(value);
                assert!(place < BUCKETS, "{value}");
                let end = upper_end(place);
                assert!(value <= end && end - value <= value / 16, "{value}: {end}");
                assert!(place == 0 || upper_end(place - 1) < value, "{value}");
            }
        }
    }

    #[test]
    fn quantiles_are_those_of_the_samples() {
        let mut late = Lateness::default();
        assert_eq!(
            (late.quantile(0.99), late.max()),
            (Duration::ZERO, Duration::ZERO)
        );
        for micros in 1..=1000 {
            late.add(Duration::from_micros(micros));
        }
        let near = |share: f64, micros: u64| {
            let (found, wanted) = (late.quantile(share), Duration::from_micros(micros));
            assert!(found >= wanted && found <= wanted + wanted / 16, "{found}");
        };
        near(0.5, 500);
        near(0.99, 990);
        assert_eq!(late.quantile(1.0), Duration::from_millis(1));
        assert!(late.is_valid(Duration::from_secs(4)));
        (0..20).for_each(|_| late.add(Duration::from_millis(2)));
        assert_eq!(late.behind(), Duration::from_millis(20));
        assert!(!late.is_valid(Duration::from_secs(4)));
    }

    /// One turn in ten thousand, but a quarter of the time.
    #[test]
    fn a_standstill_counts_by_its_length() {
        let mut late = Lateness::default();
        (0..9_999).for_each(|_| late.add(Duration::from_micros(50)));
        late.add(Duration::from_millis(41));
        assert!(late.is_valid(Duration::from_secs(4)));
        late.add(Duration::from_millis(1001));
        assert!(late.quantile(0.99) < Lateness::LIMIT);
        assert!(!late.is_valid(Duration::from_secs(4)));
    }
}
