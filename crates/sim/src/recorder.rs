//! Who wants to know what happens in a run. Statically dispatched: `()` records nothing and costs nothing.

use chappe_core::{Mode, TraceEvent};

use crate::{AirTime, Loss, Power};

/// Something that follows a run. All methods do nothing unless written.
pub trait Recorder {
    /// Whether frames and their outcomes are of interest at all.
    const FRAMES: bool = true;
    /// Whether nodes' trace events and the reasons of their deadlines are of interest.
    const NODES: bool = true;

    /// A frame's first bit left an antenna.
    fn sent(&mut self, _frame: &Sent<'_>) {}
    /// A frame was received or lost at one receiver. Losses that are known at a frame's start are told then.
    fn heard(&mut self, _frame: &Heard<'_>) {}
    /// A node recorded something about itself.
    fn traced(&mut self, _at: AirTime, _node: usize, _event: TraceEvent) {}
    /// A node's deadline came.
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
    /// Who sends it.
    pub node: usize,
    /// Which of its frames this is, from zero.
    pub number: u64,
    /// Without check sequence.
    pub psdu: &'a [u8],
    /// How it is sent.
    pub mode: Mode,
    /// On which channel.
    pub channel: u8,
}

/// What became of a frame at one receiver.
#[derive(Clone, Copy, Debug)]
pub struct Heard<'a> {
    /// When this was known.
    pub at: AirTime,
    /// The receiver.
    pub node: usize,
    /// Who sent it.
    pub from: usize,
    /// Which of the sender's frames this is.
    pub number: u64,
    /// As it was sent, without check sequence.
    pub psdu: &'a [u8],
    /// How it was sent.
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
