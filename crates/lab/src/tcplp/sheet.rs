//! What a figure is made on: runs trials over all seeds, side by side.

use std::sync::atomic::{AtomicUsize, Ordering};

use chappe_core::{Duration, Seed};

use crate::figure::{Panel, PanelKind, Series};
use crate::paper::Order;
use crate::run::{RunError, WORK, seeds};
use crate::statistics::Summary;

/// How much is run, and where results are counted.
pub struct Sheet<'a> {
    order: &'a Order<'a>,
    runs: AtomicUsize,
}

impl<'a> Sheet<'a> {
    /// For what somebody wants made.
    pub fn new(order: &'a Order<'a>) -> Sheet<'a> {
        Sheet {
            order,
            runs: AtomicUsize::new(0),
        }
    }

    /// Whether less work will do.
    pub fn quick(&self) -> bool {
        self.order.quick
    }

    /// For how long a bulk transfer is counted. The paper does not say how long it measured, but for the 100 s of its
    /// Figure 6a; intervals over seeds say what a shorter run costs.
    pub fn time(&self) -> Duration {
        Duration::from_secs(if self.quick() { 10 } else { 60 })
    }

    /// How many seeds.
    pub fn seeds(&self) -> u64 {
        if self.quick() { 2 } else { 5 }
    }

    /// How much of the paper's work is done.
    pub fn scale(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("seeds", self.seeds()),
            ("counted_s", self.time().nanos() / 1_000_000_000),
        ]
    }

    /// How many runs were made.
    pub fn runs(&self) -> usize {
        self.runs.load(Ordering::Relaxed)
    }

    /// Does `work` for every trial with every seed: for each trial its results in the order of the seeds.
    pub fn measure<T: Sync, U: Send + Clone>(
        &self,
        trials: &[T],
        work: impl Fn(&T, Seed) -> Result<U, RunError> + Sync,
    ) -> Result<Vec<Vec<U>>, RunError> {
        let each = self.seeds();
        let jobs: Vec<(&T, u64)> = trials
            .iter()
            .flat_map(|trial| (0..each).map(move |seed| (trial, seed)))
            .collect();
        let meter = self.order.meter;
        meter.expect(WORK * jobs.len() as u64);
        let one = |&(trial, seed): &(&T, u64)| {
            let result = work(trial, Seed(self.order.seed.wrapping_add(seed)));
            meter.advance(WORK);
            result
        };
        let results = seeds::parallel(&jobs, self.order.threads, || !meter.stopped(), one);
        let results: Vec<U> = results
            .into_iter()
            .map(|result| result.unwrap_or(Err(RunError::Interrupted)))
            .collect::<Result<_, _>>()?;
        self.runs.fetch_add(results.len(), Ordering::Relaxed);
        Ok(results.chunks(each as usize).map(<[U]>::to_vec).collect())
    }
}

/// One value of each run.
pub fn summary<U>(runs: &[U], value: impl Fn(&U) -> f64) -> Summary {
    Summary::of(&runs.iter().map(value).collect::<Vec<_>>())
}

/// A line: one value at each place.
pub fn line<U>(name: &str, places: &[Vec<U>], value: impl Fn(&U) -> f64 + Copy) -> Series {
    let ours = places.iter().map(|runs| summary(runs, value)).collect();
    Series::new(name, ours)
}

/// The same, beside numbers that the paper gives.
pub fn beside(mut series: Series, paper: &[Option<f64>]) -> Series {
    for (place, value) in series.paper.iter_mut().zip(paper) {
        *place = *value;
    }
    series
}

/// A panel of lines.
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
