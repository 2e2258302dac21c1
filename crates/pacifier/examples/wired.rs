//! Tables of transfers on the networks of `chappe cast`: time and transmissions beside the least that any batch code
//! needs with a source alone. The first table compares Pacifier and the improved variant; the others delay the improved
//! variant's frames at their listeners.
//!
//! `cargo run --release -p chappe-pacifier --example wired`

#[path = "../tests/suite/common/mod.rs"]
mod common;

use chappe_core::Duration;
use common::graph;
use common::wired::{carry, carry_late, improved, least, pacifier, star};

fn main() {
    transfers();
    late();
    busy();
}

/// 5 MB to hosts with separate segments, and over one shared channel.
fn transfers() {
    let chain = graph(4, &[(0, 1, 0.7), (1, 2, 0.7), (2, 3, 0.7)]);
    let cases = [
        ("star 1, 30 %", star(1, 0.7), vec![1], least(1, 0.7)),
        ("star 3, 10 %", star(3, 0.9), vec![1, 2, 3], least(3, 0.9)),
        (
            "star 10, 10 %",
            star(10, 0.9),
            (1..11).collect(),
            least(10, 0.9),
        ),
        (
            "star 10, 30 %",
            star(10, 0.7),
            (1..11).collect(),
            least(10, 0.7),
        ),
        ("chain 3, 30 %", chain, vec![3], 3.0 / 0.7),
    ];
    for shared in [false, true] {
        for (name, links, receivers, least) in &cases {
            for (variant, config) in [("Pacifier", pacifier()), ("improved", improved())] {
                for seed in 0..3 {
                    let got = carry(&config, (links, receivers), shared, 5_000_000, seed);
                    let seconds = got.seconds.unwrap_or(f64::NAN);
                    let medium = if shared { "shared" } else { "separate" };
                    println!(
                        "{medium:8} {name:13} {variant}, seed {seed}: {seconds:6.2} s, a source alone {:.2} s; \
                         transmissions x{:.2}, least x{least:.2}, source x{:.2}; heard for each gain {:.2}; {} reports",
                        got.floor,
                        got.redundancy,
                        got.source_redundancy,
                        got.heard_per_gain,
                        got.reports.iter().sum::<u64>(),
                    );
                }
            }
        }
    }
}

/// Frames that spend 0 to 100 ms in queues.
fn late() {
    let chain = graph(4, &[(0, 1, 0.7), (1, 2, 0.7), (2, 3, 0.7)]);
    let cases = [
        ("star 3, 10 %", star(3, 0.9), (1..4).collect()),
        ("star 10, 10 %", star(10, 0.9), (1..11).collect()),
        ("star 10, 30 %", star(10, 0.7), (1..11).collect()),
        ("chain 3, 30 %", chain, vec![3]),
    ];
    for (name, links, receivers) in &cases {
        let receivers: &Vec<u16> = receivers;
        for millis in [0, 2, 10, 30, 100] {
            for seed in 0..3 {
                let late = (false, Duration::from_millis(millis), Duration::ZERO);
                let got = carry_late(&improved(), (links, receivers), late, 2_000_000, seed);
                println!(
                    "{name}, {millis:3} ms, seed {seed}: {:6.2} s, a source alone {:.2} s; transmissions x{:.2}, source x{:.2}; \
                     {} reports",
                    got.seconds.unwrap_or(f64::NAN),
                    got.floor,
                    got.redundancy,
                    got.source_redundancy,
                    got.reports.iter().sum::<u64>(),
                );
            }
        }
    }
}

/// Hosts that take 0 to 600 us for each frame.
fn busy() {
    let (links, to) = (star(10, 0.9), (1..11).collect::<Vec<u16>>());
    for micros in [0, 100, 200, 300, 400, 450, 500, 600] {
        for seed in 0..2 {
            let latency = Duration::from_millis(2);
            let late = (false, latency, Duration::from_micros(micros));
            let got = carry_late(&improved(), (&links, &to), late, 2_000_000, seed);
            println!(
                "{micros:3} us for a frame, seed {seed}: {:.2} s; transmissions x{:.2}",
                got.seconds.unwrap_or(f64::NAN),
                got.redundancy
            );
        }
    }
}
