//! What a figure is made on: runs its trials over all seeds, and lays out panels.

use chappe_core::{Duration, Seed};
use chappe_lab::context::FigureContext;
use chappe_lab::paper::Order;
use chappe_lab::run::RunError;
use chappe_results::figure::{Panel, PanelKind, Series};

use super::trial::{Experiment, Measured};
pub use chappe_lab::context::{beside, line, summary};

/// How much is run, and where results are counted.
pub struct Sheet<'a> {
    trials: FigureContext<'a>,
}

/// The runs of one trial, one for each seed.
pub type Runs = Vec<Measured>;

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

    /// For how long a run is counted: the paper ran 60 s (4.2); intervals over seeds say what a shorter run costs.
    pub fn time(&self) -> Duration {
        Duration::from_secs(if self.quick() { 6 } else { 20 })
    }

    /// The same for runs with several hops: half of it, since each takes several times longer.
    pub fn short(&self) -> Duration {
        self.time() / 2
    }

    fn seeds(&self) -> u64 {
        if self.quick() { 3 } else { 5 }
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

    /// Runs every trial with every seed; in the order of the trials.
    pub fn measure<T: Experiment>(&self, trials: &[T]) -> Result<Vec<Runs>, RunError> {
        let run = |trial: &T, seed: Seed| trial.run(seed);
        self.trials.measure(trials, self.seeds(), run)
    }
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

/// A panel of bars, where the places have no order.
pub fn bars(
    id: &str,
    title: &str,
    unit: &'static str,
    axis: (&'static str, Vec<String>),
    series: Vec<Series>,
    bound: Vec<Option<f64>>,
) -> Panel {
    Panel {
        kind: PanelKind::Bars,
        ..lines(id, title, unit, axis, series, bound)
    }
}
