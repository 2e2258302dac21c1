//! Processing of a frame from the peer: restart, report, base, then the body.

use chappe_core::{DropReason, Instant};

use super::{BIN, Heard, Link, first_number};
use crate::header::{Ack, Frame, Kind, several, unpack};

impl Link {
    /// Takes a frame that is read `now` and arrived then or earlier.
    pub(super) fn take(&mut self, (now, arrived): (Instant, Instant), frame: &Frame<'_>) -> Heard {
        self.know(frame);
        self.receiver.on_frame(arrived, frame.number);
        self.hear(now);
        let mut heard = Heard {
            slot: frame.slot,
            progress: false,
            dropped: None,
        };
        if let Some(ack) = &frame.ack {
            heard.progress = self.take_report((now, arrived), *ack);
            (self.contact.heard, self.contact.heard_at) = (true, now);
            if heard.progress && !self.turns() {
                self.progress(now);
                if now.saturating_since(self.contact.bin_since) >= BIN {
                    self.sender.close_bin(now);
                    self.contact.bin_since = now;
                }
            }
        }
        // Before the body: a base that moves makes room for it.
        self.receiver.on_base(frame.base);
        // A peer that reports on our previous start repeats what may have been delivered before the restart. It stops when
        // it hears a frame of this start; until then its bodies are dropped.
        let stale = frame
            .ack
            .is_some_and(|ack| !self.is_of_this_start(ack.highest));
        let taken = match frame.kind {
            Kind::Data { .. } | Kind::Repair { .. } if stale => Err(DropReason::Stale),
            Kind::Data { seq, body } => self.receiver.on_data(seq, body),
            Kind::Repair {
                first,
                index,
                cover,
                coded,
            } => self.receiver.on_repair((first, index), cover, coded),
            Kind::Several { next, bodies } => self.take_several(next, bodies),
            // A note is not reported, as packets that are not ack-eliciting (RFC 9000, 13.2.1): otherwise two idle ends
            // would answer each other endlessly.
            Kind::Note { .. } => return heard,
        };
        self.receiver.frames.owed = self.receiver.frames.owed.saturating_add(1);
        // The wait of a report counts from the first frame that it covers.
        self.receiver.frames.owed_since.get_or_insert(arrived);
        self.contact.hurried |= frame.last;
        heard.dropped = taken.err();
        heard
    }

    fn take_report(&mut self, at: (Instant, Instant), ack: Ack<'_>) -> bool {
        let turns = self.turns();
        let Some(octets) = ack.packed else {
            return self.sender.on_ack(at, &ack, turns);
        };
        let used = unpack(ack.bitmap, &mut self.bitmap);
        let whole = Ack {
            packed: None,
            cut: ack.cut || used < octets.into(),
            bitmap: self.bitmap.get(..used).unwrap_or_default(),
            ..ack
        };
        self.sender.on_ack(at, &whole, turns)
    }

    /// Whether a frame with this number has been sent since this end started.
    fn is_of_this_start(&self, number: u32) -> bool {
        let born = first_number(self.epoch);
        number.wrapping_sub(born) < self.sender.next_frame().wrapping_sub(born)
    }

    /// Takes the bodies of a frame with copies. A duplicate is no drop here: copies are sent in case the body is missing.
    fn take_several(&mut self, next: u32, bodies: &[u8]) -> Result<(), DropReason> {
        let mut taken = Ok(());
        for (seq, body) in several(next, bodies) {
            match self.receiver.on_data(seq, body) {
                Err(DropReason::Duplicate) | Ok(()) => {}
                Err(why) => taken = Err(why),
            }
        }
        taken
    }

    /// A report has settled frames.
    pub(super) fn progress(&mut self, now: Instant) {
        self.contact.pto_count = 0;
        self.contact.pto_at = self.sender.has_open().then(|| now + self.pto());
    }

    /// The peer is alive, whatever it reports: the next probe does not wait as long as for a silent one.
    fn hear(&mut self, now: Instant) {
        if core::mem::take(&mut self.contact.silent_timeouts) > 0 {
            let soon = now + self.pto();
            self.contact.pto_at = self.contact.pto_at.map(|at| at.min(soon));
        }
    }

    /// Notices a peer that is new or has started over, before anything else of its frame is used.
    fn know(&mut self, frame: &Frame<'_>) {
        if self.peer_epoch == Some(frame.epoch) {
            return;
        }
        if self.peer_epoch.is_some() {
            self.sender.counters.peer_restarts += 1;
            self.sender.restart();
        }
        self.peer_epoch = Some(frame.epoch);
        self.receiver.restart(frame.base, frame.number);
    }
}
