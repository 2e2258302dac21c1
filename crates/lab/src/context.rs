//! What a paper's figures are made with: trials with several seeds in parallel, and series of their values.

use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};

use chappe_core::Seed;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::paper::Order;
use crate::run::{RunError, WORK};
use crate::seeds;
use chappe_results::figure::Series;
use chappe_results::statistics::Summary;

/// Runs a figure's trials as the user ordered them, and counts the runs.
pub struct FigureContext<'a> {
    order: &'a Order<'a>,
    runs: AtomicUsize,
}

impl<'a> FigureContext<'a> {
    /// The context of the figures that the user ordered.
    pub fn new(order: &'a Order<'a>) -> FigureContext<'a> {
        FigureContext {
            order,
            runs: AtomicUsize::new(0),
        }
    }

    /// Whether the user asked for less work (`--quick`).
    pub fn quick(&self) -> bool {
        self.order.quick
    }

    /// `quick` if the user asked for less work, otherwise `full`.
    pub fn pick<T>(&self, full: T, quick: T) -> T {
        if self.quick() { quick } else { full }
    }

    /// How many runs were made.
    pub fn runs(&self) -> usize {
        self.runs.load(Ordering::Relaxed)
    }

    /// Runs `work` for every trial with `seeds` seeds from the order's first on. Returns each trial's results in the order of
    /// the seeds; [`RunError::Interrupted`] if the user asked to stop.
    pub fn measure<T: Sync, U: Send + Clone>(
        &self,
        trials: &[T],
        seeds: u64,
        work: impl Fn(&T, Seed) -> Result<U, RunError> + Sync,
    ) -> Result<Vec<Vec<U>>, RunError> {
        let jobs = jobs(trials.len(), seeds);
        let meter = self.order.meter;
        meter.expect(WORK * jobs.len() as u64);
        let one = |&(trial, seed): &(usize, u64)| {
            let seed = Seed(self.order.seed.wrapping_add(seed));
            // It may have waited for a core for a long time.
            let result = meter.work(|| match meter.stopped() {
                true => Err(RunError::Interrupted),
                false => work(&trials[trial], seed),
            });
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

    /// The same for trials that take seconds: each result is kept as it is finished, and one that was kept before is not made again
    /// ([`Meter::kept`](crate::run::Meter::kept)). `what` tells apart what different figures make of equal trials; a trial's `Debug`
    /// must show all of it.
    pub fn measure_kept<T: Sync + Debug, U: Send + Clone + Serialize + DeserializeOwned>(
        &self,
        what: &str,
        trials: &[T],
        seeds: u64,
        work: impl Fn(&T, Seed) -> Result<U, RunError> + Sync,
    ) -> Result<Vec<Vec<U>>, RunError> {
        self.measure(trials, seeds, |trial, seed| {
            let name = format!("{what} {trial:?} {}", seed.0);
            self.order.meter.kept(&name, || work(trial, seed))
        })
    }
}

/// Each trial with each seed, both from 0 on.
fn jobs(trials: usize, seeds: u64) -> Vec<(usize, u64)> {
    let of = |trial| (0..seeds).map(move |seed| (trial, seed));
    (0..trials).flat_map(of).collect()
}

/// The summary of one value of each run.
pub fn summary<U>(runs: &[U], value: impl Fn(&U) -> f64) -> Summary {
    summary_of(runs.len(), &|run| value(&runs[run]))
}

/// A series with the summary of one value at each place.
pub fn line<U>(name: &str, places: &[Vec<U>], value: impl Fn(&U) -> f64 + Copy) -> Series {
    series_of(name, places.len(), &|place| summary(&places[place], value))
}

// Figures call the two functions above with a hundred closures. The loops below are compiled once.

fn summary_of(count: usize, value: &dyn Fn(usize) -> f64) -> Summary {
    Summary::of(&(0..count).map(value).collect::<Vec<_>>())
}

fn series_of(name: &str, count: usize, summary: &dyn Fn(usize) -> Summary) -> Series {
    Series::new(name, (0..count).map(summary).collect())
}

/// The same series with the paper's numbers.
pub fn beside(mut series: Series, paper: &[Option<f64>]) -> Series {
    for (place, value) in series.paper.iter_mut().zip(paper) {
        *place = *value;
    }
    series
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Meter;

    fn order(meter: &Meter, quick: bool) -> Order<'_> {
        Order {
            names: &[],
            quick,
            seed: 10,
            threads: 3,
            meter,
        }
    }

    #[test]
    fn results_are_ordered_by_trial_and_seed() {
        let meter = Meter::default();
        let order = order(&meter, true);
        let context = FigureContext::new(&order);
        let results = context.measure(&["a", "b"], 2, |trial, seed| Ok((*trial, seed.0)));
        let expected = [vec![("a", 10), ("a", 11)], vec![("b", 10), ("b", 11)]];
        assert_eq!(results.unwrap(), expected);
        assert_eq!((context.runs(), context.pick(5, 2)), (4, 2));
        assert_eq!(meter.read(), (4 * WORK, 4 * WORK));
    }

    #[test]
    fn stopped_trials_are_interrupted() {
        let meter = Meter::default();
        meter.stop();
        let order = order(&meter, false);
        let context = FigureContext::new(&order);
        let results = context.measure(&["a"], 2, |_, _| Ok(()));
        assert!(matches!(results, Err(RunError::Interrupted)));
        assert_eq!((context.runs(), context.pick(5, 2)), (0, 5));
    }
}
