//! One run of a figure: a network of the paper, a variant, a method of channel access.

use chappe_core::{Duration, Instant, Seed};
use chappe_dpclo::{Losses, Settings};

use crate::scene::{MODE, PAYLOAD, PaperNetwork, Scene};
use chappe_lab::run::RunError;
use chappe_lab_dpclo::access::{Access, Method};
use chappe_lab_dpclo::load::Pace;
use chappe_lab_dpclo::mesh::{MeshSpec, Stream, StreamKind, StreamResult, Times, frame, run};
use chappe_lab_dpclo::optimum::{Optimum, geometric_mean, jain};
use chappe_lab_dpclo::plan::Variant;
use chappe_lab_dpclo::streams::Stack;
use chappe_results::statistics::mean;
use serde::{Deserialize, Deserializer, Serialize};

/// The description of a run, without its seed.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The network and its flows.
    pub network: PaperNetwork,
    /// The variant of routing and flow control.
    pub variant: Variant,
    /// The settings of the routers: the variant's, unless changed by [`Trial::with`].
    pub settings: Settings,
    /// The method of channel access and its parameters.
    pub access: Access,
    /// When flows begin, and when they are counted.
    pub times: Times,
}

/// The result of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// Goodput of each flow in kbit/s over the counted interval.
    pub kbps: Vec<f64>,
    /// Mean delay of each flow's packets in seconds; NaN if none arrived.
    #[serde(deserialize_with = "null_is_nan")]
    pub delays: Vec<f64>,
    /// Goodput of each flow in kbit/s, in steps of [`STEP`] from the start of the flows.
    pub course: Vec<Vec<f64>>,
    /// Share of seconds in which one of two flows got less than a third of the other's octets.
    pub lopsided: f64,
    /// Packets lost to full queues, as a share of the packets that routers accepted from applications.
    pub overflow: f64,
    /// Packets lost for any reason, as a share of the same.
    pub lost: f64,
    /// Packets that reached their hop limit.
    pub circled: u64,
}

/// The duration of a step of [`Measured::course`].
pub const STEP: Duration = Duration::from_secs(5);

impl Trial {
    /// A trial with the variant's usual settings.
    pub fn new(network: PaperNetwork, variant: Variant, method: Method, times: Times) -> Trial {
        Trial {
            network,
            variant,
            settings: variant.settings(),
            access: variant.access(Access::new(method, MODE)),
            times,
        }
    }

    /// The same trial with changed settings.
    pub fn with(mut self, change: impl FnOnce(&mut Settings)) -> Trial {
        change(&mut self.settings);
        self
    }

    /// Runs the trial with a seed.
    pub fn run(&self, seed: Seed) -> Result<Measured, RunError> {
        let scene = self.network.scene(seed)?;
        let spec = self.mesh(&scene);
        let (measured, counters) = run(&spec, &scene.medium, self.times, seed)?;
        let accepted: u64 = counters.iter().map(|node| node.accepted).sum();
        let sum =
            |of: fn(&Losses) -> u64| -> u64 { counters.iter().map(|node| of(&node.losses)).sum() };
        let share = |lost: u64| lost as f64 / accepted.max(1) as f64;
        Ok(Measured {
            kbps: measured
                .iter()
                .map(|of| of.bps(self.times.span()) / 1e3)
                .collect(),
            delays: measured
                .iter()
                .map(|of| mean_delay(of, self.times))
                .collect(),
            course: measured.iter().map(|of| course(of, self.times)).collect(),
            lopsided: lopsided(&measured, self.times),
            overflow: share(sum(|losses| losses.queue_full)),
            // Of a packet that came twice the other one goes on.
            lost: share(sum(Losses::total) - sum(|losses| losses.copies)),
            circled: sum(|losses| losses.hop_limit),
        })
    }

    fn mesh(&self, scene: &Scene) -> MeshSpec {
        let stream = |&(source, sink): &(u16, u16)| Stream {
            source,
            sink,
            kind: match self.variant.is_tcp() {
                true => StreamKind::Endless,
                false => StreamKind::Datagrams(Pace::Full, PAYLOAD),
            },
            begin: Times::at(self.times.begin),
            end: Times::at(self.times.end),
        };
        MeshSpec {
            settings: self.settings,
            access: self.access,
            stack: Stack::paper(self.variant == Variant::TcpFew),
            streams: scene.flows.iter().map(stream).collect(),
        }
    }

    /// The optimum of the flows, at the rate that this channel access has on an unshared link.
    pub fn optimum(&self, seed: Seed) -> Result<Optimum, RunError> {
        let scene = self.network.scene(seed)?;
        let flows: Vec<(usize, usize)> = scene
            .flows
            .iter()
            .map(|&(from, to)| (from.into(), to.into()))
            .collect();
        let exchange = self.access.mean_exchange(frame(PAYLOAD));
        Optimum::of(&scene.medium, &self.access, (PAYLOAD, exchange), &flows)
    }

    /// The goodput of an unshared link in kbit/s.
    pub fn link_kbps(&self) -> f64 {
        PAYLOAD as f64 * 8.0 / self.access.mean_exchange(frame(PAYLOAD)).as_secs_f64() / 1e3
    }
}

impl Measured {
    /// The total goodput of all flows in kbit/s.
    pub fn total(&self) -> f64 {
        self.kbps.iter().sum()
    }

    /// The goodput of the slowest flow in kbit/s.
    pub fn least(&self) -> f64 {
        self.kbps.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The slowest flow's goodput as a share of the fastest one's.
    pub fn evenness(&self) -> f64 {
        let most = self.kbps.iter().copied().fold(0.0, f64::max);
        if most > 0.0 { self.least() / most } else { 0.0 }
    }

    /// Jain's fairness index of the flows.
    pub fn jain(&self) -> f64 {
        jain(&self.kbps)
    }

    /// The geometric mean of the flows' goodput in kbit/s.
    pub fn geometric_mean(&self) -> f64 {
        geometric_mean(&self.kbps)
    }

    /// The mean deviation of the flows' steps in the second half of the run from their mean, as a share of that mean.
    pub fn fluctuation(&self) -> f64 {
        let of = |steps: &Vec<f64>| {
            let late = &steps[steps.len() / 2..];
            let middle = mean(late);
            let off: Vec<f64> = late.iter().map(|step| (step - middle).abs()).collect();
            mean(&off) / middle.max(1e-9)
        };
        mean(&self.course.iter().map(of).collect::<Vec<_>>())
    }
}

/// JSON has no NaN, and null stands for it there.
fn null_is_nan<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<f64>, D::Error> {
    let values = Vec::<Option<f64>>::deserialize(from)?;
    Ok(values
        .into_iter()
        .map(|value| value.unwrap_or(f64::NAN))
        .collect())
}

fn mean_delay(of: &StreamResult, times: Times) -> f64 {
    match of.delays(times.span()) {
        none if none.is_empty() => f64::NAN,
        delays => mean(&delays),
    }
}

fn course(of: &StreamResult, times: Times) -> Vec<f64> {
    let (begin, end) = (Times::at(times.begin), Times::at(times.end));
    let steps = end.saturating_since(begin).nanos() / STEP.nanos();
    (0..steps)
        .map(|step| {
            let from = begin + STEP * step;
            of.bps((from, from + STEP)) / 1e3
        })
        .collect()
}

fn lopsided(measured: &[StreamResult], times: Times) -> f64 {
    let [first, second] = measured else {
        return 0.0;
    };
    let one = Duration::from_secs(1);
    let uneven = (times.counted..times.end).filter(|&second_of| {
        let from: Instant = Times::at(second_of);
        let [a, b] = [first, second].map(|of| of.octets((from, from + one)));
        a.max(b) > 3 * a.min(b)
    });
    uneven.count() as f64 / (times.end - times.counted) as f64
}
