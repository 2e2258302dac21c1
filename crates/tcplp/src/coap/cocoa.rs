//! CoCoA: round-trip estimates for CoAP, also from retransmitted messages.
//!
//! draft-ietf-core-cocoa-03 (expired), 4: a strong estimator for exchanges without retransmission, a weak one, measured
//! from the first transmission, for those with one or two. TCPlp finds that the weak one inflates the timeout on lossy
//! paths (8.2.2); it is implemented here as in the draft. The numbers are from memory of the draft and unchecked; an early
//! implementation by its authors had 2.5 where the draft has 3.

use chappe_core::{Duration, Instant, Stream};

use super::timeout::{Timeout, dithered};

/// One smoothed estimate (RFC 6298 with gains 1/8 and 1/4), in microseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Estimator {
    smoothed: u64,
    variation: u64,
    started: bool,
}

/// CoCoA's retransmission timeout: two estimators and their weighted mean.
#[derive(Clone, Copy, Debug)]
pub struct Cocoa {
    strong: Estimator,
    weak: Estimator,
    /// The overall timeout, before dithering.
    rto: Duration,
    updated: Instant,
}

impl Default for Cocoa {
    fn default() -> Cocoa {
        Cocoa {
            strong: Estimator::default(),
            weak: Estimator::default(),
            rto: Duration::from_secs(2),
            updated: Instant::ZERO,
        }
    }
}

const RTO_MAX: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);
const THREE: Duration = Duration::from_secs(3);

impl Estimator {
    /// Takes a sample and returns SRTT + K RTTVAR.
    fn sample(&mut self, rtt: Duration, k: u64) -> Duration {
        let rtt = (rtt.nanos() / 1000).min(1 << 40);
        if self.started {
            let off = self.smoothed.abs_diff(rtt);
            self.variation = (3 * self.variation + off) / 4;
            self.smoothed = (7 * self.smoothed + rtt) / 8;
        } else {
            *self = Estimator {
                smoothed: rtt,
                variation: rtt / 2,
                started: true,
            };
        }
        Duration::from_micros(self.smoothed + k * self.variation)
    }
}

impl Cocoa {
    /// The present overall timeout, before dithering.
    pub fn rto(&self) -> Duration {
        self.rto
    }

    /// Ages the estimate (4.3): small timeouts grow, large ones shrink towards the default.
    fn age(&mut self, now: Instant) {
        let silent = now.saturating_since(self.updated);
        if self.rto < SECOND && silent > self.rto * 16 {
            self.rto = self.rto * 2;
            self.updated = now;
        } else if self.rto > THREE && silent > self.rto * 4 {
            self.rto = SECOND + self.rto / 2;
            self.updated = now;
        }
    }
}

impl Timeout for Cocoa {
    fn first(&mut self, now: Instant, random: &mut Stream) -> Duration {
        self.age(now);
        dithered(self.rto, random)
    }

    /// The variable back-off factor (4.2.1): 3 for first timeouts below 1 s, 1.5 above 3 s, 2 between.
    fn next(&mut self, before: Duration, first: Duration) -> Duration {
        let longer = if first < SECOND {
            before * 3
        } else if first > THREE {
            before + before / 2
        } else {
            before * 2
        };
        longer.min(RTO_MAX)
    }

    //= tcplp 8.2.2: CoCoA measures the time of retransmitted packets from the first transmission
    fn confirmed(&mut self, now: Instant, rtt: Duration, retransmissions: u8) {
        self.rto = match retransmissions {
            0 => self.rto / 2 + self.strong.sample(rtt, 4) / 2,
            1 | 2 => self.rto / 4 * 3 + self.weak.sample(rtt, 1) / 4,
            _ => return,
        };
        self.rto = self.rto.min(RTO_MAX);
        self.updated = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// First strong sample of 400 ms: SRTT 400, RTTVAR 200, 1200; half of it and half of 2 s is 1.6 s.
    #[test]
    fn samples_move_the_timeout_as_stated() {
        let mut cocoa = Cocoa::default();
        cocoa.confirmed(Instant::ZERO, ms(400), 0);
        assert_eq!(cocoa.rto(), ms(1600));
        // The first weak one, 4 s: SRTT 4, RTTVAR 2, 6 s; 0.75 of 1.6 s and 0.25 of 6 s.
        cocoa.confirmed(Instant::ZERO, ms(4000), 1);
        assert_eq!(cocoa.rto(), ms(2700));
        cocoa.confirmed(Instant::ZERO, ms(4000), 3);
        assert_eq!(cocoa.rto(), ms(2700), "too ambiguous to be used");
    }

    #[test]
    fn backoff_and_age() {
        let mut cocoa = Cocoa::default();
        let next = |cocoa: &mut Cocoa, first| cocoa.next(ms(first), ms(first));
        assert_eq!(next(&mut cocoa, 500), ms(1500));
        assert_eq!(next(&mut cocoa, 2000), ms(4000));
        assert_eq!(next(&mut cocoa, 4000), ms(6000));
        cocoa.rto = ms(8000);
        cocoa.age(Instant::from_millis(33_000));
        assert_eq!(cocoa.rto(), ms(5000));
        cocoa.rto = ms(100);
        cocoa.age(Instant::from_millis(35_000));
        assert_eq!(cocoa.rto(), ms(200));
    }
}
