//! Figure 5: TCP over plain 802.11 with 10 % of frames lost, by retries and distance (2.5).

use chappe_lab::context::{line, summary};
use chappe_lab::run::RunError;
use chappe_results::figure::{Claim, Figure};

use crate::context::{FigureContext, Runs};
use crate::panel::{lines, mbps};
use chappe_lab_wildnet::scheme::{Card, Load, Scheme};
use chappe_lab_wildnet::trial::Trial;

pub fn make(context: &FigureContext<'_>) -> Result<Figure, RunError> {
    let kms: &[f64] = match context.quick() {
        true => &[0.0, 80.0],
        false => &[0.0, 20.0, 50.0, 80.0, 100.0, 150.0],
    };
    let retries: &[u8] = match context.quick() {
        true => &[0, 2],
        false => &[0, 1, 2, 4, 10],
    };
    let mut runs: Vec<Vec<Runs>> = Vec::new();
    for &retries in retries {
        let at = |&km: &f64| Trial {
            scheme: Scheme::Csma {
                retries: Some(retries),
                card: Card::Short,
            },
            km,
            loss: 0.1,
            load: Load::Tcp,
            both: true,
            time: context.time(),
        };
        runs.push(context.measure(&kms.iter().map(at).collect::<Vec<_>>())?);
    }
    let names: Vec<String> = retries.iter().map(|n| format!("{n} retries")).collect();
    let series = names.iter().zip(&runs);
    Ok(Figure {
        id: "figure5",
        title: "TCP both ways over plain 802.11, 10 % of frames lost".into(),
        claims: claims(kms, retries, &runs),
        panels: vec![lines(
            "5",
            "both directions together",
            "Mbit/s",
            (
                "distance",
                kms.iter().map(|km| format!("{km} km")).collect(),
            ),
            series.map(|(name, runs)| line(name, runs, mbps)).collect(),
            Vec::new(),
        )],
        notes: vec![],
    })
}

fn claims(kms: &[f64], retries: &[u8], runs: &[Vec<Runs>]) -> Vec<Claim> {
    let mean = |row: usize, at: usize| summary(&runs[row][at], mbps).mean;
    let row = |n: u8| retries.iter().position(|&at| at == n);
    let within: Vec<usize> = (0..kms.len()).filter(|&at| kms[at] <= 110.0).collect();
    let falls = (1..retries.len()).all(|row| {
        within
            .windows(2)
            .all(|pair| mean(row, pair[1]) < 1.03 * mean(row, pair[0]))
    });
    let last = within[within.len() - 1];
    let mut claims = vec![Claim::value(
        "with retries, throughput falls with distance up to 110 km: the farthest as a share of the nearest, two retries",
        None,
        row(2).map_or(0.0, |row| 100.0 * mean(row, last) / mean(row, 0)),
        runs[0][0].len(),
        "%",
        falls,
    )];
    if let (Some(none), Some(two)) = (row(0), row(2)) {
        let gain = mean(two, 0) / mean(none, 0);
        claims.push(Claim::value(
            "without retries, every loss reaches TCP: two retries get more at 0 km, by a factor of",
            None,
            gain,
            runs[none][0].len(),
            "times",
            gain > 1.0,
        ));
    }
    if let (Some(two), Some(many), Some(beyond)) =
        (row(2), row(10), kms.iter().position(|&km| km > 110.0))
    {
        let (near, far) = (
            mean(many, 0) / mean(two, 0),
            mean(many, beyond) / mean(two, beyond),
        );
        claims.push(Claim::value(
            "more retries lose less and cost more: ten instead of two help least where every ACK arrives after the timeout",
            None,
            far,
            runs[two][beyond].len(),
            "of it at 150 km",
            far < near,
        )
        .because(|| format!("ten retries get {near:.2} of what two get at 0 km, {far:.2} at 150 km")));
    }
    claims
}
