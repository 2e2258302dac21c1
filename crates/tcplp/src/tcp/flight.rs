//! The sender's scoreboard: one entry for each segment in flight, in sequence order, in memory lent by the caller.
//!
//! An entry records when it was last sent, and whether it is SACKed, marked lost or retransmitted. RFC 6675 (pipe), RFC
//! 8985 (RACK) and RFC 6298 (Karn's rule) need this. When the table is full, neighbours with the same marks are merged:
//! recovery becomes coarser, and nothing breaks.

use super::clock::Stamp;
use super::{Range, Seq};

/// An entry of the flight table, 12 octets. The caller provides room for these and never reads them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    end: Seq,
    at: Stamp,
    marks: u8,
}

pub(super) const SACKED: u8 = 1;
pub(super) const LOST: u8 = 2;
pub(super) const RETRANSMITTED: u8 = 4;

/// An entry with both its ends; the table only stores the right one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub range: Range,
    pub at: Stamp,
    marks: u8,
}

impl Piece {
    pub fn is(self, mark: u8) -> bool {
        self.marks & mark != 0
    }
}

/// The table of segments in flight.
#[derive(Debug)]
pub(super) struct Flight<'a> {
    table: &'a mut [Sent],
    count: u16,
    /// Since when the oldest data waits without progress, in flight or behind a shut window: a `stall_clock`, 0 if none waits. It is
    /// here because it fills this type's padding.
    pub stalled_at: u16,
    /// SND.UNA, where the first entry begins.
    una: Seq,
}

impl<'a> Flight<'a> {
    pub fn new(table: &'a mut [Sent]) -> Flight<'a> {
        Flight {
            table,
            count: 0,
            stalled_at: 0,
            una: Seq::default(),
        }
    }

    /// Empties the table; the next octet to be acknowledged is `una`.
    pub fn restart(&mut self, una: Seq) {
        (self.count, self.una) = (0, una);
    }

    /// Takes the memory out.
    pub fn take(&mut self) -> &'a mut [Sent] {
        core::mem::take(&mut self.table)
    }

    /// SND.UNA: the oldest sequence number not acknowledged.
    pub fn una(&self) -> Seq {
        self.una
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn len(&self) -> usize {
        usize::from(self.count)
    }

    /// The entries in sequence order.
    pub fn pieces(&self) -> impl Iterator<Item = Piece> + '_ {
        let mut start = self.una;
        self.table.iter().take(self.len()).map(move |sent| {
            let range = Range::new(start, sent.end);
            start = sent.end;
            Piece {
                range,
                at: sent.at,
                marks: sent.marks,
            }
        })
    }

    pub fn first(&self) -> Option<Piece> {
        self.pieces().next()
    }

    pub fn last(&self) -> Option<Piece> {
        self.pieces().last()
    }

    /// Octets that are neither SACKed nor marked lost: RFC 6675's pipe.
    pub fn pipe(&self) -> u32 {
        self.sum(|piece| !piece.is(SACKED | LOST))
    }

    /// The sum of the octets in entries that `choose` selects.
    pub fn sum(&self, choose: impl Fn(&Piece) -> bool) -> u32 {
        let chosen = self.pieces().filter(|piece| choose(piece));
        chosen.fold(0, |sum, piece| piece.range.len().saturating_add(sum))
    }

    pub fn any(&self, mark: u8) -> bool {
        self.pieces().any(|piece| piece.is(mark))
    }

    /// The end of the highest SACKed entry, or SND.UNA: RFC 8985's RACK.fack.
    pub fn highest_sacked(&self) -> Seq {
        let sacked = self.pieces().filter(|piece| piece.is(SACKED));
        sacked.last().map_or(self.una, |piece| piece.range.end)
    }

    /// Whether another segment can be added, by merging two entries if need be.
    pub fn has_room(&self) -> bool {
        self.len() < self.table.len() || self.twins().is_some()
    }

    /// Adds a segment that ends at `end` and was sent at `at`. False if the table is full and no two neighbours have the same
    /// marks.
    pub fn push(&mut self, end: Seq, at: Stamp) -> bool {
        if self.len() >= self.table.len() && !self.merge() {
            return false;
        }
        let index = self.len();
        if let Some(slot) = self.table.get_mut(index) {
            *slot = Sent { end, at, marks: 0 };
            self.count = self.count.wrapping_add(1);
        }
        true
    }

    /// The last pair of neighbours with the same marks.
    fn twins(&self) -> Option<usize> {
        let entries = self.table.get(..self.len()).unwrap_or_default();
        entries.windows(2).rposition(|pair| match pair {
            [a, b] => a.marks == b.marks,
            _ => false,
        })
    }

    fn merge(&mut self) -> bool {
        let Some(index) = self.twins() else {
            return false;
        };
        if let Some([left, right]) = self.table.get_mut(index..index.wrapping_add(2)) {
            // The later time of the two: an entry must not seem overdue before all of it is.
            if left.at.after(right.at) {
                right.at = left.at;
            }
            self.remove(index);
        }
        true
    }

    fn remove(&mut self, index: usize) {
        let count = self.len();
        if let Some(tail) = self.table.get_mut(index..count) {
            tail.copy_within(1.., 0);
            self.count = self.count.wrapping_sub(1);
        }
    }

    /// Splits the entry that contains `at`. True if there is an entry boundary at `at` afterwards; false if the table is
    /// full.
    pub fn split(&mut self, at: Seq) -> bool {
        let mut start = self.una;
        for index in 0..self.len() {
            let Some(&sent) = self.table.get(index) else {
                return false;
            };
            if at == start || at == sent.end {
                return true;
            }
            if start.before(at) && at.before(sent.end) {
                let count = self.len();
                let Some(tail) = self.table.get_mut(index..=count) else {
                    // The table is full.
                    return false;
                };
                tail.copy_within(..count.wrapping_sub(index), 1);
                if let Some(first) = tail.first_mut() {
                    *first = Sent { end: at, ..sent };
                }
                self.count = self.count.wrapping_add(1);
                return true;
            }
            start = sent.end;
        }
        false
    }

    /// Everything before `una` is acknowledged: removes those entries and passes each to `report`. Returns whether the rest
    /// of a retransmitted entry is left.
    pub fn acknowledge(&mut self, una: Seq, mut report: impl FnMut(Piece)) -> bool {
        let (mut gone, mut cut) = (0usize, false);
        for piece in self.pieces() {
            if piece.range.end.at_or_before(una) {
                gone = gone.wrapping_add(1);
                report(piece);
            } else {
                // An acknowledgement inside an entry: the rest keeps its marks and its time.
                let done = Range::new(piece.range.start, una);
                if !done.is_empty() {
                    cut = piece.is(RETRANSMITTED);
                    report(Piece {
                        range: done,
                        ..piece
                    });
                }
                break;
            }
        }
        let count = self.len();
        if let Some(entries) = self.table.get_mut(..count) {
            entries.copy_within(gone.., 0);
        }
        self.count = count.wrapping_sub(gone) as u16;
        self.una = una;
        cut
    }

    /// Marks the entries inside one of `blocks` as SACKed and passes the newly marked ones to `report`, in sequence order. An entry that
    /// is SACKed in part is split, if there is room for one more.
    pub fn sack(&mut self, blocks: &[Range], mut report: impl FnMut(Piece)) {
        for block in blocks {
            // Without room to split, a partly SACKed entry stays unmarked: at worst it is retransmitted.
            self.split(block.start);
            self.split(block.end);
        }
        self.each(|piece, marks| {
            let inside = |block: &Range| block.contains(piece.range);
            if !piece.is(SACKED) && blocks.iter().any(inside) {
                *marks = *marks & !LOST | SACKED;
                report(piece);
            }
        });
    }

    /// Calls `work` with each entry and its marks, which `work` may change.
    pub fn each(&mut self, mut work: impl FnMut(Piece, &mut u8)) {
        let (mut start, count) = (self.una, self.len());
        for sent in self.table.iter_mut().take(count) {
            let piece = Piece {
                range: Range::new(start, sent.end),
                at: sent.at,
                marks: sent.marks,
            };
            start = sent.end;
            work(piece, &mut sent.marks);
        }
    }

    /// Sets `mark` on the first entry.
    pub fn mark_first(&mut self, mark: u8) {
        if !self.is_empty()
            && let Some(first) = self.table.first_mut()
        {
            first.marks |= mark;
        }
    }

    /// Clears `mark` on all entries.
    pub fn clear(&mut self, mark: u8) {
        self.each(|_, marks| *marks &= !mark);
    }

    /// Records a retransmission of the entry that begins at `start`.
    pub fn retransmitted(&mut self, start: Seq, now: Stamp) {
        let mut begins = self.una;
        let count = self.len();
        for sent in self.table.iter_mut().take(count) {
            if begins == start {
                // In flight again: lost only by new evidence, against this copy.
                sent.at = now;
                sent.marks = sent.marks & !LOST | RETRANSMITTED;
                return;
            }
            begins = sent.end;
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use chappe_core::Instant;
    use std::vec;
    use std::vec::Vec;

    fn at(micros: u64) -> Stamp {
        Stamp::of(Instant::from_micros(micros))
    }

    fn range(start: u32, end: u32) -> Range {
        Range::new(Seq::new(start), Seq::new(end))
    }

    fn ends(flight: &Flight<'_>) -> Vec<u32> {
        flight
            .pieces()
            .map(|piece| piece.range.end.bits())
            .collect()
    }

    #[test]
    fn a_full_table_merges_neighbours_of_one_kind() {
        let mut table = vec![Sent::default(); 4];
        let mut flight = Flight::new(&mut table);
        for n in 1..=4 {
            assert!(flight.push(Seq::new(n * 10), at(u64::from(n))));
        }
        flight.sack(&[range(10, 20)], |_| {});
        assert!(flight.push(Seq::new(50), at(5)));
        assert_eq!(ends(&flight), [10, 20, 40, 50]);
        assert_eq!(flight.pipe(), 40);
        flight.sack(&[range(40, 50)], |_| {});
        assert!(!flight.has_room());
        assert!(!flight.push(Seq::new(60), at(6)));
    }

    #[test]
    fn a_block_cuts_an_entry_only_if_there_is_room() {
        let mut table = vec![Sent::default(); 3];
        let mut flight = Flight::new(&mut table);
        flight.push(Seq::new(100), at(1));
        let mut new = 0;
        flight.sack(&[range(40, 60)], |piece| new += piece.range.len());
        assert_eq!((new, ends(&flight)), (20, vec![40, 60, 100]));
        flight.sack(&[range(70, 80)], |_| panic!("there is no room for this"));
        assert_eq!(flight.pipe(), 80);
    }

    #[test]
    fn acknowledgements_inside_an_entry_keep_its_rest() {
        let mut table = vec![Sent::default(); 3];
        let mut flight = Flight::new(&mut table);
        flight.push(Seq::new(100), at(1));
        flight.push(Seq::new(200), at(2));
        let mut done = Vec::new();
        flight.acknowledge(Seq::new(150), |piece| done.push(piece.range.len()));
        assert_eq!((done, ends(&flight)), (vec![100, 50], vec![200]));
        assert_eq!(flight.pipe(), 50);
    }

    /// T05: any sequence of blocks, reversed, overlapping, out of range, leaves the table in order and bounded.
    #[test]
    fn t05_hostile_blocks_keep_the_table_in_order() {
        let mut random = chappe_core::Seed(5).stream(chappe_core::Purpose::Trial(1));
        for _ in 0..2_000 {
            let mut table = vec![Sent::default(); 8];
            let mut flight = Flight::new(&mut table);
            flight.restart(Seq::new(1000));
            for n in 1..=6 {
                flight.push(Seq::new(1000 + n * 100), at(1));
            }
            for _ in 0..50 {
                let mut edge = || 900 + random.below(900) as u32;
                let block = range(edge(), edge());
                flight.sack(&[block], |_| {});
                let ends = ends(&flight);
                assert!(ends.windows(2).all(|pair| pair[0] < pair[1]), "{ends:?}");
                assert_eq!(ends.last(), Some(&1600));
                assert!(ends.len() <= 8 && ends[0] > 1000);
            }
        }
    }
}
