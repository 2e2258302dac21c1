//! One node's radio: the frame it receives, and its carrier sense. The power there is in its [`Level`](crate::level::Level).

use chappe_core::Duration;

use crate::id::Slot;
use crate::rules::EVERY_CHANNEL;
use crate::{AirTime, Loss, Power};
use flag::*;

/// The state of a radio, in one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Radio {
    /// Power of the frame being received.
    pub(crate) lock_power: Power,
    /// The energy below which weak signals do not harm it; zero if all are examined.
    pub(crate) harmless: Power,
    /// When the first bit of that frame arrived. While none is received, the radio hears nothing before this moment: it turns around
    /// from transmitting.
    pub(crate) lock_started: AirTime,
    /// When the present stretch of constant interference began.
    pub(crate) segment: AirTime,
    /// Logarithm of the probability that all its bits up to `segment` survived. A sum of logarithms: a product of thousands
    /// of probabilities underflows.
    pub(crate) ln_success: f64,
    /// The draw that decides over that frame; zero until it is asked for.
    pub(crate) draw: f64,
    /// Since when the channel has been busy or idle.
    pub(crate) since: AirTime,
    /// The frame being received, or [`Slot::NONE`].
    pub(crate) lock: Slot,
    pub(crate) flags: u8,
    pub(crate) channel: u8,
    /// The radio receives several identical frames as one.
    pub(crate) grouped: bool,
    /// The node asked to see the head of each frame early.
    pub(crate) peeks: bool,
}

/// The bits of [`Radio::flags`].
pub(crate) mod flag {
    /// The node asked for carrier events.
    pub(crate) const SENSING: u8 = 1;
    /// The last carrier event said busy.
    pub(crate) const REPORTED_BUSY: u8 = 2;
    /// Energy, a reception or the node's own transmission makes the channel busy.
    pub(crate) const BUSY: u8 = 4;
    pub(crate) const TRANSMITTING: u8 = 8;
    pub(crate) const ASLEEP: u8 = 16;
    pub(crate) const DOWN: u8 = 32;
    /// Something overlapped the frame being received.
    pub(crate) const INTERFERED: u8 = 64;
    /// The frame being received is lost, whatever follows.
    pub(crate) const DOOMED: u8 = 128;
}

impl Radio {
    pub(crate) fn new(channel: u8) -> Radio {
        Radio {
            lock_power: Power::ZERO,
            harmless: Power::ZERO,
            lock_started: AirTime::ZERO,
            segment: AirTime::ZERO,
            ln_success: 0.0,
            draw: 0.0,
            since: AirTime::ZERO,
            lock: Slot::NONE,
            flags: 0,
            channel,
            grouped: false,
            peeks: false,
        }
    }

    #[inline]
    pub(crate) fn is(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }

    #[inline]
    pub(crate) fn set(&mut self, flag: u8, on: bool) {
        self.flags = if on {
            self.flags | flag
        } else {
            self.flags & !flag
        };
    }

    /// Turns around after a transmission that ended at `at`.
    pub(crate) fn turn_around(&mut self, at: AirTime, turnaround: Duration) {
        self.set(TRANSMITTING, false);
        self.lock_started = at + turnaround;
    }

    /// Whether the radio still turns around from transmitting. Judged by time and not by a flag: no event is needed for its end.
    #[inline]
    pub(crate) fn is_deaf(&self, at: AirTime) -> bool {
        at < self.lock_started
    }

    /// Begins to receive a frame.
    #[inline]
    pub(crate) fn lock(&mut self, slot: Slot, power: Power, at: AirTime, interfered: bool) {
        self.lock = slot;
        self.lock_power = power;
        self.harmless = Power::ZERO;
        self.lock_started = at;
        self.segment = at;
        self.ln_success = 0.0;
        self.draw = 0.0;
        self.grouped = false;
        self.flags &= !(INTERFERED | DOOMED);
        if interfered {
            self.flags |= INTERFERED;
        }
    }

    /// Whether the radio could receive a frame on `channel` and is receiving none.
    #[inline]
    pub(crate) fn is_idle(&self, channel: u8, at: AirTime) -> bool {
        let able = !self.is(TRANSMITTING | ASLEEP | DOWN) && !self.is_deaf(at);
        able && self.lock.is_none() && self.channel == channel
    }

    /// Whether the radio could hear a frame on `channel`, unless it still turns around.
    #[inline]
    pub(crate) fn hears(&self, channel: u8) -> bool {
        self.flags & (TRANSMITTING | ASLEEP | DOWN) == 0 && self.channel == channel
    }

    /// Whether the radio is off, or on a channel that nothing of a signal on `channel` reaches, `reach` channels around.
    #[inline]
    pub(crate) fn is_away(&self, channel: u8, reach: u8) -> bool {
        // Mostly it is on the same channel: asked first.
        self.is(ASLEEP | DOWN)
            || self.channel != channel
                && self.channel.abs_diff(channel) > reach
                && channel != EVERY_CHANNEL
    }

    /// Why a radio that is away hears nothing.
    pub(crate) fn away_why(&self) -> Loss {
        match () {
            _ if self.is(DOWN) => Loss::Down,
            _ if self.is(ASLEEP) => Loss::Asleep,
            _ => Loss::OtherChannel,
        }
    }

    /// Whether the node gets carrier events, and may act on one.
    #[inline]
    pub(crate) fn reports_carrier(&self) -> bool {
        self.flags & (SENSING | ASLEEP | DOWN) == SENSING
    }

    /// Whether energy alone makes the channel busy.
    #[inline]
    pub(crate) fn is_free(&self) -> bool {
        self.lock.is_none() && !self.is(TRANSMITTING)
    }

    /// Whether the last carrier event and the carrier differ, and the node asked for events.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        // The two flags are neighbouring bits; the assertion below holds them there.
        self.reports_carrier() && (self.flags >> 1 ^ self.flags >> 2) & 1 != 0
    }
}

// One cache line: a cursor touches one radio after another, in no order that the hardware could foresee.
const _: () = assert!(REPORTED_BUSY == 2 && BUSY == 4 && size_of::<Radio>() == 64);
