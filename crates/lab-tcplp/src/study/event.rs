//! Event detection (8.3): all leaves report at once and at the same rate, while their radios keep their sleep schedule.

use chappe_core::{Duration, Instant, Seed};
use chappe_lab::run::RunError;
use chappe_tcplp::baseline::Report;
use chappe_tcplp::host::{Collect, Readings, Sense};

use super::super::addresses::CLOUD;
use super::super::app::App;
use super::super::lln::Lln;
use super::super::transport::WINDOW;
use super::{Frames, LEAVES, Protocol, READING, Sleeping, experiment};

/// The interval over which goodput is averaged (8.3).
pub const INTERVAL: Duration = Duration::from_secs(40);
/// Time before the measurement, in which connections open and queues fill.
const WARM_UP: Duration = Duration::from_secs(40);

/// The description of one run, without the seed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// The protocol that carries the reports.
    pub protocol: Protocol,
    /// The offered load of each leaf, in bit/s.
    pub offered: f64,
    /// The number of measured intervals.
    pub intervals: u32,
    /// Whether relays run RED: mark, and drop early.
    pub red: bool,
}

/// The result of one trial.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Goodput of each leaf in each interval, in bit/s.
    pub goodput: Vec<f64>,
    /// Jain's index over the leaves, for the whole run.
    pub fairness: f64,
    /// Packets that relays marked.
    pub marked: u64,
    /// Packets that relays dropped, early or because a queue was full.
    pub dropped: u64,
}

impl Trial {
    /// Runs the trial with one seed.
    pub fn run(&self, seed: Seed) -> Result<Measured, RunError> {
        let mut experiment = experiment(self.protocol, Frames::Three, Some(Sleeping::PAPER));
        experiment.red = self.red;
        let mut memory = experiment.memory();
        let mut lln = experiment.start(&mut memory, seed, |node| self.app(node, seed))?;
        for leaf in LEAVES {
            if self.protocol.is_tcp() {
                lln.connect(leaf, 0);
            }
            lln.run(Duration::from_secs(2));
        }
        lln.run(WARM_UP);
        let before = lln.counts();
        let mut measured = Measured::default();
        let mut sums = [0.0; LEAVES.len()];
        let mut tallies = LEAVES.map(|leaf| delivered(&lln, leaf));
        for _ in 0..self.intervals {
            lln.run(INTERVAL);
            for (number, leaf) in LEAVES.into_iter().enumerate() {
                let now = delivered(&lln, leaf);
                let octets = now - std::mem::replace(&mut tallies[number], now);
                let rate = octets as f64 * 8.0 / INTERVAL.as_secs_f64();
                measured.goodput.push(rate);
                sums[number] += rate;
            }
        }
        let counts = lln.counts().since(&before);
        measured.fairness = fairness(&sums);
        measured.marked = counts.nodes.iter().map(|node| node.marked).sum();
        measured.dropped = counts.nodes[..5].iter().map(|node| node.lowpan_lost).sum();
        Ok(measured)
    }

    fn app(&self, node: usize, seed: Seed) -> App {
        if node == 0 {
            return App::Collect(Collect::default());
        }
        if !LEAVES.contains(&node) {
            return App::Nothing;
        }
        let (mss, per_message) = self.protocol.sizes(Frames::Three);
        // All leaves begin together, since they detect the same event.
        let mut readings = Readings::tcplp(Instant::from_millis(9000));
        readings.period = Duration::from_secs_f64(f64::from(READING) * 8.0 / self.offered);
        readings.batch = per_message;
        if self.protocol.is_tcp() {
            let buffer = (u32::from(mss) - 12) * WINDOW as u32;
            readings.queue_max -= buffer / READING;
            return App::Sense(Sense::new(readings));
        }
        let client = self.protocol.client(node, seed);
        App::Report(Report::new(readings, client, CLOUD, per_message))
    }
}

fn delivered(lln: &Lln<'_>, leaf: usize) -> u64 {
    match lln.app(0) {
        App::Collect(server) => server.tally(lln.address(leaf)).octets,
        _ => 0,
    }
}

/// Jain's fairness index: 1 if all rates are equal, 1/n if one leaf has the whole rate.
fn fairness(rates: &[f64]) -> f64 {
    let sum: f64 = rates.iter().sum();
    let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
    if squares > 0.0 {
        sum * sum / (rates.len() as f64 * squares)
    } else {
        0.0
    }
}
