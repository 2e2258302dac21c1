//! Networks of 802.15.4 whose channels differ: from a testbed's measurements, or from a building of our own.
//!
//! Both come as mean powers on all 16 channels ([`LinkPowers`]), because synchronous transmissions and capture need
//! powers. A measured delivery ratio below one becomes the power that has this ratio under the profile's receiver; a
//! perfect link keeps its measured margin over the sensitivity of the radio that measured it.

use std::cell::OnceCell;
use std::sync::Arc;

use chappe_core::{Dbm, Mode, Purpose, Rate, Seed, Stream};
use chappe_sim::dot15d4::{CHANNEL_MAX, CHANNEL_MIN};
use chappe_sim::{Inverse, LinkPowers, Profile, building};

use crate::import::Channels;

/// How many channels there are at 2.4 GHz.
pub const CHANNELS: usize = (CHANNEL_MAX - CHANNEL_MIN + 1) as usize;

/// Octets of the frames that ratios are taken to be measured with: the largest, check sequence included.
const OCTETS: usize = 127;
const MODE: Mode = Mode::long(Rate::Oqpsk250);

/// Sensitivity of the AT86RF231, the radio of IoT-LAB's M3 nodes, by its data sheet; other lists come with RSSI of
/// radios that differ by less than our use of it matters.
const MEASURED_SENSITIVITY: f64 = -101.0;
/// The least that its RSSI register can say, and what is made of it: the middle of what may be meant, down to where ten
/// of ten frames still come.
const RSSI_FLOOR: (f64, f64) = (-91.0, -94.0);
/// A link is good if this share of frames comes, both ways (the threshold of P³'s planner).
const GOOD: f64 = 0.9;
/// The reverse direction of a bad link has the same ratios with this probability.
const SAME_BACK: f64 = 0.7;
/// A channel that delivers less carries no interference either.
const CARRIES: f64 = 0.1;
/// How often nodes are drawn before giving up on connected ones.
const DRAWS: u64 = 1000;

/// Delivery ratios of ten inter-floor links of the Indriya testbed, good on channel 26, on channels 11 to 26: Table I of
/// the P³ paper, 10,000 packets each.
pub const INTER_FLOOR: [[f64; CHANNELS]; 10] = [
    [
        0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.00,
        0.99,
    ],
    [
        0.23, 0.00, 0.00, 0.00, 0.00, 0.00, 0.37, 0.51, 0.72, 0.03, 0.38, 0.26, 0.00, 0.00, 0.01,
        1.00,
    ],
    [
        0.82, 0.01, 0.00, 0.21, 0.53, 0.67, 0.01, 0.37, 0.26, 0.00, 0.14, 0.30, 0.00, 0.36, 0.97,
        0.99,
    ],
    [
        0.00, 0.00, 0.28, 0.50, 0.49, 0.00, 0.05, 0.26, 0.69, 0.00, 0.00, 0.02, 0.00, 0.00, 1.00,
        1.00,
    ],
    [
        0.00, 0.00, 0.00, 0.00, 0.00, 0.51, 0.47, 0.49, 0.59, 0.00, 0.03, 0.10, 0.00, 0.06, 0.94,
        0.98,
    ],
    [
        0.00, 0.00, 0.00, 0.00, 0.00, 0.01, 0.01, 0.00, 0.08, 0.91, 0.50, 0.48, 0.40, 0.36, 0.77,
        0.92,
    ],
    [
        0.72, 0.01, 0.00, 0.02, 0.10, 0.00, 0.00, 0.03, 0.07, 0.01, 0.01, 0.01, 0.01, 0.00, 0.08,
        1.00,
    ],
    [
        0.09, 0.38, 0.36, 0.70, 0.97, 0.55, 0.50, 0.47, 0.16, 0.52, 0.26, 0.18, 0.18, 0.29, 0.99,
        1.00,
    ],
    [
        0.11, 0.23, 0.41, 0.97, 0.99, 0.48, 0.47, 0.45, 0.03, 0.09, 0.01, 0.30, 0.46, 0.91, 0.65,
        1.00,
    ],
    [
        0.69, 0.73, 0.73, 0.23, 0.11, 0.23, 0.15, 0.36, 0.95, 0.83, 0.15, 0.00, 0.40, 0.69, 1.00,
        0.96,
    ],
];

/// A network whose channels differ.
#[derive(Clone, Debug)]
pub struct ChannelGround {
    /// Where the links come from.
    pub origin: Origin,
    /// How many of the nodes are drawn; all of them if that is more than there are.
    pub nodes: usize,
    /// The share of good links on which other channels are as bad as on [`INTER_FLOOR`].
    pub bad_links: f64,
    /// The seed of the network whatever the run's seed.
    pub seed: Option<u64>,
    /// The share of frames, both ways, by whose links all nodes must be connected on channel 26; none, if zero.
    pub connected: f64,
}

/// Where the links of a network come from.
#[derive(Clone, Debug)]
pub enum Origin {
    /// Measured channel by channel, read from a link list.
    Measured(Arc<Channels>),
    /// Generated: a building drawn from the seed.
    Building,
}

impl ChannelGround {
    /// The mean powers of a run of this seed under a profile; `None` if no draw of nodes is connected.
    pub fn powers(&self, run: u64, profile: &Profile) -> Option<LinkPowers> {
        let seed = Seed(self.seed.unwrap_or(run));
        let receiver = Receiver::new(profile);
        (0..DRAWS).find_map(|draw| {
            let seed = if draw == 0 { seed } else { seed.child(draw) };
            let mut drawn = self.draw(seed, &receiver);
            if self.connected > 0.0 && !drawn.is_connected(receiver.power(self.connected, None)) {
                return None;
            }
            drawn.spoil(self.bad_links, seed, &receiver);
            Some(drawn.powers)
        })
    }

    fn draw(&self, seed: Seed, receiver: &Receiver) -> Drawn {
        match &self.origin {
            Origin::Building => {
                let powers = building::powers(self.nodes, receiver.sensitivity, seed);
                Drawn::new(powers, receiver)
            }
            Origin::Measured(measured) => {
                let mut chosen: Vec<usize> = (0..measured.names.len()).collect();
                if self.nodes < chosen.len() {
                    let mut random = seed.stream(Purpose::Topology);
                    random.shuffle(&mut chosen);
                    chosen.truncate(self.nodes);
                    chosen.sort_unstable();
                }
                Drawn::new(measured_powers(measured, &chosen, receiver), receiver)
            }
        }
    }
}

/// The measured links between chosen nodes.
fn measured_powers(measured: &Channels, chosen: &[usize], receiver: &Receiver) -> LinkPowers {
    let mut powers = LinkPowers::new(chosen.len());
    for channel in CHANNEL_MIN..=CHANNEL_MAX {
        for (from, &a) in chosen.iter().enumerate() {
            for (to, &b) in chosen.iter().enumerate() {
                if let Some((prr, rssi)) =
                    measured.link(channel, a, b).filter(|(prr, _)| *prr > 0.0)
                {
                    powers.set(channel, from, to, receiver.power(prr, rssi));
                }
            }
        }
    }
    powers
}

/// What is needed of a profile to turn ratios into powers.
struct Receiver {
    sensitivity: Dbm,
    inverse: Inverse,
    /// The power for each thousandth of the delivery ratio, once it was asked for.
    powers: Vec<OnceCell<Dbm>>,
}

impl Receiver {
    fn new(profile: &Profile) -> Receiver {
        Receiver {
            // As data sheets state it: one frame of 20 octets in a hundred is lost.
            sensitivity: profile.power_for(0.99, MODE, 20),
            inverse: Inverse::new(profile, MODE, OCTETS),
            powers: vec![OnceCell::new(); 1001],
        }
    }

    fn power(&self, prr: f64, rssi: Option<f64>) -> Dbm {
        let place = ((prr.clamp(0.0, 1.0) * 1e3).round() as usize).min(1000);
        let by_ratio =
            *self.powers[place].get_or_init(|| self.inverse.power(f64::from(place as u32) / 1e3));
        if prr < 1.0 {
            return by_ratio;
        }
        let (floor, meant) = RSSI_FLOOR;
        let rssi = rssi.map(|rssi| if rssi <= floor { meant } else { rssi });
        let margin = rssi.map_or(f64::NEG_INFINITY, |rssi| rssi - MEASURED_SENSITIVITY);
        Dbm(by_ratio.0.max(self.sensitivity.0 + margin))
    }
}

/// Nodes that were drawn.
struct Drawn {
    powers: LinkPowers,
    /// The least power of a good link.
    good: Dbm,
}

impl Drawn {
    fn new(powers: LinkPowers, receiver: &Receiver) -> Drawn {
        let good = receiver.power(GOOD, None);
        Drawn { powers, good }
    }

    /// Whether paths of links on channel 26 with this power both ways connect all nodes.
    fn is_connected(&self, least: Dbm) -> bool {
        let nodes = self.powers.nodes();
        let (mut seen, mut open) = (vec![false; nodes], vec![0]);
        if let Some(first) = seen.first_mut() {
            *first = true;
        }
        while let Some(node) = open.pop() {
            for (other, seen) in seen.iter_mut().enumerate() {
                if !*seen && self.is_good(node, other, least) {
                    *seen = true;
                    open.push(other);
                }
            }
        }
        seen.into_iter().all(|seen| seen)
    }

    fn is_good(&self, a: usize, b: usize, least: Dbm) -> bool {
        self.powers.both_ways(CHANNEL_MAX, a, b) >= least
    }

    /// Gives a share of the good links the ratios of a testbed's worst kind.
    //= p3 III-A: with probability q a good link takes the ratios of one of Table I's links on all channels
    fn spoil(&mut self, share: f64, seed: Seed, receiver: &Receiver) {
        if share <= 0.0 {
            return;
        }
        let by_ratio = INTER_FLOOR.map(|row| row.map(|prr| receiver.power(prr, None)));
        // A separate stream: the share of bad links does not change which nodes are drawn.
        let mut random = seed.child(0xbad).stream(Purpose::Topology);
        for a in 0..self.powers.nodes() {
            for b in a + 1..self.powers.nodes() {
                if !self.is_good(a, b, self.good) || !random.chance(share) {
                    continue;
                }
                let there = pick(&mut random);
                let back = if random.chance(SAME_BACK) {
                    there
                } else {
                    pick(&mut random)
                };
                for (from, to, row) in [(a, b, there), (b, a, back)] {
                    self.set(from, to, &INTER_FLOOR[row], &by_ratio[row]);
                }
            }
        }
    }

    /// Channels below the least ratio carry nothing; perfect ones stay as strong as they were.
    fn set(&mut self, from: usize, to: usize, row: &[f64; CHANNELS], by_ratio: &[Dbm; CHANNELS]) {
        for (channel, (&prr, &by_ratio)) in
            (CHANNEL_MIN..=CHANNEL_MAX).zip(row.iter().zip(by_ratio))
        {
            if prr < CARRIES {
                self.powers.remove(channel, from, to);
            } else if prr < 1.0 || self.powers.get(channel, from, to) < by_ratio {
                self.powers.set(channel, from, to, by_ratio);
            }
        }
    }
}

fn pick(random: &mut Stream) -> usize {
    random.below(INTER_FLOOR.len() as u64) as usize
}

#[cfg(test)]
mod tests;
