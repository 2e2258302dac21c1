//! Figure 10: TCP both ways over loss, 80 km (4.3).

use super::sheet::{Runs, Sheet, line, lines, mbps, summary};
use super::trial::{Card, Load, Scheme, Trial};
use crate::figure::{Claim, Figure};
use crate::run::RunError;
use crate::statistics::Summary;

/// What fixed slots of 20 ms hold of TCP both ways at 80 km (specs 3.1, set C), Mbit/s.
const ROOF: f64 = 6.5;

pub fn make(sheet: &Sheet<'_>) -> Result<Figure, RunError> {
    let losses: &[f64] = match sheet.quick() {
        true => &[0.0, 0.1, 0.3],
        false => &[0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5],
    };
    let over = |scheme| {
        let trials: Vec<Trial> = losses
            .iter()
            .map(|&loss| Trial {
                scheme,
                km: 80.0,
                loss,
                load: Load::Tcp,
                both: true,
                time: sheet.time(),
            })
            .collect();
        sheet.measure(&trials)
    };
    let csma = over(Scheme::Csma {
        retries: Some(2),
        card: Card::Short,
    })?;
    let (wild, chappe) = (over(Scheme::WILDNET)?, over(Scheme::CHAPPE)?);
    let bound: Vec<f64> = losses.iter().map(|loss| ROOF * (1.0 - loss)).collect();
    let low: Vec<usize> = (0..losses.len()).filter(|&at| losses[at] <= 0.3).collect();
    let mean = |runs: &Vec<Runs>, at: usize| summary(&runs[at], mbps).mean;
    let shares = |runs: &Vec<Runs>| -> Vec<f64> {
        low.iter()
            .map(|&at| 100.0 * mean(runs, at) / bound[at])
            .collect()
    };
    let ratios: Vec<f64> = low
        .iter()
        .map(|&at| mean(&wild, at) / mean(&csma, at))
        .collect();
    let claim = |text: &str, values: &[f64], least: f64, unit| {
        Claim::new(
            text,
            None,
            Summary::of(values),
            unit,
            values.iter().all(|value| *value >= least),
        )
        .because(|| {
            let all: Vec<String> = values.iter().map(|value| format!("{value:.2}")).collect();
            format!("by loss: {} {unit}", all.join(", "))
        })
    };
    let claims = vec![
        claim(
            "up to 30 % loss WiLDNet gets at least twice what 802.11 gets",
            &ratios,
            2.0,
            "times",
        ),
        claim(
            "up to 30 % loss WiLDNet gets at least 85 % of its bound",
            &shares(&wild),
            85.0,
            "%",
        ),
        claim("and so does chappe", &shares(&chappe), 85.0, "%"),
    ];
    Ok(Figure {
        id: "figure10",
        title: "TCP both ways over loss, 80 km".into(),
        panels: vec![lines(
            "10",
            "both directions together",
            "Mbit/s",
            (
                "frames lost",
                losses
                    .iter()
                    .map(|loss| format!("{:.0} %", loss * 100.0))
                    .collect(),
            ),
            vec![
                line("802.11, two retries", &csma, mbps),
                line("WiLDNet", &wild, mbps),
                line("chappe", &chappe, mbps),
            ],
            bound.into_iter().map(Some).collect(),
        )],
        claims,
        notes: vec![],
    })
}
