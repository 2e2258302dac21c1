//! Bit errors of OFDM (802.11a, g and n): coherent detection on each subcarrier, then the convolutional code.
//!
//! The model is NIST's, which ns-3 has by default for these rates and which was compared with a radio emulator (G. Pei and
//! T. Henderson, "Validation of OFDM error rate model in ns-3", 2010): a hard-decision Viterbi decoder, its errors by the union bound over
//! the code's distance spectrum (Miller, "Validation of 802.11a/UWB coexistence simulation", NIST, 2003). Real receivers decode softly, which
//! gains some 2 dB, and lose some of that to their analogue parts.

use chappe_core::Rate;

/// One modulation with one code.
struct Scheme {
    /// Share of wrong bits before decoding is `factor * erfc(sqrt(sinr / spread))`, for Gray-coded symbols.
    factor: f64,
    spread: f64,
    code: &'static Code,
}

/// The convolutional code of constraint length 7, punctured or not.
struct Code {
    /// One over twice the number of information bits that leave the encoder at once.
    scale: f64,
    /// Least number of bits in which two code words differ, and the step from one entry of `weights` to the next.
    first: i32,
    step: i32,
    /// Wrong information bits of all error events at each distance.
    weights: &'static [f64],
}

const HALF: Code = Code {
    scale: 0.5,
    first: 10,
    step: 2,
    weights: &[
        36.0,
        211.0,
        1_404.0,
        11_633.0,
        77_433.0,
        502_690.0,
        3_322_763.0,
        21_292_910.0,
        134_365_911.0,
    ],
};

const TWO_THIRDS: Code = Code {
    scale: 0.25,
    first: 6,
    step: 1,
    weights: &[
        3.0,
        70.0,
        285.0,
        1_276.0,
        6_160.0,
        27_128.0,
        117_019.0,
        498_860.0,
        2_103_891.0,
        8_784_123.0,
    ],
};

const THREE_QUARTERS: Code = Code {
    scale: 1.0 / 6.0,
    first: 5,
    step: 1,
    weights: &[
        42.0,
        201.0,
        1_492.0,
        10_469.0,
        62_935.0,
        379_644.0,
        2_253_373.0,
        13_073_811.0,
        75_152_755.0,
        428_005_675.0,
    ],
};

/// Haccoun and Begin, "High-rate punctured convolutional codes for Viterbi and sequential decoding" (1989), table V, as in ns-3.
const FIVE_SIXTHS: Code = Code {
    scale: 0.1,
    first: 4,
    step: 1,
    weights: &[
        92.0,
        528.0,
        8_694.0,
        79_453.0,
        792_114.0,
        7_375_573.0,
        67_884_974.0,
        610_875_423.0,
        5_427_275_376.0,
        47_664_215_639.0,
    ],
};

impl Scheme {
    fn of(rate: Rate) -> Option<Scheme> {
        // Half of erfc, times 1 for BPSK and QPSK, 3/4 for 16-QAM, 7/12 for 64-QAM; the SINR is that of a subcarrier.
        let (bpsk, qpsk, qam16, qam64) = (
            (0.5, 1.0),
            (0.5, 2.0),
            (0.5 * 0.75, 10.0),
            (0.5 * 7.0 / 12.0, 42.0),
        );
        let ((factor, spread), code) = match rate {
            Rate::Ofdm6 | Rate::Ht0 => (bpsk, &HALF),
            Rate::Ofdm9 => (bpsk, &THREE_QUARTERS),
            Rate::Ofdm12 | Rate::Ht1 => (qpsk, &HALF),
            Rate::Ofdm18 | Rate::Ht2 => (qpsk, &THREE_QUARTERS),
            Rate::Ofdm24 | Rate::Ht3 => (qam16, &HALF),
            Rate::Ofdm36 | Rate::Ht4 => (qam16, &THREE_QUARTERS),
            Rate::Ofdm48 | Rate::Ht5 => (qam64, &TWO_THIRDS),
            Rate::Ofdm54 | Rate::Ht6 => (qam64, &THREE_QUARTERS),
            Rate::Ht7 => (qam64, &FIVE_SIXTHS),
            Rate::Dsss1 | Rate::Dsss2 | Rate::Cck5 | Rate::Cck11 | Rate::Oqpsk250 => return None,
        };
        Some(Scheme {
            factor,
            spread,
            code,
        })
    }
}

/// The logarithm of the probability that an information bit survives, over the linear SINR in 20 MHz. Another rate than those of OFDM
/// never fails.
pub(crate) fn ln_bit_success(rate: Rate, sinr: f64) -> f64 {
    let Some(scheme) = Scheme::of(rate) else {
        return 0.0;
    };
    let raw = scheme.factor * libm::erfc(libm::sqrt(sinr / scheme.spread));
    // The Bhattacharyya distance of a binary symmetric channel.
    let distance = libm::sqrt(4.0 * raw * (1.0 - raw));
    let code = scheme.code;
    let mut power = libm::pow(distance, f64::from(code.first));
    let mut error = 0.0;
    for weight in code.weights {
        error += weight * power;
        for _ in 0..code.step {
            power *= distance;
        }
    }
    // A union bound may exceed one.
    libm::log1p(-(code.scale * error).min(1.0 - 1e-12))
}
