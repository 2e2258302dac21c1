//! The worst-receiver bound of random 50-node networks, with the time it takes.
//!
//! ```text
//! cargo run --release -p chappe-bound --example worst_receiver [-- FIRST_SEED [NETWORKS]]
//! ```
//!
//! The model: nodes uniform in 1 km by 1 km, reception probability exp(-(d / 180 m)^4), carrier
//! sense up to 460 m, 6.98 ms per frame of 1500 payload bytes (2 Mbit/s, long preamble), node 0 sends
//! to nodes 1 to 9. Networks whose nodes are not all within reach over links of p >= 0.1 are drawn
//! again.

use chappe_bound::{Medium, Network, Options, multicast};
use std::time::Instant;

fn main() {
    let arguments: Vec<u64> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let first = arguments.first().copied().unwrap_or(0);
    let networks = arguments.get(1).copied().unwrap_or(10);
    let receivers: Vec<usize> = (1..10).collect();
    let which = std::env::var("M").map_or(7, |v| v.parse().unwrap());
    for (k, medium) in [Medium::CarrierSense, Medium::OneRadio, Medium::IndependentSets].into_iter().enumerate() {
        if which >> k & 1 == 0 { continue; }
        println!("{medium:?}");
        for seed in first..first + networks {
            let network = random_network(seed);
            let started = Instant::now();
            let options = Options { medium, ..Options::default() };
            match multicast(&network, 0, &receivers, &options) {
                Ok(bound) => println!(
                    "seed {seed:3}  bound {:7.1} kbit/s  rate {:7.1} kbit/s  gap {:8.1e}  \
                     rounds {:2}  {:6.2} s",
                    bound.goodput_bps() / 1e3,
                    bound.rate_fps * bound.payload_bits / 1e3,
                    bound.gap(),
                    bound.rounds,
                    started.elapsed().as_secs_f64()
                ),
                Err(error) => println!("seed {seed:3}  {error}"),
            }
        }
    }
}

fn random_network(seed: u64) -> Network {
    let mut state = seed.wrapping_mul(0x2545_f491_4f6c_dd1d);
    let mut unit = move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((word ^ (word >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    };
    loop {
        let places: Vec<(f64, f64)> = (0..50).map(|_| (unit() * 1000.0, unit() * 1000.0)).collect();
        let distance = |a: usize, b: usize| {
            (places[a].0 - places[b].0).hypot(places[a].1 - places[b].1)
        };
        let pairs = || (0..50).flat_map(|a| (0..50).map(move |b| (a, b)));
        let delivery: Vec<f64> =
            pairs().map(|(a, b)| (-(distance(a, b) / 180.0).powi(4)).exp()).collect();
        let senses: Vec<bool> = pairs().map(|(a, b)| distance(a, b) <= 460.0).collect();
        if connected(&delivery) {
            return Network::new(delivery, vec![6.98e-3; 50], 1500, &senses)
                .expect("the model makes valid networks");
        }
    }
}

fn connected(delivery: &[f64]) -> bool {
    let mut seen = [false; 50];
    let mut open = vec![0];
    seen[0] = true;
    while let Some(from) = open.pop() {
        for to in 0..50 {
            if !seen[to] && delivery[from * 50 + to] >= 0.1 {
                seen[to] = true;
                open.push(to);
            }
        }
    }
    seen == [true; 50]
}
