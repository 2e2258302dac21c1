//! A fast natural logarithm with the same bits on every machine.

use std::f64::consts::LN_2;
use std::sync::OnceLock;

const BITS: u32 = 8;
const SIZE: usize = 1 << BITS;

/// `ln` by a table of 256 centres and a cubic: absolute error below 1e-11 on (0, 1], checked by a test.
///
/// Only additions and multiplications of IEEE 754 are used, in a fixed order, so the result is the same on
/// every machine; the table itself comes from `libm` in pure Rust.
#[derive(Debug)]
pub(crate) struct Logarithm {
    /// For each slice of the mantissa: one over its centre, and the logarithm of its centre.
    slices: [(f64, f64); SIZE],
    /// The logarithm of 2^(e - 1023) for the biased exponents e of (0, 1] at 52 bits, by their last six bits.
    powers: [f64; 64],
}

impl Logarithm {
    pub(crate) fn get() -> &'static Logarithm {
        static TABLE: OnceLock<Logarithm> = OnceLock::new();
        TABLE.get_or_init(|| {
            let mut slices = [(0.0, 0.0); SIZE];
            for (index, slice) in slices.iter_mut().enumerate() {
                let centre = 1.0 + (index as f64 + 0.5) / SIZE as f64;
                // Rounding 1/centre moves the centre a little: take the logarithm of what it became.
                let inverse = 1.0 / centre;
                *slice = (inverse, -libm::log(inverse));
            }
            let mut powers = [0.0; 64];
            for exponent in 1023 - 63..=1023i64 {
                powers[exponent as usize & 63] = (exponent - 1023) as f64 * LN_2;
            }
            Logarithm { slices, powers }
        })
    }

    /// The natural logarithm of a positive, normal number.
    #[inline]
    pub(crate) fn ln(&self, x: f64) -> f64 {
        let exponent = (x.to_bits() >> 52) as i64 - 1023;
        exponent as f64 * LN_2 + self.ln_mantissa(x.to_bits())
    }

    /// The logarithm of the mantissa, in [1, 2), of a number given by its bits.
    #[inline]
    fn ln_mantissa(&self, bits: u64) -> f64 {
        let index = (bits >> (52 - BITS)) as usize & (SIZE - 1);
        let mantissa = f64::from_bits(bits & ((1 << 52) - 1) | ONE);
        let (inverse, log) = self.slices[index];
        let r = mantissa * inverse - 1.0;
        log + r * (1.0 - r * (0.5 - r * (1.0 / 3.0)))
    }

    /// `-ln U` for 64 random bits: exponentially distributed with mean 1, in [0, 36.1]. It grows with the bits.
    #[inline]
    pub(crate) fn exponential(&self, random: u64) -> f64 {
        // 2 - [1, 2): a uniform number in (0, 1] without an integer conversion.
        let fraction = 2.0 - f64::from_bits(random >> 12 | ONE);
        let bits = fraction.to_bits();
        // The exponent's part comes from a table too: no integer is converted to a float.
        let ln = self.powers[(bits >> 52) as usize & 63] + self.ln_mantissa(bits);
        (-ln).max(0.0)
    }
}

/// The bits of 1.0.
const ONE: u64 = 1023 << 52;

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_core::{Purpose, Seed};

    #[test]
    fn the_error_is_as_stated() {
        let (log, mut random) = (Logarithm::get(), Seed(2).stream(Purpose::Trial(0)));
        for _ in 0..200_000 {
            let x = random.fraction() * f64::powi(2.0, -(random.below(40) as i32));
            assert!((log.ln(x) - libm::log(x)).abs() < 1e-11, "{x}");
        }
        assert!(log.ln(1.0).abs() < 1e-11);
    }

    /// The short cut for random bits is the same function.
    #[test]
    fn exponentials_are_logarithms() {
        let (log, random) = (Logarithm::get(), Seed(3).stream(Purpose::Trial(0)));
        let special = [0, 1, u64::MAX, u64::MAX - 4096, 1 << 63, (1 << 63) - 1];
        for bits in (0..100_000)
            .map(|position| random.at(position))
            .chain(special)
        {
            let fraction = (4_503_599_627_370_496 - (bits >> 12)) as f64 / 4_503_599_627_370_496.0;
            let error = log.exponential(bits) + libm::log(fraction);
            assert!(error.abs() < 1e-11, "{bits:x} {error}");
        }
    }

    #[test]
    fn exponential_numbers_have_mean_and_variance_one() {
        let random = Seed(2).stream(Purpose::Trial(1));
        let n = 200_000;
        let (mut sum, mut squares) = (0.0, 0.0);
        for position in 0..n {
            let x = Logarithm::get().exponential(random.at(position));
            sum += x;
            squares += (x - 1.0) * (x - 1.0);
        }
        let n = n as f64;
        assert!((sum / n - 1.0).abs() < 5.0 / n.sqrt());
        assert!((squares / n - 1.0).abs() < 5.0 * (8.0 / n).sqrt());
    }
}
