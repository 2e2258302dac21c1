//! Series and panels of figures, made from the runs of trials.

use crate::trial::{Measured, STEP};
use chappe_lab_dpclo::mesh::Times;
use chappe_results::figure::{Panel, PanelKind, Series};
use chappe_results::statistics::Summary;

pub use chappe_lab::context::summary;

/// The runs of one trial, one for each seed.
pub type Runs = Vec<Measured>;

/// Creates a panel of lines.
pub fn lines(
    id: &str,
    title: &str,
    unit: &'static str,
    (axis, places): (&'static str, Vec<String>),
    series: Vec<Series>,
) -> Panel {
    Panel {
        kind: PanelKind::Lines,
        axis,
        ..Panel::bars(id, title, unit, places, series)
    }
}

/// A series with one value of each flow, averaged over the runs.
pub fn by_flow(
    name: &str,
    runs: &Runs,
    flows: usize,
    value: impl Fn(&Measured, usize) -> f64,
) -> Series {
    let at = |flow: usize| {
        let values = runs.iter().map(|run| value(run, flow));
        Summary::of(&values.filter(|value| value.is_finite()).collect::<Vec<_>>())
    };
    Series::new(name, (0..flows).map(at).collect())
}

/// A series with the goodput of a flow over time.
pub fn course(name: &str, runs: &Runs, flow: usize) -> Series {
    let steps = runs.first().map_or(0, |run| run.course[flow].len());
    let at = |step: usize| summary(runs, |run: &Measured| run.course[flow][step]);
    Series::new(name, (0..steps).map(at).collect())
}

/// The axis and labels of a course: seconds since the flows began.
pub fn steps(times: Times) -> (&'static str, Vec<String>) {
    let step = STEP.nanos() / 1_000_000_000;
    let count = (times.end - times.begin) / step;
    (
        "s",
        (0..count).map(|place| (place * step).to_string()).collect(),
    )
}

/// The mean of a value that is computed from the runs of two trials with the same seed.
pub fn paired(a: &Runs, b: &Runs, value: impl Fn(&Measured, &Measured) -> f64) -> Summary {
    let pairs = a.iter().zip(b).map(|(a, b)| value(a, b));
    Summary::of(&pairs.collect::<Vec<_>>())
}
