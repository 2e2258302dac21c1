//! The tables that the reduced models of 802.15.4 were made from and are checked against.
//!
//! ```text
//! cargo run --release -p chappe-sim --example chip_level -- symbol-errors | fit | measured | chips
//! ```
//!
//! The simulation itself stands with the tests that hold the models to it, in `tests/suite/chip_level`.

#[path = "../../tests/suite/chip_level/cells.rs"]
mod cells;
#[path = "../../tests/suite/chip_level/compare.rs"]
mod compare;
#[path = "../../tests/suite/chip_level/modem.rs"]
mod modem;

use cells::Cell;
use chappe_sim::synchronous::Mixing;
use compare::{
    beside_measured, chip_level, draws, error, reduced, tabulated_beside_measured, tabulated_error,
};
use modem::{Modem, Receiver, stream};

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("symbol-errors") => symbol_errors(),
        Some("fit") => fit_all(),
        Some("measured") => measured(),
        Some("chips") => chips(),
        _ => {
            eprintln!("usage: chip_level symbol-errors | fit | measured | chips");
            std::process::exit(2);
        }
    }
}

/// The symbol error tables of `oqpsk.rs`: a million symbols to a point. Takes minutes.
fn symbol_errors() {
    let modem = Modem::new();
    let symbols = 1_000_000;
    for (receiver, first) in [(Receiver::Adding, -26), (Receiver::Comparing, -20)] {
        for half in first..=first + 30 {
            let db = f64::from(half) * 0.5;
            let ratio = 10f64.powf(db / 10.0);
            let mut random = stream((half + 100) as u32);
            let errors = modem.symbol_errors(receiver, ratio, symbols, &mut random);
            println!("{receiver:?} {db:.1}: {errors} of {symbols}");
        }
    }
}

/// Fits the constants on one set of cells by seeded random steps, then measures on the other. Takes minutes.
fn fit_all() {
    for receiver in [Receiver::Adding, Receiver::Comparing] {
        println!("{receiver:?}");
        fit(receiver);
    }
}

fn fit(receiver: Receiver) {
    let modem = Modem::new();
    let (mut fitted, held_out) = (Cell::fitted(), Cell::held_out());
    if receiver == Receiver::Adding {
        fitted.extend(Cell::fitted_slow());
    }
    let frames = 250;
    let truth = |cells: &[Cell], offset| -> Vec<f64> {
        let number = |n: usize| offset + n as u32;
        cells
            .iter()
            .enumerate()
            .map(|(n, cell)| chip_level(&modem, receiver, cell, frames, number(n)))
            .collect()
    };
    let fit_truth = truth(&fitted, 0);
    println!("chip level done, {} cells", fitted.len());
    let mut best = match receiver {
        Receiver::Comparing => Mixing {
            slack: 0.2,
            reach: 1.3,
            split_gain: 0.4,
            split_loss: 0.3,
            smear_loss: 1.5,
            pull: 1.0,
            turn_loss: None,
        },
        Receiver::Adding => Mixing {
            slack: 3.0,
            reach: 9.0,
            split_gain: 0.02,
            split_loss: 0.6,
            smear_loss: 1.5,
            pull: 0.5,
            turn_loss: Some(1.0),
        },
    };
    let mut score = error(&best, &fitted, &fit_truth, 50).0;
    let (mut random, trials) = (stream(9), 180);
    for trial in 0..trials {
        // Steps grow smaller from a factor of 1.6 to one of 1.05.
        let width = 0.5 * (1.0 - f64::from(trial) / f64::from(trials)) + 0.05;
        let mut moved = |value: f64| value * (random.normal() * width).exp();
        let mut tried = Mixing {
            slack: moved(best.slack),
            reach: moved(best.reach),
            split_gain: moved(best.split_gain),
            split_loss: moved(best.split_loss),
            smear_loss: moved(best.smear_loss),
            // The first fit of the comparing receiver had this from the report.
            pull: match receiver {
                Receiver::Comparing => best.pull,
                Receiver::Adding => moved(best.pull),
            },
            turn_loss: best.turn_loss.map(&mut moved),
        };
        tried.reach = tried.reach.max(tried.slack + 0.05);
        let found = error(&tried, &fitted, &fit_truth, 50).0;
        if found < score {
            (best, score) = (tried, found);
            println!("{trial}: {score:.4} {best:?}");
        }
    }
    println!(
        "fitted set: {:?} over {} cells",
        error(&best, &fitted, &fit_truth, 400),
        fitted.len()
    );
    let held_truth = truth(&held_out, 500);
    println!(
        "held out: {:?} over {} cells",
        error(&best, &held_out, &held_truth, 400),
        held_out.len()
    );
    for (cells, truth) in [(&fitted, &fit_truth), (&held_out, &held_truth)] {
        for (number, cell) in cells.iter().enumerate() {
            let model = reduced(&best, cell, &draws(cell, 400, number as u32));
            println!(
                "{:+.3} chip {:.3} model {model:.3} {cell:?}",
                model - truth[number],
                truth[number]
            );
        }
    }
}

/// The receiver that is worked out chip by chip beside the chip level over all cells, and beside the measured pairs. Nothing
/// in it was fitted. Takes a minute.
fn chips() {
    let modem = Modem::new();
    let sets = [
        ("fitted", Cell::fitted()),
        ("slow beats", Cell::fitted_slow()),
        ("held out", Cell::held_out()),
    ];
    for (name, cells) in sets {
        let of = |(n, cell): (usize, &Cell)| {
            chip_level(&modem, Receiver::Adding, cell, 250, 2000 + n as u32)
        };
        let truth: Vec<f64> = cells.iter().enumerate().map(of).collect();
        let (square, mean, most) = tabulated_error(&cells, &truth, 250);
        let n = cells.len();
        println!(
            "{name}: {n} cells, root mean square {square:.3}, mean {mean:+.3}, most {most:.3}"
        );
    }
    for octets in [16, 40, 127] {
        let found = tabulated_beside_measured(octets, 200);
        println!(
            "{octets} octets, root mean square to the measured pairs, to the chip level: {found:.3?}"
        );
    }
}

/// Both receivers beside the measured pairs, a line for each displacement. Takes half a minute.
fn measured() {
    for octets in [16, 40, 127] {
        let found = beside_measured(octets, 100);
        println!("{octets} octets, root mean square: {found:.3?}");
    }
}
