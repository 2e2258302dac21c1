//! How much of each figure is run: seeds and durations, in full or quick.

use chappe_core::{Duration, Seed};
use chappe_lab::context::FigureContext as Shared;
use chappe_lab::paper::Order;
use chappe_lab::run::RunError;

use chappe_lab_wildnet::experiment::{Experiment, Measured};

/// Runs a figure's trials, for the durations and seeds that the order asks for.
pub struct FigureContext<'a> {
    trials: Shared<'a>,
}

/// What was measured in one trial, an entry for each seed.
pub type Runs = Vec<Measured>;

impl<'a> FigureContext<'a> {
    /// A context that has run nothing yet.
    pub fn new(order: &'a Order<'a>) -> FigureContext<'a> {
        FigureContext {
            trials: Shared::new(order),
        }
    }

    /// Whether a shorter form is asked for.
    pub fn quick(&self) -> bool {
        self.trials.quick()
    }

    /// How long each run is measured. The paper ran 60 s (4.2); the intervals over seeds show what shorter runs cost.
    pub fn time(&self) -> Duration {
        Duration::from_secs(if self.quick() { 6 } else { 20 })
    }

    /// The same for several hops: half, because simulating them takes several times longer.
    pub fn short(&self) -> Duration {
        self.time() / 2
    }

    fn seeds(&self) -> u64 {
        if self.quick() { 3 } else { 5 }
    }

    /// Seeds and seconds for the document, by name.
    pub fn scale(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("seeds", self.seeds()),
            ("counted_s", self.time().nanos() / 1_000_000_000),
        ]
    }

    /// The number of runs made so far.
    pub fn runs(&self) -> usize {
        self.trials.runs()
    }

    /// Runs every trial with so many seeds, or with the few of the shorter form.
    pub fn measure_over<T: Experiment>(
        &self,
        seeds: u64,
        trials: &[T],
    ) -> Result<Vec<Runs>, RunError> {
        let run = |trial: &T, seed: Seed| trial.run(seed);
        let seeds = if self.quick() { self.seeds() } else { seeds };
        self.trials.measure(trials, seeds, run)
    }

    /// Runs every trial with every seed. Results are in the order of the trials.
    pub fn measure<T: Experiment>(&self, trials: &[T]) -> Result<Vec<Runs>, RunError> {
        let run = |trial: &T, seed: Seed| trial.run(seed);
        self.trials.measure(trials, self.seeds(), run)
    }
}
