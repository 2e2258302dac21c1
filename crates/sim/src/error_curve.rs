//! Bit error curves over the SINR: tables computed once from the field's formulas, read without any transcendental
//! function.
//!
//! The ratio is linear, in the band of the standard (22 MHz for 802.11b, 20 MHz for OFDM, 2 MHz for 802.15.4). Sources, in the
//! physics report: 4.2 for DSSS and CCK (the formulas of ns-3's `dsss-error-rate-model.cc`, with the CCK symbol
//! error integral evaluated here); `ofdm` for 802.11a, g and n; [`Oqpsk`] for 802.15.4.

use std::f64::consts::{PI, SQRT_2};
use std::sync::OnceLock;

use chappe_core::{Mode, Preamble, Rate};

use crate::{Oqpsk, ofdm};

/// Grid points per octave of the ratio: at most 0.034 dB apart, with straight lines between them.
const STEP_BITS: u32 = 7;
const STEPS: usize = 1 << STEP_BITS;
/// The tables reach from 2^-9 (-27 dB) to 2^10 (+30 dB), where even 54 Mbit/s are perfect.
const OCTAVE_MIN: i64 = -9;
const OCTAVES: usize = 19;
const SIZE: usize = OCTAVES * STEPS + 1;
/// Exponent and first mantissa bits of the lowest grid point.
const ORIGIN: u64 = ((1023 + OCTAVE_MIN) as u64) << STEP_BITS;

/// The error curve of one rate: the logarithm of the probability that a bit survives, over the ratio.
#[derive(Debug)]
pub(crate) struct ErrorCurve {
    ln_success: [f64; SIZE],
    /// From this ratio up every bit survives: fewer than one error in 10^13 bits.
    pub(crate) perfect: f64,
    /// From this ratio up a hundred bits, more than any header has, survive with a probability over [`LIKELY`].
    pub(crate) likely: f64,
}

/// A draw that a likely header survives. Its probability is a hundredth higher, which is more than all roundings.
pub(crate) const LIKELY: f64 = 0.98;

/// One curve for each rate, worked out when it is first asked for: a run uses few of them, and those of CCK take as long as a
/// short simulation.
#[derive(Debug)]
pub(crate) struct ErrorCurves {
    curves: [OnceLock<Box<ErrorCurve>>; RATES],
    oqpsk: Oqpsk,
}

/// The part of a PHY header that can be wrong.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub(crate) bits: f64,
    pub(crate) rate: Rate,
    /// How long these bits last, and what follows them before the PSDU, in nanoseconds.
    pub(crate) nanos: u64,
    pub(crate) training: u64,
}

/// Number of rates; their discriminants are places in [`ErrorCurves`].
const RATES: usize = Rate::DOT11B.len() + 1 + Rate::OFDM.len() + Rate::HT.len();

impl ErrorCurves {
    /// The curves with one of the receivers for 802.15.4.
    pub(crate) fn get(oqpsk: Oqpsk) -> &'static ErrorCurves {
        const fn none(oqpsk: Oqpsk) -> ErrorCurves {
            ErrorCurves {
                curves: [const { OnceLock::new() }; RATES],
                oqpsk,
            }
        }
        static CURVES: [ErrorCurves; 3] = [
            none(Oqpsk::IeeeE418),
            none(Oqpsk::NoncoherentSoft),
            none(Oqpsk::SymbolSoft),
        ];
        match oqpsk {
            Oqpsk::IeeeE418 => &CURVES[0],
            Oqpsk::NoncoherentSoft => &CURVES[1],
            Oqpsk::SymbolSoft => &CURVES[2],
        }
    }

    #[inline]
    pub(crate) fn of(&self, rate: Rate) -> &ErrorCurve {
        self.curves[rate as usize].get_or_init(|| Box::new(ErrorCurve::new(rate, self.oqpsk)))
    }

    /// The PHY header: 48 bits at 1 Mbit/s or, after a short preamble, 48 at 2 Mbit/s (IEEE 802.11-2020, 16.2.2); 24 of SIGNAL at
    /// 6 Mbit/s for OFDM (17.3.4); for HT 48 of HT-SIG more, and 8 us of training behind them (19.3.2); [`Oqpsk::header`] for 802.15.4.
    pub(crate) fn header(&self, mode: Mode) -> Header {
        let (bits, rate, nanos, training) = match (mode.rate, mode.preamble) {
            (Rate::Oqpsk250, _) => {
                let (bits, nanos) = self.oqpsk.header();
                (bits, Rate::Oqpsk250, nanos, 0)
            }
            (rate, _) if rate.is_ht() => (72.0, Rate::Ofdm6, 12_000, 8_000),
            (rate, _) if rate.is_ofdm() => (24.0, Rate::Ofdm6, 4_000, 0),
            (_, Preamble::Long) => (48.0, Rate::Dsss1, 48_000, 0),
            (_, Preamble::Short) => (48.0, Rate::Dsss2, 24_000, 0),
        };
        Header {
            bits,
            rate,
            nanos,
            training,
        }
    }
}

impl ErrorCurve {
    fn new(rate: Rate, oqpsk: Oqpsk) -> ErrorCurve {
        let mut ln_success = [0.0; SIZE];
        let mut perfect = f64::INFINITY;
        for (index, entry) in ln_success.iter_mut().enumerate() {
            let ln = ln_bit_success(rate, oqpsk, grid_ratio(index));
            if ln > -1e-13 {
                perfect = grid_ratio(index);
                break;
            }
            *entry = ln;
        }
        let least = libm::log(LIKELY + 0.01) / 100.0;
        let likely = |&ln: &f64| ln >= least;
        let first = ln_success.iter().position(likely).unwrap_or(SIZE - 1);
        ErrorCurve {
            ln_success,
            perfect,
            likely: grid_ratio(first),
        }
    }

    /// The logarithm of the probability that one bit survives at a linear ratio.
    #[inline]
    pub(crate) fn ln_success(&self, ratio: f64) -> f64 {
        // Exponent and first mantissa bits of a float are the place in a logarithmic grid; the rest is the fraction between
        // two points. So the grid needs no logarithm.
        let bits = ratio.to_bits();
        let point = bits >> (52 - STEP_BITS);
        let place = point.wrapping_sub(ORIGIN) as usize;
        if place >= SIZE - 1 {
            return if point < ORIGIN {
                self.ln_success[0]
            } else {
                0.0
            };
        }
        let fraction = (bits & ((1 << (52 - STEP_BITS)) - 1)) as f64
            * (1.0 / (1u64 << (52 - STEP_BITS)) as f64);
        let (low, high) = (self.ln_success[place], self.ln_success[place + 1]);
        low + (high - low) * fraction
    }
}

/// The ratio at a grid point: exact, since grid points are plain floating-point numbers.
fn grid_ratio(index: usize) -> f64 {
    f64::from_bits((index as u64 + ORIGIN) << (52 - STEP_BITS))
}

/// The formulas. No receiver does worse than to guess the bit.
fn ln_bit_success(rate: Rate, oqpsk: Oqpsk, sinr: f64) -> f64 {
    let guessed = libm::log(0.5);
    let ln = match rate {
        // DBPSK: Eb/N0 = 22 SINR.
        Rate::Dsss1 => libm::log1p(-0.5 * libm::exp(-22.0 * sinr)),
        // DQPSK: Eb/N0 = 11 SINR; the usual approximation for Gray-coded symbols.
        Rate::Dsss2 => {
            let x = 11.0 * sinr;
            let scale = (SQRT_2 + 1.0) / libm::sqrt(8.0 * PI * SQRT_2);
            let error = scale / libm::sqrt(x) * libm::exp(-(2.0 - SQRT_2) * x);
            libm::log1p(-error.min(0.5))
        }
        // CCK with 4 bits to a symbol: Eb/N0 = 22/1.375/4 SINR.
        Rate::Cck5 => {
            let eb_n0 = sinr * 22.0 / 1.375 / 4.0;
            ln_sep16_success(2.0 * eb_n0) / 4.0
        }
        // CCK with 8 bits: two independent halves of 16 code words, SEP256(e) = 1 - (1 - SEP16(e/2))^2.
        Rate::Cck11 => {
            let eb_n0 = sinr * 22.0 / 1.375 / 8.0;
            2.0 * ln_sep16_success(4.0 * eb_n0 / 2.0) / 8.0
        }
        Rate::Oqpsk250 => oqpsk.ln_bit_success(sinr),
        rate => ofdm::ln_bit_success(rate, sinr),
    };
    ln.max(guessed)
}

/// `ln(1 - SEP16(e))`, where SEP16(e) is the error probability of 16 biorthogonal code words:
/// `1 - integral from -b to infinity of (2 Phi(x + b) - 1)^7 phi(x) dx`, b = sqrt(2 e). The error itself is
/// integrated (Simpson, steps of at most 1/9), so that small ones keep their digits.
fn ln_sep16_success(e: f64) -> f64 {
    const INTERVALS: usize = 162;
    let b = libm::sqrt(2.0 * e);
    let (from, to) = ((-b).max(-9.0), 9.0);
    let step = (to - from) / INTERVALS as f64;
    let integrand = |x: f64| {
        let c = libm::erfc((x + b) / SQRT_2);
        // 1 - (1 - c)^7, multiplied out.
        let lost = c * (7.0 - c * (21.0 - c * (35.0 - c * (35.0 - c * (21.0 - c * (7.0 - c))))));
        lost * libm::exp(-0.5 * x * x)
    };
    let inner: f64 = (1..INTERVALS)
        .map(|i| integrand(from + step * i as f64) * if i % 2 == 1 { 4.0 } else { 2.0 })
        .sum();
    let integral = (integrand(from) + inner + integrand(to)) * step / 3.0;
    let error = integral / libm::sqrt(2.0 * PI) + 0.5 * libm::erfc(b / SQRT_2);
    libm::log1p(-error.min(1.0 - 1e-12))
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_core::Db;

    /// All rates, in the order of their discriminants.
    fn rates() -> impl Iterator<Item = Rate> {
        let before = Rate::DOT11B.into_iter().chain([Rate::Oqpsk250]);
        before.chain(Rate::OFDM).chain(Rate::HT)
    }

    /// SINR at which `octets` survive with probability `prr`, by halving on the table itself.
    fn sinr_for(rate: Rate, octets: f64, prr: f64) -> f64 {
        let curve = ErrorCurves::get(Oqpsk::IeeeE418).of(rate);
        let (mut low, mut high) = (-20.0, 20.0);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            let ln = octets * 8.0 * curve.ln_success(Db(middle).to_linear());
            if ln.exp() < prr {
                low = middle
            } else {
                high = middle
            }
        }
        low
    }

    /// SINR for PRR 10, 50 and 90 %, from the physics report: 4.2 for 802.11b (100 and 1500 octets), 4.1 for
    /// 802.15.4 (20 and 127 octets). Its figures have two decimals; they agree to 0.02 dB.
    #[test]
    fn curves_match_the_published_ones() {
        let table = [
            (Rate::Dsss1, 100.0, [-6.30, -5.39, -4.26]),
            (Rate::Dsss1, 1500.0, [-4.47, -3.85, -3.03]),
            (Rate::Dsss2, 100.0, [-2.08, -1.04, 0.24]),
            (Rate::Dsss2, 1500.0, [0.01, 0.70, 1.62]),
            (Rate::Cck5, 100.0, [0.74, 1.70, 2.88]),
            (Rate::Cck5, 1500.0, [2.67, 3.30, 4.14]),
            (Rate::Cck11, 100.0, [3.75, 4.71, 5.89]),
            (Rate::Cck11, 1500.0, [5.68, 6.31, 7.15]),
            (Rate::Oqpsk250, 20.0, [-2.86, -1.86, -0.69]),
            (Rate::Oqpsk250, 127.0, [-1.42, -0.71, 0.19]),
        ];
        for (rate, octets, expected) in table {
            for (prr, sinr) in [0.1, 0.5, 0.9].into_iter().zip(expected) {
                let found = sinr_for(rate, octets, prr);
                assert!(
                    (found - sinr).abs() < 0.02,
                    "{rate} {octets} {prr}: {found} {sinr}"
                );
            }
        }
    }

    /// The share of chunks of 2000 octets that survive, in dB of SINR: what ns-3's own tests of its model demand
    /// (`wifi-error-rate-models-test.cc`, within 0.001 where it says so).
    #[test]
    fn ofdm_is_as_published() {
        let table = [
            (Rate::Ofdm6, [(3.0, 0.020), (4.0, 0.885), (5.0, 0.997)]),
            (Rate::Ofdm9, [(6.0, 0.097), (7.0, 0.918), (8.0, 0.998)]),
            (Rate::Ofdm12, [(6.0, 0.0174), (7.0, 0.881), (8.0, 0.997)]),
            (Rate::Ofdm18, [(9.5, 0.623), (10.5, 0.985), (11.5, 0.999)]),
            (Rate::Ofdm24, [(13.0, 0.495), (14.0, 0.974), (15.0, 0.999)]),
            (Rate::Ofdm36, [(15.5, 0.012), (16.5, 0.818), (17.5, 0.993)]),
            (Rate::Ofdm48, [(21.0, 0.649), (22.0, 0.983), (23.0, 0.999)]),
            (Rate::Ofdm54, [(22.0, 0.410), (23.0, 0.958), (24.0, 0.999)]),
        ];
        // HT has no test of its own there: what ns-3.44's `NistErrorRateModel` returned for these chunks.
        let ht = [
            (Rate::Ht0, [(3.0, 0.0201), (4.0, 0.8852), (5.0, 0.9975)]),
            (Rate::Ht1, [(6.0, 0.0174), (7.0, 0.8811), (8.0, 0.9974)]),
            (Rate::Ht2, [(9.0, 0.0895), (10.0, 0.9153), (11.0, 0.9978)]),
            (Rate::Ht3, [(13.0, 0.4946), (14.0, 0.9740), (15.0, 0.9994)]),
            (Rate::Ht4, [(15.5, 0.0120), (16.5, 0.8184), (17.5, 0.9933)]),
            (Rate::Ht5, [(20.5, 0.1363), (21.5, 0.9154), (22.5, 0.9972)]),
            (Rate::Ht6, [(21.5, 0.0223), (22.5, 0.8165), (23.5, 0.9920)]),
            (Rate::Ht7, [(23.0, 0.2388), (24.0, 0.9303), (25.0, 0.9977)]),
        ];
        for (rate, points) in table.into_iter().chain(ht) {
            for (sinr, expected) in points {
                let ln = ln_bit_success(rate, Oqpsk::IeeeE418, Db(sinr).to_linear());
                let found = (16_000.0 * ln).exp();
                assert!((found - expected).abs() < 1.1e-3, "{rate} {sinr}: {found}");
            }
        }
    }

    /// Each curve stands at the place that its rate asks for.
    #[test]
    fn rates_are_in_order() {
        assert_eq!(rates().count(), RATES);
        for (place, rate) in rates().enumerate() {
            assert_eq!(rate as usize, place);
        }
    }

    /// Off the grid, straight lines cost little of the logarithm wherever it matters for a frame: 0.2 %, and 0.6 % with OFDM.
    #[test]
    fn lines_between_grid_points_are_close() {
        for rate in rates() {
            let curve = ErrorCurves::get(Oqpsk::IeeeE418).of(rate);
            for step in 0..7000 {
                let ratio = Db(-12.0 + f64::from(step) * 0.006).to_linear();
                let exact = ln_bit_success(rate, Oqpsk::IeeeE418, ratio);
                if !(-0.3..-1e-7).contains(&exact) {
                    continue;
                }
                let error = curve.ln_success(ratio) / exact - 1.0;
                // The curves of OFDM fall faster: 0.6 % of the logarithm is 0.002 dB.
                let most = if rate.is_ofdm() { 6e-3 } else { 2e-3 };
                assert!(error.abs() < most, "{rate} {ratio} {error}");
            }
        }
    }

    #[test]
    fn curves_rise_and_end_well() {
        for rate in rates() {
            let curve = ErrorCurves::get(Oqpsk::IeeeE418).of(rate);
            assert!(curve.ln_success.is_sorted(), "{rate}");
            assert_eq!(curve.ln_success(f64::INFINITY), 0.0);
            assert_eq!(curve.ln_success(curve.perfect), 0.0);
            assert!(curve.ln_success(curve.likely) * 100.0 > libm::log(LIKELY));
            let most = if rate.is_ofdm() { 1000.0 } else { 32.0 };
            assert!(curve.perfect < most, "{rate} {}", curve.perfect);
            assert!(
                curve.ln_success(0.0) < -0.4,
                "{rate} {}",
                curve.ln_success(0.0)
            );
        }
    }
}
