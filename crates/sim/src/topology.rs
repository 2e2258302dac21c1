//! Seeded generators of node positions, and whether a network of them is connected.

use chappe_core::{Mode, Purpose, Seed, Stream};

use crate::{Medium, Position, Profile};

/// `nodes` positions, independent and uniform in a rectangle of `width` by `depth` metres.
pub fn random(nodes: usize, width: f64, depth: f64, seed: Seed) -> Vec<Position> {
    let mut random = seed.stream(Purpose::Topology);
    let mut place = || Position::new(random.fraction() * width, random.fraction() * depth);
    (0..nodes).map(|_| place()).collect()
}

/// `columns` by `rows` positions, `spacing` metres apart, row by row.
pub fn grid(columns: usize, rows: usize, spacing: f64) -> Vec<Position> {
    let place = |i: usize| {
        Position::new(
            (i % columns) as f64 * spacing,
            (i / columns) as f64 * spacing,
        )
    };
    (0..columns * rows).map(place).collect()
}

/// `nodes` positions in a row, `spacing` metres apart.
pub fn line(nodes: usize, spacing: f64) -> Vec<Position> {
    grid(nodes, 1, spacing)
}

/// `nodes` positions around `clusters` centres, which are uniform in the rectangle: normal with the given deviation
/// in metres in both directions, node `i` around centre `i % clusters`. Nodes may stand outside the rectangle.
pub fn clustered(
    nodes: usize,
    clusters: usize,
    deviation: f64,
    width: f64,
    depth: f64,
    seed: Seed,
) -> Vec<Position> {
    let centres = random(clusters.max(1), width, depth, seed.child(0));
    let mut random: Stream = seed.stream(Purpose::Topology);
    let mut around = |centre: Position| {
        let (x, y) = (random.normal(), random.normal());
        Position::new(centre.x + deviation * x, centre.y + deviation * y)
    };
    (0..nodes)
        .map(|i| around(centres[i % centres.len()]))
        .collect()
}

/// Whether every node can reach every other over links that deliver frames of `octets` (check sequence
/// included) with at least probability `prr` in both directions.
pub fn connected(medium: &Medium, mode: Mode, octets: usize, prr: f64) -> bool {
    let nodes = medium.nodes();
    let good =
        |a, b| medium.prr(a, b, mode, octets) >= prr && medium.prr(b, a, mode, octets) >= prr;
    let (mut seen, mut waiting, mut count) = (vec![false; nodes], Vec::new(), 0);
    if nodes > 0 {
        seen[0] = true;
        waiting.push(0);
    }
    while let Some(here) = waiting.pop() {
        count += 1;
        for next in medium.hearers(here) {
            if !seen[next] && good(here, next) {
                seen[next] = true;
                waiting.push(next);
            }
        }
    }
    count == nodes
}

/// Tries `make(seed.child(0))`, `make(seed.child(1))`... until the network is [`connected`], at most `tries` times.
pub fn until_connected(
    profile: &Profile,
    (mode, octets, prr): (Mode, usize, f64),
    (seed, tries): (Seed, u64),
    mut make: impl FnMut(Seed) -> Vec<Position>,
) -> Option<Vec<Position>> {
    (0..tries).find_map(|attempt| {
        let positions = make(seed.child(attempt));
        let medium = Medium::geometric(&positions, profile, seed).ok()?;
        connected(&medium, mode, octets, prr).then_some(positions)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_core::Rate;

    #[test]
    fn places_are_seeded_and_inside() {
        let places = random(500, 100.0, 20.0, Seed(1));
        assert_eq!(places, random(500, 100.0, 20.0, Seed(1)));
        assert_ne!(places, random(500, 100.0, 20.0, Seed(2)));
        assert!(
            places
                .iter()
                .all(|p| (0.0..=100.0).contains(&p.x) && (0.0..=20.0).contains(&p.y))
        );
        assert_eq!(grid(3, 2, 5.0)[4], Position::new(5.0, 5.0));
        assert_eq!(line(3, 7.0)[2], Position::new(14.0, 0.0));
        assert_eq!(clustered(10, 3, 1.0, 9.0, 9.0, Seed(1)).len(), 10);
    }

    /// A line of 200 m steps hangs together at a PRR of 0.5 and falls apart at 0.9999 (true Rayleigh fading).
    #[test]
    fn connectivity_depends_on_the_required_ratio() {
        let mode = Mode::long(Rate::Dsss1);
        let medium =
            Medium::geometric(&line(5, 200.0), &Profile::chappe_physical(), Seed(1)).unwrap();
        assert!(connected(&medium, mode, 100, 0.5));
        assert!(!connected(&medium, mode, 1500, 0.9999));
        let profile = Profile::chappe_physical();
        let ask = (mode, 1500, 0.9);
        let found = until_connected(&profile, ask, (Seed(3), 100), |seed| {
            random(12, 400.0, 400.0, seed)
        });
        let medium = Medium::geometric(&found.unwrap(), &profile, Seed(3)).unwrap();
        assert!(connected(&medium, mode, 1500, 0.9));
        assert!(
            until_connected(&profile, ask, (Seed(3), 3), |seed| random(
                3, 9e4, 9e4, seed
            ))
            .is_none()
        );
    }
}
