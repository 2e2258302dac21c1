//! What a figure is made on: runs trials over all seeds, side by side.

use chappe_core::{Duration, Seed};
use chappe_lab::context::FigureContext;
use chappe_lab::paper::Order;
use chappe_lab::run::RunError;
use chappe_results::figure::{Panel, PanelKind, Series};

pub use chappe_lab::context::{beside, line, summary};

/// How much is run, and where results are counted.
pub struct Sheet<'a> {
    trials: FigureContext<'a>,
}

impl<'a> Sheet<'a> {
    /// For what somebody wants made.
    pub fn new(order: &'a Order<'a>) -> Sheet<'a> {
        Sheet {
            trials: FigureContext::new(order),
        }
    }

    /// Whether less work will do.
    pub fn quick(&self) -> bool {
        self.trials.quick()
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
        self.trials.runs()
    }

    /// Does `work` for every trial with every seed: for each trial its results in the order of the seeds.
    pub fn measure<T: Sync, U: Send + Clone>(
        &self,
        trials: &[T],
        work: impl Fn(&T, Seed) -> Result<U, RunError> + Sync,
    ) -> Result<Vec<Vec<U>>, RunError> {
        self.trials.measure(trials, self.seeds(), work)
    }
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
