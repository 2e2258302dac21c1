//! Figure 11: the jitter that the block code adds (4.3).

use chappe_lab::context::{line, summary};
use chappe_lab::run::RunError;
use chappe_results::figure::{Claim, Figure};
use chappe_wildnet::{Recovery, Redundancy, Service};

use crate::context::{FigureContext, Runs};
use crate::panel::lines;
use chappe_lab_wildnet::experiment::Measured;
use chappe_lab_wildnet::scheme::{Load, Scheme, SlotForm};
use chappe_lab_wildnet::trial::Trial;

/// Length of the link in km: an indoor one.
const KM: f64 = 0.0;

fn jitter(measured: &Measured) -> f64 {
    measured.jitter * 1e3
}

pub fn make(context: &FigureContext<'_>) -> Result<Figure, RunError> {
    let rates: &[f64] = match context.quick() {
        true => &[0.5, 2.0],
        false => &[0.5, 1.0, 1.5, 2.0],
    };
    let over = |recovery, loss| {
        let at = |&rate: &f64| Trial {
            scheme: Scheme::slots(20, recovery, Service::retries(Some(0)), SlotForm::Even),
            km: KM,
            loss,
            load: Load::Steady(rate * 1e6),
            both: false,
            time: context.time(),
        };
        context.measure(&rates.iter().map(at).collect::<Vec<_>>())
    };
    let code = Recovery::Blocks {
        rule: Redundancy::Mean,
        repeat: false,
    };
    let bare = over(Recovery::None, 0.0)?;
    let (clean, lossy) = (over(code, 0.0)?, over(code, 0.25)?);
    let means = |runs: &[Runs]| -> Vec<f64> {
        runs.iter().map(|runs| summary(runs, jitter).mean).collect()
    };
    let (b, c, l) = (means(&bare), means(&clean), means(&lossy));
    let added: Vec<f64> = b.iter().zip(&c).map(|(bare, clean)| clean - bare).collect();
    let most = added.iter().map(|added| added.abs()).fold(0.0, f64::max);
    let decoding: Vec<f64> = l
        .iter()
        .zip(&c)
        .map(|(lossy, clean)| lossy - clean)
        .collect();
    let falls = l.windows(2).all(|pair| pair[1] < pair[0]);
    Ok(Figure {
        id: "figure11",
        title: "jitter of a steady UDP flow under the block code, slots of 20 ms".into(),
        panels: vec![lines(
            "11",
            "mean difference between consecutive delays",
            "ms",
            ("rate", rates.iter().map(|rate| format!("{rate} Mbit/s")).collect()),
            vec![
                line("slots alone, no loss", &bare, jitter),
                line("block code, no loss", &clean, jitter),
                line("block code, 25 % lost", &lossy, jitter),
            ],
            Vec::new(),
        )],
        claims: vec![
            Claim::value(
                "without losses, the code adds hardly any jitter: below 0.1 ms",
                None,
                most,
                bare[0].len(),
                "ms at most",
                most < 0.1,
            ),
            Claim::value(
                "with 25 % lost, jitter changes by a few ms, which voice tolerates: below 5 ms",
                None,
                decoding.iter().map(|more| more.abs()).fold(0.0, f64::max),
                lossy[0].len(),
                "ms at most",
                decoding.iter().all(|more| more.abs() < 5.0),
            ),
            Claim::value(
                "jitter falls as the rate grows: at the highest rate, as a share of that at the lowest",
                None,
                l[l.len() - 1] / l[0],
                lossy[0].len(),
                "of it",
                falls,
            ),
        ],
        notes: vec!["The paper does not say whether slots were on. Here they are, and they cause most of the jitter: packets wait up to 20 ms for a slot and leave it in a burst.".into(), "Below 0.3 Mbit/s a cycle has less than one packet, and delays differ by their phase in the cycle.".into()],
    })
}
