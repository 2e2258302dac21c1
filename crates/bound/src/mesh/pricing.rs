//! The search for independent sets with a positive reduced cost: greedy here; the exact one is used when it fails.

use crate::graph::Graph;
use crate::order;

/// How many of the heaviest links a greedy search starts from.
const STARTS: usize = 120;
/// How many sets one round may add.
const SETS: usize = 240;
/// Links of less than this share of the heaviest weight are left to the clique cover.
pub(super) const LIGHT: f64 = 2e-4;

/// Maximal independent sets heavier than `worth`, heaviest first: from each of the heaviest links in turn, the heaviest
/// links that still fit, in the order of their weight and in that of their weight for each conflict.
pub(super) fn greedy(graph: &Graph, weights: &[f64], worth: f64) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..weights.len()).filter(|&v| weights[v] > 0.0).collect();
    order::falling(&mut order, |&v| weights[v]);
    let open = order.clone();
    let crowding = |v: usize| {
        let rivals = open.iter().filter(|&&other| graph.adjacent(v, other));
        rivals.map(|&other| weights[other]).sum::<f64>() + weights[v]
    };
    // Of equal ones, the one with the lower number comes first.
    let mut sparse = order.clone();
    sparse.sort_unstable();
    order::falling(&mut sparse, |&v| weights[v] / crowding(v));
    let mut found: Vec<(f64, Vec<usize>)> = Vec::new();
    for &start in order.iter().take(STARTS) {
        for order in [&order, &sparse] {
            let set = maximal(graph, start, order);
            let weight = set.iter().map(|&v| weights[v]).sum();
            if weight > worth {
                found.push((weight, set));
            }
        }
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    found.dedup_by(|a, b| a.1 == b.1);
    found.truncate(SETS);
    found.into_iter().map(|(_, set)| set).collect()
}

/// `start` and whatever of `order` fits beside it, in rising order.
pub(super) fn maximal(graph: &Graph, start: usize, order: &[usize]) -> Vec<usize> {
    let mut set = vec![start];
    for &next in order {
        if next != start && set.iter().all(|&member| !graph.adjacent(member, next)) {
            set.push(next);
        }
    }
    set.sort_unstable();
    set
}
