//! The most reliable way of an exact length, by dynamic programming over stages.

use alloc::vec;
use alloc::vec::Vec;

use chappe_core::Channel;

use super::graph::LinkGraph;
use super::links::Tables;
use crate::channels::ChannelOrder;

/// What a way without an answer back is worth, of one with it.
const MUTE: f64 = 0.8;
/// Marks a node that has no predecessor on a way yet.
const NONE: usize = usize::MAX;

/// The relays of the way from source to destination with the greatest product of delivery ratios, where each stage listens
/// on its channel and takes one of its `candidates` that is `free`. With `answers`, ways whose links also work backwards are
/// preferred. Empty if there is none.
pub(super) fn most_reliable(
    (tables, graph): (&Tables, &LinkGraph),
    (source, destination): (usize, usize),
    (candidates, free): (&[Vec<usize>], &dyn Fn(usize) -> bool),
    channels: ChannelOrder,
    answers: bool,
) -> Vec<usize> {
    let (nodes, stages) = (tables.nodes(), candidates.len());
    // The best product up to a node of a stage, and the node before it there.
    let mut before = vec![vec![NONE; nodes]; stages];
    let (mut here, mut next) = (vec![0.0; nodes], vec![0.0; nodes]);
    here[source] = 1.0;
    // The channels on which the end of a hop and its beginning listen.
    let of_hop = |stage: usize| {
        let of = |stage: usize| channels.of_stage(stage as u8);
        (of(stage + 1), of(stage))
    };
    let factor = |(ahead, behind): (Channel, Channel), from: usize, to: usize| {
        let there = tables.believed(ahead, from, to);
        if !answers {
            return there;
        }
        there * (MUTE + (1.0 - MUTE) * tables.believed(behind, to, from))
    };
    for (stage, allowed) in candidates.iter().enumerate() {
        next.fill(0.0);
        let hop = of_hop(stage);
        for &node in allowed.iter().filter(|&&node| free(node)) {
            for &from in graph.neighbours(node) {
                if here[from] <= next[node] {
                    continue;
                }
                let product = here[from] * factor(hop, from, node);
                if product > next[node] {
                    (next[node], before[stage][node]) = (product, from);
                }
            }
        }
        core::mem::swap(&mut here, &mut next);
    }
    let ends = graph.neighbours(destination).iter();
    let hop = of_hop(stages);
    let mut last: Option<(f64, usize)> = None;
    for &from in ends.filter(|&&from| here[from] > 0.0) {
        let product = here[from] * factor(hop, from, destination);
        if last.is_none_or(|(best, _)| product > best) {
            last = Some((product, from));
        }
    }
    let Some((_, mut at)) = last.filter(|_| stages > 0) else {
        return Vec::new();
    };
    let mut way = Vec::new();
    for stage in (0..stages).rev() {
        way.push(at);
        at = before[stage][at];
    }
    way.reverse();
    way
}
