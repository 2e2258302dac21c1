//! Table III: rounds, packets of the first round, retransmissions, goodput.

use chappe_lab::run::RunError;
use chappe_results::figure::{Claim, Figure, Panel, Series};
use chappe_results::statistics::Summary;

use crate::campaign::{Measured, Scale, Trial, Workload};
use crate::claims::within;
use chappe_lab_p3::Variant;
use chappe_lab_p3::carry::{ROUNDS, SOURCE_DATA};

/// Routes of the table. The paper's ten are not among its Figure 5's, so ours are the last ten.
const ROUTES: usize = 10;
const P3: Workload = Workload::new(Variant::Paper);
const PACKETS: f64 = 500.0;

pub fn needs(scale: &Scale) -> Vec<Trial> {
    scale.trials(scale.site(), scale.routes, &[P3])
}

pub fn make(measured: &Measured, scale: &Scale) -> Result<Figure, RunError> {
    let site = scale.site();
    // The number of rounds is undefined for an unfinished transfer.
    let done = measured.each(site, P3, |run| f64::from(run.all_complete()));
    let of = |values: Vec<f64>| -> Vec<f64> {
        let finished = values
            .into_iter()
            .zip(&done)
            .filter(|(_, done)| **done > 0.0);
        finished.map(|(value, _)| value).collect()
    };
    let rounds = of(measured.counter(site, P3, ROUNDS));
    let first = of(measured
        .first_round(site, P3)
        .iter()
        .map(|share| 100.0 * share)
        .collect());
    let again = of(measured.each(site, P3, |run| {
        let sent = run.counter(SOURCE_DATA) as f64;
        100.0 * (sent - PACKETS) / sent.max(1.0)
    }));
    let goodput = of(measured.goodput(site, P3));
    let from = rounds.len().saturating_sub(ROUTES);
    let places: Vec<String> = (from + 1..=rounds.len())
        .map(|route| route.to_string())
        .chain(["mean".into()])
        .collect();
    let panel = |id, title, unit, values: &[f64], paper| {
        let series = vec![Series::with_mean("P³", &values[from..], Some(paper))];
        Panel::bars(id, title, unit, places.clone(), series).on("route")
    };
    let line = measured.off_the_line(site, P3);
    let off: Vec<f64> = line.iter().map(|off| 100.0 * off.abs()).collect();
    let worst = off.iter().copied().fold(0.0, f64::max);
    Ok(Figure {
        id: "table3",
        title: "transmission rounds".into(),
        panels: vec![
            panel("III N_TXR", "rounds", "rounds", &rounds, 2.5),
            panel("III R1", "packets received in the first round", "%", &first, 92.12),
            panel("III P_RTX", "retransmissions among all transmissions", "%", &again, 7.49),
            panel("III G", "goodput", "kbit/s", &goodput, 175.25),
        ],
        claims: vec![
            within("rounds, on average over all routes", 2.5, &rounds, "rounds", 0.25),
            within("packets received in the first round, on average over all routes", 92.12, &first, "%", 0.05),
            within("goodput, on average over all routes", 175.25, &goodput, "kbit/s", 0.1),
            Claim::new(
                "the duration is 103 ms + 4.537 ms for each transmission + 103.5 ms for each further round, to within 5 % on average",
                None,
                Summary::of(&off),
                "%",
                Summary::of(&off).mean <= 5.0,
            )
            .because(|| format!("up to {worst:.1} % off")),
        ],
        notes: vec![
            format!("unfinished transfers are omitted: {} of {}", done.len() - rounds.len(), done.len()),
            "the line is a fit of the paper's ten rows; on short routes our set-up and turnaround are faster".into(),
        ],
    })
}
