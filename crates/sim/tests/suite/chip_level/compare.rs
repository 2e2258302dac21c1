//! The reduced models and the measurements beside the chip-level simulation.
#![allow(dead_code, reason = "the tests and the example use different parts")]

use chappe_sim::Oqpsk;
use chappe_sim::chips::Chorus;
use chappe_sim::synchronous::{self, Group, Mixing};

use super::cells::{Cell, Draw};
use super::modem::{Modem, Receiver, Signal, stream};

/// The crate's name for a receiver.
pub fn name(receiver: Receiver) -> Oqpsk {
    match receiver {
        Receiver::Comparing => Oqpsk::NoncoherentSoft,
        Receiver::Adding => Oqpsk::SymbolSoft,
    }
}

/// And its constants for synchronous transmitters.
pub fn mixing(receiver: Receiver) -> Mixing {
    match receiver {
        Receiver::Comparing => Mixing::FITTED,
        Receiver::Adding => Mixing::ADDING,
    }
}

pub const RECEIVERS: [Receiver; 2] = [Receiver::Comparing, Receiver::Adding];

/// Ratio of frames that the chip-level receiver gets in a cell.
pub fn chip_level(modem: &Modem, receiver: Receiver, cell: &Cell, frames: u32, number: u32) -> f64 {
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
        modem.receives(receiver, cell.octets, &signals, ratio, &mut random)
    });
    got.count() as f64 / f64::from(frames)
}

/// What the model says about draws of a cell.
pub fn reduced(mixing: &Mixing, cell: &Cell, draws: &[Draw]) -> f64 {
    let oqpsk = match mixing.turn_loss {
        None => Oqpsk::NoncoherentSoft,
        Some(_) => Oqpsk::SymbolSoft,
    };
    let noise = 10f64.powf(-cell.db / 10.0);
    let success = draws
        .iter()
        .map(|draw| Group::new(mixing, &signals(draw)).success(oqpsk, cell.octets, noise));
    success.sum::<f64>() / draws.len() as f64
}

/// The signals of a draw, as the reduced receivers take them.
fn signals(draw: &Draw) -> Vec<synchronous::Signal> {
    let signal = |&(power, offset, arrival, phase): &_| synchronous::Signal {
        power,
        offset,
        arrival,
        phase,
    };
    draw.iter().map(signal).collect()
}

/// What the receiver that is worked out chip by chip says about draws of a cell.
pub fn tabulated(cell: &Cell, draws: &[Draw]) -> f64 {
    let noise = 10f64.powf(-cell.db / 10.0);
    let success = draws.iter().enumerate().map(|(number, draw)| {
        Chorus::new(&signals(draw)).success(number as u64, cell.octets, noise)
    });
    success.sum::<f64>() / draws.len() as f64
}

/// Root mean square, mean and greatest difference of [`tabulated`] from the chip level over cells.
pub fn tabulated_error(cells: &[Cell], truth: &[f64], count: usize) -> (f64, f64, f64) {
    let differences: Vec<f64> = cells
        .iter()
        .zip(truth)
        .enumerate()
        .map(|(number, (cell, truth))| {
            let found = tabulated(cell, &draws(cell, count, number as u32));
            if (found - truth).abs() > 0.1 {
                println!("{found:.3} for {truth:.3}: {cell:?}");
            }
            found - truth
        })
        .collect();
    let n = differences.len() as f64;
    let squares: f64 = differences.iter().map(|d| d * d).sum();
    let most = differences
        .iter()
        .fold(0.0, |most: f64, d| most.max(d.abs()));
    (
        (squares / n).sqrt(),
        differences.iter().sum::<f64>() / n,
        most,
    )
}

/// [`tabulated`] beside the measured pairs: the root mean square difference over 24 cells, and from the chip level.
pub fn tabulated_beside_measured(octets: usize, frames: u32) -> Option<(f64, f64)> {
    let text = measurements()?;
    let (modem, mut squares) = (Modem::new(), [0.0f64; 2]);
    for ticks in [0, 2, 4, 8] {
        let mut line = String::new();
        for db in 0..=5 {
            let (mut ours, mut chips) = (0.0, 0.0);
            for frame in 0..frames {
                let signals = measured_pair(frame, ticks, db);
                let mut random = stream(20_000 + frame);
                let receiver = Receiver::Adding;
                let whole = modem.receives(receiver, octets, &signals, 2e3, &mut random);
                chips += f64::from(whole) / f64::from(frames);
                let signals = signals.map(|signal| synchronous::Signal {
                    power: signal.amplitude.powi(2),
                    offset: signal.offset,
                    arrival: signal.delay * 1e6,
                    phase: signal.phase,
                });
                ours +=
                    Chorus::new(&signals).success(frame.into(), octets, 5e-4) / f64::from(frames);
            }
            let seen = measured(&text, ticks, db);
            line += &format!(" {seen:.2}/{ours:.2}/{chips:.2}");
            squares[0] += (ours - seen).powi(2) / 24.0;
            squares[1] += (ours - chips).powi(2) / 24.0;
        }
        println!("{octets} octets, {} ns:{line}", f64::from(ticks) * 62.5);
    }
    Some((squares[0].sqrt(), squares[1].sqrt()))
}

/// The measured ratio of a pair whose second frame is `ticks` later and `db` weaker.
fn measured(text: &str, ticks: u32, db: u32) -> f64 {
    let wanted = format!("0,1,{ticks},");
    let rows = text.lines().filter(|line| line.starts_with(&wanted));
    let mut row = rows.map(|line| line.split(',').collect::<Vec<_>>());
    let found = row.find(|row| row[4].parse() == Ok(db));
    found.and_then(|row| row[8].parse().ok()).expect("a row")
}

fn measurements() -> Option<String> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../shared/data/st-phy-replication/prr_symmetric.csv"
    );
    let text = std::fs::read_to_string(path).ok();
    if text.is_none() {
        chappe_testkit::skip("the measurements are not there");
    }
    text
}

pub fn draws(cell: &Cell, count: usize, number: u32) -> Vec<Draw> {
    let mut random = stream(50_000 + number);
    (0..count).map(|_| cell.draw(&mut random)).collect()
}

/// Root of the mean squared difference over cells, and the mean difference.
pub fn error(mixing: &Mixing, cells: &[Cell], truth: &[f64], count: usize) -> (f64, f64) {
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

/// Root mean square differences of both receivers from the measured ratios, 0 to 5 dB and 0 to 0.5 us apart, at 33 dB.
pub fn beside_measured(octets: usize, frames: u32) -> Option<[f64; 2]> {
    let text = measurements()?;
    let (modem, mut squares) = (Modem::new(), [0.0; 2]);
    for ticks in [0, 2, 4, 8] {
        let mut line = String::new();
        for db in 0..=5 {
            let mut got = [0.0; 2];
            for frame in 0..frames {
                let signals = measured_pair(frame, ticks, db);
                for (got, receiver) in got.iter_mut().zip(RECEIVERS) {
                    let mut random = stream(20_000 + frame);
                    let whole = modem.receives(receiver, octets, &signals, 2e3, &mut random);
                    *got += f64::from(whole) / f64::from(frames);
                }
            }
            let seen = measured(&text, ticks, db);
            line += &format!(" {seen:.2}/{:.2}/{:.2}", got[0], got[1]);
            squares = [0, 1].map(|n| squares[n] + (got[n] - seen).powi(2));
        }
        println!("{octets} octets, {} ns:{line}", f64::from(ticks) * 62.5);
    }
    Some(squares.map(|sum: f64| (sum / 24.0).sqrt()))
}

/// One frame of the experiment: carriers of one of its two pairs apart, powers reported in whole dB, either first.
fn measured_pair(frame: u32, ticks: u32, db: u32) -> [Signal; 2] {
    let mut random = stream(40_000 + frame);
    let lower = f64::from(db) + random.fraction() + random.fraction() - 1.0;
    let late = f64::from(ticks) / 16.0 * 1e-6;
    let phase = std::f64::consts::TAU * random.fraction();
    let (first, second) = if random.chance(0.5) {
        (0.0, late)
    } else {
        (late, 0.0)
    };
    let signal = |db: f64, offset, delay, phase| Signal {
        amplitude: 10f64.powf(db / 20.0),
        offset,
        delay,
        phase,
        payload: 0,
    };
    let apart = if frame.is_multiple_of(2) {
        2170.0
    } else {
        1330.0
    };
    [
        signal(0.0, 0.0, first, 0.0),
        signal(-lower, apart, second, phase),
    ]
}
