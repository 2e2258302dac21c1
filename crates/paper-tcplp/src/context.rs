//! How much of the paper's work a figure does.

use std::ops::Deref;

use chappe_core::{Duration, Seed};
use chappe_lab::context::FigureContext as Shared;
use chappe_lab::paper::Order;
use chappe_lab::run::RunError;
use chappe_results::figure::{Panel, PanelKind, Series};

pub use chappe_lab::context::{beside, line, summary};

/// The trials of a paper's figures, with TCPlp's number of seeds and length of a run.
pub struct FigureContext<'a> {
    trials: Shared<'a>,
}

impl<'a> Deref for FigureContext<'a> {
    type Target = Shared<'a>;

    fn deref(&self) -> &Shared<'a> {
        &self.trials
    }
}

impl<'a> FigureContext<'a> {
    /// A context for the figures that the user ordered.
    pub fn new(order: &'a Order<'a>) -> FigureContext<'a> {
        FigureContext {
            trials: Shared::new(order),
        }
    }

    /// `full`, or `quick` if the user asked for less work.
    pub fn pick<T>(&self, full: T, quick: T) -> T {
        if self.quick() { quick } else { full }
    }

    /// How long a bulk transfer is measured. The paper gives a duration only for its Figure 6a, 100 s; the intervals over
    /// seeds show what a shorter run costs.
    pub fn time(&self) -> Duration {
        Duration::from_secs(self.pick(60, 10))
    }

    /// The number of seeds of every trial.
    pub fn seeds(&self) -> u64 {
        self.pick(5, 2)
    }

    /// The scale for the document of results.
    pub fn scale(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("seeds", self.seeds()),
            ("counted_s", self.time().nanos() / 1_000_000_000),
        ]
    }

    /// Does `work` for every trial with [`seeds`](FigureContext::seeds) seeds. The results of a trial are in the order of
    /// the seeds.
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
