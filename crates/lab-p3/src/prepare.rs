//! The first phase: the true links, and the gateway's measurement of them.
//!
//! The counts of beacons are drawn from the true ratios, not simulated frame by frame. One node sends at a time while all
//! others listen, so nothing else is on the air and the delivery ratio decides alone. The measurement takes the time of the
//! paper's equation 1.

use chappe_core::{Channel, Dbm, Duration, Purpose, Seed};
use chappe_p3::config::{CHANNELS, FCS_LEN, FRAME_MAX};
use chappe_p3::planner::{Links, Measurement};
use chappe_p3::timing::MODE;
use chappe_scenario::Network;
use chappe_scenario::format::LinkKnowledge;

use super::plan::P3;

/// Part of a run's seed that belongs to the measurement.
const MEASURING: u64 = 0x6d65_6173_7572_6501;

/// The network of one seed and its true links, for all variants.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The network and the transfer.
    pub network: Network,
    /// The true delivery ratios of full frames.
    pub truth: Ratios,
}

/// Delivery ratios on P³'s four channels, from each node to each.
#[derive(Clone, Debug, PartialEq)]
pub struct Ratios {
    nodes: usize,
    /// Row-major, one table for each of [`CHANNELS`].
    tables: [Vec<f32>; CHANNELS.len()],
    /// Mean received powers in dBm, in the same order; minus infinity without a link.
    powers: [Vec<f32>; CHANNELS.len()],
}

impl Links for Ratios {
    fn nodes(&self) -> usize {
        self.nodes
    }

    fn prr(&self, channel: Channel, from: usize, to: usize) -> f64 {
        self.get(channel, from, to)
    }

    /// The received power that a radio reports, rounded to a decibel; `None` without a frame.
    fn power(&self, channel: Channel, from: usize, to: usize) -> Option<Dbm> {
        // Most pairs do not hear each other.
        if self.get(channel, from, to) <= 0.0 {
            return None;
        }
        let power = self.look_up(&self.powers, channel, from, to)?;
        power.is_finite().then(|| Dbm(f64::from(power).round()))
    }
}

/// What the gateway knows when it plans, and how long the measurement took.
#[derive(Clone, Debug)]
pub struct Knowledge {
    /// The measured delivery ratios.
    pub ratios: Ratios,
    /// Time of the measurement; zero if the scenario gives the gateway the true ratios.
    pub measuring: Duration,
    /// Time of collecting the reports.
    pub collecting: Duration,
}

impl Ratios {
    /// The number of nodes.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// The share of `from`'s full frames that `to` receives on a channel; zero on channels that P³ does not use.
    pub fn get(&self, channel: Channel, from: usize, to: usize) -> f64 {
        let ratio = self.look_up(&self.tables, channel, from, to);
        ratio.map_or(0.0, f64::from)
    }

    /// The ratio of a link in its worse direction on the best of the four channels.
    pub fn best(&self, a: usize, b: usize) -> f64 {
        let both = |channel| self.get(channel, a, b).min(self.get(channel, b, a));
        CHANNELS.into_iter().map(both).fold(0.0, f64::max)
    }

    fn look_up(
        &self,
        tables: &[Vec<f32>; CHANNELS.len()],
        channel: Channel,
        from: usize,
        to: usize,
    ) -> Option<f32> {
        let table = CHANNELS.iter().position(|&known| known == channel)?;
        let inside = from < self.nodes && to < self.nodes;
        let place = inside.then_some(from * self.nodes + to)?;
        tables[table].get(place).copied()
    }
}

/// Computes the true delivery ratios and received powers of all links.
pub fn prepare(mut network: Network) -> Prepared {
    let nodes = network.medium.nodes();
    let (mut powers, mut tables) = (
        CHANNELS.map(|_| vec![f32::NEG_INFINITY; nodes * nodes]),
        CHANNELS.map(|_| vec![0.0; nodes * nodes]),
    );
    let places = powers.iter_mut().zip(&mut tables);
    for (channel, (powers, table)) in CHANNELS.into_iter().zip(places) {
        let links = network.medium.links_on(channel, MODE, FRAME_MAX + FCS_LEN);
        for link in links {
            let place = link.from * nodes + link.to;
            (powers[place], table[place]) = (link.power.0 as f32, link.prr as f32);
        }
    }
    Prepared {
        network,
        truth: Ratios {
            nodes,
            tables,
            powers,
        },
    }
}

impl Prepared {
    /// Measures the links: channel 26 alone as in the paper, or all four channels. Variants that send the same number of
    /// beacons get the same counts.
    //= p3 IV-D.1: each node sends beacons in turn, all others count them
    pub fn learn(&self, with: &P3) -> Knowledge {
        let nodes = self.truth.nodes;
        if with.knowledge == LinkKnowledge::True {
            return Knowledge {
                ratios: self.truth.clone(),
                measuring: Duration::ZERO,
                collecting: Duration::ZERO,
            };
        }
        let measurement = &with.measurement;
        let mut tables = CHANNELS.map(|_| vec![0.0; nodes * nodes]);
        for (place, channel) in CHANNELS.into_iter().enumerate() {
            if measurement.channels == 1 && channel != with.config.flood_channel {
                continue;
            }
            tables[place] = self.count(measurement, place);
        }
        Knowledge {
            ratios: Ratios {
                nodes,
                tables,
                powers: self.truth.powers.clone(),
            },
            measuring: measurement.duration(nodes as u64),
            collecting: measurement.collection_time(nodes as u64),
        }
    }

    fn count(&self, measurement: &Measurement, place: usize) -> Vec<f32> {
        let seed = Seed(self.network.seed).child(MEASURING);
        let mut random = seed.stream(Purpose::Trial(u32::from(CHANNELS[place].0)));
        let truth = self.truth.tables[place].iter();
        truth
            .map(|&prr| match prr {
                0.0 => 0.0,
                prr => measurement.sample(f64::from(prr), &mut random) as f32,
            })
            .collect()
    }
}
