//! Statistics of a network's links, for comparison with the paper's testbed (V-C).

use chappe_pacifier::Links;
use chappe_results::statistics::mean;
use serde::{Deserialize, Serialize};

/// The loss of the worst link that the paper counts (V-C).
pub const LOSS_MAX: f64 = 0.88;

/// Statistics over the directed links of a network, as its nodes measured them by probes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkStatistics {
    /// The number of directed links that lose at most [`LOSS_MAX`].
    pub links: usize,
    /// The mean loss of these links, from 0 to 1.
    pub mean_loss: f64,
    /// The length of the longest shortest ETX path, in hops.
    pub hops_max: u16,
}

impl LinkStatistics {
    /// Computes the statistics from measured delivery ratios.
    pub fn of(links: &Links) -> LinkStatistics {
        let nodes = links.nodes() as u16;
        let pairs = (0..nodes)
            .flat_map(|a| (0..nodes).map(move |b| (a, b)))
            .filter(|(a, b)| a != b);
        let losses: Vec<f64> = pairs
            .map(|(a, b)| 1.0 - links.ratio(a, b))
            .filter(|loss| *loss <= LOSS_MAX)
            .collect();
        let hops = (0..nodes).flat_map(|source| {
            let paths = links.etx_paths(source);
            (0..nodes)
                .filter_map(move |node| paths.hops(node))
                .collect::<Vec<u16>>()
        });
        LinkStatistics {
            links: losses.len(),
            mean_loss: mean(&losses),
            hops_max: hops.max().unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line of three nodes with losses 0.5 and 0.2 in both directions, and 0.9 end to end, which does not count.
    #[test]
    fn statistics_of_a_line_match_a_hand_calculation() {
        let ratios = vec![0.0, 0.5, 0.1, 0.5, 0.0, 0.8, 0.1, 0.8, 0.0];
        let statistics = LinkStatistics::of(&Links::new(3, ratios).unwrap());
        assert_eq!((statistics.links, statistics.hops_max), (4, 2));
        assert!((statistics.mean_loss - 0.35).abs() < 1e-9);
    }
}
