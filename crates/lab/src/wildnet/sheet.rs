//! What a figure is made on: runs its trials over all seeds, and lays out panels.

use std::sync::atomic::{AtomicUsize, Ordering};

use chappe_core::{Duration, Seed};

use super::trial::{Experiment, Measured};
use crate::figure::{Panel, PanelKind, Series};
use crate::paper::Order;
use crate::run::{RunError, WORK, seeds};
use crate::statistics::Summary;

/// How much is run, and where results are counted.
pub struct Sheet<'a> {
    order: &'a Order<'a>,
    runs: AtomicUsize,
}

/// The runs of one trial, one for each seed.
pub type Runs = Vec<Measured>;

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

    /// For how long a run is counted: the paper ran 60 s (4.2); intervals over seeds say what a shorter run costs.
    pub fn time(&self) -> Duration {
        Duration::from_secs(if self.quick() { 4 } else { 20 })
    }

    /// The same for runs with several hops: half of it, since each takes several times longer.
    pub fn short(&self) -> Duration {
        self.time() / 2
    }

    fn seeds(&self) -> u64 {
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

    /// Runs every trial with every seed; in the order of the trials.
    pub fn measure<T: Experiment>(&self, trials: &[T]) -> Result<Vec<Runs>, RunError> {
        let jobs: Vec<(&T, u64)> = trials
            .iter()
            .flat_map(|trial| (0..self.seeds()).map(move |seed| (trial, seed)))
            .collect();
        let meter = self.order.meter;
        meter.expect(WORK * jobs.len() as u64);
        let work = |&(trial, seed): &(&T, u64)| {
            let result = trial.run(Seed(self.order.seed + seed));
            meter.advance(WORK);
            result
        };
        let results = seeds::parallel(&jobs, self.order.threads, || !meter.stopped(), work);
        let results: Vec<Measured> = results
            .into_iter()
            .map(|result| result.unwrap_or(Err(RunError::Interrupted)))
            .collect::<Result<_, _>>()?;
        self.runs.fetch_add(results.len(), Ordering::Relaxed);
        let each = self.seeds() as usize;
        Ok(results.chunks(each).map(<[Measured]>::to_vec).collect())
    }
}

/// One value of each run.
pub fn summary(runs: &Runs, value: impl Fn(&Measured) -> f64) -> Summary {
    Summary::of(&runs.iter().map(value).collect::<Vec<_>>())
}

/// A line: one value at each place.
pub fn line(name: &str, places: &[Runs], value: impl Fn(&Measured) -> f64 + Copy) -> Series {
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

/// What fixed slots of 20 ms hold of TCP over a distance, one way or both, times the share of frames that arrive, Mbit/s:
/// 3.76 and 6.55 at 0 km (specified: 13 packets of set C to a slot, acknowledgements among them), of a cycle that is
/// longer by the way there and back at 3.3356 us a kilometre.
pub fn tcp_bound(both: bool, km: f64, loss: f64) -> f64 {
    let (at_once, cycle) = (if both { 6.55 } else { 3.76 }, 40_000.0);
    at_once * (1.0 - loss) * cycle / (cycle + 2.0 * 3.3356 * km)
}

/// Payload rate in Mbit/s.
pub fn mbps(measured: &Measured) -> f64 {
    measured.bps / 1e6
}

/// Mean delay in ms.
pub fn delay(measured: &Measured) -> f64 {
    measured.delay * 1e3
}

/// A panel of lines.
pub fn lines(
    id: &str,
    title: &str,
    unit: &'static str,
    axis: (&'static str, Vec<String>),
    series: Vec<Series>,
    bound: Vec<Option<f64>>,
) -> Panel {
    let (axis, places) = axis;
    Panel {
        id: id.into(),
        title: title.into(),
        unit,
        kind: PanelKind::Lines,
        axis,
        worst_bound: vec![None; places.len()],
        bound: match bound.is_empty() {
            true => vec![None; places.len()],
            false => bound,
        },
        places,
        series,
    }
}
