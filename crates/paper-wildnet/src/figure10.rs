//! Figure 10: TCP both ways over loss, 80 km (4.3).

use chappe_lab::context::{line, summary};
use chappe_lab::run::RunError;
use chappe_results::figure::{Claim, Figure};
use chappe_results::statistics::Summary;

use crate::context::{FigureContext, Runs};
use crate::panel::{lines, mbps};
use chappe_lab_wildnet::hosts::{Stack, WINDOW};
use chappe_lab_wildnet::masts::Masts;
use chappe_lab_wildnet::scheme::{Load, Scheme};
use chappe_lab_wildnet::trial::Trial;

/// Capacity of fixed slots of 20 ms for TCP both ways at 80 km (set C), in Mbit/s.
const CAPACITY: f64 = 6.5;

pub fn make(context: &FigureContext<'_>) -> Result<Figure, RunError> {
    let losses: &[f64] = match context.quick() {
        true => &[0.0, 0.1, 0.3],
        false => &[0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5],
    };
    let over = |scheme, window| {
        let at = |&loss: &f64| Masts {
            tcp: Stack {
                window,
                ..Stack::USUAL
            },
            ..Trial {
                scheme,
                km: 80.0,
                loss,
                load: Load::Tcp,
                both: true,
                time: context.time(),
            }
            .masts()
        };
        context.measure(&losses.iter().map(at).collect::<Vec<_>>())
    };
    let csma = over(Scheme::CSMA, WINDOW)?;
    let long = over(Scheme::CSMA_LONG, WINDOW)?;
    let (wild, improved) = (
        over(Scheme::WILDNET, WINDOW)?,
        over(Scheme::IMPROVED, WINDOW)?,
    );
    let wide = over(Scheme::WILDNET, 2 * WINDOW)?;
    let bound: Vec<f64> = losses.iter().map(|loss| CAPACITY * (1.0 - loss)).collect();
    let low: Vec<usize> = (0..losses.len()).filter(|&at| losses[at] <= 0.3).collect();
    let mean = |runs: &Vec<Runs>, at: usize| summary(&runs[at], mbps).mean;
    let shares = |runs: &Vec<Runs>| -> Vec<f64> {
        low.iter()
            .map(|&at| 100.0 * mean(runs, at) / bound[at])
            .collect()
    };
    let ratios = |csma: &Vec<Runs>| -> Vec<f64> {
        low.iter()
            .map(|&at| mean(&wild, at) / mean(csma, at))
            .collect()
    };
    let list = |values: &[f64]| {
        let all: Vec<String> = values.iter().map(|value| format!("{value:.2}")).collect();
        all.join(", ")
    };
    let claim = |text: &str, values: &[f64], least: f64, unit, why: &str| {
        Claim::new(
            text,
            None,
            Summary::of(values),
            unit,
            values.iter().all(|value| *value >= least),
        )
        .because(|| format!("by loss: {} {unit}; {why}", list(values)))
    };
    let claims = vec![
        claim(
            "up to 30 % loss, WiLDNet gets at least twice what 802.11 gets",
            &ratios(&csma),
            2.0,
            "times",
            &format!(
                "with long preambles for 802.11, as WiLDNet's frames have: {} times",
                list(&ratios(&long))
            ),
        ),
        claim(
            "up to 30 % loss, WiLDNet gets at least 85 % of its bound",
            &shares(&wild),
            85.0,
            "%",
            &format!(
                "packets in order wait a cycle for each retransmission, and meanwhile TCP's window of 65,535 octets is used up: \
                 with a window twice as large, {} %",
                list(&shares(&wide))
            ),
        ),
        claim(
            "with a TCP window of twice 65,535 octets, WiLDNet gets at least 85 %",
            &shares(&wide),
            85.0,
            "%",
            "the window is not the only cause",
        ),
        claim(
            "with the usual window, the improved variant gets at least 85 %",
            &shares(&improved),
            85.0,
            "%",
            "",
        ),
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
                line("802.11, long preambles", &long, mbps),
                line("WiLDNet", &wild, mbps),
                line("WiLDNet, twice the TCP window", &wide, mbps),
                line("improved", &improved, mbps),
            ],
            bound.into_iter().map(Some).collect(),
        )],
        claims,
        notes: vec![],
    })
}
