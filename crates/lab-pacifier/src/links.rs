//! How bad a network's links are, to be held against what the paper tells of its own.

use chappe_pacifier::Links;
use chappe_results::statistics::mean;

/// The worst link that the paper counts loses this share (V-C).
pub const LOSS_MAX: f64 = 0.88;

/// Statistics over the directed links of a network, as its nodes measured them by probes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkStatistics {
    /// Directed links that lose at most [`LOSS_MAX`].
    pub links: usize,
    /// Their mean loss, from 0 to 1.
    pub mean_loss: f64,
    /// The longest of the shortest ETX paths, in hops.
    pub hops_max: u16,
}

impl LinkStatistics {
    /// Of these links.
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
    fn a_line_by_hand() {
        let ratios = vec![0.0, 0.5, 0.1, 0.5, 0.0, 0.8, 0.1, 0.8, 0.0];
        let statistics = LinkStatistics::of(&Links::new(3, ratios).unwrap());
        assert_eq!((statistics.links, statistics.hops_max), (4, 2));
        assert!((statistics.mean_loss - 0.35).abs() < 1e-9);
    }
}
