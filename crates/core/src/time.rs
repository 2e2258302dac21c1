//! Instants and spans in whole nanoseconds, the same on a desktop and on a microcontroller.
//!
//! An [`Instant`] belongs to one node's clock and means nothing on another node; a [`Duration`] is a span. `u64`
//! nanoseconds last 584 years. The name of every subtraction states what happens below zero.

use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul};

/// A moment on one node's clock: nanoseconds since that clock's own zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

/// A span of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(u64);

impl Instant {
    /// The zero of the clock, nanosecond 0.
    pub const ZERO: Instant = Instant(0);
    /// The latest representable instant: a deadline at it never comes.
    pub const MAX: Instant = Instant(u64::MAX);

    /// The instant `nanos` nanoseconds after the clock's zero.
    pub const fn from_nanos(nanos: u64) -> Instant {
        Instant(nanos)
    }

    /// The instant `micros` microseconds after the clock's zero; saturates at [`Instant::MAX`].
    pub const fn from_micros(micros: u64) -> Instant {
        Instant(micros.saturating_mul(1_000))
    }

    /// The instant `millis` milliseconds after the clock's zero; saturates at [`Instant::MAX`].
    pub const fn from_millis(millis: u64) -> Instant {
        Instant(millis.saturating_mul(1_000_000))
    }

    /// Nanoseconds since the clock's zero.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the clock's zero, for reports; never fed back into the protocol.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// The span from `earlier` to `self`, or zero if `earlier` is later.
    pub const fn saturating_since(self, earlier: Instant) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }

    /// The span from `earlier` to `self`, or `None` if `earlier` is later.
    pub const fn checked_since(self, earlier: Instant) -> Option<Duration> {
        match self.0.checked_sub(earlier.0) {
            Some(nanos) => Some(Duration(nanos)),
            None => None,
        }
    }

    /// The instant `span` before this one, or the clock's zero if that is earlier still.
    pub const fn saturating_before(self, span: Duration) -> Instant {
        Instant(self.0.saturating_sub(span.0))
    }
}

impl Duration {
    /// The empty span, zero nanoseconds.
    pub const ZERO: Duration = Duration(0);
    /// The longest representable span.
    pub const MAX: Duration = Duration(u64::MAX);

    /// A span of `nanos` nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Duration {
        Duration(nanos)
    }

    /// A span of `micros` microseconds; saturates.
    pub const fn from_micros(micros: u64) -> Duration {
        Duration(micros.saturating_mul(1_000))
    }

    /// A span of `millis` milliseconds; saturates.
    pub const fn from_millis(millis: u64) -> Duration {
        Duration(millis.saturating_mul(1_000_000))
    }

    /// A span of `secs` seconds; saturates.
    pub const fn from_secs(secs: u64) -> Duration {
        Duration(secs.saturating_mul(1_000_000_000))
    }

    /// The nearest whole nanosecond to `secs` seconds; negative and not-a-number become zero.
    pub fn from_secs_f64(secs: f64) -> Duration {
        // The cast saturates, and makes zero of negative numbers and of not-a-number.
        Duration(libm::round(secs * 1e9) as u64)
    }

    /// The span in whole nanoseconds.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// Seconds, for reports and for rates.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// `self - other`, or zero if `other` is longer.
    pub const fn saturating_sub(self, other: Duration) -> Duration {
        Duration(self.0.saturating_sub(other.0))
    }

    /// The span scaled by a factor; negative and not-a-number factors give zero.
    pub fn mul_f64(self, factor: f64) -> Duration {
        Duration(libm::round(self.0 as f64 * factor) as u64)
    }

    /// How many whole `step`s fit in this span; zero if `step` is zero.
    pub const fn steps(self, step: Duration) -> u64 {
        match self.0.checked_div(step.0) {
            Some(steps) => steps,
            None => 0,
        }
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;
    /// Saturates at [`Instant::MAX`]: a deadline too far away never comes.
    fn add(self, span: Duration) -> Instant {
        Instant(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}

impl Add for Duration {
    type Output = Duration;
    fn add(self, other: Duration) -> Duration {
        Duration(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, other: Duration) {
        *self = *self + other;
    }
}

impl Mul<u64> for Duration {
    type Output = Duration;
    fn mul(self, times: u64) -> Duration {
        Duration(self.0.saturating_mul(times))
    }
}

impl Div<u64> for Duration {
    type Output = Duration;
    /// Rounds down; dividing by zero gives [`Duration::MAX`].
    fn div(self, parts: u64) -> Duration {
        Duration(self.0.checked_div(parts).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (secs, nanos) = (self.0 / 1_000_000_000, self.0 % 1_000_000_000);
        write!(f, "{secs}.{nanos:09} s")
    }
}

impl fmt::Display for Duration {
    /// In the largest unit that keeps whole numbers: `20 us`, `6336 us`, `1 s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scale, unit) = match self.0 {
            n if n % 1_000_000_000 == 0 => (1_000_000_000, "s"),
            n if n % 1_000_000 == 0 => (1_000_000, "ms"),
            n if n % 1_000 == 0 => (1_000, "us"),
            _ => (1, "ns"),
        };
        write!(f, "{} {unit}", self.0 / scale)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn subtraction_saturates_or_is_checked() {
        let (a, b) = (Instant::from_micros(5), Instant::from_micros(7));
        assert_eq!(a.saturating_since(b), Duration::ZERO);
        assert_eq!(a.checked_since(b), None);
        assert_eq!(b.checked_since(a), Some(Duration::from_micros(2)));
        assert_eq!(a.saturating_before(Duration::from_secs(1)), Instant::ZERO);
    }

    #[test]
    fn deadlines_saturate() {
        assert_eq!(Instant::MAX + Duration::from_nanos(1), Instant::MAX);
        assert_eq!(Duration::MAX * 2, Duration::MAX);
        assert_eq!(Duration::from_secs(1) / 0, Duration::MAX);
        assert_eq!(Duration::from_secs(1).steps(Duration::ZERO), 0);
    }

    #[test]
    fn spans_print_in_the_largest_whole_unit() {
        assert_eq!(Duration::from_micros(6336).to_string(), "6336 us");
        assert_eq!(Duration::from_millis(20).to_string(), "20 ms");
        assert_eq!(Instant::from_micros(1_500_000).to_string(), "1.500000000 s");
    }
}
