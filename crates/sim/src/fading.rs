//! Fast fading: the gain of a link in one coherence block.
//!
//! The gain is a power gain with a law below, constant on an unordered pair of nodes and a channel while
//! `floor(t / coherence)` stays the same. It is read from `Purpose::Fading` at a position made of the two nodes, the
//! channel and the block, and never drawn in sequence. Two protocols on one seed meet the same air, and a link that no
//! frame uses costs nothing.

use chappe_core::{Duration, Purpose, Seed, Stream};

use crate::AirTime;
use crate::id::NodeId;
use crate::logarithm::Logarithm;

/// A law of fast fading.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fading {
    /// No fading: the gain is 1.
    None,
    /// No direct path: an exponential power gain with mean 1.
    Rayleigh,
    /// A direct path `k` times as strong as all scattered ones together: mean 1 too. `k = 0` is Rayleigh.
    Rician {
        /// Power of the direct path over that of the scattered ones, as a plain ratio.
        k: f64,
    },
    /// What GloMoSim calls Rayleigh: `5 log10(-2 * 0.63662 * ln U)` dB, that is, a Rayleigh *amplitude* of mean
    /// 1 used as a power gain. Milder than Rayleigh: `P(gain < x) = 1 - exp(-pi x^2 / 4)`. Source: physics
    /// report 4.4 (`glomosim/radio/propagation.pc`).
    GlomosimRayleigh,
}

/// GloMoSim's constant: twice its 0.63662, which is 2 / pi to five digits.
const GLOMOSIM: f64 = 1.27324;

impl Fading {
    /// The power gain made of 64 random bits.
    #[inline]
    fn gain(self, log: &Logarithm, bits: u64) -> f64 {
        match self {
            Fading::None => 1.0,
            Fading::Rayleigh => log.exponential(bits),
            Fading::GlomosimRayleigh => libm::sqrt(GLOMOSIM * log.exponential(bits)),
            Fading::Rician { k } => rician(log, k, bits),
        }
    }

    /// A bound on the gain: random bits are finite, and so are fades. The rarest Rayleigh draw has a probability of 2^-52;
    /// Rician draws have half the bits, and the rarest has 2^-33.
    pub(crate) fn gain_max(self) -> f64 {
        let rarest = 37.0;
        match self {
            Fading::None => 1.0,
            Fading::Rayleigh => rarest,
            Fading::GlomosimRayleigh => libm::sqrt(GLOMOSIM * rarest),
            Fading::Rician { k } => {
                let amplitude = libm::sqrt(2.0 * k) + 6.8;
                amplitude * amplitude / (2.0 * (k + 1.0))
            }
        }
    }

    /// A lower bound on the upper half of the random bits for a gain of at least `gain`: with fewer the gain is certainly
    /// smaller. Zero where the law does not grow with the bits.
    pub(crate) fn least_bits(self, gain: f64) -> u32 {
        let exponential = match self {
            Fading::Rayleigh => gain,
            Fading::GlomosimRayleigh => gain * gain / GLOMOSIM,
            Fading::None | Fading::Rician { .. } => return 0,
        };
        // 1 - exp(-x), a little less to cover all roundings: a bound that is too low costs time, one too high a signal.
        let share = -libm::expm1(-exponential) - 1e-9;
        (share.max(0.0) * (1u64 << 32) as f64) as u32
    }

    /// The mean of `value` over the gain, by the midpoint rule in the probability: for checks and expectations.
    /// The error of a step function is at most 1/8192.
    pub fn average(self, value: impl FnMut(f64) -> f64) -> f64 {
        let gains = self.grid();
        let n = gains.len() as f64;
        gains.into_iter().map(value).sum::<f64>() / n
    }

    /// Gains that are equally likely, in rising order: one in the middle of each of 8192 slices of the probability,
    /// or of 256 x 256 cells where two variates make the gain.
    pub(crate) fn grid(self) -> Vec<f64> {
        const STEP_BITS: u32 = 13;
        const SIDE_BITS: u32 = 8;
        let log = Logarithm::get();
        let mut gains: Vec<f64> = match self {
            Fading::None => vec![1.0],
            Fading::Rayleigh | Fading::GlomosimRayleigh => {
                let middle = |i: u64| (2 * i + 1) << (63 - STEP_BITS);
                (0..1 << STEP_BITS)
                    .map(|i| self.gain(log, middle(i)))
                    .collect()
            }
            // The radius comes from the high half of the bits, the angle from the low half.
            Fading::Rician { .. } => {
                let middle = |i: u64| (2 * i + 1) << (31 - SIDE_BITS);
                let (side, mask) = (SIDE_BITS, (1 << SIDE_BITS) - 1);
                let cell = |i: u64| middle(i >> side) << 32 | middle(i & mask);
                (0..1 << (2 * SIDE_BITS))
                    .map(|i| self.gain(log, cell(i)))
                    .collect()
            }
        };
        gains.sort_unstable_by(f64::total_cmp);
        gains
    }
}

/// The mean over equally likely gains of a probability that rises with the gain. It is evaluated only where it is neither
/// 0 nor 1.
pub(crate) fn average_rising(gains: &[f64], value: impl Fn(f64) -> f64) -> f64 {
    if let [only] = gains {
        return value(*only).clamp(0.0, 1.0);
    }
    let first = gains.partition_point(|&gain| value(gain) <= 0.0);
    let (_, rest) = gains.split_at(first);
    let certain = rest.partition_point(|&gain| value(gain) < 1.0);
    let (between, sure) = rest.split_at(certain);
    let sum: f64 = between.iter().map(|&gain| value(gain)).sum();
    (sum + sure.len() as f64) / gains.len().max(1) as f64
}

/// A direct path of amplitude `sqrt(2k)` plus two normal components of variance 1, over the mean `2 (k + 1)`.
/// The normals come from 32 + 32 bits by Box and Muller.
fn rician(log: &Logarithm, k: f64, bits: u64) -> f64 {
    const HALF: f64 = 1.0 / (1u64 << 32) as f64;
    // Half a step off zero: the logarithm of zero would be infinite.
    let (radius, angle) = ((bits >> 32) as f64 + 0.5, (bits as u32) as f64 + 0.5);
    let radius = libm::sqrt(-2.0 * log.ln(radius * HALF));
    let (sin, cos) = libm::sincos(angle * HALF * 2.0 * std::f64::consts::PI);
    let (x, y) = (libm::sqrt(2.0 * k) + radius * cos, radius * sin);
    (x * x + y * y) / (2.0 * (k + 1.0))
}

/// Links whose random bits are looked at together.
pub(crate) const FEW: usize = 64;

/// Bits of a position in the stream: 16 for each node, 5 for the channel, 27 for the block.
const CHANNEL_SHIFT: u32 = 27;
const BLOCK_MASK: u64 = (1 << CHANNEL_SHIFT) - 1;

/// The fading of all links of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fader {
    pub(crate) law: Fading,
    coherence: u64,
    stream: Stream,
    log: &'static Logarithm,
}

/// The part of a position that all links share at one time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block(u64);

/// The part of a position that belongs to a link: its ends, the lesser number in the upper half. Ordered, because the channel is
/// reciprocal: both directions fade alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pair(u32);

impl Pair {
    #[inline]
    pub(crate) fn of(a: NodeId, b: NodeId) -> Pair {
        let (a, b) = (a.0 & 0xffff, b.0 & 0xffff);
        Pair(a.min(b) << 16 | a.max(b))
    }

    /// The end that is not `node`. A run has fewer than 2^16 receivers.
    #[inline]
    pub(crate) fn other(self, node: NodeId) -> NodeId {
        NodeId((self.0 >> 16 ^ self.0 ^ node.0) & 0xffff)
    }
}

impl Fader {
    pub(crate) fn new(law: Fading, coherence: Duration, seed: Seed) -> Fader {
        Fader {
            law,
            coherence: coherence.nanos().max(1),
            stream: seed.stream(Purpose::Fading),
            log: Logarithm::get(),
        }
    }

    /// The block at a moment on a channel. Blocks repeat after 2^27: 37 hours at 1 ms.
    pub(crate) fn block(&self, at: AirTime, channel: u8) -> Block {
        let block = at.nanos() / self.coherence;
        Block(u64::from(channel & 31) << CHANNEL_SHIFT | block & BLOCK_MASK)
    }

    /// The random bits of a link.
    #[inline]
    pub(crate) fn bits(&self, Block(block): Block, Pair(pair): Pair) -> u64 {
        self.stream.at(u64::from(pair) << 32 | block)
    }

    /// Those of a few links whose random bits reach `least`, which is as long: their places. Without a branch on the bits,
    /// which no predictor guesses.
    #[inline(never)]
    pub(crate) fn reached(
        &self,
        block: Block,
        pairs: &[Pair],
        least: &[u32],
        places: &mut [u8; FEW],
    ) -> usize {
        let (mut place, mut count) = (0u8, 0usize);
        for (&pair, &least) in pairs.iter().zip(least) {
            places[count % FEW] = place;
            place = place.wrapping_add(1);
            let reaches = (self.bits(block, pair) >> 32) as u32 >= least;
            count = count.wrapping_add(usize::from(reaches));
        }
        count.min(FEW)
    }

    /// The Rayleigh gain made of random bits.
    #[inline]
    pub(crate) fn rayleigh(&self, bits: u64) -> f64 {
        self.log.exponential(bits)
    }

    /// The gain made of random bits, whatever the law.
    #[inline]
    pub(crate) fn gain_of(&self, bits: u64) -> f64 {
        self.law.gain(self.log, bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(law: Fading) -> (f64, f64) {
        let fader = Fader::new(law, Duration::from_millis(1), Seed(4));
        let n = 200_000u64;
        let gains = (0..n).map(|i| {
            let block = fader.block(AirTime(i * 1_000_000), 1);
            fader.gain_of(fader.bits(block, Pair::of(NodeId(3), NodeId(9))))
        });
        let (mut sum, mut squares) = (0.0, 0.0);
        for gain in gains {
            sum += gain;
            squares += gain * gain;
        }
        let mean = sum / n as f64;
        (mean, squares / n as f64 - mean * mean)
    }

    /// Mean and variance of 200,000 blocks against the laws' own: Rayleigh 1 and 1; Rician 1 and
    /// (1 + 2k)/(1 + k)^2; GloMoSim's amplitude 1 and 4/pi - 1 (its constant is 2/pi to five digits).
    #[test]
    fn gains_have_the_moments_of_their_law() {
        let cases = [
            (Fading::Rayleigh, 1.0),
            (Fading::Rician { k: 0.0 }, 1.0),
            (Fading::Rician { k: 4.0 }, 9.0 / 25.0),
            (Fading::GlomosimRayleigh, 4.0 / std::f64::consts::PI - 1.0),
        ];
        for (law, variance) in cases {
            let (mean, found) = moments(law);
            assert!(
                (mean - 1.0).abs() < 5.0 * (variance / 200_000.0).sqrt(),
                "{law:?} {mean}"
            );
            assert!((found / variance - 1.0).abs() < 0.04, "{law:?} {found}");
        }
    }

    /// The rarest bits stay within the bound, and not far from it.
    #[test]
    fn gains_are_bounded() {
        let log = Logarithm::get();
        let laws = [
            Fading::None,
            Fading::Rayleigh,
            Fading::GlomosimRayleigh,
            Fading::Rician { k: 2.0 },
        ];
        for law in laws {
            let rarest = [
                0,
                u64::MAX,
                0xffff_ffff,
                0xffff_ffff << 32,
                u64::MAX - (1 << 31),
            ];
            let most = rarest
                .map(|bits| law.gain(log, bits))
                .into_iter()
                .fold(0.0, f64::max);
            assert!(
                most <= law.gain_max() && most > 0.9 * law.gain_max(),
                "{law:?} {most}"
            );
        }
    }

    /// The same within a block and in both directions; independent between blocks, links and channels.
    #[test]
    fn a_gain_lasts_one_block_and_belongs_to_the_pair() {
        let fader = Fader::new(Fading::Rayleigh, Duration::from_millis(1), Seed(1));
        let gain = |a, b, nanos, channel| {
            let block = fader.block(AirTime(nanos), channel);
            fader.gain_of(fader.bits(block, Pair::of(NodeId(a), NodeId(b))))
        };
        let first = gain(1, 2, 5_000_000, 1);
        assert_eq!(first, gain(2, 1, 5_999_999, 1));
        assert_ne!(first, gain(1, 2, 6_000_000, 1));
        assert_ne!(first, gain(1, 3, 5_000_000, 1));
        assert_ne!(first, gain(1, 2, 5_000_000, 2));
        let pairs = (0..50_000u64).map(|i| {
            (
                gain(1, 2, i * 1_000_000, 1),
                gain(1, 2, (i + 1) * 1_000_000, 1),
            )
        });
        let covariance = pairs.map(|(a, b)| (a - 1.0) * (b - 1.0)).sum::<f64>() / 50_000.0;
        assert!(covariance.abs() < 5.0 / 50_000f64.sqrt(), "{covariance}");
    }

    /// Bits under the bound give gains under it, and bits at the bound hardly less.
    #[test]
    fn the_bound_of_bits_is_safe_and_tight() {
        let log = Logarithm::get();
        for law in [Fading::Rayleigh, Fading::GlomosimRayleigh] {
            for gain in [0.0, 1e-9, 0.3, 1.0, 4.0, 6.0, 20.0, 35.0, f64::INFINITY] {
                let least = u64::from(law.least_bits(gain));
                assert!(
                    least == 0 || law.gain(log, (least << 32) - 1) < gain,
                    "{law:?} {gain}"
                );
                assert!(
                    gain > 4.0 || law.gain(log, least << 32) > gain - 1e-3,
                    "{law:?} {gain}"
                );
            }
        }
        assert_eq!(Fading::Rician { k: 1.0 }.least_bits(1.0), 0);
    }

    /// The short cut for rising probabilities is the plain mean.
    #[test]
    fn rising_averages_are_averages() {
        for law in [
            Fading::None,
            Fading::Rayleigh,
            Fading::Rician { k: 2.0 },
            Fading::GlomosimRayleigh,
        ] {
            let gains = law.grid();
            for scale in [0.01, 0.3, 1.0, 7.0] {
                for value in [
                    |g: f64| f64::from(g > 0.4),
                    |g: f64| (g - 0.2).clamp(0.0, 1.0),
                ] {
                    let value = |gain: f64| value(gain * scale);
                    assert!((average_rising(&gains, value) - law.average(value)).abs() < 1e-12);
                }
            }
        }
    }

    /// `average` against closed forms of P(gain > x).
    #[test]
    fn averages_are_the_closed_forms() {
        for x in [0.05, 0.3, 1.0, 2.5] {
            let above = |gain: f64| f64::from(gain > x);
            let rayleigh = Fading::Rayleigh.average(above);
            assert!((rayleigh - (-x).exp()).abs() < 2e-4, "{x} {rayleigh}");
            let glomosim = Fading::GlomosimRayleigh.average(above);
            let closed = (-x * x / GLOMOSIM).exp();
            assert!((glomosim - closed).abs() < 2e-4, "{x} {glomosim}");
            let rician = Fading::Rician { k: 0.0 }.average(above);
            assert!((rician - (-x).exp()).abs() < 4e-3, "{x} {rician}");
        }
        assert!((Fading::Rician { k: 10.0 }.average(|g| g) - 1.0).abs() < 1e-2);
    }
}
