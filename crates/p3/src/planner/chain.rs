//! What a pipeline delivers, predicted from measured links.
//!
//! The relays of a stage and group that have a packet are a set. From the set of one stage follows the probability of
//! each set of the next, since receivers lose packets independently (measured: MASCOTS 2013, Zimmerling et al.). So a
//! group is a Markov chain over sets, and its last state is the destination alone.
//!
//! One reception, from all senders of a set at once:
//!
//! - the strongest sender's PRR,
//! - times what overlapping identical frames cost, by how far the strongest stands above the sum of the others,
//! - times what other frames on the channel cost, by how far it stands above the sum of these. Every fourth stage has the
//!   same channel, and sends another packet at the same time.
//!
//! Both costs are tables of measurements with two nRF52840 senders (R. Jacob et al., data of "Synchronous transmissions
//! on BLE 5 and IEEE 802.15.4"), frames displaced by 0.25 us and different frames.

use alloc::vec;
use alloc::vec::Vec;

use chappe_core::{Channel, Dbm};

use crate::ChannelOrder;

/// What has been measured.
pub trait Links {
    /// How many nodes there are.
    fn nodes(&self) -> usize;

    /// The share of frames of one node that another receives on a channel.
    fn prr(&self, channel: Channel, from: usize, to: usize) -> f64;

    /// The mean power of what arrives, where it was measured. Without it the planner takes overlapping senders for
    /// equally strong, and a frame of another stage for one that destroys as often as it could be received.
    fn power(&self, channel: Channel, from: usize, to: usize) -> Option<Dbm> {
        let _ = (channel, from, to);
        None
    }
}

/// What a plan is expected to do.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Prediction {
    /// Share of packets that reach the destination in the first pass.
    pub delivered: f64,
    /// The same for the worst group.
    pub worst_group: f64,
    /// Probability that an answer reaches the source.
    pub answered: f64,
}

/// Which relays stand in which stage and group; a place may be empty.
#[derive(Clone, Debug)]
pub(super) struct Stages {
    places: Vec<Option<usize>>,
    stages: usize,
    groups: usize,
    relays: usize,
}

impl Stages {
    pub fn empty(stages: usize, groups: usize, relays: usize) -> Stages {
        Stages {
            places: vec![None; stages * groups * relays],
            stages,
            groups,
            relays,
        }
    }

    pub fn places(&self) -> usize {
        self.places.len()
    }

    pub fn at(&self, place: usize) -> Option<usize> {
        self.places[place]
    }

    pub fn set(&mut self, place: usize, node: Option<usize>) {
        self.places[place] = node;
    }

    /// As [`set`](Self::set); a place that does not exist is left out.
    pub fn put(&mut self, stage: usize, group: usize, relay: usize, node: Option<usize>) {
        if relay < self.relays {
            self.places[(stage * self.groups + group) * self.relays + relay] = node;
        }
    }

    pub fn stage_of(&self, place: usize) -> usize {
        place / self.relays / self.groups
    }

    pub fn group_of(&self, place: usize) -> usize {
        place / self.relays % self.groups
    }

    pub fn place_of(&self, node: usize) -> Option<usize> {
        self.places.iter().position(|&place| place == Some(node))
    }

    pub fn members(&self, stage: usize, group: usize) -> impl Iterator<Item = usize> + '_ {
        let first = (stage * self.groups + group) * self.relays;
        self.places[first..first + self.relays]
            .iter()
            .flatten()
            .copied()
    }

    pub fn count(&self) -> usize {
        self.places.iter().flatten().count()
    }
}

/// The predictor, with room that it uses again.
pub(super) struct Model<'a, L> {
    links: &'a L,
    source: usize,
    destination: usize,
    beacons: f64,
}

/// Loss of two overlapping identical frames, by how many dB one is stronger: 0, 1, .. 4; none from 5 dB on.
const OVERLAP: [f64; 6] = [0.37, 0.70, 0.86, 0.97, 0.99, 1.0];
/// The same for different frames.
const CAPTURE: [f64; 5] = [0.02, 0.19, 0.73, 0.96, 1.0];
/// A PRR below this is taken for no link: noise of a measurement.
const FAINT: f64 = 0.05;

/// Reads a table with one entry per dB.
fn read(table: &[f64], db: f64) -> f64 {
    if db < 0.0 {
        return 0.0;
    }
    let below = db as usize;
    match (table.get(below), table.get(below + 1)) {
        (Some(&low), Some(&high)) => low + (high - low) * (db - below as f64),
        _ => 1.0,
    }
}

fn db(ratio: f64) -> f64 {
    10.0 * libm::log10(ratio)
}

impl<'a, L: Links> Model<'a, L> {
    pub fn new(links: &'a L, source: usize, destination: usize, beacons: u32) -> Self {
        Model {
            links,
            source,
            destination,
            beacons: f64::from(beacons),
        }
    }

    /// What to believe of a measured share.
    fn believed(&self, share: f64) -> f64 {
        if share < FAINT {
            0.0
        } else {
            (share * self.beacons + 1.0) / (self.beacons + 2.0)
        }
    }

    /// Milliwatts; where no power was measured, all links that are heard at all count the same.
    fn milliwatts(&self, channel: Channel, from: usize, to: usize) -> Option<f64> {
        let power = self.links.power(channel, from, to)?;
        Some(power.to_milliwatt().0)
    }

    /// Probability that `to` receives what `senders` send at once, while `others` send something else.
    fn reception(&self, channel: Channel, senders: &[usize], others: &[usize], to: usize) -> f64 {
        let (mut best, mut strongest, mut sum, mut known, mut audible) =
            (0.0f64, 0.0f64, 0.0, true, 0);
        for &from in senders {
            let share = self.believed(self.links.prr(channel, from, to));
            best = best.max(share);
            audible += usize::from(share > 0.0);
            match self.milliwatts(channel, from, to) {
                Some(power) => {
                    strongest = strongest.max(power);
                    sum += power;
                }
                None => known &= share <= 0.0,
            }
        }
        if best <= 0.0 {
            return 0.0;
        }
        let rest = sum - strongest;
        let overlap = if audible < 2 {
            1.0
        } else if known && strongest > 0.0 {
            if rest > 0.0 {
                read(&OVERLAP, db(strongest / rest))
            } else {
                1.0
            }
        } else {
            UNKNOWN_OVERLAP
        };
        let mut noise = 0.0;
        let mut capture = 1.0f64;
        for &from in others {
            match self.milliwatts(channel, from, to) {
                Some(power) if known => noise += power,
                _ => capture *= 1.0 - self.believed(self.links.prr(channel, from, to)),
            }
        }
        if noise > 0.0 && strongest > 0.0 {
            capture *= read(&CAPTURE, db(strongest / noise));
        }
        best * overlap * capture
    }

    /// Predicts what the stages do on these channels.
    pub fn predict(&mut self, stages: &Stages, channels: ChannelOrder) -> Prediction {
        let shares: Vec<f64> = (0..stages.groups)
            .map(|group| self.delivered(stages, channels, group))
            .collect();
        Prediction {
            delivered: shares.iter().sum::<f64>() / stages.groups as f64,
            worst_group: shares.iter().copied().fold(1.0, f64::min),
            answered: self.answered(stages, channels),
        }
    }

    fn delivered(&self, stages: &Stages, channels: ChannelOrder, group: usize) -> f64 {
        // Who holds the packet, and with what probability each of their subsets does.
        let (mut holders, mut sets) = (vec![self.source], vec![0.0, 1.0]);
        let mut others = Vec::new();
        for stage in 0..=stages.stages {
            let last = stage == stages.stages;
            let receivers: Vec<usize> = if last {
                vec![self.destination]
            } else {
                stages.members(stage, group).collect()
            };
            let channel = channels.of_stage(stage as u8 + 1);
            others.clear();
            self.interferers(stages, stage, group, &mut others);
            let mut next = vec![0.0; 1 << receivers.len()];
            let mut senders = Vec::new();
            for (set, &probability) in sets.iter().enumerate().skip(1) {
                if probability <= 0.0 {
                    continue;
                }
                senders.clear();
                senders.extend(
                    (0..holders.len())
                        .filter(|at| set >> at & 1 == 1)
                        .map(|at| holders[at]),
                );
                let success: Vec<f64> = receivers
                    .iter()
                    .map(|&to| self.reception(channel, &senders, &others, to))
                    .collect();
                for (outcome, place) in next.iter_mut().enumerate() {
                    let chance = success
                        .iter()
                        .enumerate()
                        .fold(1.0, |chance, (at, &success)| {
                            chance
                                * if outcome >> at & 1 == 1 {
                                    success
                                } else {
                                    1.0 - success
                                }
                        });
                    *place += probability * chance;
                }
            }
            (holders, sets) = (receivers, next);
        }
        sets.get(1).copied().unwrap_or(0.0)
    }

    /// Who sends another packet on the channel while `stage` (from 0) of a group listens: the stages that feed the
    /// fourth stage before and after it. They are four packets apart, so theirs is the group that is then its turn.
    fn interferers(&self, stages: &Stages, stage: usize, group: usize, others: &mut Vec<usize>) {
        let groups = stages.groups;
        if let Some(feeder) = stage
            .checked_add(3)
            .filter(|&feeder| feeder < stages.stages)
        {
            others.extend(stages.members(feeder, (group + 4 * groups - 4) % groups));
        }
        match stage.checked_sub(5) {
            Some(feeder) => others.extend(stages.members(feeder, (group + 4) % groups)),
            None if stage == 4 => others.push(self.source),
            None => {}
        }
    }

    /// An answer goes back through all relays of each stage at once; the best one that is likely to have it counts.
    fn answered(&self, stages: &Stages, channels: ChannelOrder) -> f64 {
        let (mut holders, mut chances) = (vec![self.destination], vec![1.0]);
        for stage in (0..=stages.stages).rev() {
            let receivers: Vec<usize> = match stage.checked_sub(1) {
                Some(stage) => (0..stages.groups)
                    .flat_map(|group| stages.members(stage, group))
                    .collect(),
                None => vec![self.source],
            };
            let channel = channels.of_stage(stage as u8);
            let next = receivers.iter().map(|&to| {
                let through = |(&from, &chance): (&usize, &f64)| {
                    chance * self.believed(self.links.prr(channel, from, to))
                };
                holders
                    .iter()
                    .zip(&chances)
                    .map(through)
                    .fold(0.0, f64::max)
            });
            chances = next.collect();
            holders = receivers;
        }
        chances.first().copied().unwrap_or(0.0)
    }
}

/// What overlapping senders of unknown power are taken to cost: the mean of [`OVERLAP`] over 0 to 5 dB is 0.81, and
/// two links rarely differ by less.
const UNKNOWN_OVERLAP: f64 = 0.9;
