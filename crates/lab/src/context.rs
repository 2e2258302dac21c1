//! What a paper's figures are made on: trials with several seeds, side by side, and series of their values.

use std::sync::atomic::{AtomicUsize, Ordering};

use chappe_core::Seed;

use crate::paper::Order;
use crate::run::{RunError, WORK};
use crate::seeds;
use chappe_results::figure::Series;
use chappe_results::statistics::Summary;

/// Runs trials as somebody has ordered them, and counts the runs.
pub struct FigureContext<'a> {
    order: &'a Order<'a>,
    runs: AtomicUsize,
}

impl<'a> FigureContext<'a> {
    /// For what somebody wants made.
    pub fn new(order: &'a Order<'a>) -> FigureContext<'a> {
        FigureContext {
            order,
            runs: AtomicUsize::new(0),
        }
    }

    /// Whether less work will do.
    pub fn quick(&self) -> bool {
        self.order.quick
    }

    /// `full` for the paper's scale, `quick` where less work will do.
    pub fn pick<T>(&self, full: T, quick: T) -> T {
        if self.quick() { quick } else { full }
    }

    /// How many runs were made.
    pub fn runs(&self) -> usize {
        self.runs.load(Ordering::Relaxed)
    }

    /// Does `work` for every trial with so many seeds, the order's first: for each trial its results in the order of the seeds.
    pub fn measure<T: Sync, U: Send + Clone>(
        &self,
        trials: &[T],
        seeds: u64,
        work: impl Fn(&T, Seed) -> Result<U, RunError> + Sync,
    ) -> Result<Vec<Vec<U>>, RunError> {
        let jobs: Vec<(&T, u64)> = trials
            .iter()
            .flat_map(|trial| (0..seeds).map(move |seed| (trial, seed)))
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
        let each = usize::try_from(seeds).unwrap_or(usize::MAX).max(1);
        Ok(results.chunks(each).map(<[U]>::to_vec).collect())
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
