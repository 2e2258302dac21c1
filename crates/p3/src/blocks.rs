//! Tags of blocks: how packets are authenticated where their frames carry no tag of their own.
//!
//! A tag in each frame takes four of its 125 octets. Instead, a CTRL has room for 25 tags. Packet i of a segment
//! belongs to block i modulo the number of blocks, so both ends know the block before they know the segment's length, and
//! blocks are of equal size however short the segment is. The tag of a block is the exclusive or of the tags of its packets, each of
//! which is the CCM tag that the frame would have carried (an aggregate MAC: Katz and Lindell, "Aggregate message
//! authentication codes", CT-RSA 2008). It does not depend on the order in which packets arrive or are solved for.
//!
//! What a forger can do:
//!
//! - A forged packet, or combination, is noticed only at the CTRL. The block is then reported as missing: one forged frame costs a
//!   round and at most [`BLOCK_MAX`] packets, or all blocks with a solved packet. Where blocks have failed at [`FAILED_MAX`] questions of an attempt, the
//!   destination gives the attempt up, and its gateway goes on with a tag in each frame. So a forger wins the time of
//!   two segments of a transfer, and can afterwards do no more than jam.
//! - The object never takes a forged packet for a genuine one but by guessing 32 bits, once for each question.
//! - Tags are checked as a whole by a tag over all of them, so a bent CTRL does not make blocks fail. Relays check the front of it only.
//! - Each (session, packet) has a nonce of its own, and the same contents in all rounds. A resumed transfer is a new
//!   session: its blocks are of that session's tags, and the destination makes those of what it has from its store.

use crate::sizes::{BLOCKS_MAX, TAG_LEN};

/// Packets of a block of the longest segment: 880 by 25.
#[cfg(test)]
pub(crate) const BLOCK_MAX: usize = 36;
/// Questions of an attempt with failed blocks after which it is given up. One may be a frame with bit errors that its check
/// sequence did not show.
pub(crate) const FAILED_MAX: u8 = 2;

/// The tag of a packet or of a block.
pub(crate) type Tag = [u8; TAG_LEN];

/// The tags of a segment's blocks: what a CTRL says, or what an end has so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tags {
    tags: [Tag; BLOCKS_MAX],
    count: usize,
    /// First packet of the segment.
    first: u32,
}

impl Tags {
    /// Those of no packets, for so many blocks of the segment that begins with packet `first`.
    pub fn new(count: usize, first: u32) -> Tags {
        Tags {
            tags: [Tag::default(); BLOCKS_MAX],
            count: count.min(BLOCKS_MAX),
            first,
        }
    }

    /// Whether there are any.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn slots(&self) -> &[Tag] {
        self.tags.get(..self.count).unwrap_or_default()
    }

    /// Octets of the tags in a CTRL.
    pub fn len(&self) -> usize {
        self.count * TAG_LEN
    }

    /// Takes in a packet, or takes it out again.
    pub fn toggle(&mut self, packet: u32, tag: Tag) {
        let count = self.count as u32;
        let block = packet
            .checked_sub(self.first)
            .and_then(|at| at.checked_rem(count));
        let place = block.and_then(|block| self.tags.get_mut(block as usize));
        for (ours, octet) in place.into_iter().flatten().zip(tag) {
            *ours ^= octet;
        }
    }

    /// Takes all packets of a block out.
    fn clear(&mut self, block: usize) {
        if let Some(place) = self.tags.get_mut(block) {
            *place = Tag::default();
        }
    }

    /// Writes the tags to a CTRL's body behind its fields.
    pub fn emit(&self, body: &mut [u8]) {
        let places = body.chunks_exact_mut(TAG_LEN);
        for (place, tag) in places.zip(self.slots()) {
            place.copy_from_slice(tag);
        }
    }

    /// Reads the tags of these blocks from a CTRL's body behind its fields.
    pub fn read(&self, body: &[u8]) -> Tags {
        let mut read = *self;
        let places = read.tags.iter_mut().take(self.count);
        for (tag, place) in places.zip(body.chunks_exact(TAG_LEN)) {
            tag.copy_from_slice(place);
        }
        read
    }

    /// The blocks before packet `end` that are whole at the destination and have another tag than the CTRL's `told`; what
    /// the destination has of them no longer counts. `has` is true for a packet that it has.
    pub fn failed(&mut self, told: &Tags, end: u32, has: impl Fn(u32) -> bool) -> Failed {
        let mut failed = Failed {
            bits: 0,
            first: self.first,
            count: self.count as u32,
        };
        for block in 0..self.count {
            let whole = failed.packets_of(block as u32, end).all(&has);
            if whole && self.tags.get(block) != told.tags.get(block) {
                self.clear(block);
                failed.bits |= 1 << block;
            }
        }
        failed
    }
}

/// The blocks of a segment whose tag did not fit: their packets have to come again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failed {
    bits: u32,
    first: u32,
    count: u32,
}

impl Failed {
    pub fn is_empty(&self) -> bool {
        self.bits == 0
    }

    /// The packets of a block before `end`.
    fn packets_of(&self, block: u32, end: u32) -> impl Iterator<Item = u32> + use<> {
        // A step of 0 does not exist, and without blocks there is nothing to step over.
        let step = self.count.max(1) as usize;
        (self.first.saturating_add(block)..end).step_by(step)
    }

    /// The packets before `end` of all blocks that failed.
    pub fn packets(self, end: u32) -> impl Iterator<Item = u32> {
        let failed = (0..self.count).filter(move |block| self.bits >> block & 1 == 1);
        failed.flat_map(move |block| self.packets_of(block, end))
    }
}

// One bit for each block.
const _: () = assert!(BLOCKS_MAX <= 32);

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::sizes::blocks_of;
    use std::vec::Vec;

    fn tags(count: usize) -> Tags {
        Tags::new(count, 1000)
    }

    /// A tag that no exclusive or of a few others equals.
    fn of(packet: u32) -> Tag {
        packet
            .wrapping_mul(0x9e37_79b1)
            .rotate_left(packet % 31)
            .to_le_bytes()
    }

    #[test]
    fn a_ctrl_has_room_for_25_tags_and_a_block_at_most_36_packets() {
        assert_eq!(
            [12, 24, 25, 60, 121, 122].map(blocks_of),
            [0, 0, 1, 9, 25, 25]
        );
        assert_eq!(880usize.div_ceil(BLOCKS_MAX), BLOCK_MAX);
    }

    /// Goal: exactly the whole blocks with a wrong packet fail, in any order of arrival. Method: every single wrong packet, and every
    /// single missing one.
    #[test]
    fn whole_blocks_with_a_wrong_packet_fail() {
        let (end, count) = (1000 + 103, 25);
        let mut told = tags(count);
        (1000..end).for_each(|packet| told.toggle(packet, of(packet)));
        let mut body = [0; 100];
        told.emit(&mut body);
        assert_eq!(tags(count).read(&body), told);
        for wrong in (1000..end).map(Some).chain([None]) {
            let mut ours = tags(count);
            for packet in (1000..end).rev() {
                let flip = u32::from(Some(packet) == wrong);
                ours.toggle(
                    packet,
                    (u32::from_le_bytes(of(packet)) ^ flip).to_le_bytes(),
                );
            }
            let failed = ours.failed(&told, end, |_| true);
            let expected: Vec<u32> = (1000..end)
                .filter(|packet| wrong.is_some_and(|wrong| packet % 25 == wrong % 25))
                .collect();
            let packets: Vec<u32> = failed.packets(end).collect();
            assert_eq!((packets, failed.is_empty()), (expected, wrong.is_none()));
            // What failed is forgotten, and the right packets make it whole again.
            failed
                .packets(end)
                .for_each(|packet| ours.toggle(packet, of(packet)));
            assert!(ours.failed(&told, end, |_| true).is_empty());
        }
        for missing in 1000..end {
            let mut ours = tags(count);
            let has = |packet: u32| packet != missing;
            (1000..end)
                .filter(|packet| has(*packet))
                .for_each(|packet| ours.toggle(packet, of(packet)));
            assert!(ours.failed(&told, end, has).is_empty());
        }
    }
}
