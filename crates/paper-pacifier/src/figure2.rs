//! Figure 2: MORE's pruning threshold. With the published 10 % some receivers have no forwarder left.

use chappe_results::figure::{Claim, Figure, Panel, Series};

use crate::claims::{near, of_ten};
use crate::runs::{Runs, Scale, Site, System, Trial};

const SITE: Site = Site::OUTDOOR;

pub fn needs(scale: &Scale) -> Vec<Trial> {
    scale.trials(SITE, &[System::MoreOriginal, System::More])
}

pub fn make(runs: &Runs, scale: &Scale) -> Figure {
    let of = |system| runs.forwarders(SITE, system);
    let thresholds = runs.each(SITE, System::More, |run| {
        run.counter("prune_percent") as f64
    });
    let (original, tuned) = (
        runs.mean(SITE, System::MoreOriginal),
        runs.mean(SITE, System::More),
    );
    let forwarders = vec![
        Series::with_mean("MORE_orig", &of(System::MoreOriginal), Some(11.2)),
        Series::with_mean("MORE_new", &of(System::More), None),
    ];
    let throughput = vec![
        Series::with_mean("MORE_orig", &original, None),
        Series::with_mean("MORE_new", &tuned, None),
    ];
    let threshold = vec![Series::with_mean("MORE_new", &thresholds, None)];
    let bars = |id, title, unit, series| Panel::bars(id, title, unit, scale.places(), series);
    Figure {
        id: "figure2",
        title: "MORE with the published and with a tuned pruning threshold".into(),
        panels: vec![
            bars("2a", "forwarding nodes", "nodes", forwarders),
            bars("2b", "mean throughput", "kbit/s", throughput)
                .bounded(runs.mean_bound(SITE), runs.worst_bound(SITE)),
            bars(
                "2 thresholds",
                "largest pruning threshold that serves every receiver",
                "%",
                threshold,
            ),
        ],
        claims: claims(runs, &original, &tuned, &thresholds),
        notes: vec![
            "zero: one receiver never decoded the first batch, so the source never sent a second one; \
             such a run ends when no node has decoded a batch for two minutes or more"
                .into(),
        ],
    }
}

fn claims(runs: &Runs, original: &[f64], tuned: &[f64], thresholds: &[f64]) -> Vec<Claim> {
    let n = original.len();
    let silent = original.iter().filter(|goodput| **goodput == 0.0).count();
    let served = tuned.iter().filter(|goodput| **goodput > 0.0).count();
    let lowest = thresholds.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = thresholds.iter().copied().fold(0.0, f64::max);
    let at_ten = thresholds
        .iter()
        .filter(|percent| **percent == 10.0)
        .count();
    let forwarders = runs.forwarders(SITE, System::MoreOriginal);
    vec![
        Claim::count(
            "with a threshold of 10 %, throughput is zero in most scenarios",
            of_ten(8.0, n),
            silent,
            n,
            2 * silent > n,
        )
        .because(|| {
            format!("with 10 %, the belts still reach every receiver in {at_ten} of our scenarios")
        }),
        near(
            "with a threshold of 10 %, MORE uses few forwarding nodes, on average",
            11.2,
            &forwarders,
            "nodes",
        ),
        Claim::count(
            "with the tuned threshold, every receiver is served",
            of_ten(10.0, n),
            served,
            n,
            served == n,
        )
        .because(|| {
            format!(
                "in {} scenarios a receiver is cut off even with 0 %",
                n - served
            )
        }),
        Claim::value(
            "the lowest tuned threshold is 3 % or more",
            Some(3.0),
            lowest,
            n,
            "%",
            lowest >= 3.0,
        )
        .because(|| format!("ours are between {lowest} and {highest} %")),
    ]
}
