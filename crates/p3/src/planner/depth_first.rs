//! The paper's own planner: greedy randomised depth-first search, one path after the other.

use alloc::vec;
use alloc::vec::Vec;

use chappe_core::Stream;

use super::{LinkGraph, PathSet};

/// Searches a path of exactly `hops` hops depth first, in random order, with the pruning of the paper (a relay at
/// stage `k + 1` must reach the destination in `hops - (k + 1)` hops); removes its relays; repeats until no path
/// is found. Never proven, never larger than [`largest_path_set`](super::largest_path_set).
///
/// The search for one path gives up after 100,000 steps, which random geometric networks do not reach.
pub fn depth_first_path_set(
    graph: &LinkGraph,
    source: usize,
    destination: usize,
    hops: usize,
    random: &mut Stream,
) -> PathSet {
    let in_range = source < graph.nodes() && destination < graph.nodes() && source != destination;
    if hops == 0 || !in_range {
        return PathSet::default();
    }
    if hops == 1 {
        let direct = graph.linked(source, destination);
        return PathSet {
            paths: if direct { vec![Vec::new()] } else { Vec::new() },
            proven: direct,
        };
    }
    let to_destination = graph.distances(destination);
    let mut search = DepthFirst {
        graph,
        destination,
        hops,
        to_destination,
        taken: vec![false; graph.nodes()],
    };
    search.taken[source] = true;
    search.taken[destination] = true;
    let mut paths = Vec::new();
    while let Some(path) = search.path(source, random) {
        path.iter().for_each(|&relay| search.taken[relay] = true);
        paths.push(path);
    }
    PathSet {
        paths,
        proven: false,
    }
}

struct DepthFirst<'a> {
    graph: &'a LinkGraph,
    destination: usize,
    hops: usize,
    to_destination: Vec<Option<usize>>,
    taken: Vec<bool>,
}

/// Steps after which the search for one path gives up.
const STEPS_MAX: usize = 100_000;

impl DepthFirst<'_> {
    /// One path of free relays, by a stack of shuffled candidate lists.
    fn path(&self, source: usize, random: &mut Stream) -> Option<Vec<usize>> {
        let mut path: Vec<usize> = Vec::new();
        let mut candidates = vec![self.candidates(source, 1, &path, random)];
        for _ in 0..STEPS_MAX {
            match candidates.last_mut()?.pop() {
                None => {
                    candidates.pop();
                    path.pop();
                }
                Some(relay) => {
                    path.push(relay);
                    if path.len() == self.hops - 1 {
                        return Some(path);
                    }
                    let next = self.candidates(relay, path.len() + 1, &path, random);
                    candidates.push(next);
                }
            }
        }
        None
    }

    /// The free neighbours of `node` that may stand in `stage`, in random order.
    fn candidates(
        &self,
        node: usize,
        stage: usize,
        path: &[usize],
        random: &mut Stream,
    ) -> Vec<usize> {
        let left = self.hops - stage;
        let fits = |relay: &usize| {
            let near = self.to_destination[*relay].is_some_and(|hops| hops <= left);
            let last = stage < self.hops - 1 || self.graph.linked(*relay, self.destination);
            !self.taken[*relay] && !path.contains(relay) && near && last
        };
        let mut relays: Vec<usize> = self
            .graph
            .neighbours(node)
            .iter()
            .copied()
            .filter(fits)
            .collect();
        random.shuffle(&mut relays);
        relays
    }
}
