//! Octets in a frame, packets in a plan, and the channels: fixed by the standard, the paper, or a frame's room.

use chappe_core::Channel;

/// Octets of the frame check sequence, which belongs to the radio (IEEE 802.15.4-2006, 7.2.1.9).
pub const FCS_LEN: usize = 2;
/// Largest PSDU without its check sequence (IEEE 802.15.4-2006, aMaxPHYPacketSize less the FCS).
pub const FRAME_MAX: usize = 127 - FCS_LEN;
/// Octets of the paper's header, which both variants put before PLAN, CTRL and NACK. The "7-byte application header".
pub const HEADER_LEN: usize = 7;
/// Octets that a node reads of a frame that is still arriving: kind, transfer, hop, flags.
pub(crate) const HEAD_LEN: usize = 4;
/// Octets of the header of a DATA or CODED frame of the improved variant.
pub const SHORT_HEADER_LEN: usize = 3;
/// Octets of a tag in an improved network with a key. It ends each frame, but for packets that are authenticated by blocks.
pub const TAG_LEN: usize = 4;
/// Octets of a CTRL's body before tags of blocks and padding.
pub(crate) const CTRL_FIELDS: usize = 9;
/// Most blocks of packets that a CTRL carries tags of: what the largest one has room for.
pub(crate) const BLOCKS_MAX: usize = 25;

/// Blocks of a segment whose packets have this payload; none where a CTRL as long as these has no room for a tag.
pub(crate) const fn blocks_of(payload: usize) -> usize {
    // Beside the tags there are header, fields, their tag at the end, and the tag of the tags.
    let room = (SHORT_HEADER_LEN + payload).saturating_sub(HEADER_LEN + CTRL_FIELDS + 2 * TAG_LEN);
    let count = room / TAG_LEN;
    if count < BLOCKS_MAX {
        count
    } else {
        BLOCKS_MAX
    }
}
/// Largest payload of a DATA frame of the paper: its best size, and all that a frame has room for.
pub const PAYLOAD_MAX: usize = FRAME_MAX - HEADER_LEN;
/// Largest payload of the improved variant without authentication; a tag takes four octets of it.
pub const IMPROVED_PAYLOAD_MAX: usize = FRAME_MAX - SHORT_HEADER_LEN;
/// Smallest payload: a CTRL frame is as long as a DATA frame and must hold its fields.
pub const PAYLOAD_MIN: usize = 12;
/// Smallest payload where tags of packets are in the CTRL, which is as long as a packet: it has room for one.
pub const SEGMENT_PAYLOAD_MIN: usize = 25;
/// Bits that a NACK of full length can hold: 118 octets less 4 of fields. A tag takes 32 of them.
pub const NACK_BITS: usize = (PAYLOAD_MAX - 4) * 8;
/// Most relays that a plan of the paper can name: the frame has room for no more.
pub const RELAYS_MAX: usize = 35;
/// Most relays that a plan of the improved variant can name: in networks of up to 256 nodes. In larger ones the frame has
/// room for fewer, see [`relays_max`](crate::plan::relays_max).
pub const IMPROVED_RELAYS_MAX: usize = 76;
/// Most groups of relays; the paper has two at most.
pub const GROUPS_MAX: u8 = 3;
/// Most hops of a plan of the paper's variant: the stage of a relay has four bits.
pub const PAPER_HOPS_MAX: u8 = 15;
/// Most hops of a plan of the improved variant: the planner keeps the stages of a node in 32 bits.
pub const HOPS_MAX: u8 = 31;
/// Packets that can be numbered from the start of an object: 24 bits.
pub const PACKETS_MAX: u32 = 1 << 24;
/// Most combinations after the plain packets of a segment.
pub const SUMS_MAX: usize = 8;
/// The four channels that stand clear of Wi-Fi (paper, III-B).
pub const CHANNELS: [Channel; 4] = [Channel(15), Channel(20), Channel(25), Channel(26)];

const _: () =
    assert!(blocks_of(SEGMENT_PAYLOAD_MIN) == 1 && blocks_of(SEGMENT_PAYLOAD_MIN - 1) == 0);
