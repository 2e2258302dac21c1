//! Figure 2: MORE's pruning threshold. With the published 10 % some receivers have no forwarder left.

use chappe_results::figure::{Claim, Figure, Panel, Series};

use super::claims::near;
use super::runs::{Cell, Cells, Scale, Site, System};

const SITE: Site = Site::OUTDOOR;

pub fn needs(scale: &Scale) -> Vec<Cell> {
    scale.cells(SITE, &[System::MoreOriginal, System::More])
}

pub fn make(cells: &Cells, scale: &Scale) -> Figure {
    let of = |system| cells.forwarders(SITE, system);
    let thresholds = cells.each(SITE, System::More, |run| {
        run.counter("prune_percent") as f64
    });
    let (original, tuned) = (
        cells.mean(SITE, System::MoreOriginal),
        cells.mean(SITE, System::More),
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
                .bounded(cells.mean_bound(SITE), cells.worst_bound(SITE)),
            bars(
                "2 thresholds",
                "largest pruning threshold that leaves nobody out",
                "%",
                threshold,
            ),
        ],
        claims: claims(cells, &original, &tuned, &thresholds),
        notes: vec![
            "zero: a receiver never finished the first batch, so that nobody got a second one; \
             the run was ended when nothing had been decoded for two minutes and more"
                .into(),
        ],
    }
}

fn claims(cells: &Cells, original: &[f64], tuned: &[f64], thresholds: &[f64]) -> Vec<Claim> {
    let n = original.len();
    let silent = original.iter().filter(|goodput| **goodput == 0.0).count();
    let served = tuned.iter().filter(|goodput| **goodput > 0.0).count();
    let lowest = thresholds.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = thresholds.iter().copied().fold(0.0, f64::max);
    let at_ten = thresholds
        .iter()
        .filter(|percent| **percent == 10.0)
        .count();
    let forwarders = cells.forwarders(SITE, System::MoreOriginal);
    vec![
        Claim::count(
            "at 10 % throughput is zero in most scenarios",
            Some(8.0),
            silent,
            n,
            2 * silent > n,
        )
        .because(|| {
            format!("at 10 % the belts still reach everybody in {at_ten} scenarios of ours")
        }),
        near(
            "at 10 % MORE uses few forwarding nodes, on average",
            11.2,
            &forwarders,
            "nodes",
        ),
        Claim::count(
            "with the tuned threshold everybody is served",
            Some(10.0),
            served,
            n,
            served == n,
        )
        .because(|| {
            format!(
                "in {} scenarios somebody is left out even at 0 %",
                n - served
            )
        }),
        Claim::value(
            "tuned thresholds go down to 3 %, not lower",
            Some(3.0),
            lowest,
            n,
            "%",
            lowest >= 3.0,
        )
        .because(|| format!("ours lie between {lowest} and {highest} %")),
    ]
}
