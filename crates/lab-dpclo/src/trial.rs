//! One run of a figure: a network of the paper, what routes on it, over which access.

use chappe_core::{Duration, Instant, Seed};
use chappe_dpclo::Settings;

use super::access::{Access, Method};
use super::load::Pace;
use super::mesh::{Measured, Setup, Stream, Times, What, frame, run};
use super::optimum::{Optimum, geometric_mean, jain};
use super::plan::Variant;
use super::scene::{MODE, PAYLOAD, Place, Scene};
use super::streams::Stack;
use chappe_lab::run::RunError;
use chappe_results::statistics::mean;

/// A run, but for its seed.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Where.
    pub place: Place,
    /// What.
    pub variant: Variant,
    /// With which parameters, if not the variant's usual ones.
    pub settings: Settings,
    /// Over what.
    pub access: Access,
    /// When.
    pub times: Times,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Ran {
    /// Goodput of each flow in kbit/s over the time that is counted.
    pub kbps: Vec<f64>,
    /// Mean delay of each flow's packets in s; not a number if none came.
    pub delays: Vec<f64>,
    /// Goodput of each flow in kbit/s, in steps of [`STEP`] from the flows' begin on.
    pub course: Vec<Vec<f64>>,
    /// Share of seconds in which one of two flows got less than a third of the other's packets.
    pub lopsided: f64,
    /// Packets lost to full queues, as a share of those that routers accepted from applications.
    pub overflow: f64,
}

/// Length of a step of [`Ran::course`].
pub const STEP: Duration = Duration::from_secs(5);

impl Trial {
    /// The usual form of a variant.
    pub fn new(place: Place, variant: Variant, method: Method, times: Times) -> Trial {
        Trial {
            place,
            variant,
            settings: variant.settings(),
            access: Access::new(method, MODE),
            times,
        }
    }

    /// The same with changed parameters.
    pub fn with(mut self, change: impl FnOnce(&mut Settings)) -> Trial {
        change(&mut self.settings);
        self
    }

    /// Makes the run.
    pub fn run(&self, seed: Seed) -> Result<Ran, RunError> {
        let scene = self.place.scene(seed)?;
        let setup = self.setup(&scene);
        let (measured, counters) = run(&setup, &scene.medium, self.times, seed)?;
        let accepted: u64 = counters.iter().map(|node| node.accepted).sum();
        let full: u64 = counters.iter().map(|node| node.losses.queue_full).sum();
        Ok(Ran {
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
            overflow: full as f64 / accepted.max(1) as f64,
        })
    }

    fn setup(&self, scene: &Scene) -> Setup {
        let stream = |&(source, sink): &(u16, u16)| Stream {
            source,
            sink,
            what: match self.variant.is_tcp() {
                true => What::Endless,
                false => What::Datagrams(Pace::Full, PAYLOAD),
            },
            begin: Times::at(self.times.begin),
            end: Times::at(self.times.end),
        };
        Setup {
            settings: self.settings,
            access: self.access,
            stack: Stack::paper(self.variant == Variant::TcpFew),
            streams: scene.flows.iter().map(stream).collect(),
        }
    }

    /// What the links allow the flows, at the rate that this access has on a link that nobody shares.
    pub fn optimum(&self, seed: Seed) -> Result<Optimum, RunError> {
        let scene = self.place.scene(seed)?;
        let flows: Vec<(usize, usize)> = scene
            .flows
            .iter()
            .map(|&(from, to)| (from.into(), to.into()))
            .collect();
        let exchange = self.access.alone(frame(PAYLOAD));
        Optimum::of(&scene.medium, &self.access, (PAYLOAD, exchange), &flows)
    }

    /// What one link carries that nobody shares, kbit/s.
    pub fn link_kbps(&self) -> f64 {
        PAYLOAD as f64 * 8.0 / self.access.alone(frame(PAYLOAD)).as_secs_f64() / 1e3
    }
}

impl Ran {
    /// Goodput of all flows together, kbit/s.
    pub fn total(&self) -> f64 {
        self.kbps.iter().sum()
    }

    /// That of the slowest.
    pub fn least(&self) -> f64 {
        self.kbps.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The slowest flow's goodput as a share of the fastest one's.
    pub fn evenness(&self) -> f64 {
        let most = self.kbps.iter().copied().fold(0.0, f64::max);
        if most > 0.0 { self.least() / most } else { 0.0 }
    }

    /// Jain's index.
    pub fn jain(&self) -> f64 {
        jain(&self.kbps)
    }

    /// The geometric mean of the flows' goodput, kbit/s.
    pub fn geometric_mean(&self) -> f64 {
        geometric_mean(&self.kbps)
    }

    /// How far the flows' steps in the second half of the run lie from their means, as a share of these: the mean over steps
    /// and flows.
    pub fn unrest(&self) -> f64 {
        let of = |steps: &Vec<f64>| {
            let late = &steps[steps.len() / 2..];
            let middle = mean(late);
            let off: Vec<f64> = late.iter().map(|step| (step - middle).abs()).collect();
            mean(&off) / middle.max(1e-9)
        };
        mean(&self.course.iter().map(of).collect::<Vec<_>>())
    }
}

fn mean_delay(of: &Measured, times: Times) -> f64 {
    match of.delays(times.span()) {
        none if none.is_empty() => f64::NAN,
        delays => mean(&delays),
    }
}

fn course(of: &Measured, times: Times) -> Vec<f64> {
    let (begin, end) = (Times::at(times.begin), Times::at(times.end));
    let steps = end.saturating_since(begin).nanos() / STEP.nanos();
    (0..steps)
        .map(|step| {
            let from = begin + STEP * step;
            of.bps((from, from + STEP)) / 1e3
        })
        .collect()
}

fn lopsided(measured: &[Measured], times: Times) -> f64 {
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
