//! IEEE 802.15.4 MAC frames: data, acknowledgements and commands of a network without beacons.
//!
//! The general frame (IEEE 802.15.4-2015, 7.2; octets on the air, little-endian fields):
//!
//! ```text
//! +---------------+----------+---------+---------+---------+---------+-----------+---------+-----+
//! | frame control | sequence | dst PAN |   dst   | src PAN |   src   | auxiliary | payload | FCS |
//! |       2       |  0 or 1  |  0 or 2 | 0, 2, 8 |  0 or 2 | 0, 2, 8 | 0, 5..=14 |         |  2  |
//! +---------------+----------+---------+---------+---------+---------+-----------+---------+-----+
//!
//! frame control, bit 0 first:
//! 0..2   3        4       5       6        7      8          9   10..11 12..13  14..15
//! type security pending ACK   PAN ID   reserved sequence    IE   dst    version src
//!                       request compr.          suppressed       mode           mode
//! ```
//!
//! Versions 0 (2003), 1 (2006) and 2 (2015) differ in which PAN identifiers compression omits; the table of
//! 2015 is in [`header`](Header). Information elements, beacons' own fields and multipurpose frames are not
//! supported. The frame check sequence belongs to the radio and is not part of the bytes here.
//!
//! Numbered nodes have 16-bit addresses, or the EUI-64 that RFC 4291 makes of their EUI-48. Both give the same
//! IPv6 interface identifier, `0000:00ff:fe00:hhll` (RFC 4944, 6; RFC 4291, appendix A).

mod header;

use core::fmt;

use chappe_core::Address;

pub use header::{Frame, Header, KeyId, Security};

/// Octets of the frame check sequence that the radio adds.
pub const FCS_LEN: usize = 2;
/// Largest PSDU, check sequence included (aMaxPhyPacketSize).
pub const PSDU_MAX: usize = 127;
/// Octets of an immediate acknowledgement without its check sequence.
pub const ACK_LEN: usize = 3;
/// The command by which a sleepy device asks its parent for frames (IEEE 802.15.4-2015, 7.5.4).
pub const DATA_REQUEST: u8 = 0x04;

/// The type of a frame, from its frame control field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A beacon; its fields are not parsed.
    Beacon,
    /// A data frame, with a payload of the layer above.
    Data,
    /// An immediate or enhanced acknowledgement.
    Ack,
    /// A MAC command, its number in the payload's first octet.
    Command,
}

/// The edition whose rules a frame follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// The frame follows IEEE 802.15.4-2003.
    V2003,
    /// The frame follows IEEE 802.15.4-2006.
    V2006,
    /// The frame follows IEEE 802.15.4-2015 or later.
    V2015,
}

/// An address in the form in which it is transmitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    /// 16 bits; `0xffff` is broadcast.
    Short(u16),
    /// An EUI-64, most significant octet first.
    Extended(u64),
}

/// `02:00:00:ff:fe:00:hh:ll`: the EUI-64 of a numbered node's EUI-48 `02:00:00:00:hh:ll`.
const NODE_EUI64: u64 = 0x0200_00ff_fe00_0000;

impl Node {
    /// The broadcast address `0xffff`.
    pub const BROADCAST: Node = Node::Short(0xffff);

    /// The 16-bit address of a numbered node, or broadcast; `None` if there is none. 0xfffe is reserved.
    pub const fn short(address: Address) -> Option<Node> {
        if address.is_broadcast() {
            return Some(Node::BROADCAST);
        }
        match address.node_number() {
            Some(number) if number < 0xfffe => Some(Node::Short(number)),
            _ => None,
        }
    }

    /// The 64-bit address; broadcast has none and stays 16 bits.
    pub const fn extended(address: Address) -> Node {
        match address.node_number() {
            _ if address.is_broadcast() => Node::BROADCAST,
            Some(number) => Node::Extended(NODE_EUI64 | number as u64),
            None => Node::Extended(address.to_u64()),
        }
    }

    /// The link-layer address that the other parts use.
    pub const fn address(self) -> Address {
        match self {
            Node::Short(0xffff) => Address::BROADCAST,
            Node::Short(number) => Address::node(number),
            Node::Extended(value) if value & !0xffff == NODE_EUI64 => {
                Address::node((value & 0xffff) as u16)
            }
            Node::Extended(value) => Address::from_u64(value),
        }
    }

    /// The IPv6 interface identifier made of it (RFC 4944, 6, with the universal bit of RFC 6282, 3.2.2: zero for
    /// 16-bit addresses; RFC 4291, appendix A, for an EUI-64).
    pub const fn interface_id(self) -> [u8; 8] {
        match self {
            Node::Short(number) => (0x0000_00ff_fe00_0000 | number as u64).to_be_bytes(),
            Node::Extended(value) => (value ^ 0x0200_0000_0000_0000).to_be_bytes(),
        }
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Node::Short(0xffff) => f.write_str("*"),
            Node::Short(number) => write!(f, "{number:04x}"),
            Node::Extended(value) => write!(f, "{value:016x}"),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Beacon => "Beacon",
            Kind::Data => "Data",
            Kind::Ack => "ACK",
            Kind::Command => "Command",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_address_forms_mean_the_same_node() {
        let node = Address::node(0x1234);
        let short = Node::short(node).unwrap();
        let extended = Node::extended(node);
        assert_eq!((short.address(), extended.address()), (node, node));
        assert_eq!(short.interface_id(), [0, 0, 0, 0xff, 0xfe, 0, 0x12, 0x34]);
        assert_eq!(short.interface_id(), extended.interface_id());
        assert_eq!(Node::short(Address::BROADCAST), Some(Node::BROADCAST));
        assert_eq!(Node::extended(Address::BROADCAST), Node::BROADCAST);
        assert_eq!(Node::short(Address::node(0xfffe)), None);
        let eui = Address::from_u64(0x0012_4b00_1234_5678);
        assert_eq!(Node::extended(eui).address(), eui);
    }
}
