//! Powers, ratios and rates as types, so that meaningless sums do not compile.
//!
//! Two powers subtract to a ratio; a power and a ratio add to a power. Powers themselves add only as
//! milliwatts:
//!
//! ```
//! use chappe_core::{Db, Dbm};
//! let (received, noise) = (Dbm(-80.0), Dbm(-94.0));
//! assert_eq!(received - noise, Db(14.0));
//! let both = (received.to_milliwatt() + noise.to_milliwatt()).to_dbm();
//! assert!(both > received && both - received < Db(0.2));
//! ```
//!
//! ```compile_fail
//! use chappe_core::Dbm;
//! let nonsense = Dbm(-80.0) + Dbm(-94.0);
//! ```

use core::fmt;
use core::ops::{Add, Neg, Sub};

use crate::Duration;

/// The speed of light in vacuum, in metres a second. Exact: the SI defines the metre by it.
pub const SPEED_OF_LIGHT: f64 = 299_792_458.0;

/// A power relative to one milliwatt, in decibels.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Dbm(pub f64);

/// A ratio of powers in decibels.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Db(pub f64);

/// A power in milliwatts; the form in which powers add.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct MilliWatt(pub f64);

/// A data rate in bits per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bitrate(pub u64);

/// A relative frequency error in parts per million, such as a crystal's.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Ppm(pub f64);

impl Dbm {
    /// The same power in milliwatts.
    pub fn to_milliwatt(self) -> MilliWatt {
        MilliWatt(libm::exp10(self.0 / 10.0))
    }
}

impl MilliWatt {
    /// The same power in dBm; zero becomes minus infinity.
    pub fn to_dbm(self) -> Dbm {
        Dbm(10.0 * libm::log10(self.0))
    }
}

impl Db {
    /// The ratio as a plain number: 3 dB is about 2.
    pub fn to_linear(self) -> f64 {
        // Not the platform's mathematics: results, and with them digests, have the same bits on every machine.
        libm::exp10(self.0 / 10.0)
    }

    /// The decibels of a plain ratio; zero becomes minus infinity.
    pub fn from_linear(ratio: f64) -> Db {
        Db(10.0 * libm::log10(ratio))
    }
}

impl Bitrate {
    /// The time that `bits` take at this rate, rounded up to a nanosecond. At a rate of zero: [`Duration::MAX`].
    pub const fn time_of(self, bits: u64) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        // In 128 bits: at 2.3 GB the product no longer fits 64.
        let nanos = (bits as u128 * 1_000_000_000).div_ceil(self.0 as u128);
        Duration::from_nanos(if nanos > u64::MAX as u128 {
            u64::MAX
        } else {
            nanos as u64
        })
    }
}

impl Sub for Dbm {
    type Output = Db;
    fn sub(self, other: Dbm) -> Db {
        Db(self.0 - other.0)
    }
}

impl Sub<Db> for Dbm {
    type Output = Dbm;
    fn sub(self, loss: Db) -> Dbm {
        Dbm(self.0 - loss.0)
    }
}

impl Add<Db> for Dbm {
    type Output = Dbm;
    fn add(self, gain: Db) -> Dbm {
        Dbm(self.0 + gain.0)
    }
}

impl Add for Db {
    type Output = Db;
    fn add(self, other: Db) -> Db {
        Db(self.0 + other.0)
    }
}

impl Sub for Db {
    type Output = Db;
    fn sub(self, other: Db) -> Db {
        Db(self.0 - other.0)
    }
}

impl Neg for Db {
    type Output = Db;
    fn neg(self) -> Db {
        Db(-self.0)
    }
}

impl Add for MilliWatt {
    type Output = MilliWatt;
    fn add(self, other: MilliWatt) -> MilliWatt {
        MilliWatt(self.0 + other.0)
    }
}

impl fmt::Display for Dbm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} dBm", self.0)
    }
}

impl fmt::Display for Db {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} dB", self.0)
    }
}

impl fmt::Display for Bitrate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n % 100_000 == 0 => write!(f, "{} Mbit/s", n as f64 / 1e6),
            n if n % 100 == 0 => write!(f, "{} kbit/s", n as f64 / 1e3),
            n => write!(f, "{n} bit/s"),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn powers_add_as_milliwatts() {
        let sum = Dbm(-90.0).to_milliwatt() + Dbm(-90.0).to_milliwatt();
        assert!((sum.to_dbm() - Dbm(-90.0) - Db(3.0103)).0.abs() < 1e-4);
    }

    #[test]
    fn a_rate_of_zero_takes_the_longest_time() {
        assert_eq!(Bitrate(0).time_of(1), Duration::MAX);
        assert_eq!(
            Bitrate(2_000_000).time_of(12_288),
            Duration::from_micros(6144)
        );
    }

    #[test]
    fn units_print_as_written() {
        assert_eq!(Bitrate(5_500_000).to_string(), "5.5 Mbit/s");
        assert_eq!(Dbm(-91.0).to_string(), "-91 dBm");
    }
}
