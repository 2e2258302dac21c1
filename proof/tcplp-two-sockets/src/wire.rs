//! The wire: it takes its time for each octet, delivers in order, and loses by a script.

use chappe_core::{Duration, Instant, Purpose, Seed, Stream};

/// Octets of the longest segment.
pub const LONGEST: usize = 60 + 474;
/// Segments under way at most; more are lost.
const SLOTS: usize = 16;
/// 802.15.4 at 250 kb/s carries an octet in 32 us; with acknowledgements and back-off it takes about 57.
const OCTET: Duration = Duration::from_micros(57);
/// Processing at the other end.
const DELAY: Duration = Duration::from_millis(5);

pub struct Wire {
    slots: [Slot; SLOTS],
    busy: Instant,
    random: Stream,
    lost: u64,
    heard: [u8; LONGEST],
}

#[derive(Clone, Copy)]
struct Slot {
    at: Option<Instant>,
    to: usize,
    len: usize,
    octets: [u8; LONGEST],
}

impl Wire {
    pub fn new(lost: u64) -> Wire {
        let slot = Slot {
            at: None,
            to: 0,
            len: 0,
            octets: [0; LONGEST],
        };
        Wire {
            slots: [slot; SLOTS],
            busy: Instant::ZERO,
            random: Seed(1).stream(Purpose::Fault),
            lost,
            heard: [0; LONGEST],
        }
    }

    pub fn put(&mut self, now: Instant, to: usize, segment: &[u8]) {
        self.busy = self.busy.max(now) + OCTET * segment.len() as u64;
        if self.lost > 0 && self.random.below(self.lost) == 0 {
            return;
        }
        let free = self.slots.iter_mut().find(|slot| slot.at.is_none());
        if let Some(slot) = free {
            (slot.at, slot.to, slot.len) = (Some(self.busy + DELAY), to, segment.len());
            for (place, octet) in slot.octets.iter_mut().zip(segment) {
                *place = *octet;
            }
        }
    }

    /// When the next segment arrives.
    pub fn next(&self) -> Option<Instant> {
        self.slots.iter().filter_map(|slot| slot.at).min()
    }

    /// Takes the next segment that has arrived: for whom, and how long.
    pub fn take(&mut self, now: Instant) -> Option<(usize, usize)> {
        let next = self.next().filter(|&at| at <= now)?;
        let slot = self.slots.iter_mut().find(|slot| slot.at == Some(next))?;
        slot.at = None;
        self.heard = slot.octets;
        Some((slot.to, slot.len))
    }

    /// The first octets of the segment taken last.
    pub fn delivered(&self, len: usize) -> &[u8] {
        self.heard.get(..len).unwrap_or_default()
    }
}
