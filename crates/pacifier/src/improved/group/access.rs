//! Access: how members that have sent in turns contend, if a transfer does not end in turns.
//!
//! In turns the MAC does not contend, since the slots keep members apart, and no MAC can be told to begin in the middle of a transfer. So
//! members draw times themselves: after each frame that a member hears it draws a time soon after, and begins then if the medium is
//! idle. If it is busy the member draws anew (non-persistent CSMA: Kleinrock, Tobagi, "Packet switching in radio channels: part I",
//! 1975).

use chappe_core::{Duration, Instant};

use super::Group;
use super::slots::LATE;
use crate::improved::slot::GUARD;

/// Times that may be drawn after a frame, each [`LATE`] after the one before: the window of 802.11b.
const TIMES: u64 = 32;

/// When this node next tries to send.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Access {
    /// When the next try begins.
    at: Option<Instant>,
    /// Until when a frame may begin.
    until: Option<Instant>,
    /// How many times were drawn, of which the next draw is made.
    draws: u32,
}

impl Access {
    pub fn deadline(&self) -> Option<Instant> {
        self.until.or(self.at)
    }

    pub fn is_open(&self) -> bool {
        self.until.is_some()
    }
}

impl Group {
    /// Whether members send in turns now.
    pub(super) fn in_turns(&self) -> bool {
        self.slots.is_some() && !self.plan.contend
    }

    /// Whether this node draws its own times for sending.
    pub(super) fn contends(&self) -> bool {
        self.slots.is_some() && self.plan.contend && !self.plan.closed
    }

    /// Draws the next time to send, soon after a frame that ends at `end`.
    pub(super) fn draw_access(&mut self, end: Instant) {
        if !self.contends() {
            return;
        }
        let late = self.draw_of(TIMES);
        self.access.until = None;
        self.access.at = Some(end + GUARD + LATE * late);
    }

    /// Begins a try whose time has come, ends one that met a busy medium, and draws a time for the next.
    pub(super) fn advance_access(&mut self, now: Instant) {
        if !self.contends() {
            return;
        }
        if self.access.until.is_some_and(|until| until <= now) {
            self.access.until = None;
        }
        if let Some(at) = self.access.at.filter(|&at| at <= now) {
            self.access.at = None;
            self.access.until = Some(at + LATE).filter(|&until| until > now);
        }
        let has_frame = self.due || self.offer.is_some() && self.yields_until.is_none();
        match (has_frame, self.access.deadline()) {
            (false, _) => (self.access.at, self.access.until) = (None, None),
            (true, Some(_)) => {}
            // The medium is busy, and when it becomes idle is not known: at any time within a frame.
            (true, None) => {
                let parts = self.span().nanos() / LATE.nanos();
                let late = self.draw_of(parts.max(1));
                self.access.at = Some(now + LATE * (late + 1));
            }
        }
    }

    pub(super) fn span(&self) -> Duration {
        let slots = self.slots.as_ref();
        slots.map_or(Duration::ZERO, super::slots::Slots::span)
    }

    /// A number below `limit`, by the finalizer of MurmurHash3: nodes that drew from one sequence would meet again and again.
    fn draw_of(&mut self, limit: u64) -> u64 {
        self.access.draws = self.access.draws.wrapping_add(1);
        let mut draw = (self.access.draws << 8) ^ u32::from(self.me);
        draw = (draw ^ draw >> 16).wrapping_mul(0x85eb_ca6b);
        draw = (draw ^ draw >> 13).wrapping_mul(0xc2b2_ae35);
        draw ^= draw >> 16;
        (u64::from(draw) * limit) >> 32
    }
}
