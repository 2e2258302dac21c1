//! Carrier sense under fading: the airtime of sets of nodes when frames are sensed at random.
//!
//! Take any set S of nodes. Call a frame of a member *plain* if at most `misses` of the other
//! members fail to sense it. **No more than `misses + 1` plain frames are on the air at once**: each
//! that began after the first of them was begun by another member that did not sense the first one,
//! and of those there are at most `misses`. If node i has a share y_i of airtime, and its frames are
//! plain with probability P_i, then on average
//!
//! sum over i in S of y_i P_i  <=  misses + 1.
//!
//! With `misses` = 0, P_i is the product of the probabilities q_ij that j senses a frame of i, and
//! for nodes that always sense each other the row is the familiar `sum y_i <= 1` of a clique. The
//! product is at least 1 - sum of (1 - q_ij), the weight that Bonferroni's inequality for the measure
//! of a union gives; it needs the fades of one frame towards different nodes to be independent,
//! which the sum does not. Larger `misses` are for large sets in which every frame is missed by
//! some member.
//!
//! Assumptions, beside those of the crate:
//!
//! - No node begins a frame while it senses another, or within the gap after it. Equal-slot ties (two
//!   that begin at the same moment) break this, and frames sent without looking (after a clear to
//!   send), if they are counted.
//! - A frame has one fade towards each node, drawn anew and independently of what its sender knew
//!   when it chose to send. Reciprocal fading that lasts longer than a frame breaks this: a node that
//!   senses no other sends more, just when the others do not sense it. Coherence well below the
//!   airtime satisfies it, except for frames begun within the same coherence time.

mod missed;
mod search;

use crate::network::Network;
use missed::Missed;
use search::Senders;

/// A set of nodes, and how many of them may miss a plain frame: one row of the medium.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SensedSet {
    /// Members, in rising order.
    pub nodes: Vec<usize>,
    /// How many of the other members may fail to sense a frame that counts.
    pub misses: usize,
}

impl SensedSet {
    /// The row of a set in which no member may miss a frame.
    pub fn clique(nodes: Vec<usize>) -> SensedSet {
        SensedSet { nodes, misses: 0 }
    }

    /// (node, weight): in shares of airtime y, `sum of weight * y <= 1`.
    ///
    /// Sums and products of non-negative numbers only.
    pub fn weights(&self, network: &Network) -> Vec<(usize, f64)> {
        let most = (self.misses + 1) as f64;
        let mut missed = Missed::none(self.misses, self.nodes.len());
        for &to in &self.nodes {
            let heard = self.nodes.iter().map(|&from| network.sensing(from, to));
            missed.add(&heard.collect::<Vec<f64>>());
        }
        let weights = (self.nodes.iter().enumerate())
            .map(|(place, &node)| (node, missed.at_most(place) / most));
        weights.collect()
    }

    /// The row's left side at `transmissions` frames/s; above 1 no run can be.
    pub fn load(&self, network: &Network, transmissions: &[f64]) -> f64 {
        self.weights(network)
            .iter()
            .map(|&(node, weight)| weight * transmissions[node] * network.channel_s(node))
            .sum()
    }

    /// Does it name existing nodes, each once?
    pub(crate) fn is_proper(&self, nodes: usize) -> bool {
        self.nodes.is_sorted_by(|a, b| a < b) && self.nodes.last().is_none_or(|&last| last < nodes)
    }
}

/// Sets whose rows `transmissions` (frames/s) break, at most one from each start and number of
/// misses, the heaviest first, with their loads above 1 + `excess`.
///
/// Which set is heaviest is a quadratic problem over all subsets and more; this is a search that adds
/// and drops single nodes, so it may miss some. A row left out makes a bound looser, never wrong.
pub fn overfull_sets(
    network: &Network,
    transmissions: &[f64],
    excess: f64,
) -> Vec<(SensedSet, f64)> {
    let senders = Senders::new(network, transmissions);
    let mut found: Vec<(SensedSet, f64)> = Vec::new();
    for misses in 0..MISSES_MAX.min(network.nodes()) {
        for start in 0..senders.len() {
            let (nodes, total) = senders.climb(start, misses);
            let load = total / (misses + 1) as f64;
            if load > 1.0 + excess {
                let set = SensedSet { nodes, misses };
                if !found.iter().any(|(known, _)| *known == set) {
                    found.push((set, load));
                }
            }
        }
    }
    found.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    found
}

/// Misses that the search tries: 0 to one less. More count only where a dozen nodes are on the air.
const MISSES_MAX: usize = 6;
