//! The scale of a paper order: seeds, networks and durations, in short and in full.

use crate::series::Runs;
use crate::trial::Trial;
use chappe_lab::context::FigureContext as Shared;
use chappe_lab::paper::Order;
use chappe_lab::run::RunError;
use chappe_lab_dpclo::mesh::Times;

/// An order of figures, and how much of the paper's work it does.
pub struct FigureContext<'a> {
    /// Runs trials, and counts them.
    pub trials: Shared<'a>,
}

impl<'a> FigureContext<'a> {
    /// Creates the context of an order.
    pub fn new(order: &'a Order<'a>) -> FigureContext<'a> {
        FigureContext {
            trials: Shared::new(order),
        }
    }

    /// The times of a run on a small network. The paper's flows run for 100 s after 200 s. Here counting starts when the
    /// rates have converged: they grow by four packets a second each second, so an unshared link takes two minutes.
    pub fn small(&self) -> Times {
        let (begin, counted, end) = if self.trials.quick() {
            (15, 75, 90)
        } else {
            (30, 130, 200)
        };
        Times {
            begin,
            counted,
            end,
        }
    }

    /// The times of a run on a network of 108 nodes.
    pub fn large(&self) -> Times {
        let (begin, counted, end) = if self.trials.quick() {
            (20, 28, 40)
        } else {
            (45, 65, 125)
        };
        Times {
            begin,
            counted,
            end,
        }
    }

    fn seeds(&self) -> u64 {
        if self.trials.quick() { 1 } else { 4 }
    }

    /// The number of networks of 108 nodes. On two of them the intervals of Figure 7 were as wide as its means.
    pub fn networks(&self) -> u64 {
        if self.trials.quick() { 1 } else { 20 }
    }

    /// The scale as figures report it: seeds, networks, and counted seconds.
    pub fn scale(&self) -> Vec<(&'static str, u64)> {
        let times = self.small();
        vec![
            ("seeds", self.seeds()),
            ("networks", self.networks()),
            ("counted_s", times.end - times.counted),
        ]
    }

    /// Runs every trial on a small network with every seed. The results are in the order of the trials.
    pub fn measure(&self, trials: &[Trial]) -> Result<Vec<Runs>, RunError> {
        self.trials
            .measure(trials, self.seeds(), |trial, seed| trial.run(seed))
    }

    /// Runs every trial on the networks of 108 nodes. The results are in the order of the trials. Each run takes seconds, so finished
    /// ones are kept.
    pub fn measure_large(&self, trials: &[Trial]) -> Result<Vec<Runs>, RunError> {
        self.trials
            .measure_kept("run", trials, self.networks(), |trial, seed| {
                trial.run(seed)
            })
    }
}
