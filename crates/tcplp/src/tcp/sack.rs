//! SACK at the sender: validating blocks (RFC 2018), D-SACK (RFC 2883), loss by duplicate count (RFC 6675).

use super::flight::{Flight, LOST, RETRANSMITTED, SACKED};
use super::segment::SackBlocks;
use super::{Range, Seq};

/// DupThresh: duplicate acknowledgements, or segments SACKed above a hole, that signal a loss (RFC 5681 3.2, RFC 6675 2).
pub const DUP_THRESH: u32 = 3;

/// The SACK blocks of one acknowledgement: the valid ones in ascending order, and a D-SACK.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sorted {
    /// Blocks between the acknowledgement and SND.NXT, lowest first.
    pub blocks: SackBlocks,
    /// A range that the peer received twice; empty if none was reported.
    pub duplicate: Range,
}

impl Sorted {
    /// Sorts the blocks of a segment that acknowledges up to `ack`, while SND.NXT is `nxt`.
    ///
    /// The first block is a D-SACK if it lies at or below `ack`, or inside the second block (RFC 2883 4). Blocks
    /// that are reversed, empty or outside of what was sent are dropped: a peer may be hostile.
    pub fn new(received: &SackBlocks, ack: Seq, nxt: Seq) -> Sorted {
        let mut sorted = Sorted::default();
        let blocks = received.as_slice();
        let mut rest = blocks;
        if let [first, others @ ..] = blocks {
            let inside = others.first().is_some_and(|second| second.contains(*first));
            let plausible = !first.is_empty() && first.end.at_or_before(nxt);
            if plausible && (first.end.at_or_before(ack) || inside) {
                sorted.duplicate = *first;
                rest = others;
            }
        }
        // Selection sort: at most four blocks.
        let mut floor = ack;
        for _ in 0..rest.len() {
            let usable = |block: &&Range| {
                !block.is_empty() && block.start.after(floor) && block.end.at_or_before(nxt)
            };
            let lowest = rest.iter().filter(usable);
            let Some(block) = lowest.reduce(|a, b| if b.start.before(a.start) { b } else { a })
            else {
                break;
            };
            sorted.blocks.push(*block);
            floor = block.start;
        }
        sorted
    }
}

/// Marks entries lost by RFC 6675's IsLost: those with three segments, or more than two segments' worth of octets, SACKed
/// above them. A retransmitted entry is left to the timer, because these SACKs say nothing about its second copy. Returns
/// whether an entry was marked.
pub(super) fn mark_lost(flight: &mut Flight<'_>, mss: u32) -> bool {
    let mut segments = 0;
    let mut octets = 0;
    for piece in flight.pieces().filter(|piece| piece.is(SACKED)) {
        segments += 1;
        octets += piece.range.len();
    }
    let mut marked = false;
    flight.each(|piece, marks| {
        if piece.is(SACKED) {
            segments -= 1;
            octets -= piece.range.len();
        } else if !piece.is(LOST | RETRANSMITTED)
            && (segments >= DUP_THRESH || octets > (DUP_THRESH - 1).saturating_mul(mss))
        {
            *marks |= LOST;
            marked = true;
        }
    });
    marked
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(list: &[(u32, u32)]) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        for &(start, end) in list {
            blocks.push(Range::new(Seq::new(start), Seq::new(end)));
        }
        blocks
    }

    fn sorted(list: &[(u32, u32)]) -> Sorted {
        Sorted::new(&blocks(list), Seq::new(1000), Seq::new(5000))
    }

    #[test]
    fn blocks_are_sorted_and_lies_are_dropped() {
        let kept = sorted(&[(3000, 3500), (1500, 2000), (6000, 6500), (2900, 2500)]);
        assert_eq!(kept.blocks, blocks(&[(1500, 2000), (3000, 3500)]));
        assert!(kept.duplicate.is_empty());
    }

    /// RFC 2883 4: below the acknowledgement, or inside the second block.
    #[test]
    fn both_forms_of_d_sack_are_seen() {
        let below = sorted(&[(500, 1000), (2000, 2500)]);
        assert_eq!(below.duplicate.len(), 500);
        assert_eq!(below.blocks, blocks(&[(2000, 2500)]));
        let inside = sorted(&[(2100, 2200), (2000, 2500)]);
        assert_eq!(inside.duplicate.len(), 100);
        assert_eq!(inside.blocks, blocks(&[(2000, 2500)]));
    }
}
