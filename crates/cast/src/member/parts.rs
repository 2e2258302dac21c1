//! Polluted batches that a receiver gets in parts, and what their sender owes of them.

use std::ops::Range;

use chappe_core::{Duration, Instant};

use crate::frame::WANT_BITS;
use crate::manifest::Cut;

/// A batch of which no part arrives for this time is collected by coding again: the same as a member's silence.
pub(super) const GIVE_UP: Duration = Duration::from_secs(10);
/// A receiver that takes part and gets no batch for this time is not served: the same as a member's silence.
pub(super) const UNSERVED: Duration = Duration::from_secs(10);

/// How much faster parts have to come than batches by coding before a receiver takes itself for one that is not served. Up to four
/// transfers ([`TRANSFERS_MAX`](super::TRANSFERS_MAX)) share its air, and half of that again is left to chance.
const FASTER: u64 = 8;

/// Whether a receiver is served. Reports in its name can keep others from serving it, and let a batch pass now and then. So a receiver
/// looks from time to time how fast one batch comes in parts.
pub(super) struct Watch {
    /// When the receiver looks next whether it lacks something.
    pub look_at: Instant,
    /// Whether the transfer ran at the last look.
    pub runs: bool,
    /// Whether the receiver once was not served. From then on it fetches what it lacks in parts, beside what it gets by coding:
    /// otherwise one batch now and then would be enough to delay it.
    pub unserved: bool,
    /// Since when batches are counted, and how many came.
    since: Instant,
    gained: u32,
    /// When the last one came.
    latest: Instant,
    /// After which time of counting a batch is tried in parts. It doubles after each trial, so that trials cost little.
    interval: Duration,
    trial: Option<Trial>,
}

/// A batch that is fetched in parts although batches come by coding.
struct Trial {
    batch: u32,
    begun: Instant,
    /// The mean time between batches before.
    usual: Duration,
}

impl Watch {
    pub fn new(now: Instant) -> Watch {
        Watch {
            look_at: now + UNSERVED,
            runs: false,
            unserved: false,
            since: now,
            gained: 0,
            latest: now,
            interval: UNSERVED,
            trial: None,
        }
    }

    /// A batch was accepted.
    pub fn gained(&mut self, now: Instant, batch: u32) {
        self.gained = self.gained.saturating_add(1);
        self.latest = now;
        if let Some(trial) = self.trial.take_if(|trial| trial.batch == batch) {
            self.unserved |= now.saturating_since(trial.begun) * FASTER <= trial.usual;
            self.interval = self.interval * 2;
            self.count_anew(now);
        }
        self.look_at = match self.unserved {
            true => now,
            false => (self.since + self.interval).min(now + UNSERVED),
        };
    }

    /// Counts batches from now on.
    pub fn count_anew(&mut self, now: Instant) {
        (self.since, self.gained) = (now, 0);
        self.look_at = now + UNSERVED;
    }

    /// The receiver looks, and fetches this batch in parts: because none has come for long, or as a trial.
    pub fn fetch(&mut self, now: Instant, batch: u32) {
        if self.gained == 0 || now >= self.latest + UNSERVED {
            self.unserved = true;
        } else if !self.unserved {
            let usual = now.saturating_since(self.since) / u64::from(self.gained);
            self.trial = Some(Trial {
                batch,
                begun: now,
                usual,
            });
        }
        self.look_at = now + UNSERVED;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets a batch come each `usual` ms for ten minutes, and in `parts` ms where one is fetched in parts. Returns how many were, and when
    /// the receiver took itself for one that is not served.
    fn watched(usual: u64, parts: u64) -> (u32, Option<u64>) {
        let mut watch = Watch::new(Instant::ZERO);
        let (mut fetched, mut next) = (0, usual);
        for now in 0..600_000 {
            let at = Instant::from_millis(now);
            if now == next {
                next += usual;
                watch.gained(at, 0);
            }
            if at >= watch.look_at {
                watch.fetch(at, 1);
                fetched += 1;
                watch.gained(at + Duration::from_millis(parts), 1);
            }
            if watch.unserved {
                return (fetched, Some(now));
            }
        }
        (fetched, None)
    }

    /// Goal: who is served fetches few batches in parts, who is hardly served soon fetches all. Method: batches at several paces.
    #[test]
    fn a_trial_tells_who_is_served() {
        for (usual, parts) in [(17, 20), (100, 30), (400, 100), (3000, 700)] {
            let (fetched, unserved) = watched(usual, parts);
            assert!(unserved.is_none() && fetched <= 6, "{usual}: {fetched}");
        }
        for (usual, parts) in [(400, 30), (1900, 60), (9000, 1000)] {
            assert!(
                watched(usual, parts).1.is_some_and(|at| at <= 10_000),
                "{usual}"
            );
        }
        // Nothing at all.
        assert!(watched(700_000, 60).1.is_some_and(|at| at <= 10_000));
    }
}
