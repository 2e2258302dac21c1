//! How long a download of 8 MB takes from its first packet on, in virtual time: nothing depends on the machine.
//!
//! `cargo run --release -p chappe-link --example starts [SEEDS]` prints for each round trip and loss ratio of a path of 10 Mbit/s the
//! seconds that it takes, mean and most of three seeds, beside what (1 - p) C would take: with a TCP window that never runs
//! out, with BBR's, and each with the rate given and found.

#[path = "../tests/suite/air/mod.rs"]
mod air;

use chappe_testkit::Words;

use air::starts::Start;

fn main() {
    let mut words = Words::of_process("starts [SEEDS]");
    let seeds: u64 = words.next("number of seeds").unwrap_or(3);
    words.end();
    println!("mean and most of {seeds} seeds, in seconds");
    println!("   ms  loss  least | given, window | given, BBR    | found, window | found, BBR");
    for round_trip in [20, 100, 300, 600] {
        for loss in [0.0, 0.02, 0.15, 0.3] {
            let columns = [(true, false), (true, true), (false, false), (false, true)];
            let columns = columns.map(|(told, bbr)| {
                let start = Start {
                    round_trip,
                    loss,
                    told,
                    bbr,
                };
                let (mean, most) = start.mean(seeds);
                format!("{mean:6.2} {most:6.2}")
            });
            let start = Start {
                round_trip,
                loss,
                told: true,
                bbr: false,
            };
            println!(
                "{round_trip:5} {:4.0}% {:6.2} | {}",
                loss * 100.0,
                start.least(),
                columns.join(" | ")
            );
        }
    }
}
