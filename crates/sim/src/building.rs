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

use chappe_core::{Dbm, Purpose, Seed, Stream};

use crate::LinkPowers;
use crate::dot15d4::{CHANNEL_MAX, CHANNEL_MIN};

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
    let mut random = seed.stream(Purpose::Topology);
    let places: Vec<[f64; 2]> = (0..nodes).map(|_| place(&mut random)).collect();
    let mut tables: [Vec<f32>; CHANNELS] =
        std::array::from_fn(|_| vec![f32::NEG_INFINITY; nodes * nodes]);
    for a in 0..nodes {
        for b in a + 1..nodes {
            let metres = libm::hypot(places[a][0] - places[b][0], places[a][1] - places[b][1]);
            let margin = -10.0 * EXPONENT * libm::log10(metres.max(1.0) / RANGE)
                + SHADOWING * normal(&mut random);
            if margin < HOPELESS {
                continue;
            }
            let gains = selective(&mut random);
            for (from, to) in [(a, b), (b, a)] {
                let margin = margin + DIRECTION * normal(&mut random);
                for (table, gain) in tables.iter_mut().zip(gains) {
                    table[from * nodes + to] = (sensitivity.0 + margin + gain) as f32;
                }
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

/// The gain of one link on each channel, in decibels: a direct path and scattered ones whose sum walks from channel to
/// channel, so that its correlation is an exponential.
fn selective(random: &mut Stream) -> [f64; CHANNELS] {
    let keep = libm::exp(-SPACING / COHERENCE);
    let add = libm::sqrt(1.0 - keep * keep);
    let half = std::f64::consts::FRAC_1_SQRT_2;
    let mut draw = || (half * normal(random), half * normal(random));
    let (mut re, mut im) = draw();
    let mut gains = [0.0; CHANNELS];
    for (place, gain) in gains.iter_mut().enumerate() {
        if place > 0 {
            let (x, y) = draw();
            (re, im) = (keep * re + add * x, keep * im + add * y);
        }
        let direct = re + libm::sqrt(DIRECT);
        let power = (direct * direct + im * im) / (DIRECT + 1.0);
        *gain = 10.0 * libm::log10(power.max(1e-9));
    }
    gains
}

/// A normal number of variance one, by Box and Muller's method.
fn normal(random: &mut Stream) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(1.0 - random.fraction()));
    radius * libm::cos(2.0 * std::f64::consts::PI * random.fraction())
}
