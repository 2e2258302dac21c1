//! An object of one megabyte. The paper has none of this size.

use chappe_lab::run::RunError;
use chappe_results::figure::{Figure, Panel, Series};
use chappe_scenario::Variants as _;

use crate::campaign::{LARGE, Measured, Receiver, Scale, Trial, Workload, best};
use crate::claims::mean_at_least;
use chappe_lab_p3::Variant;

const fn workload(variant: Variant) -> Workload {
    Workload {
        octets: LARGE,
        ..Workload::new(variant)
    }
}

/// The variants that carry it. PIP is omitted, since it takes minutes and adds no insight.
const WORKLOADS: [Workload; 2] = [workload(Variant::Paper), workload(Variant::Improved)];

/// What is asked of the mean, in kbit/s. A CC2420's gap of 192 us between two frames leaves no more than 219.4.
const fn goal(receiver: Receiver) -> f64 {
    match receiver {
        Receiver::Comparing => 222.0,
        Receiver::Chips => 213.0,
    }
}

pub fn needs(scale: &Scale) -> Vec<Trial> {
    scale.trials(scale.site(), scale.few, &WORKLOADS)
}

pub fn make(measured: &Measured, scale: &Scale) -> Result<Figure, RunError> {
    let all = WORKLOADS.map(|workload| measured.goodput(scale.site(), workload));
    let places: Vec<String> = (1..=all[0].len())
        .map(|route| route.to_string())
        .chain(["mean".into()])
        .collect();
    let series = WORKLOADS
        .iter()
        .zip(&all)
        .map(|(workload, values)| Series::with_mean(workload.variant.label(), values, None));
    let bound =
        vec![Some(scale.receiver.with(&best(Variant::Improved)).ceiling_bps() / 1e3); places.len()];
    let panel = Panel::bars(
        "large",
        "goodput of 1 MB",
        "kbit/s",
        places,
        series.collect(),
    )
    .on("route")
    .bounded(bound, Vec::new());
    Ok(Figure {
        id: "large",
        title: "an object of one megabyte".into(),
        panels: vec![panel],
        claims: vec![mean_at_least(
            "the improved variant's average",
            goal(scale.receiver),
            &all[1],
            "kbit/s",
        )],
        notes: vec![
            "bound: one packet of the improved variant in every cycle, with three groups".into(),
        ],
    })
}
