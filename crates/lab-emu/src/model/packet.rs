//! Packets of the simulated hosts: as long as a kernel's, with the few fields that the model needs.

use chappe_core::{Address, Instant};

/// Octets of an Ethernet header.
pub(super) const HEADER: usize = 14;

/// The largest number of SACK blocks: three fit next to the timestamps option (RFC 2018, section 3).
pub const BLOCKS: usize = 3;

/// The local experimental EtherType of IEEE 802.
const TYPE: [u8; 2] = [0x88, 0xb5];

/// A UDP packet, a TCP segment or an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The node that created the packet.
    pub from: usize,
    /// The node that the packet is for.
    pub to: usize,
    /// Octets with the IP header and all headers above it.
    pub len: usize,
    /// Data: the number of the segment. Acknowledgement: the first missing segment.
    pub number: u32,
    /// The timestamps option (RFC 7323). Data: when it was sent. Acknowledgement: the time of the segment that it echoes.
    pub stamp: Instant,
    /// SACK blocks: the first segment, and one past the last. Both are equal in an empty block.
    pub blocks: [(u32, u32); BLOCKS],
}

impl Packet {
    /// Creates a segment or a UDP packet.
    pub(super) fn data(from: usize, to: usize, number: u32, now: Instant, len: usize) -> Packet {
        Packet {
            from,
            to,
            len,
            number,
            stamp: now,
            blocks: [(0, 0); BLOCKS],
        }
    }

    /// Writes the packet as a frame between these stations, and returns the frame's length.
    pub(super) fn emit(&self, to: Address, from: Address, frame: &mut [u8]) -> usize {
        let fields = [
            (self.from as u32, self.to as u32),
            (self.number, 0),
            ((self.stamp.nanos() >> 32) as u32, self.stamp.nanos() as u32),
        ];
        let len = HEADER + self.len;
        frame[..6].copy_from_slice(&to.to_eui48());
        frame[6..12].copy_from_slice(&from.to_eui48());
        frame[12..HEADER].copy_from_slice(&TYPE);
        let words = fields.iter().chain(&self.blocks);
        let room = frame[HEADER..len].chunks_exact_mut(8);
        for (room, (first, second)) in room.zip(words) {
            room[..4].copy_from_slice(&first.to_be_bytes());
            room[4..].copy_from_slice(&second.to_be_bytes());
        }
        len
    }

    /// Reads a frame. Returns `None` if no simulated host sent it.
    pub(super) fn parse(frame: &[u8]) -> Option<Packet> {
        let body = frame.get(HEADER..)?;
        if frame.get(12..HEADER)? != TYPE {
            return None;
        }
        let pair = |place: usize| {
            let octets: [u8; 8] = body.get(place * 8..place * 8 + 8)?.try_into().ok()?;
            let both = u64::from_be_bytes(octets);
            Some(((both >> 32) as u32, both as u32))
        };
        let ((from, to), (number, _)) = (pair(0)?, pair(1)?);
        let (high, low) = pair(2)?;
        Some(Packet {
            from: from as usize,
            to: to as usize,
            len: body.len(),
            number,
            stamp: Instant::from_nanos(u64::from(high) << 32 | u64::from(low)),
            blocks: [pair(3)?, pair(4)?, pair(5)?],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_survive_a_frame() {
        let mut packet = Packet::data(3, 1, 77, Instant::from_nanos(u64::MAX - 5), 52);
        packet.blocks = [(1, 2), (u32::MAX, 4), (5, 5)];
        let mut frame = [0; 200];
        let len = packet.emit(Address::node(1), Address::node(3), &mut frame);
        assert_eq!((len, Packet::parse(&frame[..len])), (66, Some(packet)));
        assert_eq!(Packet::parse(&frame[..40]), None);
    }
}
