//! A generated building with the statistics of a measured one: nodes along a ring of corridors, walls between them.
//!
//! The measured one is the Grenoble site of IoT-LAB in the Mercator data set (348 nodes, 16 channels, 2014 to 2017;
//! subsets of 139 nodes have the size, density and depth of the P³ paper's testbed). Its data cannot be shipped, so
//! the parameters below describe them; the tests of `crates/scenario/src/plan/channels` compare the two where the data are at hand.
//!
//! | parameter | value | from the data |
//! |---|---|---|
//! | ring | 70 m by 27 m | extent of the positions, 62 m by 27 m, and a tenth longer: the depth in hops |
//! | nodes | uniform along the ring, corridors 3 m wide | from 4 to 16 m the count of neighbours grows as along a line |
//! | range | 12 m for the sensitivity, exponent 6 | share of good links by distance: 81 % at 6 m, 47 % at 10 m, 19 % at 14 m, 3 % at 18 m |
//! | shadowing | 7.3 dB | slope of that share |
//! | direct path | 4 times the scattered power, coherence 20 MHz | links good on 26: 94, 91, 98 % delivered on 15, 20, 25 |
//! | direction | 0.83 dB each way | deviation of 1.17 dB between the two directions' RSSI |

mod arithmetic;

use chappe_core::{Dbm, Purpose, Seed, Stream};

use crate::LinkPowers;
use crate::dot15d4::{CHANNEL_MAX, CHANNEL_MIN};
use arithmetic::{Arithmetic, Exact, Quick};

/// How many channels there are at 2.4 GHz.
const CHANNELS: usize = (CHANNEL_MAX - CHANNEL_MIN + 1) as usize;

/// Length and depth of the ring, and width of its corridors, in metres.
const RING: [f64; 2] = [70.0, 27.0];
const CORRIDOR: f64 = 3.0;
/// Where the mean power is the radio's sensitivity, in metres, and how it falls.
const RANGE: f64 = 12.0;
const EXPONENT: f64 = 6.0;
/// Deviation of the log-normal shadowing of a pair, in decibels.
const SHADOWING: f64 = 7.3;
/// Power of the direct path over that of the scattered ones, and the bandwidth over which these stay correlated, in
/// hertz.
const DIRECT: f64 = 4.0;
const COHERENCE: f64 = 20e6;
/// Deviation of each direction from the pair's mean, in decibels.
const DIRECTION: f64 = 0.83;
/// From one channel to the next, in hertz.
const SPACING: f64 = 5e6;
/// Links this far under the sensitivity are omitted: fading makes none of them usable.
const HOPELESS: f64 = -25.0;

/// Mean powers between `nodes` nodes of a building drawn from a seed, for a radio with this sensitivity.
pub fn powers(nodes: usize, sensitivity: Dbm, seed: Seed) -> LinkPowers {
    let (quick, walk) = (Quick::get(), Walk::new());
    drawn(nodes, seed, |apart, random| {
        let before = *random;
        Pair::new((quick, &walk), apart, random)
            .and_then(|pair| pair.rounded(sensitivity))
            .unwrap_or_else(|InDoubt| {
                *random = before;
                exact(&walk, apart, sensitivity, random)
            })
    })
}

/// The powers of a pair on each channel, in one direction and in the other; none without a link.
type Both = Option<[[f32; CHANNELS]; 2]>;

/// What is known of a value does not decide a rounding or a branch.
struct InDoubt;

/// The network whose pairs get their powers, by where they stand, from the stream.
fn drawn(
    nodes: usize,
    seed: Seed,
    mut pair: impl FnMut([f64; 2], &mut Stream) -> Both,
) -> LinkPowers {
    let mut random = seed.stream(Purpose::Topology);
    let places: Vec<[f64; 2]> = (0..nodes).map(|_| place(&mut random)).collect();
    let mut tables: [Vec<f32>; CHANNELS] =
        std::array::from_fn(|_| vec![f32::NEG_INFINITY; nodes * nodes]);
    for a in 0..nodes {
        for b in a + 1..nodes {
            let apart = [places[a][0] - places[b][0], places[a][1] - places[b][1]];
            let Some([there, back]) = pair(apart, &mut random) else {
                continue;
            };
            for (table, (there, back)) in tables.iter_mut().zip(there.into_iter().zip(back)) {
                (table[a * nodes + b], table[b * nodes + a]) = (there, back);
            }
        }
    }
    let mut powers = LinkPowers::new(nodes);
    for (channel, table) in (CHANNEL_MIN..=CHANNEL_MAX).zip(tables) {
        // A channel without links is silent, as if it had not been named.
        if table.iter().any(|power| power.is_finite()) {
            powers.fill(channel, table);
        }
    }
    powers
}

/// The powers of a pair without any doubt.
fn exact(walk: &Walk, apart: [f64; 2], sensitivity: Dbm, random: &mut Stream) -> Both {
    let pair = Pair::new((&Exact, walk), apart, random).unwrap_or_default();
    pair.rounded(sensitivity).unwrap_or_default()
}

/// A pair of nodes as it was drawn.
#[derive(Default)]
struct Pair {
    /// Margins over the sensitivity in each direction, and the gain on each channel, in decibels; none without a link.
    link: Option<([f64; 2], [f64; CHANNELS])>,
    /// How far any sum of them may be off, in decibels.
    doubt: f64,
}

impl Pair {
    fn new<A: Arithmetic>(
        (by, walk): (&A, &Walk),
        apart: [f64; 2],
        random: &mut Stream,
    ) -> Result<Pair, InDoubt> {
        let margin = -10.0 * EXPONENT * by.log10(by.hypot(apart).max(1.0) / RANGE)
            + SHADOWING * by.normal(random)?;
        if A::DOUBT > 0.0 && (margin - HOPELESS).abs() <= A::DOUBT {
            return Err(InDoubt);
        }
        let link = if margin < HOPELESS {
            None
        } else {
            let gains = walk.gains(by, random)?;
            let mut direction = || Ok(margin + DIRECTION * by.normal(random)?);
            Some(([direction()?, direction()?], gains))
        };
        Ok(Pair {
            link,
            doubt: A::DOUBT,
        })
    }

    /// The powers in single precision, if these are the same for all values that may be meant.
    fn rounded(&self, sensitivity: Dbm) -> Result<Both, InDoubt> {
        let Some((margins, gains)) = self.link else {
            return Ok(None);
        };
        let mut is_sure = true;
        let powers = margins.map(|margin| {
            gains.map(|gain| {
                let power = sensitivity.0 + margin + gain;
                is_sure &= (power - self.doubt) as f32 == (power + self.doubt) as f32;
                power as f32
            })
        });
        if is_sure {
            Ok(Some(powers))
        } else {
            Err(InDoubt)
        }
    }
}

/// A place in the ring of corridors.
fn place(random: &mut Stream) -> [f64; 2] {
    let [length, depth] = RING;
    let along = random.fraction() * 2.0 * (length + depth);
    let aside = random.fraction() * CORRIDOR;
    match along {
        at if at < length => [at, aside],
        at if at < length + depth => [length - aside, at - length],
        at if at < 2.0 * length + depth => [at - length - depth, depth - aside],
        at => [aside, at - 2.0 * length - depth],
    }
}

/// How the gain of a link changes from channel to channel: a direct path and scattered ones whose sum walks, so that its
/// correlation is an exponential.
struct Walk {
    keep: f64,
    add: f64,
    direct: f64,
}

impl Walk {
    fn new() -> Walk {
        let keep = libm::exp(-SPACING / COHERENCE);
        Walk {
            keep,
            add: libm::sqrt(1.0 - keep * keep),
            direct: libm::sqrt(DIRECT),
        }
    }

    /// The gain of one link on each channel, in decibels.
    fn gains<A: Arithmetic>(
        &self,
        by: &A,
        random: &mut Stream,
    ) -> Result<[f64; CHANNELS], InDoubt> {
        let half = std::f64::consts::FRAC_1_SQRT_2;
        let mut draw = || Ok((half * by.normal(random)?, half * by.normal(random)?));
        let (mut re, mut im) = draw()?;
        let mut gains = [0.0; CHANNELS];
        for (place, gain) in gains.iter_mut().enumerate() {
            if place > 0 {
                let (x, y) = draw()?;
                (re, im) = (self.keep * re + self.add * x, self.keep * im + self.add * y);
            }
            let direct = re + self.direct;
            let power = (direct * direct + im * im) / (DIRECT + 1.0);
            *gain = by.decibels(power)?;
        }
        Ok(gains)
    }
}

#[cfg(test)]
mod tests;
