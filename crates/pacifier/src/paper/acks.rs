//! Getting ACKs to the source: the cache and the reliability scheme of every node.
//!
//! An ACK goes hop by hop. Each node keeps every ACK that it forwarded until the next hop is known to have it, and
//! resends an ACK whose confirmation is overdue.

use alloc::vec::Vec;

use chappe_core::{Duration, Instant, Outcome};

use crate::paper::config::{AckProof, Config};
use crate::paper::header::{Ack, AckId};

/// The part of an entry's number that fits into a token, which has two bits fewer than a counter.
const NUMBER: u32 = u32::MAX >> 2;

/// The ACK cache of a node.
#[derive(Clone, Debug)]
pub(crate) struct Acks {
    entries: Vec<Entry>,
    /// Counts entries and resends: the smallest number waiting goes first.
    clock: u32,
    /// How many entries are queued, and the earliest resend by time: both are read after every event.
    queued: usize,
    deadline: Option<Instant>,
    rules: Rules,
}

#[derive(Clone, Copy, Debug)]
struct Rules {
    capacity: usize,
    next_hop: u32,
    other: u32,
    proof: AckProof,
    retry_min: Duration,
    retry_max: Duration,
}

/// One ACK that this node sent or is about to send.
#[derive(Clone, Copy, Debug)]
struct Entry {
    ack: Ack,
    next_hop: u16,
    status: Status,
    /// Order of sending while queued; the link's token while in flight.
    number: u32,
    sent_before: bool,
    overheard_next_hop: u32,
    overheard_other: u32,
    retry: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    /// Waits for the link.
    Queued,
    /// Handed to the link.
    InFlight,
    /// Sent and "not ACKed" in the paper's words; due again at this time at the latest.
    Unconfirmed { again: Instant },
    /// The next hop has it: "ACKed" in the paper's words.
    Confirmed,
}

/// What the cache did with an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Added {
    /// It will be sent.
    Queued,
    /// It is in the cache already.
    Known,
    /// It will be sent; it took the place of another one that was still unconfirmed.
    Displaced,
}

/// An ACK to be handed to the link.
pub(crate) struct Outgoing {
    pub ack: Ack,
    pub next_hop: u16,
    /// Comes back with the outcome.
    pub number: u32,
    /// Whether it has been sent before.
    pub again: bool,
}

impl Acks {
    pub fn new(config: &Config) -> Acks {
        Acks {
            entries: Vec::with_capacity(config.ack_cache),
            clock: 0,
            queued: 0,
            deadline: None,
            rules: Rules {
                capacity: config.ack_cache,
                next_hop: config.ack_overheard_next_hop,
                other: config.ack_overheard_other,
                proof: config.ack_proof,
                retry_min: config.ack_retry_min,
                retry_max: config.ack_retry_max,
            },
        }
    }

    //= pacifier V-B.2: cache every ACK with next hop, group, batch and status
    /// Takes an ACK to forward to `next_hop`. A known one is not sent again: the hop before has merely not learnt yet
    /// that it arrived.
    pub fn add(&mut self, ack: Ack, next_hop: u16) -> Added {
        let added = self.insert(ack, next_hop);
        self.settle();
        added
    }

    fn insert(&mut self, ack: Ack, next_hop: u16) -> Added {
        self.close_older(ack.source, ack.object);
        self.clock = self.clock.wrapping_add(1);
        let number = self.clock;
        let entry = Entry {
            ack,
            next_hop,
            status: Status::Queued,
            number,
            sent_before: false,
            overheard_next_hop: 0,
            overheard_other: 0,
            retry: self.rules.retry_min,
        };
        let same = |old: &Entry| {
            (old.ack.source, old.ack.object, old.ack.id) == (ack.source, ack.object, ack.id)
        };
        if let Some(old) = self.entries.iter_mut().find(|old| same(old)) {
            // Only a later repeat replaces a known one. Repeat counters wrap, so their difference is signed.
            if (ack.repeat.wrapping_sub(old.ack.repeat) as i8) <= 0 {
                return Added::Known;
            }
            *old = entry;
            return Added::Queued;
        }
        if self.entries.len() < self.rules.capacity {
            self.entries.push(entry);
            return Added::Queued;
        }
        // Full: the oldest confirmed one goes, or else the oldest of all, which the source gets again by the receiver's
        // repeats.
        let oldest = self.entries.iter_mut().min_by_key(|old| {
            (
                old.status != Status::Confirmed,
                old.number.wrapping_sub(number),
            )
        });
        let Some(oldest) = oldest else {
            return Added::Known;
        };
        let displaced = oldest.status != Status::Confirmed;
        *oldest = entry;
        if displaced {
            Added::Displaced
        } else {
            Added::Queued
        }
    }

    /// Marks ACKs of a source's former transfers as confirmed, since no source waits for them: others may displace them.
    fn close_older(&mut self, source: u16, object: u8) {
        let older = |entry: &&mut Entry| {
            entry.ack.source == source && (object.wrapping_sub(entry.ack.object) as i8) > 0
        };
        for entry in self.entries.iter_mut().filter(older) {
            entry.status = Status::Confirmed;
        }
    }

    /// Whether an ACK waits for the link.
    pub fn waiting(&self) -> bool {
        self.queued > 0
    }

    /// The ACK to send now: the one that has been queued longest.
    pub fn next(&mut self) -> Option<Outgoing> {
        let clock = self.clock;
        let queued = self
            .entries
            .iter_mut()
            .filter(|entry| entry.status == Status::Queued);
        // Numbers wrap; the distance to the clock does not.
        let entry = queued.max_by_key(|entry| clock.wrapping_sub(entry.number))?;
        entry.status = Status::InFlight;
        let again = core::mem::replace(&mut entry.sent_before, true);
        let Entry { ack, next_hop, .. } = *entry;
        let number = entry.number & NUMBER;
        self.settle();
        Some(Outgoing {
            ack,
            next_hop,
            number,
            again,
        })
    }

    /// Records the link's outcome for the ACK with this number.
    ///
    /// An ACK whose MAC retries are exhausted counts as "not ACKed", like an unconfirmed one: M, N or the timer resends
    /// it. (Resending at once would repeat what has just failed a full round of MAC retries.)
    pub fn sent(&mut self, now: Instant, number: u32, outcome: Outcome) {
        let trusted = self.rules.proof == AckProof::MacOrOverheard;
        let flying = |entry: &&mut Entry| {
            entry.status == Status::InFlight && entry.number & NUMBER == number
        };
        let Some(entry) = self.entries.iter_mut().find(flying) else {
            return;
        };
        entry.status = match outcome {
            Outcome::Acknowledged { .. } if trusted => Status::Confirmed,
            _ => Status::Unconfirmed {
                again: now + entry.retry,
            },
        };
        entry.overheard_next_hop = 0;
        entry.overheard_other = 0;
        self.settle();
    }

    //= pacifier V-B.2: an overheard data packet of the next hop confirms an ACK or counts towards M; those of
    //= others count towards N
    /// Counts a data frame of group `source` overheard from `from`, which carries the last ACK that `from` received.
    /// Frames of other groups carry no information about an ACK and do not count.
    pub fn overheard(&mut self, source: u16, object: u8, from: u16, last: Option<AckId>) {
        // Every unconfirmed entry has a deadline: without one there is nothing to count.
        if self.deadline.is_none() {
            return;
        }
        let group = |entry: &&mut Entry| {
            (entry.ack.source, entry.ack.object) == (source, object)
                && matches!(entry.status, Status::Unconfirmed { .. })
        };
        let mut changed = false;
        for entry in self.entries.iter_mut().filter(group) {
            if from == entry.next_hop {
                if last == Some(entry.ack.id) {
                    entry.status = Status::Confirmed;
                    changed = true;
                    continue;
                }
                entry.overheard_next_hop = entry.overheard_next_hop.saturating_add(1);
            } else {
                entry.overheard_other = entry.overheard_other.saturating_add(1);
            }
            if entry.overheard_next_hop >= self.rules.next_hop
                || entry.overheard_other >= self.rules.other
            {
                self.clock = self.clock.wrapping_add(1);
                entry.queue_again(self.clock);
                changed = true;
            }
        }
        if changed {
            self.settle();
        }
    }

    /// The earliest resend by time.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Queues the ACKs that are due by time; returns whether there were any.
    pub fn handle_timeout(&mut self, now: Instant) -> bool {
        if self.deadline.is_none_or(|deadline| deadline > now) {
            return false;
        }
        for entry in &mut self.entries {
            if matches!(entry.status, Status::Unconfirmed { again } if again <= now) {
                self.clock = self.clock.wrapping_add(1);
                entry.queue_again(self.clock);
                entry.retry = (entry.retry * 2).min(self.rules.retry_max);
            }
        }
        self.settle();
        true
    }

    /// Brings `queued` and `deadline` up to date.
    fn settle(&mut self) {
        (self.queued, self.deadline) = (0, None);
        for entry in &self.entries {
            match entry.status {
                Status::Queued => self.queued += 1,
                Status::Unconfirmed { again } => {
                    self.deadline = Some(self.deadline.map_or(again, |known| known.min(again)));
                }
                Status::InFlight | Status::Confirmed => {}
            }
        }
    }
}

impl Entry {
    fn queue_again(&mut self, number: u32) {
        self.status = Status::Queued;
        self.number = number;
    }
}
