//! What a figure is made on: runs its trials over all seeds, and lays out panels.

use super::mesh::Times;
use super::optimum::Optimum;
use super::trial::{Ran, Trial};
use chappe_lab::context::FigureContext;
use chappe_lab::paper::Order;
use chappe_lab::run::RunError;
use chappe_results::figure::{Panel, PanelKind, Series};
use chappe_results::statistics::Summary;

pub use chappe_lab::context::summary;

/// How much is run, and where results are counted.
pub struct Sheet<'a> {
    trials: FigureContext<'a>,
}

/// The runs of one trial, one for each seed.
pub type Runs = Vec<Ran>;

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

    /// When things happen on the small networks. The paper's flows run for 100 s after 200 s. Here they are counted when rates
    /// have come up, four packets a second each second: a link that nobody shares takes two minutes.
    pub fn small(&self) -> Times {
        let (begin, counted, end) = if self.quick() {
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

    /// The same on the large one.
    pub fn large(&self) -> Times {
        let (begin, counted, end) = if self.quick() {
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
        if self.quick() { 1 } else { 4 }
    }

    /// How many networks of 108 nodes.
    pub fn networks(&self) -> u64 {
        if self.quick() { 1 } else { 2 }
    }

    /// How much of the paper's work is done.
    pub fn scale(&self) -> Vec<(&'static str, u64)> {
        let times = self.small();
        vec![
            ("seeds", self.seeds()),
            ("networks", self.networks()),
            ("counted_s", times.end - times.counted),
        ]
    }

    /// How many runs were made.
    pub fn runs(&self) -> usize {
        self.trials.runs()
    }

    /// Runs every trial on a small network with every seed; in the order of the trials.
    pub fn measure(&self, trials: &[Trial]) -> Result<Vec<Runs>, RunError> {
        self.trials
            .measure(trials, self.seeds(), |trial, seed| trial.run(seed))
    }

    /// The same on the networks of 108 nodes.
    pub fn measure_large(&self, trials: &[Trial]) -> Result<Vec<Runs>, RunError> {
        self.trials
            .measure(trials, self.networks(), |trial, seed| trial.run(seed))
    }

    /// What the links allow a trial's flows on each network of 108 nodes.
    pub fn optima_large(&self, trial: &Trial) -> Result<Vec<Optimum>, RunError> {
        let one = std::slice::from_ref(trial);
        let mut all = self
            .trials
            .measure(one, self.networks(), |trial, seed| trial.optimum(seed))?;
        Ok(all.pop().unwrap_or_default())
    }

    /// Any work on the first networks of 108 nodes.
    pub fn each<T: Sync, U: Send + Clone>(
        &self,
        trials: &[T],
        networks: u64,
        work: impl Fn(&T, chappe_core::Seed) -> Result<U, RunError> + Sync,
    ) -> Result<Vec<Vec<U>>, RunError> {
        self.trials.measure(trials, networks, work)
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

/// One value of each flow at each place, over the runs.
pub fn by_flow(
    name: &str,
    runs: &Runs,
    flows: usize,
    value: impl Fn(&Ran, usize) -> f64,
) -> Series {
    let at = |flow: usize| {
        let values = runs.iter().map(|ran| value(ran, flow));
        Summary::of(&values.filter(|value| value.is_finite()).collect::<Vec<_>>())
    };
    Series::new(name, (0..flows).map(at).collect())
}

/// The course of a flow's goodput over time.
pub fn course(name: &str, runs: &Runs, flow: usize) -> Series {
    let steps = runs.first().map_or(0, |ran| ran.course[flow].len());
    let at = |step: usize| summary(runs, |ran: &Ran| ran.course[flow][step]);
    Series::new(name, (0..steps).map(at).collect())
}

/// What stands under the steps of a course: seconds since the flows' begin.
pub fn steps(times: Times) -> (&'static str, Vec<String>) {
    let step = super::trial::STEP.nanos() / 1_000_000_000;
    let count = (times.end - times.begin) / step;
    (
        "s",
        (0..count).map(|place| (place * step).to_string()).collect(),
    )
}
