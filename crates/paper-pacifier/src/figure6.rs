//! Figure 6: throughput for each value of the knob.

use chappe_results::figure::{Claim, Figure, Panel, PanelKind, Series};
use chappe_results::statistics::{Summary, mean};

use crate::runs::{Runs, Scale, Site, System, Trial};

const SITE: Site = Site::OUTDOOR;

pub fn needs(scale: &Scale) -> Vec<Trial> {
    let systems: Vec<System> = scale
        .knobs
        .iter()
        .map(|&knob| System::Pacifier { knob })
        .collect();
    scale.trials(SITE, &systems)
}

type Values = fn(&Runs, Site, System) -> Vec<f64>;

pub fn make(runs: &Runs, scale: &Scale) -> Figure {
    let rows: [(&str, Values); 3] = [
        ("best receiver", Runs::best),
        ("mean", Runs::mean),
        ("worst receiver", Runs::worst),
    ];
    let at = |values: Values, knob: u8| values(runs, SITE, System::Pacifier { knob });
    let series = rows.map(|(name, values)| {
        let over = |&knob: &u8| Summary::of(&at(values, knob));
        Series::new(name, scale.knobs.iter().map(over).collect())
    });
    let places = scale
        .knobs
        .iter()
        .map(|&knob| format!("{}", f64::from(knob) / 100.0))
        .collect();
    let everywhere =
        |bound: Vec<Option<f64>>| vec![bound.last().copied().flatten(); scale.knobs.len()];
    let panel = Panel::bars(
        "6",
        "throughput for each value of the knob, averaged over scenarios",
        "kbit/s",
        places,
        series.to_vec(),
    )
    .bounded(
        everywhere(runs.mean_bound(SITE)),
        everywhere(runs.worst_bound(SITE)),
    );
    let curve = |values: Values| {
        scale
            .knobs
            .iter()
            .map(|&knob| mean(&at(values, knob)))
            .collect::<Vec<f64>>()
    };
    Figure {
        id: "figure6",
        title: "throughput for each value of the knob".into(),
        panels: vec![Panel {
            kind: PanelKind::Lines,
            axis: "knob",
            ..panel
        }],
        claims: claims(
            scale,
            &curve(Runs::best),
            &curve(Runs::mean),
            &curve(Runs::worst),
        ),
        notes: vec![
            "the paper gives these values only as a drawing; its text gives their order".into(),
        ],
    }
}

fn claims(scale: &Scale, best: &[f64], average: &[f64], worst: &[f64]) -> Vec<Claim> {
    let n = usize::from(scale.scenarios);
    let last_is_best = |curve: &[f64]| {
        curve
            .last()
            .is_some_and(|last| curve.iter().all(|value| value <= last))
    };
    let first_is_worst = |curve: &[f64]| {
        curve
            .first()
            .is_some_and(|first| curve.iter().all(|value| value >= first))
    };
    let claim = |text: &str, curve: &[f64], holds| {
        let gain =
            100.0 * (curve.last().unwrap_or(&0.0) / curve.first().unwrap_or(&1.0).max(1e-9) - 1.0);
        Claim::value(
            &format!("{text}; change from knob 0 to 1"),
            None,
            gain,
            n,
            "%",
            holds,
        )
        .because(|| spread(scale, curve))
    };
    let all_worst = [best, average, worst].into_iter().all(first_is_worst);
    vec![
        claim(
            "knob 1 has the highest mean",
            average,
            last_is_best(average),
        ),
        claim(
            "knob 1 has the highest best receiver",
            best,
            last_is_best(best),
        ),
        claim(
            "knob 1 has a better worst receiver than knob 0",
            worst,
            worst.last() > worst.first(),
        ),
        claim("knob 0 is the lowest in all three", average, all_worst).because(|| {
            let names = [("best", best), ("mean", average), ("worst", worst)];
            let spreads = names.map(|(name, curve)| format!("{name}: {}", spread(scale, curve)));
            spreads.join("; ")
        }),
    ]
}

/// Which knobs have the lowest and the highest value.
fn spread(scale: &Scale, curve: &[f64]) -> String {
    let by_value = |(_, a): &(usize, &f64), (_, b): &(usize, &f64)| a.total_cmp(b);
    let knob = |place: Option<(usize, &f64)>| {
        place.map_or_else(String::new, |(at, value)| {
            format!("{value:.0} at knob {}", f64::from(scale.knobs[at]) / 100.0)
        })
    };
    let (low, high) = (
        curve.iter().enumerate().min_by(by_value),
        curve.iter().enumerate().max_by(by_value),
    );
    format!("lowest {}, highest {}", knob(low), knob(high))
}
