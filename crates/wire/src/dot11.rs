//! 802.11 frames: the kinds that a distributed network needs.
//!
//! The general frame (IEEE 802.11-2020, 9.2.3; octets on the air, little-endian fields):
//!
//! ```text
//! +---------------+----------+-----------+-----------+-----------+----------+-----------+-----+
//! | frame control | duration | address 1 | address 2 | address 3 | sequence | body      | FCS |
//! |       2       |    2     |     6     |     6     |     6     |    2     | 0..=2304  |  4  |
//! +---------------+----------+-----------+-----------+-----------+----------+-----------+-----+
//!                              receiver    transmitter  BSSID
//! ACK, CTS:  ends after address 1 (9.3.1.3, 9.3.1.4)      10 octets
//! RTS:       ends after address 2 (9.3.1.2)               16 octets
//! Data:      everything (9.3.2.1)                         24 octets and the body
//! QoS data:  the same and QoS control                     26 octets and the body
//! BlockAck:  addresses 1 and 2, BA control 2, starting sequence control 2, bitmap 8 (9.3.1.8)     28 octets
//! BlockAckReq: the same without a bitmap (9.3.1.7)        20 octets
//!
//! frame control (9.2.4.1), bit 0 first:
//!  0 1   2 3    4..7     8     9      10    11     12     13    14    15
//! version type subtype to-DS from-DS more retry power  more  prot. order
//!                                    frag       manag. data
//!
//! sequence control (9.2.4.4):  0..3 fragment number, 4..15 sequence number
//! ```
//!
//! The frame check sequence belongs to the radio and is not part of the bytes here; see [`crate::fcs`].

pub mod ampdu;
mod frame;
mod repr;

use core::fmt;

use chappe_core::Duration;

pub use frame::Frame;
pub use repr::{Block, Data, Repr};

/// Octets of an ACK or CTS without its check sequence.
pub const ACK_LEN: usize = 10;
/// Octets of a CTS without its check sequence.
pub const CTS_LEN: usize = 10;
/// Octets of an RTS without its check sequence.
pub const RTS_LEN: usize = 16;
/// Octets of a compressed BlockAck without its check sequence.
pub const BLOCK_ACK_LEN: usize = 28;
/// Octets of a BlockAckReq without its check sequence.
pub const BLOCK_ACK_REQ_LEN: usize = 20;
/// Octets of QoS control, behind the header of a QoS data frame.
pub const QOS_CONTROL_LEN: usize = 2;
/// Octets of a data frame's header, three addresses.
pub const DATA_HEADER_LEN: usize = 24;
/// Octets of the frame check sequence that the radio adds.
pub const FCS_LEN: usize = 4;
/// Largest body of a data frame: the largest MSDU (IEEE 802.11-2020, 9.2.4.7.1), unencrypted.
pub const BODY_MAX: usize = 2304;

/// Frame type and subtype (IEEE 802.11-2020, table 9-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Data, type 2, subtype 0.
    Data,
    /// Data with QoS control, type 2, subtype 8.
    QosData,
    /// Compressed block acknowledgement, type 1, subtype 9.
    BlockAck,
    /// Request for one, type 1, subtype 8.
    BlockAckReq,
    /// Acknowledgement, type 1, subtype 13.
    Ack,
    /// Request to send, type 1, subtype 11.
    Rts,
    /// Clear to send, type 1, subtype 12.
    Cts,
    /// Any other; kept so that it can be printed and its reservation honoured.
    Unknown {
        /// 0 management, 1 control, 2 data, 3 extension.
        kind: u8,
        /// The subtype within the type, 0 to 15.
        subtype: u8,
    },
}

/// A reservation of the medium in whole microseconds after the end of the frame that announces it, at most
/// 32,767: the values 0 to 0x7fff of the Duration/ID field (IEEE 802.11-2020, 9.2.4.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct NavTime(u16);

/// Which MSDU of its sender a frame carries (IEEE 802.11-2020, 9.2.4.4): the same in every retransmission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sequence {
    number: u16,
    fragment: u8,
}

impl Kind {
    fn from_bits(kind: u8, subtype: u8) -> Kind {
        match (kind, subtype) {
            (2, 0) => Kind::Data,
            (2, 8) => Kind::QosData,
            (1, 9) => Kind::BlockAck,
            (1, 8) => Kind::BlockAckReq,
            (1, 13) => Kind::Ack,
            (1, 11) => Kind::Rts,
            (1, 12) => Kind::Cts,
            (kind, subtype) => Kind::Unknown { kind, subtype },
        }
    }

    fn to_bits(self) -> (u8, u8) {
        match self {
            Kind::Data => (2, 0),
            Kind::QosData => (2, 8),
            Kind::BlockAck => (1, 9),
            Kind::BlockAckReq => (1, 8),
            Kind::Ack => (1, 13),
            Kind::Rts => (1, 11),
            Kind::Cts => (1, 12),
            Kind::Unknown { kind, subtype } => (kind, subtype),
        }
    }
}

impl NavTime {
    /// The empty reservation, zero microseconds.
    pub const ZERO: NavTime = NavTime(0);
    /// The longest possible reservation, 32,767 us.
    pub const MAX: NavTime = NavTime(0x7fff);

    /// The shortest reservation that covers `span`: fractions of a microsecond round up (9.2.5.1), and what
    /// exceeds the field stays at [`NavTime::MAX`].
    pub const fn covering(span: Duration) -> NavTime {
        let micros = span.nanos().div_ceil(1_000);
        if micros < NavTime::MAX.0 as u64 {
            NavTime(micros as u16)
        } else {
            NavTime::MAX
        }
    }

    /// From the field's 16 bits; `None` if bit 15 says that they mean something else.
    pub const fn from_field(bits: u16) -> Option<NavTime> {
        if bits <= NavTime::MAX.0 {
            Some(NavTime(bits))
        } else {
            None
        }
    }

    /// The reservation in whole microseconds.
    pub const fn micros(self) -> u16 {
        self.0
    }

    /// As a span of time.
    pub const fn span(self) -> Duration {
        Duration::from_micros(self.0 as u64)
    }
}

impl Sequence {
    /// The first fragment (of one, as fragmentation is not supported) of MSDU `number`, modulo 4096.
    pub const fn new(number: u16) -> Sequence {
        Sequence {
            number: number & 0x0fff,
            fragment: 0,
        }
    }

    /// From the field's 16 bits.
    pub const fn from_field(bits: u16) -> Sequence {
        Sequence {
            number: bits >> 4,
            fragment: (bits & 15) as u8,
        }
    }

    /// The field's 16 bits.
    pub const fn to_field(self) -> u16 {
        self.number << 4 | self.fragment as u16
    }

    /// The sequence number, 0 to 4095.
    pub const fn number(self) -> u16 {
        self.number
    }

    /// The fragment number, 0 to 15.
    pub const fn fragment(self) -> u8 {
        self.fragment
    }

    /// The sequence of the next MSDU.
    pub const fn next(self) -> Sequence {
        Sequence::new(self.number.wrapping_add(1))
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Data => f.write_str("Data"),
            Kind::QosData => f.write_str("QoSData"),
            Kind::BlockAck => f.write_str("BlockAck"),
            Kind::BlockAckReq => f.write_str("BlockAckReq"),
            Kind::Ack => f.write_str("ACK"),
            Kind::Rts => f.write_str("RTS"),
            Kind::Cts => f.write_str("CTS"),
            Kind::Unknown { kind, subtype } => write!(f, "Type{kind}.{subtype}"),
        }
    }
}

impl fmt::Display for NavTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}us", self.0)
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.fragment {
            0 => write!(f, "{}", self.number),
            fragment => write!(f, "{}.{fragment}", self.number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_round_up_and_saturate() {
        assert_eq!(NavTime::covering(Duration::from_nanos(1)).micros(), 1);
        assert_eq!(NavTime::covering(Duration::from_micros(314)).micros(), 314);
        assert_eq!(NavTime::covering(Duration::from_secs(9)), NavTime::MAX);
        assert_eq!(NavTime::from_field(0x8000), None);
    }

    #[test]
    fn sequence_numbers_wrap_at_4096() {
        assert_eq!(Sequence::new(4095).next().number(), 0);
        assert_eq!(Sequence::from_field(0xfff3).to_field(), 0xfff3);
        assert_eq!(Sequence::from_field(0x0123).fragment(), 3);
    }
}
