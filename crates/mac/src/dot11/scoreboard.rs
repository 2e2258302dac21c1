//! Which MSDUs in A-MPDUs have been received, for block acknowledgements and against duplicates (10.25.6).

use chappe_core::Address;
use chappe_wire::dot11::Sequence;

/// Neighbours remembered; entries are replaced in the order of the table.
const NEIGHBOURS: usize = 16;
/// Sequence numbers count to this.
const NUMBERS: u16 = 4096;
/// Numbers that a block acknowledgement covers.
pub(super) const SPAN: u16 = 64;

/// What was received of each neighbour.
#[derive(Clone, Debug)]
pub(super) struct Scoreboard {
    entries: [Option<Entry>; NEIGHBOURS],
    oldest: usize,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    from: Address,
    /// The highest number received.
    highest: u16,
    /// Bit n: number `highest` - n was received.
    received: u64,
}

impl Scoreboard {
    pub fn new() -> Scoreboard {
        Scoreboard {
            entries: [None; NEIGHBOURS],
            oldest: 0,
        }
    }

    /// Records an MSDU. False if it was received before.
    pub fn is_new(&mut self, from: Address, sequence: Sequence) -> bool {
        let number = sequence.number();
        let known = self.entries.iter_mut().flatten();
        if let Some(entry) = known.into_iter().find(|entry| entry.from == from) {
            return entry.record(number);
        }
        if let Some(entry) = self.entries.get_mut(self.oldest) {
            *entry = Some(Entry::new(from, number));
        }
        self.oldest = (self.oldest + 1) % NEIGHBOURS;
        true
    }

    /// Starting sequence number and bitmap for a block acknowledgement; nothing of a neighbour that is not known.
    pub fn block(&self, from: Address) -> Option<(Sequence, u64)> {
        let mut known = self.entries.iter().flatten();
        let entry = known.find(|entry| entry.from == from)?;
        let start = entry.highest.wrapping_sub(SPAN - 1);
        Some((Sequence::new(start), entry.received.reverse_bits()))
    }
}

impl Entry {
    fn new(from: Address, highest: u16) -> Entry {
        Entry {
            from,
            highest,
            received: 1,
        }
    }

    fn record(&mut self, number: u16) -> bool {
        let ahead = number.wrapping_sub(self.highest) % NUMBERS;
        let behind = self.highest.wrapping_sub(number) % NUMBERS;
        if behind < SPAN {
            let bit = 1 << behind;
            let is_new = self.received & bit == 0;
            self.received |= bit;
            return is_new;
        }
        // Far behind is a neighbour that began anew: its numbers begin anywhere.
        self.received = match ahead < SPAN {
            true => self.received << ahead | 1,
            false => 1,
        };
        self.highest = number;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_core::{Purpose, Seed};

    /// Against the definition: a set of all numbers received, over a sender whose numbers never lie 64 apart.
    #[test]
    fn bitmaps_say_what_was_received() {
        let mut random = Seed(8).stream(Purpose::Trial(0));
        let mut board = Scoreboard::new();
        let from = Address::node(1);
        let mut seen = [false; 20_000];
        let mut first = 4_000u16;
        let (mut fresh, mut again) = (0, 0);
        for _ in 0..20_000 {
            first = (first + random.below(2) as u16).min(19_900);
            let number = first + random.below(64) as u16;
            let is_new = board.is_new(from, Sequence::new(number));
            let place = usize::from(number);
            // What lies behind the window is forgotten; a sender does not send it again.
            assert_eq!(is_new, !seen[place], "{number}");
            seen[place] = true;
            *(if is_new { &mut fresh } else { &mut again }) += 1;
            let (start, bitmap) = board.block(from).unwrap();
            for number in first..first + 64 {
                let bit = number.wrapping_sub(start.number()) % NUMBERS;
                let said = bit < 64 && bitmap >> bit & 1 != 0;
                assert_eq!(said, seen[usize::from(number)], "{number}");
            }
        }
        assert!(fresh > 5_000 && again > 5_000);
        assert_eq!(board.block(Address::node(2)), None);
    }

    #[test]
    fn a_neighbour_that_begins_anew_is_believed() {
        let mut board = Scoreboard::new();
        let from = Address::node(1);
        for number in [100, 101, 3_000, 3_001, 90] {
            assert!(board.is_new(from, Sequence::new(number)));
        }
        assert!(!board.is_new(from, Sequence::new(90)));
    }
}
