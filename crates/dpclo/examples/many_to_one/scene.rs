//! Where the nodes are, and who sends.

use chappe_core::{Mode, Rate, Seed};
use chappe_sim::{Medium, Profile, topology};

const NODES: u16 = 108;
const SIDE_M: f64 = 1250.0;

/// Where the nodes are, and who sends.
pub struct Scene {
    pub medium: Medium,
    pub sink: u16,
    /// Sources with their hops to the sink, farthest first.
    pub sources: Vec<(u16, u16)>,
}

/// The sink is the node nearest to a corner; sources are spread over the distances that occur.
pub fn scene(seed: u64) -> Result<Scene, Box<dyn std::error::Error>> {
    let profile = Profile::ns2_threshold();
    let (mode, octets) = (Mode::long(Rate::Dsss2), 252);
    for draw in 0..1000 {
        let places = topology::random(usize::from(NODES), SIDE_M, SIDE_M, Seed(seed).child(draw));
        let medium = Medium::geometric(&places, &profile, Seed(seed))?;
        if !topology::connected(&medium, mode, octets, 0.5) {
            continue;
        }
        let from_corner = |&node: &u16| {
            let place = &places[usize::from(node)];
            (libm::hypot(place.x, place.y) * 1000.0) as u64
        };
        let sink = (0..NODES).min_by_key(from_corner).unwrap_or(0);
        let hops = hops(&medium, sink, (mode, octets));
        let mut order: Vec<(u16, u16)> = (0..NODES)
            .filter(|&node| node != sink)
            .map(|node| (node, hops[usize::from(node)]))
            .collect();
        order.sort_by_key(|&(node, hops)| (std::cmp::Reverse(hops), node));
        let sources = (0..7).map(|n| order[n * (order.len() - 1) / 6]).collect();
        return Ok(Scene {
            medium,
            sink,
            sources,
        });
    }
    Err("no connected draw".into())
}

fn hops(medium: &Medium, sink: u16, (mode, octets): (Mode, usize)) -> Vec<u16> {
    let mut hops = vec![u16::MAX; medium.nodes()];
    let mut edge = vec![usize::from(sink)];
    hops[usize::from(sink)] = 0;
    while !edge.is_empty() {
        let mut next = Vec::new();
        for from in edge {
            for to in medium.hearers(from) {
                if hops[to] == u16::MAX && medium.prr(from, to, mode, octets) > 0.5 {
                    hops[to] = hops[from] + 1;
                    next.push(to);
                }
            }
        }
        edge = next;
    }
    hops
}
