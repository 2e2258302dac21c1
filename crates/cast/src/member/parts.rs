//! Polluted batches that a receiver gets in parts, and what their sender owes of them.

use std::ops::Range;

use chappe_core::{Duration, Instant};

use crate::frame::WANT_BITS;
use crate::manifest::Cut;

/// A batch of which no part arrives for this time is collected by coding again: the same as a member's silence.
pub(super) const GIVE_UP: Duration = Duration::from_secs(10);
/// A receiver that takes part and gets no batch for this time is not served: the same as a member's silence.
pub(super) const UNSERVED: Duration = Duration::from_secs(10);

/// Whether a receiver is served.
pub(super) struct Watch {
    /// When the receiver looks next whether it lacks something.
    pub look_at: Instant,
    /// Whether the transfer ran at the last look.
    pub runs: bool,
    /// Whether the receiver once was not served. From then on it fetches what it lacks in parts, beside what it gets by coding:
    /// otherwise one batch now and then would be enough to delay it.
    pub unserved: bool,
}

impl Watch {
    pub fn new(now: Instant) -> Watch {
        Watch {
            look_at: now + UNSERVED,
            runs: false,
            unserved: false,
        }
    }

    /// A batch was accepted.
    pub fn gained(&mut self, now: Instant) {
        self.look_at = match self.unserved {
            true => now,
            false => now + UNSERVED,
        };
    }
}

/// A polluted batch that is fetched in parts.
pub(super) struct Mending {
    pub batch: u32,
    pub octets: Vec<u8>,
    pub have: Vec<bool>,
    pub ask_at: Instant,
    pub until: Instant,
}

/// Parts that a receiver wants of the sender.
pub(super) struct Wanted {
    pub receiver: u16,
    pub batch: u32,
    pub bits: [u8; WANT_BITS],
    pub since: Instant,
    /// The batch, once it is read.
    pub octets: Vec<u8>,
}

/// The octets of a part in its batch. Half packets leave room for a signature in the smallest frame.
pub(super) fn part_range(cut: &Cut, batch: u32, part: usize) -> Range<usize> {
    let (len, step) = (batch_len(cut, batch), part_len(cut));
    let start = part.saturating_mul(step).min(len);
    start..(start + step).min(len)
}

fn part_len(cut: &Cut) -> usize {
    usize::from(cut.payload).div_ceil(2).max(1)
}

pub(super) fn batch_len(cut: &Cut, batch: u32) -> usize {
    let range = cut.range(batch);
    (range.end - range.start) as usize
}

impl Mending {
    pub fn new(now: Instant, cut: &Cut, batch: u32) -> Mending {
        let len = batch_len(cut, batch);
        Mending {
            batch,
            octets: vec![0; len],
            have: vec![false; len.div_ceil(part_len(cut))],
            ask_at: now,
            until: now + GIVE_UP,
        }
    }

    pub fn is_whole(&self) -> bool {
        self.have.iter().all(|have| *have)
    }

    pub fn missing(&self) -> Vec<u8> {
        let mut bits = vec![0; self.have.len().div_ceil(8)];
        for (part, _) in self.have.iter().enumerate().filter(|(_, have)| !**have) {
            bits[part / 8] |= 1 << (part % 8);
        }
        bits
    }
}
