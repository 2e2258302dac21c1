//! A node's requests to its radio, and its own trace and counters.

use chappe_core::{
    Address, Channel, DropReason, Drops, Instant, Layer, RadioRequest, TraceEvent, TraceRing,
    Transmit,
};

use crate::sizes::{FRAME_MAX, HEAD_LEN};
use crate::timing::MODE;

/// The requests that wait for the driver, at most one of each sort, and the frame to send.
#[derive(Clone, Debug)]
pub(crate) struct Outbox {
    frame: [u8; FRAME_MAX],
    len: usize,
    channel: Channel,
    tune: bool,
    /// Whether the receiver is on, and whether the driver has yet to be told.
    on: bool,
    listen: bool,
    peek: bool,
    abort: bool,
    cancel: bool,
    send: Option<Instant>,
    /// A frame waits for its instant or is on the air.
    busy: bool,
    /// The frame in `send`, or the one that the driver has got last, follows one that is on the air.
    follows: bool,
}

impl Outbox {
    /// An outbox without a frame, whose receiver listens on `channel`.
    pub fn new(channel: Channel) -> Outbox {
        Outbox {
            frame: [0; FRAME_MAX],
            len: 0,
            channel,
            tune: true,
            on: true,
            listen: true,
            peek: true,
            abort: false,
            cancel: false,
            send: None,
            busy: false,
            follows: false,
        }
    }

    pub fn tune(&mut self, channel: Channel) {
        self.tune |= channel != self.channel;
        self.channel = channel;
    }

    pub fn listen(&mut self, on: bool) {
        self.listen |= on != self.on;
        self.on = on;
    }

    /// Gives up the frame that is arriving.
    pub fn abort(&mut self) {
        self.abort = true;
    }

    /// The frame to send or to keep.
    pub fn frame(&self) -> &[u8] {
        self.frame.get(..self.len).unwrap_or_default()
    }

    pub fn frame_mut(&mut self) -> &mut [u8] {
        self.frame.get_mut(..self.len).unwrap_or_default()
    }

    /// Room for a new frame of `len` octets, zeroed.
    pub fn write(&mut self, len: usize) -> &mut [u8] {
        self.len = len.min(FRAME_MAX);
        let frame = self.frame.get_mut(..self.len).unwrap_or_default();
        frame.fill(0);
        frame
    }

    /// Keeps a frame that was heard; false if it is too long.
    pub fn copy(&mut self, psdu: &[u8]) -> bool {
        let fits = psdu.len() <= FRAME_MAX;
        if fits {
            self.write(psdu.len()).copy_from_slice(psdu);
        }
        fits
    }

    /// Writes the stage or slot of the sender into the frame.
    pub fn set_hop(&mut self, hop: u8) {
        crate::header::set_hop(&mut self.frame, hop);
    }

    /// Sends the frame at `at`, instead of one that waits.
    pub fn send(&mut self, at: Instant) {
        self.send = Some(at);
        self.busy = true;
    }

    pub fn is_busy(&self) -> bool {
        self.busy
    }

    /// Whether the driver has the last frame and no further one, so that this one may be overwritten.
    pub fn has_room(&self) -> bool {
        self.busy && self.send.is_none() && !self.follows
    }

    /// Sends the frame at `at`, after the one that the driver has.
    pub fn follow(&mut self, at: Instant) {
        self.send = Some(at);
        self.follows = true;
    }

    /// A frame left the antenna; false if this node had given it up. The outbox stays busy with one that follows.
    pub fn sent(&mut self) -> bool {
        let was = self.busy;
        self.busy = was && core::mem::take(&mut self.follows);
        was
    }

    /// Gives up a frame that waits.
    pub fn stop(&mut self) {
        self.cancel |= self.busy && self.send.is_none();
        self.busy = false;
        self.follows = false;
        self.send = None;
    }

    pub fn poll(&mut self, psdu: &mut [u8]) -> Option<RadioRequest> {
        // The order matters: an old frame must go before the channel changes, and the channel must be set before the new
        // frame is sent on it.
        if core::mem::take(&mut self.cancel) {
            return Some(RadioRequest::Cancel);
        }
        if core::mem::take(&mut self.peek) {
            return Some(RadioRequest::Peek(HEAD_LEN));
        }
        // Switching the receiver ends a reception as well.
        if core::mem::take(&mut self.abort) && !self.listen {
            return Some(RadioRequest::Abort);
        }
        if core::mem::take(&mut self.listen) {
            return Some(RadioRequest::Listen(self.on));
        }
        if core::mem::take(&mut self.tune) {
            return Some(RadioRequest::Tune(self.channel));
        }
        let at = self.send.take()?;
        let Some(place) = psdu.get_mut(..self.len) else {
            // The driver's buffer is shorter than it promised: nothing can be sent.
            self.busy = false;
            return None;
        };
        place.copy_from_slice(self.frame());
        Some(RadioRequest::Transmit(Transmit {
            at,
            len: self.len,
            mode: MODE,
            power: None,
        }))
    }
}

/// A node's trace and its counters of frames that it did not use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notes {
    ring: TraceRing<8>,
    drops: Drops,
}

impl Notes {
    pub fn on(&mut self, on: bool) {
        self.ring.on(on);
    }

    pub fn drops(&self) -> &Drops {
        &self.drops
    }

    pub fn dropped(&mut self, why: DropReason) {
        self.drops.count(why);
        self.ring.push(TraceEvent::Dropped {
            layer: Layer::Link,
            why,
        });
    }

    /// Frames name stages, not nodes: who sent it is not known.
    pub fn received(&mut self, bytes: usize) {
        self.ring.push(TraceEvent::Received {
            layer: Layer::Link,
            from: Address::BROADCAST,
            bytes: bytes as u32,
        });
    }

    pub fn sent(&mut self, bytes: usize) {
        self.ring.push(TraceEvent::Sent {
            layer: Layer::Link,
            to: Address::BROADCAST,
            bytes: bytes as u32,
        });
    }

    pub fn push(&mut self, event: TraceEvent) {
        self.ring.push(event);
    }

    pub fn pop(&mut self) -> Option<TraceEvent> {
        self.ring.pop()
    }
}
