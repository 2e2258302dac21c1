//! Event detection (8.3): all leaves report at once, each at the same rate, while their radios sleep as before.

use chappe_core::{Duration, Instant, Seed};
use chappe_lab::run::RunError;
use chappe_tcplp::baseline::Report;
use chappe_tcplp::host::{Collect, Readings, Sense};

use super::super::addresses::CLOUD;
use super::super::lln::Lln;
use super::super::transport::WINDOW;
use super::app::App;
use super::{Frames, LEAVES, Protocol, READING, Sleeping, experiment};

/// The interval over which goodput is taken (8.3).
pub const INTERVAL: Duration = Duration::from_secs(40);
/// Connections are there and queues have filled.
const WARM_UP: Duration = Duration::from_secs(40);

/// One run, all but the seed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// What carries the reports.
    pub protocol: Protocol,
    /// What each leaf has to send, bit/s.
    pub offered: f64,
    /// Intervals that are counted.
    pub intervals: u32,
    /// Whether relays mark and drop early.
    pub red: bool,
}

/// What came out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Goodput of each leaf in each interval, bit/s.
    pub goodput: Vec<f64>,
    /// Jain's index over the leaves, whole run.
    pub fairness: f64,
    /// Packets that relays marked.
    pub marked: u64,
    /// Packets that 6LoWPAN lost at relays, for want of room or early.
    pub dropped: u64,
}

impl Trial {
    /// Runs it.
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
        // All begin together: they saw the same event.
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

fn delivered(lln: &Lln<'_, App>, leaf: usize) -> u64 {
    match lln.app(0) {
        App::Collect(server) => server.tally(lln.address(leaf)).octets,
        _ => 0,
    }
}

/// Jain's index of fairness: 1 if all get the same, 1/n if one gets all.
fn fairness(rates: &[f64]) -> f64 {
    let sum: f64 = rates.iter().sum();
    let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
    if squares > 0.0 {
        sum * sum / (rates.len() as f64 * squares)
    } else {
        0.0
    }
}
