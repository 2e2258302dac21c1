//! Frames to send: the chosen body or repair, with stamp and report.

use chappe_core::{Instant, Wake};

use super::{Link, Opportunity};
use crate::header::{ACK, COVER, FIXED, Frame, Kind, PACKED, PLAIN_MAX};
use crate::sender::{Choice, ROOM, Sender};

impl Link {
    /// Whether the report that is due does not fit into a frame with the next body.
    pub(super) fn ack_needs_own_frame(&self, frame_max: usize) -> bool {
        let report = FIXED + ACK + self.receiver.bitmap_len();
        let body = self.sender.next_body_len().unwrap_or(frame_max);
        report + body > frame_max
    }

    pub(super) fn repeat_unreported(&mut self) -> Option<Choice> {
        if self.turns() {
            self.sender.repeat_unreported()
        } else {
            None
        }
    }

    /// Writes a frame with what was chosen, or a note if one is due.
    pub(super) fn write(
        &mut self,
        now: Instant,
        choice: Option<Choice>,
        chance: Opportunity,
        (cover, coded): (&[u8; COVER], &[u8]),
        octets: &mut [u8],
    ) -> Option<usize> {
        let due = Wake::due(self.ack_due(), now) || self.contact.notes > 0;
        if choice.is_none() && !due {
            return None;
        }
        let report = FIXED + ACK + self.receiver.bitmap_len();
        let mut small = [0; ROOM];
        let room = octets.len().saturating_sub(report).min(ROOM);
        let among = small.get_mut(..room).unwrap_or_default();
        let several = match self.bare {
            true => 0,
            false => self.sender.write_with_copies(choice, among),
        };
        let sender = &self.sender;
        let bodies = small.get(..several).unwrap_or_default();
        let kind = kind(sender, choice, bodies, (cover, coded));
        let mut frame = Frame {
            number: sender.next_frame(),
            epoch: self.epoch,
            kind,
            base: sender.wire_base(),
            slot: chance.slot,
            ack: None,
            last: chance.last && choice.is_some(),
        };
        let mut bitmap = core::mem::take(&mut self.bitmap);
        // A body that fills the rest of a slot leaves no room for a longer report. A note does: its owner has made sure.
        let most = choice.map_or(usize::MAX, |_| chance.most);
        let free = octets.len().min(most).saturating_sub(frame.len());
        if let Some(space) = self.report_space(choice, free) {
            let space = space.min(bitmap.len());
            let space = bitmap.get_mut(..space).unwrap_or_default();
            frame.ack = Some(self.receiver.ack(now, space));
        }
        let reported = frame.ack.is_some();
        let len = frame.emit(octets);
        self.bitmap = bitmap;
        let len = len?;
        if reported {
            (self.receiver.frames.owed, self.receiver.frames.owed_since) = (0, None);
            self.contact.hurried = false;
        }
        self.sent(now, choice, len);
        Some(len)
    }

    /// Room for the bitmap of the report that goes with a frame, of the octets that are free in it; `None` if none goes with it.
    fn report_space(&self, choice: Option<Choice>, free: usize) -> Option<usize> {
        let reports =
            self.receiver.has_started() && (self.turns() || self.receiver.frames.owed > 0);
        let whole = self.receiver.bitmap_len();
        let around = if whole > PLAIN_MAX { ACK + PACKED } else { ACK };
        let space = free.checked_sub(around).filter(|_| reports);
        // A report that does not fit as a whole gets its own frame, except in slots, where every frame carries one anyway.
        space.filter(|&space| space >= whole || self.turns() || choice.is_none())
    }

    fn sent(&mut self, now: Instant, choice: Option<Choice>, len: usize) {
        self.contact.notes = self.contact.notes.saturating_sub(1);
        self.sender.on_sent(now, choice, len);
        // A running timer stays, where RFC 9002, 6.2.1, restarts it with every frame.
        if choice.is_some() && !self.turns() && self.contact.pto_at.is_none() {
            self.contact.pto_at = Some(now + self.pto());
        }
    }
}

/// What a frame holds: several `bodies` if there are any, or else what was chosen.
fn kind<'a>(
    sender: &'a Sender,
    choice: Option<Choice>,
    bodies: &'a [u8],
    (cover, coded): (&'a [u8; COVER], &'a [u8]),
) -> Kind<'a> {
    match choice {
        _ if !bodies.is_empty() => Kind::Several {
            next: sender.next_seq(),
            bodies,
        },
        Some(Choice::Pair { len, .. }) => Kind::Several {
            next: sender.next_seq(),
            bodies: coded.get(..len).unwrap_or_default(),
        },
        Some(Choice::Body(seq) | Choice::Copy(seq)) => Kind::Data {
            seq,
            body: sender.body(seq),
        },
        Some(Choice::Repair {
            first,
            index,
            cover: width,
            len,
        }) => Kind::Repair {
            first,
            index,
            cover: cover.get(..width).unwrap_or_default(),
            coded: coded.get(..len).unwrap_or_default(),
        },
        None => Kind::Note {
            next: sender.next_seq(),
        },
    }
}
