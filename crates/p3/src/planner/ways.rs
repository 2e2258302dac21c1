//! The most reliable ways of an exact length, by dynamic programming over stages.

use alloc::vec;
use alloc::vec::Vec;

use chappe_core::Channel;

use super::graph::LinkGraph;
use super::links::Tables;
use crate::channels::ChannelOrder;
use crate::sizes::CHANNELS;

/// What a way without an answer back is worth, of one with it.
const MUTE: f64 = 0.8;
/// Marks a node that has no predecessor on a way yet.
const NONE: usize = usize::MAX;
/// Orders of the channels.
const ORDERS: usize = 24;

/// The most reliable ways between two nodes, of one length at a time: for each order of the channels the best one, the best of what that
/// leaves, and so on. A pipeline of two groups begins with the first two that one of three has, so they are kept.
pub(super) struct Ways<'a> {
    graph: &'a LinkGraph,
    ends: (usize, usize),
    links: Incoming,
    /// Stages of relays, and by order of the channels the ways of that length that are known.
    stages: usize,
    known: Vec<Vec<Vec<usize>>>,
    rooms: Rooms,
}

/// What is believed of the links of a graph, in the order in which the search asks: all links that lead to a node in a row.
struct Incoming {
    /// Where the links to each node begin.
    first: Vec<usize>,
    /// By channel: the share that arrives, and what the share that comes back is worth.
    there: [Vec<f64>; CHANNELS.len()],
    back: [Vec<f64>; CHANNELS.len()],
}

/// Room for a search, so that it does not allocate for each way.
#[derive(Default)]
struct Rooms {
    /// The node before each node, by stage.
    before: Vec<usize>,
    /// The best product up to each node of a stage.
    here: Vec<f64>,
    next: Vec<f64>,
    taken: Vec<bool>,
}

impl Incoming {
    fn new(tables: &Tables, graph: &LinkGraph) -> Incoming {
        let nodes = tables.nodes();
        let mut first = Vec::with_capacity(nodes + 1);
        let mut count = 0;
        for node in 0..nodes {
            first.push(count);
            count += graph.neighbours(node).len();
        }
        let of = |value: &dyn Fn(Channel, usize, usize) -> f64| {
            CHANNELS.map(|channel| {
                let links = (0..nodes).flat_map(|to| {
                    let from = graph.neighbours(to).iter();
                    from.map(move |&from| value(channel, from, to))
                });
                links.collect()
            })
        };
        Incoming {
            first,
            there: of(&|channel, from, to| tables.believed(channel, from, to)),
            back: of(&|channel, from, to| MUTE + (1.0 - MUTE) * tables.believed(channel, to, from)),
        }
    }
}

/// A channel's place in [`CHANNELS`].
fn place(channel: Channel) -> usize {
    let at = CHANNELS.iter().position(|&known| known == channel);
    at.unwrap_or(0)
}

impl<'a> Ways<'a> {
    /// The ways between `ends` over the links of `graph`.
    pub fn new(tables: &Tables, graph: &'a LinkGraph, ends: (usize, usize)) -> Ways<'a> {
        Ways {
            graph,
            ends,
            links: Incoming::new(tables, graph),
            stages: 0,
            known: vec![Vec::new(); ORDERS],
            rooms: Rooms::default(),
        }
    }

    /// The relays of the way with the greatest product of delivery ratios, where each stage listens on its channel and takes one of its
    /// `candidates`, beside those of the first `group` ways. Of the first one, ways whose links also work backwards are preferred, since
    /// answers go back by one way. Empty if there is none.
    ///
    /// The candidates of one length must be the same in all calls.
    pub fn get(
        &mut self,
        candidates: &[Vec<usize>],
        channels: ChannelOrder,
        group: usize,
    ) -> &[usize] {
        if self.stages != candidates.len() {
            self.stages = candidates.len();
            self.known.iter_mut().for_each(Vec::clear);
        }
        let order = usize::from(channels.number());
        while self.known[order].len() <= group {
            let way = self.search(candidates, channels, order);
            self.known[order].push(way);
        }
        &self.known[order][group]
    }

    /// The way after those that are known.
    fn search(
        &mut self,
        candidates: &[Vec<usize>],
        channels: ChannelOrder,
        order: usize,
    ) -> Vec<usize> {
        let answers = self.known[order].is_empty();
        let (nodes, stages) = (self.graph.nodes(), candidates.len());
        let (source, destination) = self.ends;
        let Rooms {
            before,
            here,
            next,
            taken,
        } = &mut self.rooms;
        before.clear();
        before.resize(nodes * stages, NONE);
        here.clear();
        here.resize(nodes, 0.0);
        next.clear();
        next.resize(nodes, 0.0);
        taken.clear();
        taken.resize(nodes, false);
        for &node in self.known[order].iter().flatten() {
            taken[node] = true;
        }
        here[source] = 1.0;
        let links = &self.links;
        // The channels on which the end of a hop and its beginning listen.
        let of_hop = |stage: usize| {
            let of = |stage: usize| place(channels.of_stage(stage as u8));
            (&links.there[of(stage + 1)], &links.back[of(stage)])
        };
        for (stage, allowed) in candidates.iter().enumerate() {
            next.fill(0.0);
            let (there, back) = of_hop(stage);
            for &node in allowed.iter().filter(|&&node| !taken[node]) {
                let mut best = 0.0;
                for (at, &from) in (links.first[node]..).zip(self.graph.neighbours(node)) {
                    if here[from] <= best {
                        continue;
                    }
                    let product = here[from] * factor(there[at], back[at], answers);
                    if product > best {
                        (best, before[stage * nodes + node]) = (product, from);
                    }
                }
                next[node] = best;
            }
            core::mem::swap(here, next);
        }
        let (there, back) = of_hop(stages);
        let ends = self.graph.neighbours(destination);
        let mut last: Option<(f64, usize)> = None;
        for (at, &from) in (links.first[destination]..).zip(ends) {
            if here[from] <= 0.0 {
                continue;
            }
            let product = here[from] * factor(there[at], back[at], answers);
            if last.is_none_or(|(best, _)| product > best) {
                last = Some((product, from));
            }
        }
        let Some((_, mut at)) = last.filter(|_| stages > 0) else {
            return Vec::new();
        };
        let mut way = Vec::with_capacity(stages);
        for stage in (0..stages).rev() {
            way.push(at);
            at = before[stage * nodes + at];
        }
        way.reverse();
        way
    }
}

/// What a link is worth on a way.
fn factor(there: f64, back: f64, answers: bool) -> f64 {
    if answers { there * back } else { there }
}
