//! Decibels of powers and ratios, two for each reception: a logarithm of the library takes longer than all else of a row.
//!
//! A number is `2^e c (1 + r)`, where `c` is one of a few numbers from 1 to 2, so that `r` is small and its logarithm a short series.

use std::f64::consts::LN_10;

use chappe_sim::Power;

/// Slices of the numbers from 1 to 2, as a power of two.
const BITS: u32 = 7;
const SLICES: usize = 1 << BITS;

/// For each slice: one over the number in its middle, and the logarithm of that number in decibels.
static TABLE: [(f64, f64); SLICES] = {
    let mut table = [(0.0, 0.0); SLICES];
    let mut slice = 0;
    while slice < SLICES {
        let middle = 1.0 + (slice as f64 + 0.5) / SLICES as f64;
        table[slice] = (1.0 / middle, ln(middle) * PER_NEPER);
        slice += 1;
    }
    table
};

/// Decibels of a natural logarithm of one, and of a factor of two.
const PER_NEPER: f64 = 10.0 / LN_10;
const PER_OCTAVE: f64 = ln(2.0) * PER_NEPER;

/// The natural logarithm of a number from 1 to 2, by twice the series of the inverse hyperbolic tangent of (x - 1) / (x + 1), which is
/// at most a third: 20 terms leave less than a double's last bit.
const fn ln(x: f64) -> f64 {
    let y = (x - 1.0) / (x + 1.0);
    let (mut sum, mut power, mut term) = (0.0, y, 0);
    while term < 20 {
        sum += power / (2 * term + 1) as f64;
        power *= y * y;
        term += 1;
    }
    2.0 * sum
}

/// Decibels that were worked out before: powers and ratios repeat where links are few and do not fade.
#[derive(Debug)]
pub(crate) struct Decibels(Vec<(u64, f64)>);

impl Decibels {
    /// Ratios that are kept, as a power of two.
    const KEPT: u32 = 10;

    pub(crate) fn new() -> Decibels {
        Decibels(vec![(1f64.to_bits(), 0.0); 1 << Decibels::KEPT])
    }

    #[inline]
    pub(crate) fn of(&mut self, ratio: f64) -> f64 {
        let bits = ratio.to_bits();
        // The product's upper bits depend on all bits of the ratio.
        let slot = bits.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - Decibels::KEPT);
        let known = &mut self.0[slot as usize];
        if known.0 != bits {
            *known = (bits, decibels(ratio));
        }
        known.1
    }

    /// A power as dBm; none at all is minus infinity.
    #[inline]
    pub(crate) fn dbm(&mut self, power: Power) -> f32 {
        // One milliwatt is 10^18 zeptowatts.
        (self.of(power.zeptowatts() as f64) - 180.0) as f32
    }
}

/// A ratio in decibels, to within 10^-11: the `f32` of a row is coarser by far. Nothing at all is minus infinity.
#[inline(always)]
fn decibels(ratio: f64) -> f64 {
    const FRACTION: u32 = f64::MANTISSA_DIGITS - 1;
    if !(f64::MIN_POSITIVE..f64::INFINITY).contains(&ratio) {
        return 10.0 * ratio.log10();
    }
    let bits = ratio.to_bits();
    let exponent = (bits >> FRACTION) as i32 - (f64::MAX_EXP - 1);
    let (one_over, start) = TABLE[(bits >> (FRACTION - BITS)) as usize % SLICES];
    let mantissa = f64::from_bits(bits << (64 - FRACTION) >> (64 - FRACTION) | 1f64.to_bits());
    let r = mantissa * one_over - 1.0;
    let ln = r * (1.0 - r * (1.0 / 2.0 - r * (1.0 / 3.0 - r * (1.0 / 4.0))));
    f64::from(exponent) * PER_OCTAVE + start + ln * PER_NEPER
}

#[cfg(test)]
mod tests {
    use chappe_core::{Purpose, Seed};

    use super::*;

    /// Method: numbers of all sizes at random, the borders of slices, and what has no logarithm, beside the library's.
    #[test]
    fn decibels_are_ten_times_the_logarithm() {
        let mut random = Seed(1).stream(Purpose::Trial(0));
        let each = (0..200_000).map(|_| f64::from_bits(random.next_u64() >> 1));
        let borders = (0..=SLICES).map(|slice| 1.0 + slice as f64 / SLICES as f64);
        let below = borders.clone().map(f64::next_down);
        for ratio in each
            .chain(borders)
            .chain(below)
            .filter(|ratio| !ratio.is_nan())
        {
            let (ours, theirs) = (decibels(ratio), 10.0 * ratio.log10());
            let same = ours == theirs || (ours - theirs).abs() < 1e-11;
            assert!(same, "{ratio}: {ours}, {theirs}");
        }
        assert_eq!(decibels(0.0), f64::NEG_INFINITY);
        assert_eq!(decibels(f64::INFINITY), f64::INFINITY);
        assert!(decibels(f64::NAN).is_nan() && decibels(-1.0).is_nan());
        let mut kept = Decibels::new();
        for _ in 0..2 {
            assert_eq!(kept.dbm(Power::from_zeptowatts(1_000_000_000)), -90.0);
            assert_eq!(kept.dbm(Power::ZERO), f32::NEG_INFINITY);
        }
    }
}
