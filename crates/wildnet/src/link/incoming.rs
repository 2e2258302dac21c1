//! What a frame of the peer says, and what is made of it.

use chappe_core::{DropReason, Duration, Instant};

use super::{BIN, Heard, Link, first_number};
use crate::header::{Frame, Kind, several};

impl Link {
    pub(super) fn take(&mut self, now: Instant, frame: &Frame<'_>) -> Heard {
        self.know(frame);
        self.receiver.on_frame(now, frame.number);
        self.hear(now);
        let mut heard = Heard {
            slot: frame.slot,
            progress: false,
            dropped: None,
        };
        if let Some(ack) = &frame.ack {
            let reported = self.sender.on_ack(now, ack, self.turns());
            self.heard = true;
            heard.progress = reported.progress;
            if let Some(rtt) = reported.rtt.filter(|_| !self.turns()) {
                self.measure(now, rtt);
            }
            if reported.progress && !self.turns() {
                self.silences = 0;
                self.probe_at = self.sender.has_open().then(|| now + self.patience());
                if now.saturating_since(self.bin_since) >= BIN {
                    self.sender.estimate.close_bin();
                    self.bin_since = now;
                }
            }
        }
        self.receiver.on_base(frame.base);
        // A peer that reports on an earlier life of ours repeats what that life may have handed up already. It stops when it
        // hears of this one; until then nothing is taken.
        let stale = frame
            .ack
            .is_some_and(|ack| !self.is_of_this_life(ack.highest));
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
            Kind::Note { .. } => return heard,
        };
        self.receiver.owed = self.receiver.owed.saturating_add(1);
        self.receiver.owed_since.get_or_insert(now);
        self.hurried |= frame.last;
        heard.dropped = taken.err();
        heard
    }

    /// Whether a frame with this number has been sent since the link was made.
    fn is_of_this_life(&self, number: u32) -> bool {
        let born = first_number(self.epoch);
        number.wrapping_sub(born) < self.sender.number.wrapping_sub(born)
    }

    /// What is there already is no reason to complain: copies are sent in case it is not.
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

    /// A peer that is heard is there, whatever it reports: the next probe does not wait as for one that is not.
    fn hear(&mut self, now: Instant) {
        if core::mem::take(&mut self.unheard) > 0 {
            let soon = now + self.patience();
            self.probe_at = self.probe_at.map(|at| at.min(soon));
        }
    }

    /// Notices a peer that is new or has started over.
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

    fn measure(&mut self, now: Instant, sample: Duration) {
        self.rtt.note(now, sample);
        let config = &self.sender.config;
        let expected = self.rtt.smoothed + self.rtt.variation + config.ack_delay;
        // Twice at most: what lasted longer had no frame after it that could tell, as while hosts are silent. Planned as if
        // rounds were that long, each acknowledgement of TCP took twenty repairs once the hosts went on.
        let known = self.sender.known_after.min(expected * 2);
        self.sender.round = expected.max(known);
        self.sender.one_way = self.rtt.smoothed / 2;
        self.sender.rtt = self.rtt.smoothed;
    }
}
