//! What a run goes by, whatever its nodes are: the present, the queue, and the air.

use crate::air::Air;
use crate::event::{Key, Kind};
use crate::id::{NodeId, Slot};
use crate::queue::Queue;
use crate::{AirTime, Recorder};

/// The present, the events to come, and the air.
#[derive(Debug)]
pub(crate) struct Engine<R> {
    pub(crate) now: AirTime,
    pub(crate) queue: Queue,
    pub(crate) air: Air<R>,
}

impl<R: Recorder> Engine<R> {
    /// Sends the frame or burst in `slot` on its way: from now on its two cursors stand in the queue.
    pub(crate) fn launch(&mut self, slot: Slot) {
        self.air.transmit(slot, self.now);
        let frame = self.air.frame(slot);
        // The transmitter's count of frames tells two frames apart that end at one instant.
        let cursor = |at, kind| Key::with_slot(at, kind, frame.source, (frame.number, slot));
        // Into the heap: the short list is for cursors that come up soon, and this one waits a whole airtime.
        self.queue.push(cursor(frame.end(), Kind::FrameEnd));
        if let Some(first) = self.air.arrivals(frame).first() {
            let at = first.time(frame.begin);
            self.queue.push_cursor(cursor(at, Kind::FrameStart));
        }
    }

    /// Brings a radio's carrier up to date and returns whether its node must be notified.
    #[inline]
    pub(crate) fn refresh_carrier(&mut self, node: NodeId) -> bool {
        self.air.refresh_carrier(node, self.now)
    }
}
