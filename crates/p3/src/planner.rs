//! Chooses the relays of each stage: as the largest set of node-distinct paths of one exact length, or by prediction.
//!
//! The planner runs at the gateway, before a transfer, so it may allocate and run for long. The problem is NP-hard
//! in general (largest sets of disjoint paths of bounded length: Itai, Perl and Shiloach, 1982), but the networks have
//! some hundred nodes and the lengths are two to nine:
//!
//! - [`largest_path_set`] answers exactly: one max-flow where the length is the hop distance, since each node
//!   then fits one stage only; otherwise branch and bound over max-flows of the stage-expanded graph.
//! - [`depth_first_path_set`] is the paper's greedy randomised search, kept for comparison.
//! - [`pipeline`] looks for the stages, groups and channels that deliver most, not for paths. It is the planner of the
//!   improved variant.
//! - [`with_extra_nodes`] adds nodes beside the paths.
//!
//! [`Measurement`] is the cost and the outcome of measuring the links, and [`best_path`] the channel-aware choice of a
//! single path for the baseline.
//!
//! ```
//! use chappe_p3::planner::{LinkGraph, largest_path_set};
//! // Two relays side by side between source 0 and destination 3.
//! let graph = LinkGraph::from_edges(4, &[(0, 1), (0, 2), (1, 3), (2, 3)]);
//! let found = largest_path_set(&graph, 0, 3, 2, 1_000);
//! assert_eq!(found.paths.len(), 2);
//! assert!(found.proven);
//! ```

mod chain;
mod depth_first;
mod exact;
mod extra;
mod graph;
mod links;
mod measure;
mod path_choice;
mod pipeline;
mod places;
mod price;
mod search;
mod stages;
mod ways;
mod wish;

pub use chain::Prediction;
pub use depth_first::depth_first_path_set;
pub use exact::largest_path_set;
pub use extra::with_extra_nodes;
pub use graph::LinkGraph;
pub use links::Links;
pub use measure::{Measurement, collection_time};
pub use path_choice::{PathChoice, best_path};
pub use pipeline::{Pipeline, pipeline};
pub use wish::Wish;

use alloc::vec::Vec;

/// Node-distinct paths of one length, each from the first relay to the last, without source and destination.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathSet {
    /// One entry per path: `hops - 1` relays in stage order.
    pub paths: Vec<Vec<usize>>,
    /// Whether no larger set exists. False where the search was cut off.
    pub proven: bool,
}

/// The paper's choice of length (specs in its section IV): from the hop distance `d`, try `d` to `d + extra`
/// hops and stop at the first length with at least `wanted` paths; otherwise the length with the most paths, the
/// shorter one where two have as many. `None` if no path exists at all.
pub fn choose_length(
    graph: &LinkGraph,
    source: usize,
    destination: usize,
    wanted: usize,
    extra: usize,
    mut solve: impl FnMut(usize) -> PathSet,
) -> Option<(usize, PathSet)> {
    let distance = graph
        .distances(source)
        .get(destination)
        .copied()
        .flatten()?;
    let mut best: Option<(usize, PathSet)> = None;
    for hops in distance..=distance + extra {
        let found = solve(hops);
        let enough = found.paths.len() >= wanted;
        let better = best
            .as_ref()
            .is_none_or(|(_, kept)| found.paths.len() > kept.paths.len());
        if better {
            best = Some((hops, found));
        }
        if enough {
            break;
        }
    }
    best
}
