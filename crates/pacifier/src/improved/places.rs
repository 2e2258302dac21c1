//! Places: where nodes stand, as far as their delivery ratios tell, for the distances of those that do not hear each other.
//!
//! Ways over others are longer than the straight line, and interference falls with a high power of the distance. So nodes are put on a
//! plane: first by their ways to four nodes at its edges, then by majorising the stress of all ways (de Leeuw, "Applications of convex
//! analysis to multidimensional scaling", 1977), and at last by the measured links alone, while nodes that do not hear each other
//! stay apart (`fit.rs`). This is the localisation of Shang, Ruml, Zhang and Fromherz ("Localization from mere connectivity", MobiHoc 2003)
//! with another start in place of eigenvectors.

use alloc::vec::Vec;

use super::fit::{Fit, Measured, Place, apart};
use super::pairs::Pairs;

/// Rounds of majorisation with all ways. A judgement: distances hardly move after half of them.
const ROUNDS: usize = 100;
/// Larger networks are fitted without moving nodes one by one, which takes time with the square of their number.
const MOVED_MAX: usize = 100;

/// Distances between all nodes. Nodes without any way between them stay at infinity.
pub(super) fn distances(measured: &Measured) -> Pairs {
    fitted(measured, measured.far.nodes() <= MOVED_MAX)
}

/// The distances, if nodes that are folded over others are moved one by one or not.
fn fitted(measured: &Measured, moves: bool) -> Pairs {
    let links = &measured.far;
    let ways = shortest(links);
    let mut places = start(&ways);
    for _ in 0..ROUNDS {
        places = majorised(&places, |a, b| {
            Some(ways.at(a, b)).filter(|far| far.is_finite())
        });
    }
    let places = Fit { measured }.fitted(places, moves);
    Pairs::of(links.nodes(), |a, b| {
        let (link, way) = (links.at(a, b), ways.at(a, b));
        match (places.get(a), places.get(b)) {
            (Some(a), Some(b)) if link.is_infinite() && way.is_finite() => {
                apart(a, b).max(measured.silent)
            }
            _ => link,
        }
    })
}

/// The shortest ways over measured links (Floyd and Warshall).
fn shortest(measured: &Pairs) -> Pairs {
    let mut ways = measured.clone();
    let nodes = ways.nodes();
    for over in 0..nodes {
        for from in 0..nodes {
            for to in 0..nodes {
                let way = ways.at(from, over) + ways.at(over, to);
                if let Some(known) = ways.at_mut(from, to)
                    && way < *known
                {
                    *known = way;
                }
            }
        }
    }
    ways
}

/// First places: along the line between the two nodes farthest apart, and across between two that are about as far from both.
fn start(ways: &Pairs) -> Vec<Place> {
    let far = |a: usize, b: usize| Some(ways.at(a, b)).filter(|far| far.is_finite());
    let far = |a: usize, b: usize| far(a, b).unwrap_or(0.0);
    let farthest = |score: &dyn Fn(usize) -> f64| {
        let nodes = 0..ways.nodes();
        let found = nodes.max_by(|&a, &b| score(a).total_cmp(&score(b)));
        found.unwrap_or(0)
    };
    let west = farthest(&|node| far(0, node));
    let east = farthest(&|node| far(west, node));
    let north = farthest(&|node| far(node, west).min(far(node, east)));
    let south = farthest(&|node| far(node, north) - (far(node, west) - far(node, east)).abs());
    let along = |node: usize, a: usize, b: usize| {
        let (da, db, span) = (far(node, a), far(node, b), far(a, b));
        match span > 0.0 {
            true => (da * da - db * db) / (2.0 * span),
            false => 0.0,
        }
    };
    // A little apart by their numbers: two nodes at one place have no direction in which to part.
    let place = |node: usize| {
        let nudge = 1e-3 * node as f64 / ways.nodes().max(1) as f64;
        [
            along(node, west, east) + nudge,
            along(node, north, south) - nudge,
        ]
    };
    (0..ways.nodes()).map(place).collect()
}

/// One round: each node moves to the mean of where the others would have it, by the distances `wanted(node, other)`, of which short
/// ones count for more; one that no other has a distance to stays.
fn majorised(places: &[Place], wanted: impl Fn(usize, usize) -> Option<f64>) -> Vec<Place> {
    let moved = |(node, here): (usize, &Place)| {
        let ([mut x, mut y], mut weights) = ([0.0; 2], 0.0);
        for (other, there) in places.iter().enumerate() {
            let now = apart(here, there);
            let Some(far) = wanted(node, other).filter(|_| other != node) else {
                continue;
            };
            let (weight, share) = (1.0 / (far * far), far / now.max(1e-9));
            let [[hx, hy], [tx, ty]] = [here, there];
            x += weight * (tx + share * (hx - tx));
            y += weight * (ty + share * (hy - ty));
            weights += weight;
        }
        match weights > 0.0 {
            true => [x / weights, y / weights],
            false => *here,
        }
    };
    places.iter().enumerate().map(moved).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_core::{Purpose, Seed};

    fn measured(nodes: usize, far: impl Fn(usize, usize) -> f64) -> Measured {
        Measured {
            far: Pairs::of(nodes, &far),
            error: Pairs::of(nodes, |a, b| 0.03 * far(a, b)),
            silent: 1.5,
        }
    }

    /// Goal: nodes that do not hear each other get their true distance, not that of the way over others. Method: a grid of 6 x 4 nodes one
    /// apart, on which only distances up to 1.5 were measured.
    #[test]
    fn distances_across_a_grid_are_straight() {
        let true_distance = |a: usize, b: usize| {
            let ([ax, ay], [bx, by]) = ([a % 6, a / 6], [b % 6, b / 6]);
            apart(&[ax as f64, ay as f64], &[bx as f64, by as f64])
        };
        let found = distances(&measured(24, |a, b| match true_distance(a, b) {
            far if far <= 1.5 => far,
            _ => f64::INFINITY,
        }));
        for a in 0..24 {
            for b in 0..24 {
                let (found, expected) = (found.at(a, b), true_distance(a, b));
                assert!(
                    (found - expected).abs() < 0.05,
                    "{a} {b}: {found}, not {expected}"
                );
            }
        }
    }

    #[test]
    fn nodes_without_a_way_stay_apart() {
        let found = distances(&measured(4, |a, b| match a / 2 == b / 2 {
            true => f64::from(u8::from(a != b)),
            false => f64::INFINITY,
        }));
        assert_eq!((found.at(0, 1), found.at(0, 2)), (1.0, f64::INFINITY));
    }

    /// Goal: no part of the network is folded over another one. Method: 40 nodes at random in a square of 5, links up to 1.5, and the pair of
    /// nodes whose distance is off most: 15 and 7 % without moves of single nodes, 1 and 2 % with them. Of seeds 0 to 59 these two are
    /// those on which moves bring an error above 5 % below it; the error shrinks on 17 and grows on none.
    #[test]
    fn nodes_that_were_folded_over_move_back() {
        for seed in [1, 47] {
            let mut random = Seed(seed).stream(Purpose::Topology);
            let mut draw = || 5.0 * random.fraction();
            let places: Vec<Place> = (0..40).map(|_| [draw(), draw()]).collect();
            let true_distance = |a: usize, b: usize| apart(&places[a], &places[b]);
            let measured = measured(40, |a, b| match true_distance(a, b) {
                far if far <= 1.5 => far.max(1e-3),
                _ => f64::INFINITY,
            });
            let pairs = (0..40).flat_map(|a| (0..a).map(move |b| (a, b)));
            let worst = |found: Pairs| {
                let off = |(a, b)| (found.at(a, b) / true_distance(a, b) - 1.0).abs();
                pairs.clone().map(off).fold(0.0, f64::max)
            };
            let (without, with) = (worst(fitted(&measured, false)), worst(distances(&measured)));
            assert!(without > 0.05 && with < 0.05, "{seed}: {without}, {with}");
        }
    }
}
