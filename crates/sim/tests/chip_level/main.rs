//! The reduced models of 802.15.4 held against a chip-level simulation of our own.

mod cells;
mod modem;

use cells::{Cell, Draw};
use chappe_sim::Oqpsk;
use chappe_sim::synchronous::{self, Group, Mixing};
use modem::{Modem, Signal, stream};

/// Prints the symbol error table of `error_curve`: a million symbols to a point.
#[test]
#[ignore = "takes minutes; prints the table"]
fn print_symbol_errors() {
    let modem = Modem::new();
    let symbols = 1_000_000;
    for half in -20..=10 {
        let db = f64::from(half) * 0.5;
        let errors = modem.symbol_errors(
            10f64.powf(db / 10.0),
            symbols,
            &mut stream((half + 100) as u32),
        );
        println!(
            "({db:.1}, {errors}), // {:.6}",
            errors as f64 / symbols as f64
        );
    }
}

/// The table in the crate is what this simulation yields: 20,000 symbols at points on and between its own.
#[test]
fn the_symbol_error_table_is_this_receivers() {
    let (modem, symbols) = (Modem::new(), 20_000);
    for (number, db) in [-8.0, -5.0, -3.25, -2.0, -0.75, 0.5]
        .into_iter()
        .enumerate()
    {
        let ratio = 10f64.powf(db / 10.0);
        let expected = Oqpsk::NoncoherentSoft.symbol_error(ratio);
        let errors = modem.symbol_errors(ratio, symbols, &mut stream(number as u32));
        let found = errors as f64 / symbols as f64;
        let deviation = (expected * (1.0 - expected) / symbols as f64).sqrt();
        assert!(
            (found - expected).abs() < 4.5 * deviation,
            "{db} {found} {expected}"
        );
    }
}

/// Whole frames, clock recovery included, survive as often as header and payload by the table: the clock costs
/// nothing that matters.
#[test]
fn frames_survive_as_their_symbols() {
    let (modem, frames) = (Modem::new(), 400);
    for (number, (octets, prr)) in [(20, 0.3), (20, 0.8), (127, 0.5)].into_iter().enumerate() {
        let ratio = Oqpsk::NoncoherentSoft.sinr_for(octets, prr).to_linear();
        let mut random = stream(20 + number as u32);
        let signal = Signal {
            amplitude: 1.0,
            offset: 3e3,
            delay: 0.0,
            phase: 1.0,
            payload: 0,
        };
        let got = (0..frames)
            .filter(|_| modem.receives(octets, &[signal], ratio, &mut random))
            .count() as f64;
        let found = got / f64::from(frames);
        // Four standard errors, and two points for the clock.
        let allowed = 4.0 * (prr * (1.0 - prr) / f64::from(frames)).sqrt() + 0.02;
        assert!((found - prr).abs() < allowed, "{octets} {prr} {found}");
    }
}

/// Ratio of frames that the chip-level receiver gets in a cell.
fn chip_level(modem: &Modem, cell: &Cell, frames: u32, number: u32) -> f64 {
    let mut random = stream(1000 + number);
    let ratio = 10f64.powf(cell.db / 10.0);
    let got = (0..frames).filter(|_| {
        let signals: Vec<Signal> = cell
            .draw(&mut random)
            .iter()
            .map(|&(power, offset, arrival, phase)| Signal {
                amplitude: power.sqrt(),
                offset,
                delay: arrival * 1e-6,
                phase,
                payload: 0,
            })
            .collect();
        modem.receives(cell.octets, &signals, ratio, &mut random)
    });
    got.count() as f64 / f64::from(frames)
}

/// What the model says about draws of a cell.
fn reduced(mixing: &Mixing, cell: &Cell, draws: &[Draw]) -> f64 {
    let noise = 10f64.powf(-cell.db / 10.0);
    let success = draws.iter().map(|draw| {
        let signals: Vec<synchronous::Signal> = draw
            .iter()
            .map(|&(power, offset, arrival, phase)| synchronous::Signal {
                power,
                offset,
                arrival,
                phase,
            })
            .collect();
        Group::new(mixing, &signals).success(Oqpsk::NoncoherentSoft, cell.octets, noise)
    });
    success.sum::<f64>() / draws.len() as f64
}

fn draws(cell: &Cell, count: usize, number: u32) -> Vec<Draw> {
    let mut random = stream(50_000 + number);
    (0..count).map(|_| cell.draw(&mut random)).collect()
}

/// Root of the mean squared difference over cells, and the mean difference.
fn error(mixing: &Mixing, cells: &[Cell], truth: &[f64], count: usize) -> (f64, f64) {
    let differences: Vec<f64> = cells
        .iter()
        .enumerate()
        .map(|(number, cell)| {
            reduced(mixing, cell, &draws(cell, count, number as u32)) - truth[number]
        })
        .collect();
    let n = differences.len() as f64;
    let squares: f64 = differences.iter().map(|d| d * d).sum();
    ((squares / n).sqrt(), differences.iter().sum::<f64>() / n)
}

/// Fits the constants on one set of cells by seeded random steps, then measures on the other.
#[test]
#[ignore = "takes minutes; prints the fit"]
fn print_fit() {
    let modem = Modem::new();
    let (fitted, held_out) = (Cell::fitted(), Cell::held_out());
    let frames = 250;
    let truth = |cells: &[Cell], offset| -> Vec<f64> {
        let number = |n: usize| offset + n as u32;
        cells
            .iter()
            .enumerate()
            .map(|(n, cell)| chip_level(&modem, cell, frames, number(n)))
            .collect()
    };
    let fit_truth = truth(&fitted, 0);
    println!("chip level done, {} cells", fitted.len());
    let mut best = Mixing {
        slack: 0.2,
        reach: 1.3,
        split_gain: 0.4,
        split_loss: 0.3,
        smear_loss: 1.5,
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

/// The model on every third of the cells that it was not fitted on, with new frames and draws.
#[test]
fn the_model_holds_where_it_was_not_fitted() {
    let modem = Modem::new();
    let cells: Vec<Cell> = Cell::held_out().into_iter().step_by(3).collect();
    let frames = 100;
    let truth: Vec<f64> = cells
        .iter()
        .enumerate()
        .map(|(number, cell)| chip_level(&modem, cell, frames, 900 + number as u32))
        .collect();
    let (root_mean_square, bias) = error(&Mixing::FITTED, &cells, &truth, 200);
    println!("root mean square {root_mean_square:.3}, mean {bias:+.3}");
    // 0.078 over all cells with 250 frames each; a hundred frames add up to 0.05 of chance.
    assert!(root_mean_square < 0.09 && bias.abs() < 0.06);
    // Cells that lose nothing, or everything, would prove nothing.
    assert!(truth.iter().any(|&prr| prr > 0.95) && truth.iter().any(|&prr| prr < 0.65));
}
