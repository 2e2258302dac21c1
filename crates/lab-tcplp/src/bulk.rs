//! One bulk transfer, measured in its steady state.

use chappe_core::{Duration, Instant, Seed};
use chappe_lab::carry::Record;
use chappe_lab::run::RunError;
use chappe_results::statistics::mean;
use chappe_tcplp::tcp::State;

use super::app::App;
use super::experiment::Experiment;
use super::lln::Counts;
use super::times::Times;

/// An endless transfer from one node to another, without the seed.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The network and its stacks.
    pub experiment: Experiment,
    /// The node that sends.
    pub from: usize,
    /// The node that receives.
    pub to: usize,
    /// How long it is measured.
    pub time: Duration,
}

/// The result of one trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Goodput: octets read by the application, in kbit/s.
    pub kbps: f64,
    /// Mean of the sender's smoothed round-trip time, in ms.
    pub rtt_ms: f64,
    /// Share of the segments that were lost, 0 to 1.
    pub segment_loss: f64,
    /// Data frames put on the air by all nodes.
    pub frames: f64,
    /// Share of the data frames that were retried or given up.
    pub frame_loss: f64,
    /// Fast recoveries and timeouts of the sender.
    pub recoveries: f64,
    /// Timeouts of the sender.
    pub timeouts: f64,
    /// The sender's congestion window in segments, ten times a second.
    pub windows: Vec<f64>,
    /// Mean number of the sender's segments in flight: sent by TCP and not acknowledged, ten times a second.
    pub in_flight: f64,
    /// The counters of all nodes over the measured time.
    pub counts: Counts,
}

/// Time before the measurement, in which slow start ends.
const WARM_UP: Duration = Duration::from_secs(3);
/// The sampling interval of the sender's window and round-trip time.
const LOOK: Duration = Duration::from_millis(100);

impl Trial {
    /// A transfer from the far end of a row to node 0.
    pub fn up(experiment: Experiment, time: Duration) -> Trial {
        let from = experiment.nodes() - 1;
        Trial {
            experiment,
            from,
            to: 0,
            time,
        }
    }

    /// A transfer from node 0 to the far end of a row.
    pub fn down(experiment: Experiment, time: Duration) -> Trial {
        let to = experiment.nodes() - 1;
        Trial {
            experiment,
            from: 0,
            to,
            time,
        }
    }

    /// Runs the trial with one seed. Corrupt octets are a defect.
    pub fn run(&self, seed: Seed) -> Result<Measured, RunError> {
        let mut memory = self.experiment.memory();
        let apps = |node| App::sending(if node == self.from { u64::MAX } else { 0 });
        let mut lln = self.experiment.start(&mut memory, seed, apps)?;
        lln.connect(self.from, self.to);
        lln.run(WARM_UP);
        let (before, octets) = (lln.counts(), lln.bulk(self.to).received);
        let (mut trips, mut windows, mut flights) = (Vec::new(), Vec::new(), Vec::new());
        let end = Instant::ZERO + WARM_UP + self.time;
        while Instant::ZERO + lln.now() < end {
            lln.run(LOOK.min(end.saturating_since(Instant::ZERO + lln.now())));
            let info = lln.info(self.from, 0);
            // Before and after the connection, window and round trip are not those of a transfer.
            if info.state == State::Established {
                trips.push(info.srtt.as_secs_f64() * 1e3);
                let segments = |octets: u32| f64::from(octets) / f64::from(info.send_mss.max(1));
                windows.push(segments(info.cwnd));
                flights.push(segments(info.in_flight));
            }
        }
        let counts = lln.counts().since(&before);
        let app = lln.bulk(self.to);
        if app.wrong > 0 {
            let message = format!("{} octets arrived corrupt", app.wrong);
            return Err(RunError::Defect(message));
        }
        let sender = counts.nodes[self.from];
        Ok(Measured {
            kbps: (app.received - octets) as f64 * 8e-3 / self.time.as_secs_f64(),
            rtt_ms: mean(&trips),
            segment_loss: counts.segment_loss(self.from, self.to),
            frames: counts.frames() as f64,
            frame_loss: counts.frame_loss(),
            recoveries: sender.recoveries as f64,
            timeouts: sender.timeouts as f64,
            windows,
            in_flight: mean(&flights),
            counts,
        })
    }
}

/// Runs an endless transfer from node 1 to node 0 for `time` after `warm_up`. Returns the octets that arrived in that time, and
/// all frames.
pub fn timed(
    experiment: &Experiment,
    (warm_up, time): (Duration, Duration),
    seed: Seed,
) -> Result<(u64, Times), RunError> {
    let mut memory = experiment.memory();
    let apps = |node| App::sending(if node == 1 { u64::MAX } else { 0 });
    let mut lln = experiment.record(&mut memory, seed, apps, Record::Trial(Times::wanted()))?;
    lln.connect(1, 0);
    lln.run(warm_up);
    let before = lln.bulk(0).received;
    lln.run(time);
    let octets = lln.bulk(0).received - before;
    let (_, record, _) = lln.simulator.into_parts();
    let times = record.into_trial().unwrap_or_default();
    Ok((octets, times))
}
