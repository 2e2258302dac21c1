//! The round-trip time estimator and the retransmission timeout (RFC 6298), in microseconds.

use chappe_core::Duration;

use super::Config;
use super::clock::{micros, span};

/// SRTT and RTTVAR, scaled so that their gains of 1/8 and 1/4 lose no bits. `srtt8` is zero before the first sample.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rtt {
    /// Eight times the smoothed round-trip time, µs.
    srtt8: u32,
    /// Four times the mean deviation, µs.
    var4: u32,
    /// The smallest sample, µs; 0 before the first.
    min: u32,
}

/// Larger samples count as this, µs: eight times the value must fit in 32 bits.
const SAMPLE_MAX: u32 = u32::MAX / 16;

/// The granularity G of RFC 6298, µs: the tick of the timestamps, from which samples of retransmitted segments
/// come.
const GRANULARITY: u32 = 1_000;

impl Rtt {
    /// Takes a sample in µs (RFC 6298 2.2 and 2.3: gains 1/8 and 1/4).
    pub fn sample(&mut self, rtt: u32) {
        let rtt = rtt.clamp(1, SAMPLE_MAX);
        self.min = if self.min == 0 {
            rtt
        } else {
            self.min.min(rtt)
        };
        if self.srtt8 == 0 {
            self.srtt8 = rtt * 8;
            self.var4 = rtt * 2;
            return;
        }
        let error = (self.srtt8 / 8).abs_diff(rtt);
        // var = 3/4 var + 1/4 |error|, kept times four; srtt = 7/8 srtt + 1/8 rtt, kept times eight.
        // Neither overflows: no sample is above 2^28.
        self.var4 = (self.var4 - self.var4 / 4).wrapping_add(error);
        self.srtt8 = (self.srtt8 - self.srtt8 / 8).wrapping_add(rtt);
    }

    /// Smoothed round-trip time, µs; 0 if nothing was measured.
    pub fn smoothed(&self) -> u32 {
        self.srtt8 / 8
    }

    /// RTTVAR, the mean deviation, in µs.
    pub fn deviation(&self) -> u32 {
        self.var4 / 4
    }

    /// The smallest sample, µs; 0 if nothing was measured. Over the whole connection, since paths of a mesh change slowly.
    pub fn min(&self) -> u32 {
        self.min
    }

    /// The retransmission timeout, doubled for each of `backoff` timeouts since the last progress (RFC 6298 5.5).
    pub fn timeout(&self, config: &Config, backoff: u8) -> Duration {
        let base = self.base_timeout(config);
        let doubled = base.saturating_mul(1 << backoff.min(16));
        span(doubled.min(micros(config.rto_max).max(base)))
    }

    /// The retransmission timeout without back-off, µs (RFC 6298 2.3, 2.4).
    pub fn base_timeout(&self, config: &Config) -> u32 {
        if self.srtt8 == 0 {
            return micros(config.rto_initial);
        }
        let rto = (self.srtt8 / 8).saturating_add(self.var4.max(GRANULARITY));
        rto.max(micros(config.rto_min)).min(micros(config.rto_max))
    }

    /// The probe timeout of a tail loss probe (RFC 8985 7.2): two round trips, and the peer's delay of its
    /// acknowledgement if only one segment is out.
    pub fn probe_timeout(&self, config: &Config, single: bool) -> Duration {
        if self.srtt8 == 0 {
            return Duration::from_secs(1);
        }
        let delay = if single {
            micros(config.probe_ack_delay)
        } else {
            0
        };
        span((self.srtt8 / 4).saturating_add(delay))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: Config = Config {
        rto_min: Duration::from_millis(1),
        ..Config::STANDARD
    };

    /// RFC 6298 2.2: SRTT = R, RTTVAR = R/2, RTO = SRTT + 4 RTTVAR.
    #[test]
    fn the_first_sample_gives_three_times_itself() {
        let mut rtt = Rtt::default();
        assert_eq!(rtt.timeout(&CONFIG, 0), Duration::from_secs(1));
        rtt.sample(100_000);
        assert_eq!((rtt.smoothed(), rtt.deviation()), (100_000, 50_000));
        assert_eq!(rtt.timeout(&CONFIG, 0), Duration::from_millis(300));
    }

    /// RFC 6298 2.3 with exact numbers: 100 ms, then 180 ms: SRTT 110, RTTVAR 57.5, RTO 340 ms.
    #[test]
    fn the_second_sample_is_smoothed() {
        let mut rtt = Rtt::default();
        rtt.sample(100_000);
        rtt.sample(180_000);
        assert_eq!((rtt.smoothed(), rtt.deviation()), (110_000, 57_500));
        assert_eq!(rtt.timeout(&CONFIG, 0), Duration::from_millis(340));
    }

    #[test]
    fn back_off_doubles_to_the_maximum() {
        let mut rtt = Rtt::default();
        rtt.sample(100_000);
        assert_eq!(rtt.timeout(&CONFIG, 1), Duration::from_millis(600));
        assert_eq!(rtt.timeout(&CONFIG, 255), Duration::from_secs(60));
        assert_eq!(rtt.timeout(&CONFIG, 0), Duration::from_millis(300));
    }

    #[test]
    fn huge_samples_do_not_overflow() {
        let mut rtt = Rtt::default();
        (0..100).for_each(|_| rtt.sample(u32::MAX));
        (0..100).for_each(|_| rtt.sample(0));
        (0..100).for_each(|n| rtt.sample(u32::MAX * (n % 2)));
        assert_eq!(rtt.timeout(&CONFIG, 0), Duration::from_secs(60));
    }
}
