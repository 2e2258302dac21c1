//! Figure 5: the effect of round-robin batches, with the knob at 0.

use chappe_results::figure::{Claim, Figure, Panel, Series};
use chappe_results::statistics::Summary;

use crate::claims::{Sign, gain, gains, of_ten};
use crate::runs::{Runs, Scale, Site, System, Trial};

const SITE: Site = Site::OUTDOOR;
const ROUND_ROBIN: System = System::Pacifier { knob: 0 };

pub fn needs(scale: &Scale) -> Vec<Trial> {
    scale.trials(SITE, &[System::TreeRl, ROUND_ROBIN])
}

pub fn make(runs: &Runs, scale: &Scale) -> Figure {
    let of = |values: fn(&Runs, Site, System) -> Vec<f64>| values(runs, SITE, ROUND_ROBIN);
    let (mean, best, worst) = (of(Runs::mean), of(Runs::best), of(Runs::worst));
    let series = vec![
        Series::with_mean("TREE+RL", &runs.mean(SITE, System::TreeRl), None),
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
    .bounded(runs.mean_bound(SITE), runs.worst_bound(SITE));
    Figure {
        id: "figure5",
        title: "round-robin batches, knob 0".into(),
        panels: vec![panel],
        claims: claims(runs, &mean, &best, &worst),
        notes: Vec::new(),
    }
}

fn claims(runs: &Runs, mean: &[f64], best: &[f64], worst: &[f64]) -> Vec<Claim> {
    let before = runs.mean(SITE, System::TreeRl);
    let of_worst = gains(&runs.worst(SITE, System::TreeRl), worst);
    let n = mean.len();
    let hardly_worse = of_worst.iter().filter(|gain| **gain >= -10.0).count();
    let change = Summary::of(&of_worst);
    vec![
        gain(
            "TREE+RL+RRB's mean throughput compared with TREE+RL's",
            Some(47.0),
            &before,
            mean,
            Sign::More,
        ),
        gain(
            "the best receiver compared with the mean of all",
            Some(58.0),
            mean,
            best,
            Sign::More,
        ),
        Claim::count(
            "the worst receiver loses at most 10 % to TREE+RL",
            of_ten(10.0, n),
            hardly_worse,
            n,
            hardly_worse == n,
        )
        .because(|| {
            format!(
                "its changes are between {:.0} and {:.0} %",
                change.min, change.max
            )
        }),
        gain(
            "the worst receiver compared with TREE+RL's",
            None,
            &runs.worst(SITE, System::TreeRl),
            worst,
            Sign::More,
        ),
    ]
}
