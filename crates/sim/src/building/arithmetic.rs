//! The functions from which a building is drawn: as libm has them, and quickly, off by no more than a stated doubt.
//!
//! A network must have the same bits whoever draws it. Powers are kept in single precision, and what is known to 10^-10 decibel
//! rounds to the same number in all but a few cases in ten thousand; these few are worked out with libm.

use std::f64::consts::{LN_2, LN_10, PI};
use std::sync::OnceLock;

use chappe_core::Stream;

use super::InDoubt;

/// What a building needs of arithmetic.
pub(super) trait Arithmetic {
    /// How far a margin or a power of a building may be from what libm gives, in decibels.
    const DOUBT: f64;

    /// A normal number of variance one, by Box and Muller's method.
    fn normal(&self, random: &mut Stream) -> Result<f64, InDoubt>;

    /// The length of a step along two axes.
    fn hypot(&self, step: [f64; 2]) -> f64;

    /// The decadic logarithm of a positive number.
    fn log10(&self, x: f64) -> f64;

    /// A power in decibels.
    fn decibels(&self, power: f64) -> Result<f64, InDoubt>;
}

/// By libm: its results are the network.
pub(super) struct Exact;

impl Arithmetic for Exact {
    const DOUBT: f64 = 0.0;

    fn normal(&self, random: &mut Stream) -> Result<f64, InDoubt> {
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - random.fraction()));
        Ok(radius * libm::cos(2.0 * PI * random.fraction()))
    }

    fn hypot(&self, [x, y]: [f64; 2]) -> f64 {
        libm::hypot(x, y)
    }

    fn log10(&self, x: f64) -> f64 {
        libm::log10(x)
    }

    fn decibels(&self, power: f64) -> Result<f64, InDoubt> {
        Ok(10.0 * libm::log10(power.max(1e-9)))
    }
}

/// Slices of a logarithm's mantissa.
const SLICES: usize = 256;
/// Parts of a turn.
const PARTS: usize = 64;
/// Uniform numbers nearer to one than this have a radius whose root makes more of an error than is allowed.
const NEAR_ONE: f64 = 1e-4;
/// Below this power decibels make more of an error than is allowed.
const DEEP: f64 = 0.01;

/// By tables and short polynomials.
///
/// A logarithm is off by less than 10^-14, since the first omitted term of its series is 2^-54 / 6. A radius is at least 0.014, so
/// it is off by less than 10^-12, and a normal number by as much. The sum of a walk is off by three times that at most, a power of
/// at least a hundredth by 3 * 10^-12 of itself over its root, which is 1.3 * 10^-10 dB. Shadowing adds 10^-11 dB,
/// and the distance, whose logarithm counts sixty times, less.
pub(super) struct Quick {
    /// For each slice one over its centre, and the logarithm of that centre.
    slices: [(f64, f64); SLICES],
    /// Cosine and sine at each part of a turn.
    parts: [(f64, f64); PARTS + 1],
}

impl Quick {
    pub(super) fn get() -> &'static Quick {
        static TABLES: OnceLock<Quick> = OnceLock::new();
        TABLES.get_or_init(|| Quick {
            slices: std::array::from_fn(|slice| {
                let inverse = 1.0 / (1.0 + (slice as f64 + 0.5) / SLICES as f64);
                (inverse, -libm::log(inverse))
            }),
            parts: std::array::from_fn(|part| {
                let angle = 2.0 * PI * part as f64 / PARTS as f64;
                (libm::cos(angle), libm::sin(angle))
            }),
        })
    }

    /// The natural logarithm of a positive, normal number.
    #[inline]
    fn ln(&self, x: f64) -> f64 {
        let bits = x.to_bits();
        let exponent = (bits >> 52) as i64 - 1023;
        let mantissa = f64::from_bits(bits & ((1 << 52) - 1) | 1.0f64.to_bits());
        let (inverse, centre) = self.slices[(bits >> 44) as usize & (SLICES - 1)];
        let r = mantissa * inverse - 1.0;
        let series = r * (1.0 - r * (0.5 - r * (1.0 / 3.0 - r * (0.25 - r * 0.2))));
        exponent as f64 * LN_2 + (centre + series)
    }

    /// The cosine of a part of a turn in 0..=1.
    #[inline]
    fn cos(&self, turn: f64) -> f64 {
        let part = (turn * PARTS as f64 + 0.5) as usize;
        let (cos, sin) = self.parts[part.min(PARTS)];
        let rest = 2.0 * PI * (turn - part as f64 / PARTS as f64);
        let square = rest * rest;
        let small_cos = square * (-0.5 + square * (1.0 / 24.0 - square / 720.0));
        let small_sin =
            rest * (1.0 - square * (1.0 / 6.0 - square * (1.0 / 120.0 - square / 5040.0)));
        cos + (cos * small_cos - sin * small_sin)
    }
}

impl Arithmetic for Quick {
    const DOUBT: f64 = 2e-10;

    #[inline]
    fn normal(&self, random: &mut Stream) -> Result<f64, InDoubt> {
        let (uniform, turn) = (1.0 - random.fraction(), random.fraction());
        if uniform > 1.0 - NEAR_ONE || uniform <= 0.0 {
            return Err(InDoubt);
        }
        let radius = (-2.0 * self.ln(uniform)).sqrt();
        Ok(radius * self.cos(turn))
    }

    #[inline]
    fn hypot(&self, [x, y]: [f64; 2]) -> f64 {
        (x * x + y * y).sqrt()
    }

    #[inline]
    fn log10(&self, x: f64) -> f64 {
        1.0 / LN_10 * self.ln(x)
    }

    #[inline]
    fn decibels(&self, power: f64) -> Result<f64, InDoubt> {
        if power < DEEP {
            return Err(InDoubt);
        }
        Ok(10.0 * self.log10(power))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_core::{Purpose, Seed};

    #[test]
    fn a_quick_normal_number_is_as_near_as_stated() {
        let mut random = Seed(4).stream(Purpose::Trial(0));
        for _ in 0..200_000 {
            let mut same = random;
            let Ok(quick) = Quick::get().normal(&mut random) else {
                Exact.normal(&mut same).ok();
                assert_eq!(random, same);
                continue;
            };
            let exact = Exact.normal(&mut same).unwrap_or(f64::NAN);
            assert!((quick - exact).abs() < 1e-12, "{quick} {exact}");
            assert_eq!(random, same);
        }
    }

    #[test]
    fn quick_decibels_are_as_near_as_stated() {
        let mut random = Seed(5).stream(Purpose::Trial(0));
        for _ in 0..200_000 {
            let power = DEEP + 30.0 * random.fraction() * random.fraction();
            let (quick, exact) = (Quick::get().decibels(power), Exact.decibels(power));
            let error = quick.unwrap_or(f64::NAN) - exact.unwrap_or(f64::NAN);
            assert!(error.abs() < 1e-12, "{power} {error}");
        }
    }
}
