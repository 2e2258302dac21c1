//! One node's radio: what it hears, what it receives, what it tells.

/// No frame.
pub(crate) const NONE: u32 = u32::MAX;

/// The state of a radio, in one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Radio {
    /// Power of all signals present on the channel, in zeptowatts. Whole numbers: what was added goes away again
    /// without a trace, in any order.
    pub(crate) energy: u64,
    /// Power of the frame being received.
    pub(crate) lock_power: u64,
    /// When its first bit arrived.
    pub(crate) lock_started: u64,
    /// Since when interference has been what it is.
    pub(crate) segment: u64,
    /// Logarithm of the probability that all its bits so far survived.
    pub(crate) ln_success: f64,
    /// Since when the channel has been busy or idle.
    pub(crate) since: u64,
    /// The radio hears nothing before this moment: it turns around from transmitting.
    pub(crate) deaf_until: u64,
    /// Slot of the frame being received, or [`NONE`].
    pub(crate) lock: u32,
    pub(crate) flags: u8,
    pub(crate) channel: u8,
    /// What is being received is several identical frames.
    pub(crate) grouped: bool,
    /// The node wants to see the front of each frame early.
    pub(crate) peeks: bool,
}

/// Bits of [`Radio::flags`].
pub(crate) mod flag {
    /// The node wants to know the carrier.
    pub(crate) const SENSING: u8 = 1;
    /// What it was told last.
    pub(crate) const TOLD_BUSY: u8 = 2;
    /// Energy, a reception or the own transmission makes the channel busy.
    pub(crate) const BUSY: u8 = 4;
    pub(crate) const TRANSMITTING: u8 = 8;
    pub(crate) const ASLEEP: u8 = 16;
    pub(crate) const DOWN: u8 = 32;
    /// Something overlapped the frame being received.
    pub(crate) const INTERFERED: u8 = 64;
    /// The frame being received is lost already, whatever follows.
    pub(crate) const DOOMED: u8 = 128;
}

use crate::Loss;
use crate::frame::EVERY_CHANNEL;
use flag::*;

impl Radio {
    pub(crate) fn new(channel: u8) -> Radio {
        Radio {
            energy: 0,
            lock_power: 0,
            lock_started: 0,
            segment: 0,
            ln_success: 0.0,
            since: 0,
            deaf_until: 0,
            lock: NONE,
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

    /// Begins to receive a frame.
    #[inline]
    pub(crate) fn lock(&mut self, slot: u32, power: u64, at: u64, interfered: bool) {
        self.lock = slot;
        self.lock_power = power;
        self.lock_started = at;
        self.segment = at;
        self.ln_success = 0.0;
        self.grouped = false;
        self.flags &= !(INTERFERED | DOOMED);
        if interfered {
            self.flags |= INTERFERED;
        }
    }

    /// Power of everything but the frame being received.
    #[inline]
    pub(crate) fn interference(&self) -> u64 {
        self.energy.wrapping_sub(self.lock_power)
    }

    /// Whether the radio could receive a frame on `channel` and is receiving none.
    #[inline]
    pub(crate) fn is_idle(&self, channel: u8, at: u64) -> bool {
        let able = !self.is(TRANSMITTING | ASLEEP | DOWN) && at >= self.deaf_until;
        able && self.lock == NONE && self.channel == channel
    }

    /// Whether the radio is off, or on a channel that nothing of a signal on `channel` reaches, `reach` channels around.
    #[inline]
    pub(crate) fn is_away(&self, channel: u8, reach: u8) -> bool {
        self.is(ASLEEP | DOWN) || self.channel.abs_diff(channel) > reach && channel != EVERY_CHANNEL
    }

    /// Why a radio that is away hears nothing.
    pub(crate) fn away_why(&self) -> Loss {
        match () {
            _ if self.is(DOWN) => Loss::Down,
            _ if self.is(ASLEEP) => Loss::Asleep,
            _ => Loss::OtherChannel,
        }
    }

    /// Whether the node is told of its carrier, and may do something about it.
    #[inline]
    pub(crate) fn is_told(&self) -> bool {
        self.flags & (SENSING | ASLEEP | DOWN) == SENSING
    }

    /// Whether energy alone makes the channel busy, and a signal on `channel` counts in full.
    #[inline]
    pub(crate) fn is_free(&self, channel: u8) -> bool {
        self.lock == NONE && !self.is(TRANSMITTING) && self.channel == channel
    }

    /// The carrier of a radio that neither receives nor transmits, brought up to date without a branch: whether a
    /// faded signal crosses the threshold is anybody's guess. Says whether the node must be told.
    #[inline]
    pub(crate) fn refresh_free(&mut self, at: u64, carrier_sense: u64) -> bool {
        let busy = if self.energy >= carrier_sense {
            BUSY
        } else {
            0
        };
        let changed = (self.flags ^ busy) & BUSY;
        self.since = if changed != 0 { at } else { self.since };
        self.flags ^= changed;
        self.is_due()
    }

    /// Brings the carrier up to date and says whether the node must be told.
    #[inline]
    pub(crate) fn refresh(&mut self, at: u64, carrier_sense: u64) -> bool {
        let busy = self.energy >= carrier_sense || self.lock != NONE || self.is(TRANSMITTING);
        if busy != self.is(BUSY) {
            self.flags ^= BUSY;
            self.since = at;
        }
        self.is_due()
    }

    /// Whether told and true differ, and the node listens for it.
    #[inline]
    fn is_due(&self) -> bool {
        self.is_told() && (self.flags >> 1 ^ self.flags >> 2) & 1 != 0
    }
}

const _: () = assert!(TOLD_BUSY == 2 && BUSY == 4 && size_of::<Radio>() == 64);
