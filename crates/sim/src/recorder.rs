//! Observers of a run. Statically dispatched: `()` records nothing and costs nothing.

use chappe_core::{Mode, TraceEvent};

use crate::{AirTime, Loss, Power};

/// An observer of a run. All methods do nothing by default.
pub trait Recorder {
    /// Whether to report frames and their outcomes.
    const FRAMES: bool = true;
    /// Whether to report nodes' trace events and the reasons of their deadlines.
    const NODES: bool = true;

    /// Whether this recorder wants frames and their outcomes now. Where [`FRAMES`](Self::FRAMES) is false it is never called.
    fn wants_frames(&self) -> bool {
        Self::FRAMES
    }

    /// A frame's first bit left an antenna.
    fn sent(&mut self, _frame: &Sent<'_>) {}
    /// A frame was received or lost at one receiver. Losses that are known at a frame's start are reported then.
    fn heard(&mut self, _frame: &Heard<'_>) {}
    /// A node recorded something about itself.
    fn traced(&mut self, _at: AirTime, _node: usize, _event: TraceEvent) {}
    /// A node's deadline fired, for the stated reason.
    fn woken(&mut self, _at: AirTime, _node: usize, _why: &'static str) {}
}

impl Recorder for () {
    const FRAMES: bool = false;
    const NODES: bool = false;
}

/// A frame that begins.
#[derive(Clone, Copy, Debug)]
pub struct Sent<'a> {
    /// When its first bit left the antenna.
    pub at: AirTime,
    /// The node that sends it.
    pub node: usize,
    /// Which of its frames this is, from zero.
    pub number: u64,
    /// The PSDU without check sequence.
    pub psdu: &'a [u8],
    /// Rate and preamble of the frame.
    pub mode: Mode,
    /// The channel that it is sent on.
    pub channel: u8,
}

/// What became of a frame at one receiver.
#[derive(Clone, Copy, Debug)]
pub struct Heard<'a> {
    /// When the outcome was known.
    pub at: AirTime,
    /// The node that received or lost it.
    pub node: usize,
    /// The node that sent it.
    pub from: usize,
    /// Which of the sender's frames this is.
    pub number: u64,
    /// The PSDU as it was sent, without check sequence.
    pub psdu: &'a [u8],
    /// Rate and preamble of the frame.
    pub mode: Mode,
    /// On which channel it was sent.
    pub channel: u8,
    /// When its first bit arrived.
    pub started: AirTime,
    /// Its power at the receiver.
    pub power: Power,
    /// Received, or why not.
    pub outcome: Result<(), Loss>,
}
