//! Observers of a run. Statically dispatched: `()` records nothing and costs nothing.

use std::slice;

use chappe_core::{Duration, Mode, TraceEvent};

use crate::arrival::{Arrival, At};
use crate::{AirTime, Loss, Position, Power};

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

    /// Whether it also wants frames that a receiver could not have received: too weak for an idle radio, or while the radio was
    /// off or on another channel. On large networks they are most of all.
    fn wants_unheard(&self) -> bool {
        self.wants_frames()
    }

    /// A frame's first bit left an antenna.
    fn sent(&mut self, _frame: &Sent<'_>) {}
    /// A frame was received or lost at one receiver. Losses that are known at a frame's start are reported then.
    fn heard(&mut self, _frame: &Heard<'_>) {}
    /// A signal that is no frame of the network left an antenna: a jammer's noise, a foreign network's frame, a node's burst of
    /// energy. `receivers` has every node in reach. Reported where frames are.
    fn interfered(&mut self, _burst: &Interference, _receivers: Receivers<'_>) {}
    /// A node recorded something about itself.
    fn traced(&mut self, _at: AirTime, _node: usize, _event: TraceEvent) {}
    /// A node's deadline fired, for the stated reason.
    fn woken(&mut self, _at: AirTime, _node: usize, _why: &'static str) {}
    /// A radio was switched off or on. Reported where frames are.
    fn switched(&mut self, _at: AirTime, _node: usize, _to: Switched) {}
    /// Whether the recorder wants readings of all nodes now; it is asked in [`Simulator::read`](crate::Simulator::read).
    fn wants_readings(&mut self, _at: AirTime) -> bool {
        false
    }
    /// One reading of a node's inside.
    fn read(&mut self, _at: AirTime, _node: usize, _reading: Reading) {}
}

/// What a radio was switched to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switched {
    /// It listens to the channel again.
    On,
    /// Its node put it to sleep to save energy.
    Asleep,
    /// Its node crashed, and it with it.
    Down,
}

/// One value of a node's inside: a rank, a queue, a window, the name of a state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// What it is, in `snake_case`: `rank`, `queue`, `congestion_window`.
    pub name: &'static str,
    /// Which one of them: the batch, the destination, the connection. 0 where there is one.
    pub part: u32,
    /// Its value at that moment.
    pub value: Value,
}

/// The value of a [`Reading`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A number, in the unit that the reading's name or its system's page says.
    Number(f64),
    /// The name of a state.
    Word(&'static str),
}

/// Takes the readings of one node for a recorder, whose code the compiler can put in the loop that reads the node: nodes show a
/// hundred values, of which few have changed.
#[derive(Debug)]
pub struct Reader<'r, R> {
    pub(crate) at: AirTime,
    pub(crate) node: usize,
    pub(crate) recorder: &'r mut R,
}

impl<R: Recorder> Reader<'_, R> {
    /// The node that is read.
    #[inline]
    pub fn node(&self) -> usize {
        self.node
    }

    /// Passes on one reading.
    #[inline]
    pub fn show(&mut self, reading: Reading) {
        self.recorder.read(self.at, self.node, reading);
    }
}

impl Reading {
    /// A reading that is a number.
    #[inline]
    pub fn number(name: &'static str, part: u32, value: f64) -> Reading {
        let value = Value::Number(value);
        Reading { name, part, value }
    }

    /// The name of a state.
    pub fn word(name: &'static str, part: u32, value: &'static str) -> Reading {
        let value = Value::Word(value);
        Reading { name, part, value }
    }
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

/// A signal that is no frame of the network.
#[derive(Clone, Copy, Debug)]
pub struct Interference {
    /// When its first bit left the antenna.
    pub at: AirTime,
    /// The node that sends it, or from the number of nodes on an interferer, in the order of the scenario's faults.
    pub from: usize,
    /// Which of its frames or bursts this is.
    pub number: u64,
    /// Its time on the air.
    pub airtime: Duration,
    /// Octets of a foreign frame, check sequence included; 0 for noise.
    pub octets: usize,
    /// The channel that it is sent on; 255 is every channel.
    pub channel: u8,
    /// Where an interferer stands; `None` for nodes, and in media without geometry.
    pub place: Option<Position>,
}

/// The nodes that a signal reaches, the nearest first. A type of its own, since some signals reach many: a call for each would cost more
/// than what a recorder does with it.
#[derive(Clone, Debug)]
pub struct Receivers<'a> {
    begin: AirTime,
    arrivals: slice::Iter<'a, Arrival>,
}

impl<'a> Receivers<'a> {
    pub(crate) fn new(begin: AirTime, arrivals: &'a [Arrival]) -> Receivers<'a> {
        let arrivals = arrivals.iter();
        Receivers { begin, arrivals }
    }

    /// The same as they lie in memory: less work to copy than one by one.
    pub fn as_slice(&self) -> &'a [Arrival] {
        self.arrivals.as_slice()
    }
}

impl Iterator for Receivers<'_> {
    type Item = At;

    #[inline]
    fn next(&mut self) -> Option<At> {
        self.arrivals.next().map(|arrival| arrival.at(self.begin))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.arrivals.size_hint()
    }
}

impl ExactSizeIterator for Receivers<'_> {}

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
    /// All other power at the receiver at that moment, from whatever source; not for frames that it could not have received.
    pub interference: Power,
    /// Received, or why not.
    pub outcome: Result<(), Loss>,
}
