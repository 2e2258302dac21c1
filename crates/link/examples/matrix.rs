//! The goodput of a transfer through the link on many paths, in virtual time: nothing depends on the machine, and no cell
//! takes longer than some seconds.
//!
//! `cargo run --release -p chappe-link --example matrix [WORD...]` prints the cells whose names contain all words, for example
//! `matrix 300ms 5%` or `matrix jitter`; `matrix short` prints the twelve that the tests run. `matrix seeds=3` measures each cell
//! with three seeds, and judges the mean. A cell is met if the transfer
//! gets 95 % of (1 - p) C for the losses that there were, and 97 % of the better of plain cubic and plain BBR (`tests/suite/air/cells.rs` says how both are
//! computed).

#[path = "../tests/suite/air/mod.rs"]
mod air;

use air::cells::{Cell, Row, all, short};

fn main() {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let seeds =
        (words.iter().position(|word| word.starts_with("seeds="))).map(|at| words.remove(at));
    let seeds = seeds.and_then(|word| word["seeds=".len()..].parse().ok());
    let quick = words.iter().position(|word| word == "short");
    let cells = match quick {
        Some(at) => {
            words.remove(at);
            short()
        }
        None => all(),
    };
    let named = |cell: &Cell| words.iter().all(|word| cell.name.contains(word.as_str()));
    let cells: Vec<Cell> = cells.into_iter().filter(named).collect();
    if let Some(seeds) = seeds {
        return judge_means(&cells, seeds);
    }
    println!(
        "{:36} | Mbit/s  of (1-p)C |  cubic    BBR | frames for a new one (least): again repair fill |  pace | ping ms mean, 95 %, lost | verdict",
        "path"
    );
    let mut met = 0;
    for cell in &cells {
        let row = cell.measure(1);
        met += usize::from(row.is_met());
        println!("{row}");
    }
    println!("{met} of {} cells met", cells.len());
}

/// Prints the mean and the least share of each cell over some seeds, and whether the mean meets the goal.
fn judge_means(cells: &[Cell], seeds: u64) {
    println!("{:36} | of (1-p)C: mean, least | verdict", "path");
    let mut met = 0;
    for cell in cells {
        let rows: Vec<Row> = (1..=seeds).map(|seed| cell.measure(seed)).collect();
        let mean = |of: fn(&Row) -> f64| rows.iter().map(of).sum::<f64>() / seeds as f64;
        let least = rows.iter().map(Row::share).fold(f64::MAX, f64::min);
        let is_met = mean(Row::of_goal) >= 1.0;
        met += usize::from(is_met);
        println!(
            "{:36} | {:14.1} {:6.1} % | {}",
            cell.name,
            mean(Row::share) * 100.0,
            least * 100.0,
            if is_met { "met" } else { "NOT MET" }
        );
    }
    println!(
        "{met} of {} cells met by the mean of {seeds} seeds",
        cells.len()
    );
}
