//! A natural logarithm that is fast and the same to the bit on every machine.

use std::sync::OnceLock;

const BITS: u32 = 7;
const SIZE: usize = 1 << BITS;

/// `ln` by a table of 128 centres and a quartic: absolute error below 1e-12 on (0, 1], checked by a test.
///
/// Only additions and multiplications of IEEE 754 are used, in a fixed order, so the result is the same on
/// every machine; the table itself comes from `libm` in pure Rust.
#[derive(Debug)]
pub(crate) struct Logarithm {
    /// For each slice of the mantissa: one over its centre, and the logarithm of its centre.
    slices: [(f64, f64); SIZE],
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
            Logarithm { slices }
        })
    }

    /// The natural logarithm of a positive, normal number.
    #[inline]
    pub(crate) fn ln(&self, x: f64) -> f64 {
        let bits = x.to_bits();
        let exponent = (bits >> 52) as i64 - 1023;
        let index = (bits >> (52 - BITS)) as usize & (SIZE - 1);
        let mantissa = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
        let (inverse, log) = self.slices[index];
        let r = mantissa * inverse - 1.0;
        let series = r * (1.0 - r * (0.5 - r * (1.0 / 3.0 - r * 0.25)));
        exponent as f64 * std::f64::consts::LN_2 + (log + series)
    }

    /// `-ln U` for 64 random bits: exponentially distributed with mean 1, in [0, 36.8].
    #[inline]
    pub(crate) fn exponential(&self, bits: u64) -> f64 {
        let fraction = ((bits >> 11) + 1) as f64 * (1.0 / (1u64 << 53) as f64);
        (-self.ln(fraction)).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_core::{Purpose, Seed};

    #[test]
    fn the_error_is_as_stated() {
        let (log, mut random) = (Logarithm::get(), Seed(2).stream(Purpose::Trial(0)));
        for _ in 0..200_000 {
            let x = random.fraction() * f64::powi(2.0, -(random.below(40) as i32));
            assert!((log.ln(x) - libm::log(x)).abs() < 1e-12, "{x}");
        }
        assert!(log.ln(1.0).abs() < 1e-12);
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
