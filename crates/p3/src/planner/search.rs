//! The search for the relays of each stage and group: a local optimum of the predicted delivery.
//!
//! It starts from the most reliable ways for each order of the channels ([`Ways`]), replaces one relay at a time or
//! swaps two while that helps, and tries all 24 orders of the channels in between. Starting from ways that are only short
//! fails over many hops: one link that does not exist on its channel makes the prediction zero, and so does any single
//! change then.

use alloc::vec;
use alloc::vec::Vec;

use super::chain::{Model, Prediction};
use super::links::Tables;
use super::places::Places;
use super::ways::Ways;
use super::wish::Wish;
use crate::channels::ChannelOrder;
use crate::part::{ImprovedPart, Place};

/// Predicted delivery below which the search begins anew from the next best start, and how many starts it takes.
const POOR: f64 = 0.985;
const STARTS: usize = 4;
/// Probability of an answer below which other starts and longer ways are tried: then one question in ten is asked twice.
pub(super) const ANSWERED: f64 = 0.9;
/// Sweeps over all places; three are usually enough for a local optimum.
const SWEEPS: usize = 4;
/// What a share of delivered packets, or the probability of an answer, counts as at least: a little more than none. Added and not a limit,
/// so that the search also sees which of two bad ways is less so.
const LEAST: f64 = 0.02;
/// What a way that works in part is worth, as a share of delivered packets: enough that the search mends one broken link
/// after the other, and little enough that it does not trade delivered packets for it.
const PASSED_WORTH: f64 = 0.05;

/// The size of a pipeline.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub hops: usize,
    pub groups: usize,
    /// Most relays in one stage and group.
    pub relays: usize,
    /// How long a question and its answer take, as a share of the time that the object's packets take.
    pub turn: f64,
}

/// A search for one shape of pipeline.
pub(super) struct Search<'a> {
    model: Model<'a>,
    tables: &'a Tables,
    ends: (usize, usize),
    wish: &'a Wish,
    /// How long a question and its answer take, as a share of the time that the object's packets take.
    turn: f64,
    /// Nodes that may stand in each stage, ascending.
    candidates: Vec<Vec<usize>>,
    stages: Places,
    channels: ChannelOrder,
    score: f64,
    /// Nodes that stand in a place of a start.
    taken: Vec<bool>,
}

impl<'a> Search<'a> {
    /// A search over all nodes. `None` if a group has no relay in a stage. `distances` are hops from the source
    /// and to the destination.
    pub fn new(
        tables: &'a Tables,
        ends: (usize, usize),
        shape: Shape,
        wish: &'a Wish,
        distances: (&[Option<usize>], &[Option<usize>]),
    ) -> Option<Search<'a>> {
        let (source, destination) = ends;
        let Shape {
            hops,
            groups,
            relays,
            turn,
        } = shape;
        let fits = |node: usize, stage: usize| match (distances.0[node], distances.1[node]) {
            _ if node == source || node == destination => false,
            (Some(before), Some(after)) => before <= stage && after <= hops - stage,
            _ => false,
        };
        let nodes = 0..tables.nodes();
        let candidates: Vec<Vec<usize>> = (1..hops)
            .map(|stage| nodes.clone().filter(|&node| fits(node, stage)).collect())
            .collect();
        if candidates.iter().any(|here| here.len() < groups) {
            return None;
        }
        Some(Search {
            model: Model::new(tables, source, destination, wish),
            tables,
            ends,
            wish,
            turn,
            candidates,
            stages: Places::empty(hops - 1, groups, relays),
            channels: ChannelOrder::default(),
            score: 0.0,
            taken: vec![false; tables.nodes()],
        })
    }

    /// Puts the most reliable ways with this order of channels into the groups. `None` if a place stays empty.
    fn begin(&mut self, ways: &mut Ways<'_>, channels: ChannelOrder) -> Option<()> {
        self.stages.clear();
        self.channels = channels;
        // The search asks this for every candidate of every stage; looking through all places would take longer than the rest.
        self.taken.fill(false);
        for group in 0..self.stages.groups() {
            let way = ways.get(&self.candidates, channels, group);
            for (stage, &node) in way.iter().enumerate() {
                if !self.taken[node] {
                    self.stages.put(stage, group, 0, Some(node));
                    self.taken[node] = true;
                }
            }
        }
        self.fill()?;
        self.score = self.evaluate(channels);
        Some(())
    }

    /// Puts into each empty group of a stage the free node that the stage before reaches best.
    fn fill(&mut self) -> Option<()> {
        for stage in 0..self.stages.stages() {
            for group in 0..self.stages.groups() {
                if self.stages.members(stage, group).next().is_some() {
                    continue;
                }
                let reached = |node: usize| match stage.checked_sub(1) {
                    None => self.tables.both_ways(self.ends.0, node),
                    Some(before) => {
                        let members = self.stages.members(before, group);
                        let shares = members.map(|from| self.tables.both_ways(from, node));
                        shares.fold(0.0, f64::max)
                    }
                };
                let free = self.candidates[stage].iter().copied();
                let free = free.filter(|&node| self.stages.place_of(node).is_none());
                // The first of equals, so that results do not depend on the order of comparison.
                let mut best: Option<(f64, usize)> = None;
                for node in free {
                    let share = reached(node);
                    if best.is_none_or(|(most, _)| share > most) {
                        best = Some((share, node));
                    }
                }
                let (_, node) = best?;
                self.stages.put(stage, group, 0, Some(node));
            }
        }
        Some(())
    }

    /// Looks for the best stages. False if no order of the channels gives each group a relay in each stage.
    /// `ways` are those between the same ends.
    pub fn run(&mut self, ways: &mut Ways<'_>) -> bool {
        let mut starts = Vec::new();
        for channels in ChannelOrder::all() {
            if self.begin(ways, channels).is_some() {
                starts.push((self.score, self.channels, self.stages.clone()));
            }
        }
        // Stable, so that of equals the first order comes first.
        starts.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut best: Option<(f64, ChannelOrder, Places)> = None;
        for start in starts.into_iter().take(STARTS) {
            (self.score, self.channels, self.stages) = start;
            self.improve();
            if best.as_ref().is_none_or(|best| self.score > best.0) {
                best = Some((self.score, self.channels, self.stages.clone()));
            }
            let prediction = self.model.predict(&self.stages, self.channels);
            if prediction.delivered >= POOR && prediction.answered >= ANSWERED {
                break;
            }
        }
        let Some(best) = best else { return false };
        (self.score, self.channels, self.stages) = best;
        true
    }

    /// The order of the channels that was found.
    pub fn channels(&self) -> ChannelOrder {
        self.channels
    }

    /// The relays that were found, and what they are expected to deliver.
    pub fn result(&mut self) -> (Vec<ImprovedPart>, Prediction) {
        let prediction = self.model.predict(&self.stages, self.channels);
        let (answerers, _) = self.model.answerers(&self.stages, self.channels);
        let part = |place: usize| {
            let node = self.stages.at(place)?;
            let answers = answerers.contains(&node);
            let place = Place {
                node: u16::try_from(node).ok()?,
                stage: self.stages.stage_of(place) as u8 + 1,
                group: self.stages.group_of(place) as u8,
            };
            Some(ImprovedPart { place, answers })
        };
        let parts = (0..self.stages.places()).filter_map(part).collect();
        (parts, prediction)
    }

    /// Whether a node of a place can receive from the stage before and reach the one after at all.
    fn connects(&self, place: usize, node: usize) -> bool {
        let (stage, group) = (self.stages.stage_of(place), self.stages.group_of(place));
        let (into, out) = (
            self.channels.of_stage(stage as u8 + 1),
            self.channels.of_stage(stage as u8 + 2),
        );
        let hears = |from: usize| self.tables.believed(into, from, node) > 0.0;
        let reaches = |to: usize| self.tables.believed(out, node, to) > 0.0;
        let heard = match stage.checked_sub(1) {
            None => hears(self.ends.0),
            Some(before) => self.stages.members(before, group).any(hears),
        };
        heard
            && if stage + 1 == self.stages.stages() {
                reaches(self.ends.1)
            } else {
                self.stages.members(stage + 1, group).any(reaches)
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
        let nodes = self.candidates[stage].iter().copied();
        // Most candidates stand elsewhere in the building, and their prediction costs the most time here.
        let nodes = nodes.filter(|&node| self.connects(place, node));
        let choices: Vec<Option<usize>> = nodes.map(Some).chain([None]).collect();
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
            let fits = old.is_some_and(|node| self.candidates[stage].binary_search(&node).is_ok());
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
        // Packets are sent until they arrive, and a question is asked until its answer comes.
        let often = |share: f64| 1.0 / (share + LEAST);
        PASSED_WORTH * prediction.passed
            - often(prediction.delivered)
            - often(prediction.answered) * self.turn
            - self.wish.relay_worth * relays
    }
}
