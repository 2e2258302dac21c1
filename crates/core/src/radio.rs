//! The contract of a node that owns its radio: every MAC, and every protocol that is its own MAC.

use core::fmt;

use crate::{Dbm, Duration, Instant, Mode, TraceEvent};

/// Owns its radio. Frames start at exact instants on a channel.
///
/// The driver's rule: after each `handle_*`, drain [`poll_radio`](Self::poll_radio) until `None`, then read
/// [`poll_timeout`](Self::poll_timeout). Half-duplex: a transmission ends any reception in progress.
///
/// A radio starts listening, with carrier sensing off. The frame check sequence belongs to the radio: it is
/// counted in the airtime, but neither written nor seen by the node.
pub trait RadioNode {
    /// Something happened on the air.
    fn handle_radio(&mut self, now: Instant, event: RadioEvent<'_>);

    /// What the node wants of its radio next. A frame to send is written to the front of `psdu`, which holds at
    /// least [`Caps::frame_max`](crate::Caps::frame_max) octets.
    fn poll_radio(&mut self, now: Instant, psdu: &mut [u8]) -> Option<RadioRequest>;

    /// The deadline of [`poll_timeout`](Self::poll_timeout) has come, or not: calling early changes nothing.
    fn handle_timeout(&mut self, now: Instant);

    /// When the node must be woken next, and why. Never before `now` once the node is drained.
    fn poll_timeout(&self) -> Option<Wake>;

    /// What the node recorded about itself since the last call; `None` when there is no more.
    fn poll_trace(&mut self) -> Option<TraceEvent> {
        None
    }
}

/// The next deadline and the reason for it, which turns a trace of wake-ups into an explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wake {
    /// When, on the node's own clock.
    pub at: Instant,
    /// Why, in a few words: `"back-off"`, `"child not overheard"`.
    pub why: &'static str,
}

impl Wake {
    /// The earlier of two optional deadlines.
    pub fn earlier(a: Option<Wake>, b: Option<Wake>) -> Option<Wake> {
        match (a, b) {
            (Some(a), Some(b)) => Some(if b.at < a.at { b } else { a }),
            (a, b) => a.or(b),
        }
    }

    /// Whether a deadline has come at `now`.
    pub fn due(wake: Option<Wake>, now: Instant) -> bool {
        wake.is_some_and(|wake| wake.at <= now)
    }
}

/// What a radio tells its node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RadioEvent<'a> {
    /// The state of the channel: at once after [`RadioRequest::Sense`] was turned on, then at each change.
    /// The channel is busy while energy is above the carrier-sense threshold, while a frame is being received,
    /// and while this radio transmits.
    Carrier {
        /// Whether the channel is busy now.
        busy: bool,
        /// Since when; not later than now.
        since: Instant,
    },
    /// The first octets of a frame that is still arriving, for a node that asked with [`RadioRequest::Peek`].
    Head(Head<'a>),
    /// A frame arrived whole. Its end is now.
    Received(Reception<'a>),
    /// A frame whose preamble was found ended without a good check sequence. It ends now. Receptions that the node
    /// ended itself, by transmitting, tuning, sleeping or [`RadioRequest::Abort`], are not told, nor are frames that
    /// the radio left for a stronger one: that one's end is told.
    Failed(Failure),
    /// The last bit of the own transmission left the antenna now.
    Sent,
}

/// The front of a frame whose last of these octets has arrived now. [`RadioEvent::Received`] or
/// [`RadioEvent::Failed`] follows when the frame ends, unless the node ends the reception itself.
///
/// No check sequence covers these octets. The simulated radio tells a head only if all of it arrived as it was
/// sent; a garbled head is not told and the radio stays with the frame until it fails. A real radio hands on the
/// garbled octets, so a node must be ready for them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Head<'a> {
    /// As many octets of the PSDU as were asked for; all of it, without its check sequence, if it is shorter.
    /// Outside data: parse it, never trust it.
    pub octets: &'a [u8],
    /// Length of the whole PSDU without its check sequence, from the PHY header.
    pub len: usize,
    /// When the frame's first preamble bit arrived; the same as in the event that may follow.
    pub started: Instant,
    /// How it is sent.
    pub mode: Mode,
}

/// A frame with a good check sequence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reception<'a> {
    /// The frame without its check sequence. Outside data: parse it, never trust it.
    pub psdu: &'a [u8],
    /// When its first preamble bit arrived.
    pub started: Instant,
    /// How it was sent.
    pub mode: Mode,
    /// Received power, where the radio reports it.
    pub power: Option<Dbm>,
}

/// A frame that was lost after its preamble had been found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Failure {
    /// When its first preamble bit arrived.
    pub started: Instant,
    /// How it was sent, if its header was understood.
    pub mode: Option<Mode>,
}

/// What a node asks of its radio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RadioRequest {
    /// Send the frame that was written to the buffer. One transmission can be waiting; a second one replaces it.
    Transmit(Transmit),
    /// Send energy that carries nothing: others notice it by carrier sense and can receive nothing of it. Waits, ends
    /// ([`RadioEvent::Sent`]) and is replaced like a transmission.
    Burst(Burst),
    /// Forget a transmission that has not started yet.
    Cancel,
    /// Report the carrier, or stop reporting it. A node that contends for the channel turns it on; leaving it
    /// off costs nothing on each frame of the neighbourhood.
    Sense(bool),
    /// Send and receive on another channel from now on. A reception in progress is lost.
    Tune(Channel),
    /// Receiver on or off, to save energy. Off ends a reception in progress; transmitting works in both states.
    Listen(bool),
    /// Tell the first so many octets of the PSDU of every frame as soon as they have arrived
    /// ([`RadioEvent::Head`]); 0, as at the start, tells none. Holds for receptions that begin from now on.
    Peek(usize),
    /// Give up the reception in progress, if there is one, and listen again at once. No event follows for that
    /// frame; what is left of it counts as energy on the channel.
    Abort,
}

/// A frame to put on the air.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transmit {
    /// When its first preamble bit leaves; now or in the past means at once.
    pub at: Instant,
    /// How many octets of the buffer are the PSDU, without the check sequence.
    pub len: usize,
    /// How to send it.
    pub mode: Mode,
    /// At which power; `None` is the radio's usual one.
    pub power: Option<Dbm>,
}

/// Energy to put on the air: a few bits of preamble, a tone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Burst {
    /// When it begins; now or in the past means at once.
    pub at: Instant,
    /// For how long.
    pub lasts: Duration,
    /// At which power; `None` is the radio's usual one.
    pub power: Option<Dbm>,
}

/// A channel number in the numbering of the radio's standard: 1 to 14 for 802.11b, 11 to 26 for 802.15.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Channel(pub u8);

impl Transmit {
    /// How long the frame is on the air, `fcs` octets of check sequence included.
    pub fn airtime(&self, fcs: usize) -> Duration {
        self.mode.airtime(self.len + fcs)
    }
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "channel {}", self.0)
    }
}
