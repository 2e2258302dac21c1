//! The simulator's time. Node clocks have another type, because they drift.

use std::fmt;
use std::ops::Add;

use chappe_core::Duration;

/// A moment of the run: nanoseconds since its start, the same for every node.
///
/// Nodes see a [`chappe_core::Instant`] of its own [`Clock`](crate::Clock).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AirTime(pub(crate) u64);

impl AirTime {
    /// The start of the run.
    pub const ZERO: AirTime = AirTime(0);
    /// Later than anything that happens.
    pub const MAX: AirTime = AirTime(u64::MAX);

    /// The moment `nanos` nanoseconds after the start.
    pub const fn from_nanos(nanos: u64) -> AirTime {
        AirTime(nanos)
    }

    /// The moment `micros` microseconds after the start; saturates.
    pub const fn from_micros(micros: u64) -> AirTime {
        AirTime(micros.saturating_mul(1_000))
    }

    /// The moment `millis` milliseconds after the start; saturates.
    pub const fn from_millis(millis: u64) -> AirTime {
        AirTime(millis.saturating_mul(1_000_000))
    }

    /// The moment `secs` seconds after the start; saturates.
    pub const fn from_secs(secs: u64) -> AirTime {
        AirTime(secs.saturating_mul(1_000_000_000))
    }

    /// Nanoseconds since the start.
    #[inline]
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the start, for reports.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// The span from `earlier` to this moment, or zero if `earlier` is later.
    #[inline]
    pub const fn saturating_since(self, earlier: AirTime) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for AirTime {
    type Output = AirTime;
    /// The moment `span` later; saturates at [`AirTime::MAX`].
    #[inline]
    fn add(self, span: Duration) -> AirTime {
        AirTime(self.0.saturating_add(span.nanos()))
    }
}

impl fmt::Display for AirTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (secs, nanos) = (self.0 / 1_000_000_000, self.0 % 1_000_000_000);
        write!(f, "{secs}.{nanos:09} s")
    }
}
