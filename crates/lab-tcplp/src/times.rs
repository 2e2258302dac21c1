//! One bulk transfer with a recorder of its frames, and the time that they took.

use chappe_core::{Duration, Seed};
use chappe_lab::run::RunError;
use chappe_mac::dot15d4;
use chappe_sim::{Recorder, Sent};
use chappe_tcplp::host::Bulk;
use chappe_wire::dot15d4::{FCS_LEN, Header, Kind};

use super::experiment::Experiment;

/// A frame on the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The time of its first bit, in ns.
    pub at: u64,
    /// The node that sent it.
    pub node: usize,
    /// Its octets, check sequence included.
    pub octets: usize,
    /// Whether it is an acknowledgement frame.
    pub ack: bool,
}

/// All frames of a run, by their start.
#[derive(Clone, Debug, Default)]
pub struct Times(pub Vec<Frame>);

impl Recorder for Times {
    const NODES: bool = false;

    fn sent(&mut self, frame: &Sent<'_>) {
        let ack = Header::parse(frame.psdu).is_ok_and(|(header, _)| header.kind == Kind::Ack);
        self.0.push(Frame {
            at: frame.at.nanos(),
            node: frame.node,
            octets: frame.psdu.len() + FCS_LEN,
            ack,
        });
    }
}

impl Frame {
    /// Its airtime, preamble included.
    pub fn air(&self) -> Duration {
        dot15d4::Config::MODE.airtime(self.octets)
    }
}

impl Times {
    /// The airtime in seconds of the `wanted` frames after `from`.
    pub fn air_s(&self, from: Duration, wanted: impl Fn(&Frame) -> bool) -> f64 {
        let frames = self.0.iter().filter(|frame| frame.at >= from.nanos());
        let wanted = frames.filter(|frame| wanted(frame));
        wanted.map(|frame| frame.air().as_secs_f64()).sum()
    }

    /// Seconds from the start of a frame to the start of its sender's next one, for pairs with only the acknowledgement in
    /// between. Each is corrected to the airtime of a frame of `octets`.
    pub fn cycles(&self, octets: usize) -> Vec<f64> {
        let three = self.0.windows(3).filter(|three| {
            let data = !three[0].ack && three[1].ack && !three[2].ack;
            data && three[0].node == three[2].node && three[0].node != three[1].node
        });
        let full = dot15d4::Config::MODE.airtime(octets).as_secs_f64();
        three
            .map(|three| {
                let span = (three[2].at - three[0].at) as f64 / 1e9;
                span + full - three[0].air().as_secs_f64()
            })
            .collect()
    }
}

/// Runs an endless transfer from node 1 to node 0 for `time` after `warm_up`. Returns the octets that arrived in that time, and
/// all frames.
pub fn run(
    experiment: &Experiment,
    (warm_up, time): (Duration, Duration),
    seed: Seed,
) -> Result<(u64, Times), RunError> {
    let mut memory = experiment.memory();
    let apps = |node| Bulk::sending(if node == 1 { u64::MAX } else { 0 });
    let mut lln = experiment.record(&mut memory, seed, apps, Times::default())?;
    lln.connect(1, 0);
    lln.run(warm_up);
    let before = lln.app(0).received;
    lln.run(time);
    let octets = lln.app(0).received - before;
    let (_, times, _) = lln.simulator.into_parts();
    Ok((octets, times))
}
