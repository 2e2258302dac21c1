//! The goodput of a transfer through the link on many paths, in virtual time: nothing depends on the machine, and no cell
//! takes longer than some seconds.
//!
//! `cargo run --release -p chappe-link --example matrix [WORD...]` prints the cells whose names contain all words, for example
//! `matrix 300ms 5%` or `matrix jitter`; `matrix short` prints the twelve that the tests run. A cell is met if the transfer
//! gets 95 % of (1 - p) C for the losses that there were, and 97 % of the better of plain cubic and plain BBR (`tests/suite/air/cells.rs` says how both are
//! computed).

#[path = "../tests/suite/air/mod.rs"]
mod air;

use air::cells::{Cell, all, short};

fn main() {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
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
