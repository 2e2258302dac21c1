//! The worst-receiver bound of random 50-node networks, with the time it takes.
//!
//! ```text
//! cargo run --release -p chappe-bound --example worst_receiver [-- FIRST_SEED [NETWORKS]]
//! ```
//!
//! The model: nodes uniform in 1 km by 1 km, reception probability exp(-(d / 180 m)^4), carrier
//! sense up to 460 m, 6.98 ms per frame of 1500 payload bytes (2 Mbit/s, long preamble), node 0 sends
//! to nodes 1 to 9. Networks that are not connected over links of p >= 0.1 are drawn again.
//!
//! Columns, all in kbit/s: the bound on the worst receiver under each assumption about the medium;
//! the best single receiver; the mean bound, cheap and exact; what flooding (everyone repeats
//! everything once) carries to the worst receiver in the fluid limit. Behind the first bound its gap
//! and the seconds it took.

use chappe_bound::{
    Bound, Error, Medium, Network, Options, fluid_rate, mean_bound_cheap, mean_bound_exact,
    multicast, single_receivers,
};
use chappe_testkit::{SplitMix64, Words};
use std::time::Instant;

const NODES: usize = 50;

fn main() -> Result<(), Error> {
    let mut words = Words::of_process("worst_receiver [FIRST_SEED [NETWORKS]]");
    let mut number = |usual: u64| words.next("number").unwrap_or(usual);
    let (first, networks) = (number(0), number(5));
    words.end();
    println!(
        "seed  degree  sense     gap      s   radio      s    sets      s    \
         best   cheap   exact  programs      s   flood      s"
    );
    for seed in first..first + networks {
        row(seed)?;
    }
    Ok(())
}

fn row(seed: u64) -> Result<(), Error> {
    let network = random_network(seed)?;
    let receivers: Vec<usize> = (1..10).collect();
    let solve = |medium| {
        let options = Options {
            medium,
            ..Options::default()
        };
        timed(|| multicast(&network, 0, &receivers, &options))
    };
    let kbps = |bound: &Bound| bound.goodput_bps() / 1e3;
    let (sense, sense_s) = solve(Medium::CarrierSense)?;
    let degree = (0..NODES * NODES)
        .map(|pair| network.delivery(pair / NODES, pair % NODES))
        .sum::<f64>()
        / NODES as f64;
    print!(
        "{seed:4}  {degree:6.1} {:6.1} {:7.0e} {sense_s:6.2}",
        kbps(&sense),
        sense.gap()
    );
    let (radio, radio_s) = solve(Medium::OneRadio)?;
    let (sets, sets_s) = solve(Medium::IndependentSets)?;
    print!(
        "  {:6.1} {radio_s:6.2}  {:6.1} {sets_s:6.2}",
        kbps(&radio),
        kbps(&sets)
    );
    let singles = single_receivers(&network, 0, &receivers, &Options::default())?;
    let best = singles.iter().map(kbps).fold(0.0, f64::max);
    let cheap = mean_bound_cheap(&singles, Some(&sense));
    let (exact, exact_s) =
        timed(|| mean_bound_exact(&network, 0, &receivers, &Options::default()))?;
    let (flood, flood_s) = timed(|| fluid_rate(&network, &[1.0; NODES], 0, &receivers))?;
    println!(
        "  {best:6.1}  {:6.1}  {:6.1}  {:8} {exact_s:6.2}  {:6.1} {flood_s:6.2}",
        cheap.goodput_bps() / 1e3,
        exact.goodput_bps() / 1e3,
        exact.programs,
        flood.goodput_bps() / 1e3,
    );
    Ok(())
}

fn timed<T>(work: impl FnOnce() -> Result<T, Error>) -> Result<(T, f64), Error> {
    let started = Instant::now();
    work().map(|done| (done, started.elapsed().as_secs_f64()))
}

fn random_network(seed: u64) -> Result<Network, Error> {
    let mut random = SplitMix64(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
    loop {
        let places: Vec<(f64, f64)> = (0..NODES)
            .map(|_| (random.unit() * 1000.0, random.unit() * 1000.0))
            .collect();
        let distance = |pair: usize| {
            let (a, b) = (places[pair / NODES], places[pair % NODES]);
            (a.0 - b.0).hypot(a.1 - b.1)
        };
        let delivery: Vec<f64> = (0..NODES * NODES)
            .map(|pair| (-(distance(pair) / 180.0).powi(4)).exp())
            .collect();
        let sensing: Vec<f64> = (0..NODES * NODES)
            .map(|pair| f64::from(u8::from(distance(pair) <= 460.0)))
            .collect();
        if connected(&delivery) {
            return Network::new(delivery, vec![6.98e-3; NODES], 1500, sensing);
        }
    }
}

fn connected(delivery: &[f64]) -> bool {
    let mut seen = [false; NODES];
    let mut open = vec![0];
    seen[0] = true;
    while let Some(from) = open.pop() {
        for to in 0..NODES {
            if !seen[to] && delivery[from * NODES + to] >= 0.1 {
                seen[to] = true;
                open.push(to);
            }
        }
    }
    seen == [true; NODES]
}
