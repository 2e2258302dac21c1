//! Who is in range, where to reach them, and which of their frames have been seen.

use std::collections::BTreeMap;

use chappe_core::{Address, Instant};
use chappe_sys::Endpoint;

/// Most neighbours that are remembered; the one unheard for longest makes room. A stranger can invent any number.
const NEIGHBOURS_MAX: usize = 256;

/// How many numbers back a repeated frame is known.
const WINDOW: u32 = u128::BITS;

/// The neighbours that have been heard.
#[derive(Debug, Default)]
pub struct Neighbours {
    known: BTreeMap<Address, Neighbour>,
}

#[derive(Debug)]
struct Neighbour {
    endpoint: Endpoint,
    heard: Instant,
    epoch: Option<u32>,
    /// The newest number; bit `i` of `seen` is number `newest - i`.
    newest: u32,
    seen: u128,
}

/// Whether a unicast frame has been seen before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Novelty {
    /// It has not.
    New,
    /// It has: its confirmation was lost.
    Seen,
    /// It is so old that nobody knows.
    Forgotten,
}

impl Neighbours {
    /// `from` was heard, and this is where it is.
    pub fn heard(&mut self, now: Instant, from: Address, endpoint: Endpoint) {
        if let Some(known) = self.known.get_mut(&from) {
            (known.endpoint, known.heard) = (endpoint, now);
            return;
        }
        if self.known.len() >= NEIGHBOURS_MAX {
            let silent = self.known.iter().min_by_key(|(_, known)| known.heard);
            if let Some(silent) = silent.map(|(address, _)| *address) {
                self.known.remove(&silent);
            }
        }
        let neighbour = Neighbour {
            endpoint,
            heard: now,
            epoch: None,
            newest: 0,
            seen: 0,
        };
        self.known.insert(from, neighbour);
    }

    /// Where `to` was heard last.
    pub fn endpoint(&self, to: Address) -> Option<Endpoint> {
        Some(self.known.get(&to)?.endpoint)
    }

    /// The neighbours, and when each was heard last.
    pub fn iter(&self) -> impl Iterator<Item = (Address, Instant)> + '_ {
        self.known
            .iter()
            .map(|(address, known)| (*address, known.heard))
    }

    /// Notes unicast frame `number` of a neighbour's life `epoch`. A new epoch starts over: it was restarted.
    pub fn note(&mut self, from: Address, epoch: u32, number: u32) -> Novelty {
        let Some(known) = self.known.get_mut(&from) else {
            return Novelty::Forgotten;
        };
        if known.epoch != Some(epoch) {
            (known.epoch, known.newest, known.seen) = (Some(epoch), number, 1);
            return Novelty::New;
        }
        let ahead = number.wrapping_sub(known.newest);
        if ahead != 0 && ahead < u32::MAX / 2 {
            known.seen = known.seen.checked_shl(ahead).unwrap_or(0) | 1;
            known.newest = number;
            return Novelty::New;
        }
        let behind = known.newest.wrapping_sub(number);
        match behind < WINDOW {
            true if known.seen >> behind & 1 == 1 => Novelty::Seen,
            true => {
                known.seen |= 1 << behind;
                Novelty::New
            }
            false => Novelty::Forgotten,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Endpoint = Endpoint::Ethernet([2; 6]);

    #[test]
    fn repeated_frames_are_known_in_any_order() {
        let (mut neighbours, n1) = (Neighbours::default(), Address::node(1));
        assert_eq!(neighbours.note(n1, 1, 0), Novelty::Forgotten);
        neighbours.heard(Instant::ZERO, n1, AT);
        let start = u32::MAX - 1;
        for (number, novelty) in [
            (0, Novelty::New),
            (2, Novelty::New),
            (1, Novelty::New),
            (1, Novelty::Seen),
            (0, Novelty::Seen),
            (127, Novelty::New),
            (0, Novelty::Seen),
            (3, Novelty::New),
            (128, Novelty::New),
            (0, Novelty::Forgotten),
            (1000, Novelty::New),
            (999, Novelty::New),
            (1000, Novelty::Seen),
        ] {
            assert_eq!(
                neighbours.note(n1, 1, start.wrapping_add(number)),
                novelty,
                "{number}"
            );
        }
        assert_eq!(neighbours.note(n1, 2, start), Novelty::New);
        assert_eq!(neighbours.note(n1, 2, start), Novelty::Seen);
    }

    #[test]
    fn the_one_unheard_for_longest_makes_room() {
        let mut neighbours = Neighbours::default();
        for number in 0..1000 {
            neighbours.heard(
                Instant::from_micros(number),
                Address::node(number as u16),
                AT,
            );
            neighbours.heard(Instant::from_micros(number), Address::node(0), AT);
        }
        assert_eq!(neighbours.iter().count(), NEIGHBOURS_MAX);
        assert_eq!(neighbours.endpoint(Address::node(0)), Some(AT));
        assert_eq!(neighbours.endpoint(Address::node(1)), None);
    }
}
