//! The distribution of the emulator's lateness, in constant memory.
//!
//! Counting late turns is not enough: a computer that stalls for a second is late in one turn of thousands. So the time
//! beyond the limit is summed as well, and a run is valid only if both shares are small.

use chappe_core::Duration;

/// Buckets per doubling: a percentile is exact to 1/16.
const STEPS: u32 = 16;
const BUCKETS: usize = 64 * STEPS as usize;

/// A histogram of durations. Percentiles are upper ends of buckets that are at most 1/16 wide.
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
    /// The largest valid lateness at the 99th percentile. 1 ms is the length of an 802.11b frame of 1500 octets at
    /// 11 Mbit/s: a later run says nothing about the radios that it emulates.
    pub const LIMIT: Duration = Duration::from_millis(1);

    /// The share of turns, and of a run's time, that may exceed [`LIMIT`](Self::LIMIT). Measurements over the run are wrong
    /// by about this share.
    pub const SHARE: f64 = 0.01;

    /// Adds the lateness of one turn.
    pub fn add(&mut self, late: Duration) {
        if let Some(count) = self.counts.get_mut(bucket(late.nanos())) {
            *count += 1;
        }
        self.samples += 1;
        self.max = self.max.max(late);
        self.behind += late.saturating_sub(Lateness::LIMIT);
    }

    /// Number of turns added.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// The longest lateness; zero if there is none.
    pub fn max(&self) -> Duration {
        self.max
    }

    /// The sum over all turns of the lateness beyond [`LIMIT`](Self::LIMIT). While the emulator stalls, no host can send.
    pub fn behind(&self) -> Duration {
        self.behind
    }

    /// The lateness that the given share (0 to 1) of turns did not exceed; zero if there are none.
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

    /// Whether a run of this length kept time well enough to represent the emulated radios.
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

    /// Each value lies within its bucket, and buckets are narrow.
    #[test]
    fn buckets_are_adjacent_and_narrow() {
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
    fn quantiles_match_the_samples() {
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

    /// One turn in ten thousand, but a quarter of the run's time.
    #[test]
    fn one_long_stall_invalidates_a_run() {
        let mut late = Lateness::default();
        (0..9_999).for_each(|_| late.add(Duration::from_micros(50)));
        late.add(Duration::from_millis(41));
        assert!(late.is_valid(Duration::from_secs(4)));
        late.add(Duration::from_millis(1001));
        assert!(late.quantile(0.99) < Lateness::LIMIT);
        assert!(!late.is_valid(Duration::from_secs(4)));
    }
}
