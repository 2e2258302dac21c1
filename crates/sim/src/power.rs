//! Powers as whole numbers. Integer sums do not depend on order and return exactly to zero; sums of floats do neither.

use chappe_core::Dbm;

use crate::logarithm::Logarithm;

/// A power in zeptowatts, 10^-21 W.
///
/// Thermal noise in 22 MHz is about 10^8 of them. A single signal is capped at 2^56 (-11 dBm), where a
/// receiver is overdriven anyway, so that a hundred of them add up without overflow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Power(pub(crate) u64);

/// One milliwatt in zeptowatts.
pub(crate) const MILLIWATT: f64 = 1e18;
/// The cap of a single signal.
pub(crate) const SIGNAL_MAX: u64 = 1 << 56;

impl Power {
    /// No power at all: what a receiver's sum returns to in silence.
    pub const ZERO: Power = Power(0);

    /// The nearest whole number of zeptowatts, capped at 2^56.
    pub fn from_dbm(power: Dbm) -> Power {
        Power::rounded_down(power.to_milliwatt().0 * MILLIWATT)
    }

    /// A number of zeptowatts, capped at 2^56.
    pub fn from_zeptowatts(power: u64) -> Power {
        Power(power.min(SIGNAL_MAX))
    }

    /// The power as a whole number of zeptowatts.
    #[inline]
    pub const fn zeptowatts(self) -> u64 {
        self.0
    }

    /// A product of powers and gains as it is kept: rounded down, capped.
    #[inline]
    pub(crate) fn rounded_down(zeptowatts: f64) -> Power {
        const MAX: f64 = SIGNAL_MAX as f64;
        // Capped first: a conversion to a signed number is cheaper, and NaN becomes the cap.
        let capped = if zeptowatts < MAX { zeptowatts } else { MAX };
        Power(capped as i64 as u64)
    }

    /// A threshold. Not capped as signals are: one above every signal must stay above.
    pub(crate) fn threshold(power: Dbm) -> Power {
        Power(libm::round(power.to_milliwatt().0 * MILLIWATT) as u64)
    }

    /// A signal joins a sum. Wrapping: the cap leaves room for 127 signals, and if more than that were ever present at
    /// once, the sum would still be exact again when they end.
    #[inline]
    #[must_use]
    pub(crate) const fn plus(self, signal: Power) -> Power {
        Power(self.0.wrapping_add(signal.0))
    }

    /// A signal leaves a sum.
    #[inline]
    #[must_use]
    pub(crate) const fn minus(self, signal: Power) -> Power {
        Power(self.0.wrapping_sub(signal.0))
    }

    /// The power in zeptowatts, rounded, to form ratios with.
    #[inline]
    pub(crate) const fn as_f64(self) -> f64 {
        // Machines convert signed numbers faster.
        self.0 as i64 as f64
    }

    /// The power in dBm; zero is minus infinity. Error below 1e-11 dB.
    pub fn to_dbm(self) -> Dbm {
        if self.0 == 0 {
            return Dbm(f64::NEG_INFINITY);
        }
        let per_neper = 10.0 * std::f64::consts::LOG10_E;
        Dbm(per_neper * Logarithm::get().ln(self.0 as f64 / MILLIWATT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_survive_the_conversion() {
        for dbm in [-120.0, -113.6, -93.6, -64.4, -12.0] {
            assert!((Power::from_dbm(Dbm(dbm)).to_dbm().0 - dbm).abs() < 1e-5);
        }
        assert_eq!(Power::from_dbm(Dbm(30.0)).0, SIGNAL_MAX);
        assert_eq!(Power::from_dbm(Dbm(f64::NEG_INFINITY)), Power::ZERO);
    }
}
