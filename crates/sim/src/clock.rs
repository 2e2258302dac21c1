//! A node's clock: an offset and a crystal error against air time, in integer arithmetic.

use chappe_core::{Duration, Instant, Ppm, Purpose, Seed};

use crate::AirTime;

const BILLION: u128 = 1_000_000_000;

/// How one node's clock runs against the air.
///
/// The clock shows `offset` at the start of the run and gains `drift` parts per million, kept to a thousandth
/// of a ppm. Conversions are integer arithmetic: the same on every machine, monotone, and no deadline fires early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    base_air: u64,
    base_local: u64,
    /// Nanoseconds shown per 10^9 ns of air time.
    rate: u64,
}

impl Default for Clock {
    fn default() -> Clock {
        Clock::IDEAL
    }
}

impl Clock {
    /// A clock without offset and drift: it shows air time.
    pub const IDEAL: Clock = Clock {
        base_air: 0,
        base_local: 0,
        rate: BILLION as u64,
    };

    /// A clock that shows `offset` at the start and gains `drift`. Drifts beyond +-10 % are clamped.
    pub fn new(offset: Duration, drift: Ppm) -> Clock {
        Clock {
            base_air: 0,
            base_local: offset.nanos(),
            rate: rate_of(drift),
        }
    }

    /// Clocks without offset for `nodes` nodes. A run with the same `seed` and the same deviation of
    /// [`Synchronous::crystal`](crate::Synchronous::crystal) derives its carrier offsets from the same crystals.
    pub fn crystals(seed: Seed, nodes: usize, deviation: Ppm) -> Vec<Clock> {
        let errors = Clock::crystal_errors(seed, nodes, deviation);
        let clock = |ppm| Clock::new(Duration::ZERO, Ppm(ppm));
        errors.into_iter().map(clock).collect()
    }

    /// Errors of `nodes` crystals in ppm, normally distributed.
    pub fn crystal_errors(seed: Seed, nodes: usize, deviation: Ppm) -> Vec<f64> {
        let mut stream = seed.child(0xc47).stream(Purpose::Clock);
        (0..nodes).map(|_| stream.normal() * deviation.0).collect()
    }

    /// What the clock shows at `air`, rounded down to a nanosecond.
    #[inline]
    pub fn local(&self, air: AirTime) -> Instant {
        let span = air.0.saturating_sub(self.base_air);
        // Ideal clocks are common, and a division of 128 bits is slow.
        if self.rate == BILLION as u64 {
            return Instant::from_nanos(self.base_local.saturating_add(span));
        }
        let shown = u128::from(span) * u128::from(self.rate) / BILLION;
        Instant::from_nanos(self.base_local.saturating_add(saturate(shown)))
    }

    /// The first moment at which the clock shows `local` or more; [`AirTime::MAX`] if that never comes.
    #[inline]
    pub fn air(&self, local: Instant) -> AirTime {
        let span = local.nanos().saturating_sub(self.base_local);
        if self.rate == BILLION as u64 {
            return AirTime(self.base_air.saturating_add(span));
        }
        // Rounded up where `local` rounds down, so that a deadline never fires before the clock shows it.
        let air = (u128::from(span) * BILLION).div_ceil(u128::from(self.rate));
        AirTime(self.base_air.saturating_add(saturate(air)))
    }

    /// What the clock showed when its drift was set.
    pub(crate) fn first(&self) -> Instant {
        Instant::from_nanos(self.base_local)
    }

    /// Changes the drift at `now`; what the clock shows does not jump.
    pub fn set_drift(&mut self, now: AirTime, drift: Ppm) {
        *self = Clock {
            base_air: now.0,
            base_local: self.local(now).nanos(),
            rate: rate_of(drift),
        };
    }
}

fn rate_of(drift: Ppm) -> u64 {
    let ppb = libm::round(drift.0 * 1e3).clamp(-1e8, 1e8);
    (1e9 + ppb) as u64
}

fn saturate(nanos: u128) -> u64 {
    u64::try_from(nanos).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_core::{Purpose, Seed};

    /// Deadlines round up, readings round down, and both are exact inverses: the first nanosecond that shows it.
    #[test]
    fn a_deadline_is_the_first_moment_that_shows_it() {
        let mut random = Seed(5).stream(Purpose::Trial(0));
        for _ in 0..20_000 {
            let ppm = Ppm((random.fraction() - 0.5) * 400.0);
            let mut clock = Clock::new(Duration::from_nanos(random.below(1 << 40)), ppm);
            clock.set_drift(AirTime(random.below(1 << 45)), Ppm(-ppm.0));
            let local = Instant::from_nanos(clock.base_local + random.below(1 << 50));
            let air = clock.air(local);
            assert!(clock.local(air) >= local);
            let just_before = AirTime(air.0.saturating_sub(1));
            assert!(air.0 == clock.base_air || clock.local(just_before) < local);
        }
    }

    #[test]
    fn a_second_at_40_ppm_lasts_40_us_less() {
        let clock = Clock::new(Duration::ZERO, Ppm(40.0));
        // 1 s / 1.00004 = 0.9999600016 s, rounded up.
        assert_eq!(clock.air(Instant::from_millis(1000)), AirTime(999_960_002));
    }

    #[test]
    fn the_end_of_time_saturates() {
        let fast = Clock::new(Duration::ZERO, Ppm(-50.0));
        assert_eq!(fast.air(Instant::MAX), AirTime::MAX);
        assert_eq!(Clock::IDEAL.local(AirTime(17)), Instant::from_nanos(17));
    }
}
