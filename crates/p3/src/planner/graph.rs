//! The graph of good links that a plan is made from.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

/// An undirected graph: an edge is a link that is good in both directions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkGraph {
    neighbours: Vec<Vec<usize>>,
}

impl LinkGraph {
    /// A graph of `nodes` nodes; edges to nodes that do not exist and loops are left out.
    pub fn from_edges(nodes: usize, edges: &[(usize, usize)]) -> LinkGraph {
        let mut neighbours = vec![Vec::new(); nodes];
        for &(a, b) in edges {
            if a < nodes && b < nodes && a != b {
                neighbours[a].push(b);
                neighbours[b].push(a);
            }
        }
        for list in &mut neighbours {
            list.sort_unstable();
            list.dedup();
        }
        LinkGraph { neighbours }
    }

    /// The links whose packet reception ratio reaches `threshold` both ways. `prr(u, v)` is asked for each pair.
    pub fn from_prr(nodes: usize, threshold: f64, prr: impl Fn(usize, usize) -> f64) -> LinkGraph {
        let mut edges = Vec::new();
        for a in 0..nodes {
            for b in a + 1..nodes {
                if prr(a, b) >= threshold && prr(b, a) >= threshold {
                    edges.push((a, b));
                }
            }
        }
        LinkGraph::from_edges(nodes, &edges)
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        self.neighbours.len()
    }

    /// The neighbours of `node` in ascending order; none for a node that does not exist.
    pub fn neighbours(&self, node: usize) -> &[usize] {
        self.neighbours.get(node).map_or(&[], Vec::as_slice)
    }

    /// Whether `a` and `b` are neighbours.
    pub fn linked(&self, a: usize, b: usize) -> bool {
        self.neighbours(a).binary_search(&b).is_ok()
    }

    /// Hops from `from` to every node; `None` where there is no path.
    pub fn distances(&self, from: usize) -> Vec<Option<usize>> {
        let mut distances = vec![None; self.nodes()];
        let Some(start) = distances.get_mut(from) else {
            return distances;
        };
        *start = Some(0);
        let mut queue = VecDeque::from([(from, 0)]);
        while let Some((node, hops)) = queue.pop_front() {
            for &next in self.neighbours(node) {
                if distances[next].is_none() {
                    distances[next] = Some(hops + 1);
                    queue.push_back((next, hops + 1));
                }
            }
        }
        distances
    }
}
