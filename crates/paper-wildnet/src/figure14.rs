//! Figure 14: delay over the length of a slot and loss, 1 Mbit/s over 60 km (4.5).

use chappe_core::Duration;
use chappe_lab::context::{line, summary};
use chappe_lab::run::RunError;
use chappe_results::figure::{Claim, Figure};
use chappe_wildnet::{Recovery, Service};

use crate::context::{FigureContext, Runs};
use crate::panel::{delay, lines};
use chappe_lab_wildnet::scheme::{Load, Scheme, SlotForm};
use chappe_lab_wildnet::trial::Trial;

/// Shares of frames lost.
const LOSSES: [f64; 5] = [0.0, 0.1, 0.2, 0.3, 0.5];
/// Mean delays in order of an independent model, in ms, by length of the slot in ms and by loss.
const REFERENCE: [(u64, [f64; 5]); 6] = [
    (5, [4.0, 5.0, 7.0, 10.0, 21.0]),
    (10, [5.0, 9.0, 14.0, 20.0, 49.0]),
    (20, [8.0, 17.0, 32.0, 51.0, 125.0]),
    (40, [14.0, 44.0, 84.0, 128.0, 308.0]),
    (60, [20.0, 77.0, 147.0, 235.0, 528.0]),
    (100, [31.0, 155.0, 313.0, 504.0, 1014.0]),
];

pub fn make(context: &FigureContext<'_>) -> Result<Figure, RunError> {
    let rows: Vec<(u64, [f64; 5])> = match context.quick() {
        true => REFERENCE[1..4].to_vec(),
        false => REFERENCE.to_vec(),
    };
    let scheme = |slot, improved: bool| Scheme::Slots {
        form: SlotForm::Even,
        slot: Duration::from_millis(slot),
        recovery: match improved {
            true => Recovery::Improved { fill: true },
            false => Recovery::Acks,
        },
        service: match improved {
            true => Service::RELIABLE,
            false => Service::retries(None),
        },
    };
    let over = |loss, improved| {
        let trials: Vec<Trial> = rows
            .iter()
            .map(|&(slot, _)| Trial {
                scheme: scheme(slot, improved),
                km: 60.0,
                loss,
                load: Load::Steady(1e6),
                both: false,
                time: context.time(),
            })
            .collect();
        context.measure(&trials)
    };
    let paper: Vec<Vec<Runs>> = LOSSES
        .iter()
        .map(|&loss| over(loss, false))
        .collect::<Result<_, _>>()?;
    let ours: Vec<Vec<Runs>> = LOSSES
        .iter()
        .map(|&loss| over(loss, true))
        .collect::<Result<_, _>>()?;
    let places: Vec<String> = rows.iter().map(|(slot, _)| format!("{slot} ms")).collect();
    let series = |runs: &[Vec<Runs>]| {
        LOSSES
            .iter()
            .zip(runs)
            .map(|(loss, runs)| line(&format!("{:.0} % lost", loss * 100.0), runs, delay))
            .collect::<Vec<_>>()
    };
    let mean = |runs: &Vec<Vec<Runs>>, of: usize, at: usize| summary(&runs[of][at], delay).mean;
    let mut off = Vec::new();
    for (at, (_, reference)) in rows.iter().enumerate() {
        for (of, expected) in reference.iter().enumerate() {
            off.push(100.0 * (mean(&paper, of, at) / expected - 1.0).abs());
        }
    }
    let within = off.iter().filter(|off| **off <= 20.0).count();
    let at_20 = rows.iter().position(|row| row.0 == 20).unwrap_or(0);
    let (before, after) = (mean(&paper, 3, at_20), mean(&ours, 3, at_20));
    let grows = (0..LOSSES.len())
        .all(|of| (1..rows.len()).all(|at| mean(&paper, of, at) > mean(&paper, of, at - 1)));
    Ok(Figure {
        id: "figure14",
        title: "delay over the length of a slot: 1 Mbit/s, 60 km, unlimited retransmissions".into(),
        claims: vec![
            Claim::value(
                "delay grows with the length of the slot at every loss",
                None,
                f64::from(u8::from(grows)),
                rows.len(),
                "",
                grows,
            ),
            Claim::count(
                "mean delays lie within 20 % of an independent model's",
                None,
                within,
                off.len(),
                within == off.len(),
            )
            .because(|| {
                format!(
                    "the largest difference is {:.0} %",
                    off.iter().copied().fold(0.0, f64::max)
                )
            }),
            Claim::value(
                "the improved variant fills unused slot time with repairs, which more than halves the delay at 30 % loss and 20 ms: ms saved",
                None,
                before - after,
                paper[3][at_20].len(),
                "ms",
                after < before / 2.0,
            ),
        ],
        panels: vec![
            lines(
                "14a",
                "WiLDNet: mean delay in order",
                "ms",
                ("slot", places.clone()),
                series(&paper),
                Vec::new(),
            ),
            lines(
                "14b",
                "improved: mean delay, in order within each flow",
                "ms",
                ("slot", places),
                series(&ours),
                Vec::new(),
            ),
        ],
        notes: vec![],
    })
}
