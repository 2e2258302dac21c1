//! The radio, as the runner waits for it.

use chappe_core::{Dbm, Failure, Instant, Mode, RadioRequest};

/// A radio that a [`Runner`](crate::Runner) drives: the requests and events of [`RadioNode`](chappe_core::RadioNode), awaited.
///
/// The driver keeps the time of the MAC: it starts a frame at `Transmit::at`, by a timer and not by a task, and notes when
/// an event happened, so that a task that runs late does no harm. An acknowledgement is due 192 us after a frame; a task
/// that is later than that loses it.
#[allow(
    async_fn_in_trait,
    reason = "firmware runs its tasks on one executor, without Send"
)]
pub trait Radio {
    /// Begins what the MAC asks for and returns at once. The frame of a transmission is in `psdu`, without its check
    /// sequence, and must be copied.
    fn request(&mut self, request: RadioRequest, psdu: &[u8]);

    /// Waits for the next event. A frame that was received is written to the front of `psdu`, which has 127 octets.
    /// Dropping the future loses no event.
    async fn event(&mut self, psdu: &mut [u8]) -> Event;
}

/// What a radio reports, and when it happened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event {
    /// When it happened, by the stack's clock; not later than now.
    pub at: Instant,
    /// The event itself, without received octets.
    pub what: What,
}

/// The events of [`RadioEvent`](chappe_core::RadioEvent), with received octets in the caller's buffer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum What {
    /// The state of the channel, after `RadioRequest::Sense(true)` and at each change.
    Carrier {
        /// Whether the channel is busy.
        busy: bool,
        /// When the channel became busy or idle.
        since: Instant,
    },
    /// The first octets of a frame are in the buffer; the frame goes on.
    Head {
        /// Octets in the buffer.
        octets: usize,
        /// Length of the whole frame, without its check sequence.
        len: usize,
        /// When its first preamble bit arrived.
        started: Instant,
        /// Rate and preamble, which give the frame's duration.
        mode: Mode,
    },
    /// A frame with a good check sequence ended.
    Received {
        /// Octets of the frame in the buffer, without its check sequence.
        len: usize,
        /// When its first preamble bit arrived.
        started: Instant,
        /// Rate and preamble that the frame was sent with.
        mode: Mode,
        /// Received power, if the radio knows it.
        power: Option<Dbm>,
    },
    /// A frame without a good check sequence ended.
    Failed(Failure),
    /// The last bit of our frame left the antenna.
    Sent,
}
