//! How equally eight flows of TCP share a link, in virtual time.
//!
//! `cargo run --release -p chappe-link --example fairness [seeds=N] [first=N] [flows=N] [WORD...]` prints, for paths whose names contain all words, the
//! least and mean Jain index of some seeds (three, from 1), the least rate of a flow as a share of the mean, and what all got of (1 - p) C. The flows are
//! cubic and repeat what the link's queue drops (`tests/suite/air/flow.rs`). They begin together; a quarter of the time does not count.

#[path = "../tests/suite/air/mod.rs"]
mod air;

use chappe_testkit::Words;

use air::cells::Cell;
use air::fairness::{self, Fairness};

/// The least Jain index that is asked for.
const JAIN: f64 = 0.95;

fn main() {
    let mut words = Words::of_process("fairness [seeds=N] [first=N] [flows=N] [WORD...]");
    let seeds = words.key("seeds=").unwrap_or(3u64).max(1);
    let first = words.key("first=").unwrap_or(1u64);
    let flows = words.key("flows=").unwrap_or(fairness::FLOWS);
    let names = words.rest();
    let mut cells = Vec::new();
    for rate in [1, 6, 100] {
        for round_trip in [2, 20, 100, 300, 600] {
            for loss in [0, 5, 15, 30] {
                cells.push(Cell::new(rate, round_trip, loss));
                cells.push(Cell::new(rate, round_trip, loss).found());
            }
        }
    }
    cells.retain(|cell| names.iter().all(|word| cell.name.contains(word.as_str())));
    if cells.is_empty() {
        words.refuse(&names.join(" "), "names no path");
    }
    println!(
        "{:28} | Jain, least, mean | least flow of mean | all of (1-p)C | timeouts, spurious",
        "path"
    );
    let mut met = 0;
    for cell in &cells {
        let runs: Vec<Fairness> = (first..first + seeds)
            .map(|seed| fairness::of(cell, seed, flows))
            .collect();
        let jain = runs.iter().map(Fairness::jain).fold(1.0, f64::min);
        let mean = runs.iter().map(Fairness::jain).sum::<f64>() / runs.len() as f64;
        let least = runs.iter().map(|run| {
            let mean = run.rates.iter().sum::<f64>() / run.rates.len() as f64;
            run.rates.iter().copied().fold(f64::MAX, f64::min) / mean
        });
        let share = runs.iter().map(|run| run.share).sum::<f64>() / runs.len() as f64;
        met += usize::from(jain >= JAIN);
        println!(
            "{:28} | {jain:11.3} {mean:5.3} | {:16.0} % | {:11.1} % | {:8} {:8}{}",
            cell.name,
            least.fold(1.0, f64::min) * 100.0,
            share * 100.0,
            runs.iter().map(|run| run.timeouts.0).sum::<u64>(),
            runs.iter().map(|run| run.timeouts.1).sum::<u64>(),
            if jain >= JAIN { "" } else { "  NOT MET" },
        );
    }
    println!(
        "{met} of {} paths have {JAIN} in each of {seeds} runs",
        cells.len()
    );
}
