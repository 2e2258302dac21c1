//! The contract of a node that owns its radio: every MAC, and every protocol that is its own MAC.

use core::fmt;

use crate::{Dbm, Duration, Instant, Mode, TraceEvent};

/// A node that owns its radio. Frames start at exact instants on a channel.
///
/// The driver's rule: after each `handle_*`, drain [`poll_radio`](Self::poll_radio) until `None`, then read
/// [`poll_timeout`](Self::poll_timeout). Half-duplex: a transmission ends any reception in progress.
///
/// A radio starts listening, with carrier sensing off. The frame check sequence belongs to the radio: it is
/// counted in the airtime, but neither written nor seen by the node.
pub trait RadioNode {
    /// Handles an event of the radio.
    fn handle_radio(&mut self, now: Instant, event: RadioEvent<'_>);

    /// The next request to the radio. A frame to send is written to the front of `psdu`, which holds at least
    /// [`Caps::frame_max`](crate::Caps::frame_max) octets.
    fn poll_radio(&mut self, now: Instant, psdu: &mut [u8]) -> Option<RadioRequest>;

    /// Handles the deadline of [`poll_timeout`](Self::poll_timeout), if it has come; calling early changes nothing.
    fn handle_timeout(&mut self, now: Instant);

    /// The next deadline, and the reason for it. Never before `now` once the node is drained.
    fn poll_timeout(&self) -> Option<Wake>;

    /// The next trace event of the node; `None` when there is no more.
    fn poll_trace(&mut self) -> Option<TraceEvent> {
        None
    }
}

/// The next deadline and the reason for it, which makes a trace of wake-ups readable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wake {
    /// The deadline, on the node's own clock.
    pub at: Instant,
    /// The reason in a few words: `"back-off"`, `"child not overheard"`.
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

/// An event that a radio reports to its node.
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
    /// A frame was received with a good check sequence. It ends now.
    Received(Reception<'a>),
    /// A frame whose preamble was detected has no good check sequence. It ends now. Receptions that the node ended
    /// itself, by transmitting, tuning, sleeping or [`RadioRequest::Abort`], are not reported. Neither is a frame that
    /// the radio abandoned for a stronger one; the end of the stronger one is.
    Failed(Failure),
    /// The last bit of the node's own transmission left the antenna now.
    Sent,
}

/// The first octets of a frame. The last of them arrived now. [`RadioEvent::Received`] or
/// [`RadioEvent::Failed`] follows when the frame ends, unless the node ends the reception itself.
///
/// No check sequence covers these octets. The simulated radio reports a head only if all of it arrived intact; it does
/// not report a corrupted head and stays with the frame until that fails. A real radio passes on corrupted octets, so a
/// node must expect them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Head<'a> {
    /// As many octets of the PSDU as were requested; all of it, without its check sequence, if it is shorter. Outside
    /// data: parse it, never trust it.
    pub octets: &'a [u8],
    /// Length of the whole PSDU without its check sequence, from the PHY header.
    pub len: usize,
    /// When the frame's first preamble bit arrived; the same as in the event that may follow.
    pub started: Instant,
    /// Rate and preamble of the frame.
    pub mode: Mode,
}

/// A received frame with a good check sequence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reception<'a> {
    /// The frame without its check sequence. Outside data: parse it, never trust it.
    pub psdu: &'a [u8],
    /// When its first preamble bit arrived.
    pub started: Instant,
    /// Rate and preamble of the frame.
    pub mode: Mode,
    /// Received power, where the radio reports it.
    pub power: Option<Dbm>,
}

/// A frame that was lost after its preamble had been detected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Failure {
    /// When its first preamble bit arrived.
    pub started: Instant,
    /// Rate and preamble, if the PHY header was decoded.
    pub mode: Option<Mode>,
}

/// A request of a node to its radio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RadioRequest {
    /// Send the frame that was written to the buffer. One transmission can wait; a second one replaces it.
    Transmit(Transmit),
    /// Send energy without data: others detect it by carrier sense only. It waits, ends ([`RadioEvent::Sent`]) and is
    /// replaced like a transmission.
    Burst(Burst),
    /// Cancel a transmission that has not started yet.
    Cancel,
    /// Turn carrier-sense events on or off. They are opt-in, because they cost time on each frame of the neighbourhood; a
    /// node that contends for the channel turns them on.
    Sense(bool),
    /// Send and receive on another channel from now on. Ends a reception in progress.
    Tune(Channel),
    /// Turn the receiver on or off, to save energy. Off ends a reception in progress; transmitting works in both states.
    Listen(bool),
    /// Report the first n octets of every frame's PSDU as soon as they have arrived ([`RadioEvent::Head`]). 0, the
    /// initial value, turns it off. Applies to receptions that begin from now on.
    Peek(usize),
    /// Abandon the reception in progress, if any, and listen again at once. No event follows for that frame; the rest of
    /// it counts as energy on the channel.
    Abort,
}

/// A frame to put on the air.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transmit {
    /// When its first preamble bit leaves; now or in the past means at once.
    pub at: Instant,
    /// How many octets of the buffer are the PSDU, without the check sequence.
    pub len: usize,
    /// Rate and preamble of the frame.
    pub mode: Mode,
    /// Transmit power; `None`: the radio's default.
    pub power: Option<Dbm>,
}

/// Energy to put on the air: a few bits of preamble, a tone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Burst {
    /// When it begins; now or in the past means at once.
    pub at: Instant,
    /// Its duration on the air.
    pub lasts: Duration,
    /// Transmit power; `None`: the radio's default.
    pub power: Option<Dbm>,
}

/// A channel number in the numbering of the radio's standard: 1 to 14 for 802.11b, 11 to 26 for 802.15.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Channel(pub u8);

impl Transmit {
    /// The frame's airtime, including `fcs` octets of check sequence.
    pub fn airtime(&self, fcs: usize) -> Duration {
        self.mode.airtime(self.len + fcs)
    }
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "channel {}", self.0)
    }
}
