//! One transfer over two paths, in virtual time: nothing depends on the machine.
//!
//! `cargo run --release -p chappe-link --example bonding` prints for each pair of paths what one TCP flow gets of the sum of their
//! bounds (1 - p) C, with given rates and with rates that the link finds, over three seeds; and then how long it waits when one of
//! two paths is cut.

#[path = "../tests/suite/air/mod.rs"]
mod air;

use air::Air;
use air::pairs::{PAIRS, gap, path, paths, share};

const SEEDS: u64 = 3;

fn main() {
    println!("Mbit/s      ms         loss %    jitter | given: least, mean | found: least, mean");
    for &pair in PAIRS {
        let columns = [true, false].map(|told| {
            let airs = paths(pair).map(|air| Air { told, ..air });
            let shares = (1..=SEEDS).map(|seed| share(&airs, seed) * 100.0);
            let shares: Vec<f64> = shares.collect();
            let least = shares.iter().copied().fold(f64::MAX, f64::min);
            format!(
                "{least:5.1} {:5.1}",
                shares.iter().sum::<f64>() / SEEDS as f64
            )
        });
        let (rates, round_trips, losses, jitter) = pair;
        let of = |values: [u64; 2]| format!("{} + {}", values[0], values[1]);
        println!(
            "{:11} {:10} {:9} {jitter:6} | {:>18} | {:>18}",
            of(rates.map(|rate| rate / 1000)),
            of(round_trips),
            of(losses),
            columns[0],
            columns[1],
        );
    }
    println!();
    println!(
        "10 + 10 Mbit/s, 20 + 60 ms, cut  | loss % | wait in ms: median, most of 20 | round trip left"
    );
    for loss in [0.0, 0.05] {
        for cut in 0..2 {
            for (directions, name) in [
                ([true, true], "both ways"),
                ([true, false], "way out"),
                ([false, true], "way back"),
            ] {
                let airs = [20, 60].map(|round_trip| path(10_000, round_trip, loss));
                let runs = (0..20).map(|seed| gap(&airs, cut, directions, 4_000 + seed * 7, seed));
                let runs: Vec<(f64, f64)> = runs.collect();
                let mut waits: Vec<f64> = runs.iter().map(|run| run.0 * 1e3).collect();
                waits.sort_by(f64::total_cmp);
                let left = runs.iter().map(|run| run.1).sum::<f64>() * 1e3 / runs.len() as f64;
                println!(
                    "the path of {} ms, {name:16} | {:6.0} | {:14.0} {:15.0} | {left:15.1}",
                    [20, 60][cut],
                    loss * 100.0,
                    waits[waits.len() / 2],
                    waits.last().copied().unwrap_or_default(),
                );
            }
        }
    }
}
