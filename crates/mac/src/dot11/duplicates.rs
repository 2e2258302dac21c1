//! Detection of duplicate frames.

use chappe_core::Address;
use chappe_wire::dot11::Sequence;

/// Neighbours remembered. Entries are replaced in the order of the table.
const NEIGHBOURS: usize = 32;

/// The last sequence number of each neighbour (IEEE 802.11-2020, 10.3.2.14.3).
///
/// A retransmission of a neighbour that fell out of the table is delivered twice: with more than 32 neighbours
/// sending unicast to one station, the node above must expect that.
#[derive(Clone, Debug)]
pub(super) struct Duplicates {
    last: [Option<(Address, Sequence)>; NEIGHBOURS],
    oldest: usize,
}

impl Duplicates {
    pub fn new() -> Duplicates {
        Duplicates {
            last: [None; NEIGHBOURS],
            oldest: 0,
        }
    }

    /// Records a frame and returns whether it is a duplicate: it has the Retry bit and the sequence number of the
    /// neighbour's previous frame.
    pub fn is_duplicate(&mut self, from: Address, sequence: Sequence, retry: bool) -> bool {
        let known = |entry: &&mut Option<(Address, Sequence)>| {
            entry.is_some_and(|(neighbour, _)| neighbour == from)
        };
        if let Some(entry) = self.last.iter_mut().find(known) {
            let before = entry.replace((from, sequence));
            // Without the Retry bit an equal number is a new frame: the neighbour started over, or the numbers wrapped.
            return retry && before == Some((from, sequence));
        }
        if let Some(entry) = self.last.get_mut(self.oldest) {
            *entry = Some((from, sequence));
        }
        self.oldest = (self.oldest + 1) % NEIGHBOURS;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_marked_retry_of_the_same_frame_is_a_duplicate() {
        let mut duplicates = Duplicates::new();
        let (a, b) = (Address::node(1), Address::node(2));
        let mut is =
            |from, number, retry| duplicates.is_duplicate(from, Sequence::new(number), retry);
        assert!(!is(a, 5, false));
        assert!(is(a, 5, true));
        assert!(is(a, 5, true));
        assert!(!is(b, 5, true));
        // The number came round after 4096 frames, or the neighbour restarted.
        assert!(!is(a, 5, false));
        assert!(!is(a, 6, true));
        assert!(!is(a, 5, true));
    }

    #[test]
    fn the_table_forgets_in_turn() {
        let mut duplicates = Duplicates::new();
        let mut first =
            |node, retry| duplicates.is_duplicate(Address::node(node), Sequence::new(0), retry);
        for node in 0..32 {
            assert!(!first(node, true));
        }
        assert!((0..32).all(|node| first(node, true)));
        assert!(!first(32, true));
        assert!(!first(0, true), "made room for 32");
        assert!(first(2, true));
    }
}
