//! Networks for the tests: by hand, and random from a seed.
#![allow(dead_code)] // each test file uses its part

use chappe_bound::{Bound, Medium, Network, Options, multicast};
use chappe_testkit::SplitMix64;

/// A network of `links` (from, to, p), 1 ms per frame, 1000 bytes; `senses` by pair.
pub fn network(
    nodes: usize,
    links: &[(usize, usize, f64)],
    senses: impl Fn(usize, usize) -> bool,
) -> Network {
    let mut delivery = vec![0.0; nodes * nodes];
    for &(from, to, p) in links {
        delivery[from * nodes + to] = p;
    }
    let sensing: Vec<f64> = (0..nodes * nodes)
        .map(|pair| f64::from(u8::from(senses(pair / nodes, pair % nodes))))
        .collect();
    Network::new(delivery, vec![1e-3; nodes], 1000, sensing).unwrap()
}

pub fn everyone(_: usize, _: usize) -> bool {
    true
}

/// A random network: each link exists with probability `density`, some are certain or nearly dead;
/// airtimes differ; a part `density_of_sensing` of the pairs always sense each other.
pub fn random(
    random: &mut SplitMix64,
    nodes: usize,
    density: f64,
    density_of_sensing: f64,
) -> Network {
    let mut delivery = vec![0.0; nodes * nodes];
    for p in &mut delivery {
        if random.unit() < density {
            *p = match (random.unit() * 8.0) as u32 {
                0 => 1.0,
                1 => 1e-4,
                _ => random.unit(),
            };
        }
    }
    let airtime: Vec<f64> = (0..nodes).map(|_| 1e-3 * (0.5 + random.unit())).collect();
    let mut sensing = vec![0.0; nodes * nodes];
    for a in 0..nodes {
        for b in 0..a {
            let sensed = f64::from(u8::from(random.unit() < density_of_sensing));
            sensing[a * nodes + b] = sensed;
            sensing[b * nodes + a] = sensed;
        }
    }
    Network::new(delivery, airtime, 1000, sensing).unwrap()
}

/// The bound, after checking what must hold of every bound.
pub fn bound(network: &Network, receivers: &[usize], medium: Medium) -> Bound {
    let options = Options {
        medium,
        ..Options::default()
    };
    let bound = multicast(network, 0, receivers, &options).unwrap();
    assert!(bound.rate_fps <= bound.certified_fps);
    assert!(
        bound.gap() <= 1e-4,
        "{medium:?}: gap {} after {} rounds",
        bound.gap(),
        bound.rounds
    );
    assert_eq!(
        bound.certificate.bound_fps(network).max(0.0),
        bound.certified_fps
    );
    bound
}

/// Smallest cut between 0 and `receiver` by looking at all of them.
pub fn least_cut(network: &Network, transmissions: &[f64], receiver: usize) -> f64 {
    let nodes = network.nodes();
    (0u32..1 << nodes)
        .filter(|side| side & 1 == 1 && side >> receiver & 1 == 0)
        .map(|side| {
            (0..nodes)
                .filter(|&from| side >> from & 1 == 1)
                .map(|from| {
                    let missed: f64 = (0..nodes)
                        .filter(|&to| side >> to & 1 == 0)
                        .map(|to| 1.0 - network.delivery(from, to))
                        .product();
                    transmissions[from] * (1.0 - missed)
                })
                .sum()
        })
        .fold(f64::INFINITY, f64::min)
}
