//! The stages, groups, channels and senders that deliver most: the improved variant's planner.
//!
//! P³ does not depend on paths. It needs disjoint sets of relays, one per stage and group, such that each set receives
//! what the one before it sends. So this planner predicts the share of packets that arrives ([`Prediction`]) and searches
//! for the sets and the order of channels with the greatest share. It starts from node-distinct paths, replaces one relay
//! at a time or swaps two while that helps, and tries all 24 orders in between. It draws no random numbers, so equal
//! measurements give equal plans.

use alloc::vec::Vec;

use super::chain::{Links, Model, Places, Prediction};
use super::exact::largest_path_set;
use super::graph::LinkGraph;
use super::wish::Wish;
use crate::channels::ChannelOrder;
use crate::config::Config;
use crate::part::{ImprovedPart, Place};
use crate::plan::{Plan, PlanError, Stages, Wanted};
use crate::sizes::{CHANNELS, HOPS_MAX, IMPROVED_RELAYS_MAX, SUMS_MAX};
use crate::timing::{airtime, flood_slots};

/// A pipeline and its expected performance.
#[derive(Clone, Debug, PartialEq)]
pub struct Pipeline {
    /// Hops from source to destination.
    pub hops: u8,
    /// Groups of relays that take turns, 1 to 3.
    pub groups: u8,
    /// The channels of the stages.
    pub channels: ChannelOrder,
    /// The relays, with their stages and groups.
    pub parts: Vec<ImprovedPart>,
    /// The expected delivery and answers.
    pub prediction: Prediction,
    /// Combinations to send after the packets of a segment.
    pub repair: u8,
    /// Payload bits per second of an object of [`Wish::packets`] packets, set-up included.
    pub goodput_bps: f64,
}

impl Pipeline {
    /// The plan for a transfer; the channels of `wanted` are replaced by the pipeline's.
    pub fn plan(&self, wanted: Wanted, config: &Config, session: u32) -> Result<Plan, PlanError> {
        let channels = self.channels;
        let wanted = Wanted { channels, ..wanted };
        let stages = Stages {
            hops: self.hops,
            groups: self.groups,
            parts: &self.parts,
            repair: self.repair,
            session,
        };
        Plan::from_stages(wanted, config, stages)
    }
}

/// The pipeline from `source` to `destination` with the greatest predicted goodput; `None` if there is no way.
pub fn pipeline(
    links: &impl Links,
    source: usize,
    destination: usize,
    config: &Config,
    wish: &Wish,
) -> Option<Pipeline> {
    let nodes = links.nodes();
    let usable = |from: usize, to: usize| {
        let best = |channel| {
            links
                .prr(channel, from, to)
                .min(links.prr(channel, to, from))
        };
        CHANNELS.into_iter().map(best).fold(0.0, f64::max)
    };
    let graph = LinkGraph::from_prr(nodes, USABLE, usable);
    let distances = graph.distances(source);
    let distance = distances.get(destination).copied().flatten()?;
    let mut best: Option<Pipeline> = None;
    for hops in distance..=distance + wish.extra_hops {
        if hops > usize::from(HOPS_MAX) || hops == 0 {
            break;
        }
        for groups in (1..=wish.groups_max.clamp(1, 3)).rev() {
            let mut search = Search::new(links, &graph, source, destination, hops, groups, wish);
            if !search.start() {
                continue;
            }
            let start = search.stages.clone();
            search.improve();
            search.begin_elsewhere(&start);
            let found = search.result(config);
            let better = best
                .as_ref()
                .is_none_or(|best| found.goodput_bps > best.goodput_bps);
            if better && found.prediction.delivered > 0.0 {
                best = Some(found);
            }
        }
        // A longer way only costs set-up and energy where this one loses almost nothing.
        let enough = |best: &Pipeline| {
            best.prediction.delivered > ENOUGH && best.groups == wish.groups_max.clamp(1, 3)
        };
        if best.as_ref().is_some_and(enough) {
            break;
        }
    }
    best
}

/// A link worth considering works both ways with this probability on one of the channels.
const USABLE: f64 = 0.7;
/// Predicted delivery from which on no longer way is tried.
const ENOUGH: f64 = 0.99;
/// Lower limit of the probability of an answer, so that a turn's expected time stays finite.
const ANSWERED_MIN: f64 = 0.02;
/// Predicted delivery below which the search begins anew, and from which of the 24 orders: every third.
const POOR: f64 = 0.985;
const RESTART_STEP: usize = 3;
/// Sweeps over all places; three are usually enough for a local optimum.
const SWEEPS: usize = 4;
/// Flows for the paths to start from.
const FLOWS: usize = 200;
/// What a lost answer costs, as a share of delivered packets: a repeated question takes some ten cycles of 500.
const RETURN_WORTH: f64 = 0.02;

struct Search<'a, L> {
    model: Model<'a, L>,
    graph: &'a LinkGraph,
    source: usize,
    destination: usize,
    hops: usize,
    groups: usize,
    wish: &'a Wish,
    /// Nodes that may stand in each stage.
    candidates: Vec<Vec<usize>>,
    stages: Places,
    channels: ChannelOrder,
    score: f64,
}

impl<'a, L: Links> Search<'a, L> {
    fn new(
        links: &'a L,
        graph: &'a LinkGraph,
        source: usize,
        destination: usize,
        hops: usize,
        groups: u8,
        wish: &'a Wish,
    ) -> Self {
        let (from, to) = (graph.distances(source), graph.distances(destination));
        let fits = |node: usize, stage: usize| match (from[node], to[node]) {
            _ if node == source || node == destination => false,
            (Some(before), Some(after)) => before <= stage && after <= hops - stage,
            _ => false,
        };
        let candidates = (1..hops)
            .map(|stage| {
                (0..graph.nodes())
                    .filter(|&node| fits(node, stage))
                    .collect()
            })
            .collect();
        let groups = usize::from(groups);
        let relays =
            (IMPROVED_RELAYS_MAX / (hops.max(2) - 1) / groups).clamp(1, wish.relays_max.max(1));
        Search {
            model: Model::new(links, source, destination, wish),
            graph,
            source,
            destination,
            hops,
            groups,
            wish,
            candidates,
            stages: Places::empty(hops - 1, groups, relays),
            channels: ChannelOrder::default(),
            score: 0.0,
        }
    }

    /// Fills the places: paths go to the groups in turn, other nodes fill the gaps. False if a group has no relay in a
    /// stage.
    fn start(&mut self) -> bool {
        if self.hops > 1 {
            let (source, destination) = (self.source, self.destination);
            let found = largest_path_set(self.graph, source, destination, self.hops, FLOWS);
            for (index, path) in found.paths.iter().enumerate() {
                for (stage, &node) in path.iter().enumerate() {
                    self.stages
                        .put(stage, index % self.groups, index / self.groups, Some(node));
                }
            }
        }
        for stage in 0..self.hops - 1 {
            for group in 0..self.groups {
                if self.stages.members(stage, group).next().is_none() {
                    let free = |node: &&usize| self.stages.place_of(**node).is_none();
                    let Some(&node) = self.candidates[stage].iter().find(free) else {
                        return false;
                    };
                    self.stages.put(stage, group, 0, Some(node));
                }
            }
        }
        self.best_channels();
        true
    }

    /// If the local optimum is poor: continues with other channels, alternately from there and from the start.
    fn begin_elsewhere(&mut self, start: &Places) {
        for number in (0..ChannelOrder::COUNT).step_by(RESTART_STEP) {
            let poor = self.model.predict(&self.stages, self.channels).delivered < POOR;
            let Some(channels) = ChannelOrder::new(number).filter(|_| poor) else {
                return;
            };
            let rest = (self.stages.clone(), self.channels, self.score);
            if number % 2 == 0 {
                self.stages = start.clone();
            }
            self.channels = channels;
            self.score = self.evaluate(channels);
            self.improve();
            if self.score <= rest.2 {
                (self.stages, self.channels, self.score) = rest;
            }
        }
    }

    fn improve(&mut self) {
        for _ in 0..SWEEPS {
            let before = self.score;
            for place in 0..self.stages.places() {
                self.improve_place(place);
            }
            self.best_channels();
            if self.score <= before + 1e-9 {
                return;
            }
        }
    }

    fn best_channels(&mut self) {
        let mut best = (self.evaluate(self.channels), self.channels);
        for channels in ChannelOrder::all() {
            let score = self.evaluate(channels);
            if score > best.0 + 1e-9 {
                best = (score, channels);
            }
        }
        (self.score, self.channels) = best;
    }

    /// Puts the best node into a place; a node from another place swaps with the occupant.
    fn improve_place(&mut self, place: usize) {
        let (stage, old) = (self.stages.stage_of(place), self.stages.at(place));
        let mut best: Option<(f64, Option<usize>)> = None;
        let choices: Vec<Option<usize>> = self.candidates[stage]
            .iter()
            .copied()
            .map(Some)
            .chain([None])
            .collect();
        for choice in choices {
            let group = self.stages.group_of(place);
            let alone = old.is_some() && self.stages.members(stage, group).count() == 1;
            if choice == old || choice.is_none() && alone || !self.exchange(place, old, choice) {
                continue;
            }
            let score = self.evaluate(self.channels);
            if score > best.map_or(self.score, |(score, _)| score) + 1e-9 {
                best = Some((score, choice));
            }
            self.exchange_back(place, old, choice);
        }
        if let Some((score, choice)) = best {
            self.exchange(place, old, choice);
            self.score = score;
        }
    }

    /// False, without a change, if the occupant cannot take the place of the new node.
    fn exchange(&mut self, place: usize, old: Option<usize>, new: Option<usize>) -> bool {
        if let Some(other) = new.and_then(|node| self.stages.place_of(node)) {
            let stage = self.stages.stage_of(other);
            let fits = old.is_some_and(|node| self.candidates[stage].contains(&node));
            if !fits {
                return false;
            }
            self.stages.set(other, old);
        }
        self.stages.set(place, new);
        true
    }

    fn exchange_back(&mut self, place: usize, old: Option<usize>, new: Option<usize>) {
        self.stages.set(place, None);
        if let Some(other) = old.and_then(|node| self.stages.place_of(node)) {
            self.stages.set(other, new);
        }
        self.stages.set(place, old);
    }

    fn evaluate(&mut self, channels: ChannelOrder) -> f64 {
        let prediction = self.model.predict(&self.stages, channels);
        let relays = self.stages.count() as f64;
        prediction.delivered + RETURN_WORTH * prediction.answered - self.wish.relay_worth * relays
    }

    fn result(&mut self, config: &Config) -> Pipeline {
        let prediction = self.model.predict(&self.stages, self.channels);
        let (answerers, _) = self.model.answerers(&self.stages, self.channels);
        let mut parts = Vec::new();
        for place in 0..self.stages.places() {
            if let Some(node) = self
                .stages
                .at(place)
                .and_then(|node| u16::try_from(node).ok())
            {
                parts.push(ImprovedPart {
                    place: Place {
                        node,
                        stage: self.stages.stage_of(place) as u8 + 1,
                        group: self.stages.group_of(place) as u8,
                    },
                    answers: answerers.contains(&usize::from(node)),
                });
            }
        }
        let (hops, groups) = (self.hops as u8, self.groups as u8);
        let lost = 1.0 - prediction.delivered;
        let cycle = config.cycle(config.payload_max(), groups).as_secs_f64();
        let period = if groups == 1 { 2.0 * cycle } else { cycle };
        let hop = config
            .profile
            .slot(config.payload_max() + config.overhead())
            .as_secs_f64();
        // A turn: the question to the end, and a short answer back.
        let answer = config.profile.slot(20).as_secs_f64();
        let turn = self.hops as f64 * (hop + answer) + f64::from(groups) * cycle;
        // A question that is not answered is asked again.
        let turn = turn / prediction.answered.max(ANSWERED_MIN);
        let (repair, expected) = tail(f64::from(self.wish.packets) * lost, turn / period);
        let plan_len = 29 + 3 * parts.len();
        let slot = airtime(plan_len) + config.profile.gap();
        let flood = slot * flood_slots(hops, config.flood_repeats) + config.start_guard;
        let packets = f64::from(self.wish.packets);
        let time = flood.as_secs_f64()
            + period * (packets + f64::from(repair) + expected)
            + self.hops as f64 * hop;
        Pipeline {
            hops,
            groups,
            channels: self.channels,
            parts,
            prediction,
            repair,
            goodput_bps: packets * config.payload_max() as f64 * 8.0 / time,
        }
    }
}

/// How many combinations to send at once where `mean` packets are lost (Poisson) and a further round costs `turn`
/// cycles; and the cycles that further rounds then cost on average.
fn tail(mean: f64, turn: f64) -> (u8, f64) {
    let mut probability = libm::exp(-mean);
    let mut more = 1.0;
    let mut best = (f64::INFINITY, 0, 0.0);
    for count in 0..=SUMS_MAX {
        // P(more than `count` are lost): then one more round, of what is lacking.
        more = f64::max(more - probability, 0.0);
        let lacking = f64::max(mean - count as f64, more);
        let rounds = more * turn + lacking;
        let cost = count as f64 + rounds;
        if cost < best.0 {
            best = (cost, count, rounds);
        }
        probability *= mean / (count + 1) as f64;
    }
    (best.1 as u8, best.2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_grow_with_losses() {
        let counts: Vec<u8> = [0.0, 0.3, 1.0, 3.0]
            .into_iter()
            .map(|mean| tail(mean, 9.0).0)
            .collect();
        assert_eq!(counts[0], 0);
        assert!(counts.is_sorted() && counts[3] >= 4, "{counts:?}");
        assert!(usize::from(tail(100.0, 9.0).0) <= SUMS_MAX);
    }
}
