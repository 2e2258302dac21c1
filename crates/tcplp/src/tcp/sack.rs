//! SACK at the sender: validating blocks (RFC 2018), D-SACK (RFC 2883), loss by duplicate count (RFC 6675).

use super::flight::{Flight, LOST, RETRANSMITTED, SACKED};
use super::segment::SackBlocks;
use super::{Range, Seq};

/// DupThresh: duplicate acknowledgements, or segments SACKed above a hole, that signal a loss (RFC 5681 3.2, RFC 6675 2).
pub const DUP_THRESH: u32 = 3;

/// The SACK blocks of one acknowledgement: the valid ones, and a D-SACK.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sacks {
    /// Blocks between the acknowledgement and SND.NXT.
    pub blocks: SackBlocks,
    /// A range that the peer received twice; empty if none was reported.
    pub duplicate: Range,
}

impl Sacks {
    /// Judges the blocks of a segment that acknowledges up to `ack`, while SND.NXT is `nxt`.
    ///
    /// The first block is a D-SACK if it lies at or below `ack`, or inside the second block (RFC 2883 4). Blocks
    /// that are reversed, empty or outside of what was sent are dropped: a peer may be hostile.
    pub fn new(received: &SackBlocks, ack: Seq, nxt: Seq) -> Sacks {
        let mut sacks = Sacks::default();
        let blocks = received.as_slice();
        for (index, block) in blocks.iter().enumerate() {
            if block.is_empty() || block.end.after(nxt) {
                continue;
            }
            let inside = || blocks.get(1).is_some_and(|second| second.contains(*block));
            if index == 0 && (block.end.at_or_before(ack) || inside()) {
                sacks.duplicate = *block;
            } else if block.start.after(ack) {
                sacks.blocks.push(*block);
            }
        }
        sacks
    }
}

/// Marks entries lost by RFC 6675's IsLost: those with three segments, or more than two segments' worth of octets, SACKed
/// above them. A retransmitted entry is left to the timer, because these SACKs say nothing about its second copy. Returns
/// whether an entry was marked.
pub(super) fn mark_lost(flight: &mut Flight<'_>, mss: u32) -> bool {
    // The flight holds less than 2^32 octets.
    let (mut segments, mut octets) = (0u32, 0u32);
    for piece in flight.pieces().filter(|piece| piece.is(SACKED)) {
        segments = segments.wrapping_add(1);
        octets = octets.wrapping_add(piece.range.len());
    }
    let mut marked = false;
    flight.each(|piece, marks| {
        if piece.is(SACKED) {
            segments = segments.wrapping_sub(1);
            octets = octets.wrapping_sub(piece.range.len());
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

    fn judged(list: &[(u32, u32)]) -> Sacks {
        Sacks::new(&blocks(list), Seq::new(1000), Seq::new(5000))
    }

    #[test]
    fn lies_are_dropped() {
        let kept = judged(&[(3000, 3500), (1500, 2000), (6000, 6500), (2900, 2500)]);
        assert_eq!(kept.blocks, blocks(&[(3000, 3500), (1500, 2000)]));
        assert!(kept.duplicate.is_empty());
    }

    /// RFC 2883 4: below the acknowledgement, or inside the second block.
    #[test]
    fn both_forms_of_d_sack_are_seen() {
        let below = judged(&[(500, 1000), (2000, 2500)]);
        assert_eq!(below.duplicate.len(), 500);
        assert_eq!(below.blocks, blocks(&[(2000, 2500)]));
        let inside = judged(&[(2100, 2200), (2000, 2500)]);
        assert_eq!(inside.duplicate.len(), 100);
        assert_eq!(inside.blocks, blocks(&[(2000, 2500)]));
    }
}
