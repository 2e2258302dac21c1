//! Figure 12: delay and loss by the limit of retransmissions, 1 Mbit/s over 60 km (4.4).

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
const LOSSES: [f64; 3] = [0.1, 0.3, 0.5];
/// Mean delays in order of an independent model: (index of the loss, retries, mean in ms).
const REFERENCE: [(usize, u8, f64); 8] = [
    (1, 0, 18.0),
    (1, 1, 34.0),
    (1, 2, 44.0),
    (1, 3, 48.0),
    (1, 6, 51.0),
    (2, 0, 23.0),
    (2, 3, 89.0),
    (2, 6, 114.0),
];

pub fn make(context: &FigureContext<'_>) -> Result<Figure, RunError> {
    let retries: &[u8] = match context.quick() {
        true => &[0, 1, 3],
        false => &[0, 1, 2, 3, 6, 10],
    };
    let over = |loss| {
        let trials: Vec<Trial> = retries
            .iter()
            .map(|&retries| Trial {
                scheme: Scheme::Slots {
                    form: SlotForm::Even,
                    slot: Duration::from_millis(20),
                    recovery: Recovery::Acks,
                    service: Service::retries(Some(retries)),
                },
                km: 60.0,
                loss,
                load: Load::Steady(1e6),
                both: false,
                time: context.time(),
            })
            .collect();
        context.measure(&trials)
    };
    let runs: Vec<Vec<Runs>> = LOSSES
        .iter()
        .map(|&loss| over(loss))
        .collect::<Result<_, _>>()?;
    let names = LOSSES.map(|loss| format!("{:.0} % lost", loss * 100.0));
    let places: Vec<String> = retries.iter().map(u8::to_string).collect();
    let residual = |measured: &chappe_lab_wildnet::experiment::Measured| 100.0 * measured.residual;
    let series = |value: fn(&chappe_lab_wildnet::experiment::Measured) -> f64| {
        names
            .iter()
            .zip(&runs)
            .map(|(name, runs)| line(name, runs, value))
            .collect()
    };
    let mut claims = Vec::new();
    for (of, name) in names.iter().enumerate() {
        let left: Vec<f64> = runs[of]
            .iter()
            .map(|runs| summary(runs, residual).mean)
            .collect();
        let expected: Vec<f64> = retries
            .iter()
            .map(|&n| 100.0 * LOSSES[of].powi(i32::from(n) + 1))
            .collect();
        let off = left
            .iter()
            .zip(&expected)
            .map(|(left, expected)| (left - expected).abs())
            .fold(0.0, f64::max);
        claims.push(Claim::value(
            &format!("{name}: with n retransmissions, p^(n+1) remain lost (the paper prints (1-p)^n), within 3 points"),
            None,
            off,
            retries.len(),
            "points at most",
            off < 3.0,
        ));
    }
    let near: Vec<f64> = REFERENCE
        .iter()
        .filter_map(|&(of, n, mean)| {
            let at = retries.iter().position(|&at| at == n)?;
            Some((summary(&runs[of][at], delay).mean / mean - 1.0).abs() * 100.0)
        })
        .collect();
    let worst = near.iter().copied().fold(0.0, f64::max);
    claims.push(Claim::value(
        "mean delays lie within 20 % of an independent model's",
        None,
        worst,
        near.len(),
        "% at most",
        worst < 20.0,
    ));
    Ok(Figure {
        id: "figure12",
        title: "delay over the number of retransmissions: 1 Mbit/s, 60 km, slots of 20 ms".into(),
        panels: vec![
            lines(
                "12a",
                "mean delay in order",
                "ms",
                ("retransmissions", places.clone()),
                series(delay),
                Vec::new(),
            ),
            lines(
                "12b",
                "packets lost",
                "%",
                ("retransmissions", places),
                series(|m| 100.0 * m.residual),
                Vec::new(),
            ),
        ],
        claims,
        notes: vec![],
    })
}
