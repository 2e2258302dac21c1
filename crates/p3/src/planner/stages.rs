//! The stage-expanded graph and the largest flow through it.
//!
//! A relay `v` may stand in stage `k` if it is at most `k` hops from the source and at most `hops - k` from the
//! destination. Each (relay, stage) pair is a place with room for one path; a path steps from a place in stage
//! `k` to a place of a neighbour in stage `k + 1`. Source and destination carry any number of paths.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use super::LinkGraph;

/// The stages that each node may still stand in, as bits (bit `k` is stage `k`).
#[derive(Clone, Debug)]
pub(super) struct Stages {
    pub allowed: Vec<u32>,
    pub hops: usize,
    source: usize,
    destination: usize,
}

/// Longest path that a plan can have: stages are bits of a `u32`.
pub(super) const HOPS_MAX: usize = 31;

impl Stages {
    /// All stages that the hop distances leave open. `None` if `hops` is zero, too large, or source equals
    /// destination.
    pub fn open(
        graph: &LinkGraph,
        source: usize,
        destination: usize,
        hops: usize,
    ) -> Option<Stages> {
        let in_range = source < graph.nodes() && destination < graph.nodes();
        if hops == 0 || hops > HOPS_MAX || source == destination || !in_range {
            return None;
        }
        let (from, to) = (graph.distances(source), graph.distances(destination));
        let allowed = (0..graph.nodes())
            .map(|node| match (from[node], to[node]) {
                _ if node == source || node == destination => 0,
                (Some(before), Some(after)) => (1..hops)
                    .filter(|&k| before <= k && after <= hops - k)
                    .fold(0, |bits, k| bits | 1 << k),
                _ => 0,
            })
            .collect();
        Some(Stages {
            allowed,
            hops,
            source,
            destination,
        })
    }

    /// A largest set of paths that share no *place*. A node that may stand in several stages can appear on
    /// several paths, in different stages; the caller deals with that.
    pub fn largest_flow(&self, graph: &LinkGraph) -> Vec<Vec<usize>> {
        if self.hops == 1 {
            let direct = graph.linked(self.source, self.destination);
            return if direct { vec![Vec::new()] } else { Vec::new() };
        }
        let mut flow = Flow::new(self, graph);
        while flow.augment() {}
        flow.paths()
    }

    fn open_at(&self, node: usize, stage: usize) -> bool {
        self.allowed
            .get(node)
            .is_some_and(|bits| bits >> stage & 1 == 1)
    }
}

/// Unit flow by augmenting paths. `next[k][v]` is where the path through place (v, k) goes on, and
/// `before[k][v]` where it comes from; both are `NONE` for an unused place.
struct Flow<'a> {
    stages: &'a Stages,
    graph: &'a LinkGraph,
    next: Vec<Vec<usize>>,
    before: Vec<Vec<usize>>,
}

const NONE: usize = usize::MAX;

/// A place during the search: entered by its `In` side (nothing leaves it yet) or its `Out` side.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    In,
    Out,
}

impl<'a> Flow<'a> {
    fn new(stages: &'a Stages, graph: &'a LinkGraph) -> Flow<'a> {
        let empty = vec![vec![NONE; graph.nodes()]; stages.hops];
        Flow {
            stages,
            graph,
            next: empty.clone(),
            before: empty,
        }
    }

    fn used(&self, node: usize, stage: usize) -> bool {
        self.next[stage][node] != NONE
    }

    /// Finds one more path in the residual graph by breadth-first search and applies it.
    fn augment(&mut self) -> bool {
        let (nodes, hops) = (self.graph.nodes(), self.stages.hops);
        let index =
            |node: usize, stage: usize, side: Side| (stage * nodes + node) * 2 + side as usize;
        let mut parent = vec![NONE; hops * nodes * 2];
        let mut queue = VecDeque::new();
        let root = hops * nodes * 2;
        for &first in self.graph.neighbours(self.stages.source) {
            let fresh =
                self.stages.open_at(first, 1) && self.before[1][first] != self.stages.source;
            if fresh {
                parent[index(first, 1, Side::In)] = root;
                queue.push_back((first, 1, Side::In));
            }
        }
        while let Some((node, stage, side)) = queue.pop_front() {
            let here = index(node, stage, side);
            let mut reach = |to: usize, at: usize, side: Side, queue: &mut VecDeque<_>| {
                let place = index(to, at, side);
                if parent[place] == NONE {
                    parent[place] = here;
                    queue.push_back((to, at, side));
                }
            };
            match (side, self.used(node, stage)) {
                // A free place can be passed through.
                (Side::In, false) => reach(node, stage, Side::Out, &mut queue),
                // A used place entered from a new predecessor: push its old predecessor back to find another way.
                (Side::In, true) => {
                    let old = self.before[stage][node];
                    if stage > 1 {
                        reach(old, stage - 1, Side::Out, &mut queue);
                    }
                }
                (Side::Out, _) => {
                    if stage + 1 == hops {
                        let ends = self.graph.linked(node, self.stages.destination);
                        if ends
                            && !(self.used(node, stage)
                                && self.next[stage][node] == self.stages.destination)
                        {
                            self.apply(&parent, here);
                            return true;
                        }
                    } else {
                        for &to in self.graph.neighbours(node) {
                            let open = self.stages.open_at(to, stage + 1);
                            if open && self.next[stage][node] != to {
                                reach(to, stage + 1, Side::In, &mut queue);
                            }
                        }
                    }
                    // Undo the passage through this used place: its In side is then free to be entered anew.
                    if self.used(node, stage) {
                        reach(node, stage, Side::In, &mut queue);
                    }
                }
            }
        }
        false
    }

    /// Walks the found path from its end to the source and flips the flow along it.
    fn apply(&mut self, parent: &[usize], end: usize) {
        let nodes = self.graph.nodes();
        let root = self.stages.hops * nodes * 2;
        let place = |index: usize| {
            let side = if index.is_multiple_of(2) {
                Side::In
            } else {
                Side::Out
            };
            (index / 2 % nodes, index / 2 / nodes, side)
        };
        // Collect forward steps added and removed as edges between places, then rebuild the links.
        let mut added: Vec<(usize, usize, usize)> = Vec::new();
        let mut removed: Vec<(usize, usize, usize)> = Vec::new();
        let (last, stage, _) = place(end);
        added.push((last, stage, self.stages.destination));
        let mut at = end;
        while parent[at] != root {
            let (to, to_stage, to_side) = place(at);
            let (from, from_stage, from_side) = place(parent[at]);
            if from_stage < to_stage {
                added.push((from, from_stage, to));
            } else if from_stage > to_stage {
                debug_assert!(from_side == Side::In && to_side == Side::Out);
                removed.push((to, to_stage, from));
            }
            at = parent[at];
        }
        let (first, _, _) = place(at);
        for &(from, stage, to) in &removed {
            if self.next[stage][from] == to {
                self.next[stage][from] = NONE;
            }
            if stage + 1 < self.stages.hops && self.before[stage + 1][to] == from {
                self.before[stage + 1][to] = NONE;
            }
        }
        for &(from, stage, to) in &added {
            self.next[stage][from] = to;
            if stage + 1 < self.stages.hops {
                self.before[stage + 1][to] = from;
            }
        }
        self.before[1][first] = self.stages.source;
        self.sweep();
    }

    /// Clears the marks of places that no path leaves any more.
    fn sweep(&mut self) {
        for stage in 1..self.stages.hops {
            for node in 0..self.graph.nodes() {
                if self.next[stage][node] == NONE {
                    self.before[stage][node] = NONE;
                }
            }
        }
    }

    fn paths(&self) -> Vec<Vec<usize>> {
        let starts =
            (0..self.graph.nodes()).filter(|&node| self.before[1][node] == self.stages.source);
        starts
            .map(|first| {
                let mut path = vec![first];
                for stage in 1..self.stages.hops - 1 {
                    path.push(self.next[stage][path[stage - 1]]);
                }
                path
            })
            .collect()
    }
}
