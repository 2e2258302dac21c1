//! Figure 5: what round-robin batches add, with the knob at 0.

use chappe_results::figure::{Claim, Figure, Panel, Series};
use chappe_results::statistics::Summary;

use super::claims::{Sign, gain, gains};
use super::runs::{Cell, Cells, Scale, Site, System};

const SITE: Site = Site::OUTDOOR;
const ROUND_ROBIN: System = System::Pacifier { knob: 0 };

pub fn needs(scale: &Scale) -> Vec<Cell> {
    scale.cells(SITE, &[System::TreeRl, ROUND_ROBIN])
}

pub fn make(cells: &Cells, scale: &Scale) -> Figure {
    let of = |values: fn(&Cells, Site, System) -> Vec<f64>| values(cells, SITE, ROUND_ROBIN);
    let (mean, best, worst) = (of(Cells::mean), of(Cells::best), of(Cells::worst));
    let series = vec![
        Series::with_mean("TREE+RL", &cells.mean(SITE, System::TreeRl), None),
        Series::with_mean("TREE+RL+RRB", &mean, None),
        Series::with_mean("its best receiver", &best, None),
        Series::with_mean("its worst receiver", &worst, None),
    ];
    let panel = Panel::bars(
        "5",
        "throughput: mean, best and worst receiver",
        "kbit/s",
        scale.places(),
        series,
    )
    .bounded(cells.mean_bound(SITE), cells.worst_bound(SITE));
    Figure {
        id: "figure5",
        title: "round-robin batches, knob 0".into(),
        panels: vec![panel],
        claims: claims(cells, &mean, &best, &worst),
        notes: Vec::new(),
    }
}

fn claims(cells: &Cells, mean: &[f64], best: &[f64], worst: &[f64]) -> Vec<Claim> {
    let before = cells.mean(SITE, System::TreeRl);
    let of_worst = gains(&cells.worst(SITE, System::TreeRl), worst);
    let n = mean.len();
    let hardly_worse = of_worst.iter().filter(|gain| **gain >= -10.0).count();
    let change = Summary::of(&of_worst);
    vec![
        gain(
            "round robin's mean throughput over TREE+RL's",
            Some(47.0),
            &before,
            mean,
            Sign::More,
        ),
        gain(
            "the best receiver over the mean of all",
            Some(58.0),
            mean,
            best,
            Sign::More,
        ),
        Claim::count(
            "the worst receiver loses at most 10 % to TREE+RL",
            Some(10.0),
            hardly_worse,
            n,
            hardly_worse == n,
        )
        .because(|| {
            format!(
                "its changes lie between {:.0} and {:.0} %",
                change.min, change.max
            )
        }),
        Claim::new(
            "the worst receiver gains on average",
            None,
            change,
            "%",
            change.mean > 0.0,
        )
        .because(|| {
            format!(
                "its changes lie between {:.0} and {:.0} %",
                change.min, change.max
            )
        }),
    ]
}
