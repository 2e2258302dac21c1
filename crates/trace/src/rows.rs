//! What a recording holds when the run is over: tables of plain rows.

use chappe_core::Duration;
use chappe_sim::{AirTime, Loss, Switched, Value};

/// No frame: a loss without a culprit, or one whose culprit the ring dropped.
pub const NO_FRAME: u32 = u32::MAX;

/// A run's events, in order of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// What the rows are about.
    pub about: About,
    /// Frames that were sent.
    pub frames: Vec<Frame>,
    /// What became of each frame at each receiver in reach.
    pub receptions: Vec<Reception>,
    /// Radios that were switched off and on.
    pub switches: Vec<Switch>,
    /// What nodes held, whenever it changed.
    pub readings: Vec<NodeReading>,
    /// Links and how well they deliver.
    pub links: Vec<Link>,
}

/// What the rows of a [`Trace`] are about.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct About {
    /// The title of the run's scenario.
    pub scenario: String,
    /// The system, as scenarios name it.
    pub system: String,
    /// The system's variant, as reports name it.
    pub variant: String,
    /// The seed of the run.
    pub seed: u64,
    /// The end of the run.
    pub end: AirTime,
    /// The number of nodes, which are counted from zero.
    pub nodes: usize,
    /// Transmitters that are no nodes: jammers, other networks. They have the numbers that follow those of the nodes.
    pub interferers: usize,
    /// What nodes and interferers are called, in the order of their numbers; empty where numbers are enough.
    pub names: Vec<String>,
    /// Where nodes stand, and interferers after them, in metres; empty for networks without geometry.
    pub positions: Vec<(f64, f64)>,
    /// Noise in the receivers' band in dBm; `None` where the network is a table of delivery ratios without powers.
    pub noise_dbm: Option<f64>,
    /// Rows that the rings dropped: frames, receptions, readings.
    pub dropped: [u64; 3],
}

/// A frame on the air, or a burst of an interferer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame {
    /// The node or interferer that sent it.
    pub node: u32,
    /// Which of its frames this is, from zero.
    pub number: u32,
    /// When its first bit left the antenna.
    pub start: AirTime,
    /// Its time on the air.
    pub airtime: Duration,
    /// Octets with the check sequence.
    pub octets: u32,
    /// The channel that it was sent on.
    pub channel: u8,
    /// What it is, by its first octets.
    pub label: crate::Label,
}

/// What became of a frame at one receiver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reception {
    /// The frame's place among the trace's frames; [`NO_FRAME`] if the ring dropped it.
    pub frame: u32,
    /// The node that received or lost it.
    pub node: u32,
    /// The node that sent it.
    pub from: u32,
    /// When its first bit arrived.
    pub start: AirTime,
    /// When the outcome was known.
    pub at: AirTime,
    /// Its power at the receiver in dBm.
    pub power_dbm: f32,
    /// Power over noise and the strongest interference while it was received, in dB; NaN where none applies.
    pub sinr_db: f32,
    /// Received, or why not.
    pub outcome: Result<(), Loss>,
    /// The frame that destroyed or displaced it; [`NO_FRAME`] if none did, or if the ring dropped it.
    pub culprit: u32,
}

/// A radio that was switched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    /// When it was switched.
    pub at: AirTime,
    /// The node whose radio it is.
    pub node: u32,
    /// What it was switched to.
    pub to: Switched,
}

/// A value that a node held from a moment on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeReading {
    /// When it was read.
    pub at: AirTime,
    /// The node that held it.
    pub node: u32,
    /// What it is, in `snake_case`.
    pub name: &'static str,
    /// Which one of them.
    pub part: u32,
    /// Its value from that moment on.
    pub value: Value,
}

/// A directed link between two nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// The node that sends on it.
    pub from: u32,
    /// The node that it leads to.
    pub to: u32,
    /// The share of frames that arrive without interference.
    pub delivery: f32,
}
