//! How late the emulator was, kept without memory for each sample.

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
}

impl Default for Lateness {
    fn default() -> Lateness {
        Lateness {
            counts: Box::new([0; BUCKETS]),
            samples: 0,
            max: Duration::ZERO,
        }
    }
}

impl Lateness {
    /// Above this at the 99th percentile, a run says nothing about the radios that it emulates: 1 ms is as long as an
    /// 802.11b frame of 1500 octets at 11 Mbit/s.
    pub const LIMIT: Duration = Duration::from_millis(1);

    /// Takes down one span.
    pub fn add(&mut self, late: Duration) {
        if let Some(count) = self.counts.get_mut(bucket(late.nanos())) {
            *count += 1;
        }
        self.samples += 1;
        self.max = self.max.max(late);
    }

    /// How many were taken down.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// The longest; zero if there is none.
    pub fn max(&self) -> Duration {
        self.max
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

    /// Whether the run can stand for what it emulates.
    pub fn is_valid(&self) -> bool {
        self.quantile(0.99) <= Lateness::LIMIT
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
        assert!(late.is_valid());
        (0..20).for_each(|_| late.add(Duration::from_millis(2)));
        assert!(!late.is_valid());
    }
}
