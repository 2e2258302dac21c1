//! The view: fields of a frame as they stand in the bytes.

use core::fmt;

use chappe_core::Address;

use super::{
    ACK_LEN, BLOCK_ACK_LEN, BLOCK_ACK_REQ_LEN, CTS_LEN, DATA_HEADER_LEN, Kind, NavTime,
    QOS_CONTROL_LEN, RTS_LEN, Sequence,
};
use crate::{Malformed, head};

/// A frame read from outside, without its check sequence. Long enough for its kind; nothing else is promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Frame control, duration, address 1: all that every kind has.
    start: &'a [u8; 10],
    /// Address 2, of RTS and data.
    transmitter: Option<&'a [u8; 6]>,
    /// Address 3 and sequence control, of data.
    end: Option<&'a [u8; 8]>,
    /// What follows the addresses of a block acknowledgement or of its request.
    block: &'a [u8],
    body: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Looks at `psdu` as a frame.
    ///
    /// Fails if it is shorter than its own kind's header (four-address data included) or of an unknown version.
    #[inline]
    pub fn new(psdu: &'a [u8]) -> Result<Frame<'a>, Malformed> {
        let start: &[u8; 10] = head(psdu)?;
        let control = start[0];
        if control & 3 != 0 {
            return Err(Malformed::Version(control & 3));
        }
        let header = match Kind::from_bits(control >> 2 & 3, control >> 4) {
            Kind::Ack => ACK_LEN,
            Kind::Cts => CTS_LEN,
            Kind::Rts => RTS_LEN,
            Kind::Data if start[1] & 3 == 3 => DATA_HEADER_LEN + 6,
            Kind::Data => DATA_HEADER_LEN,
            // Four addresses and QoS control: the body begins later, and `Data::parse` refuses it.
            Kind::QosData => DATA_HEADER_LEN + QOS_CONTROL_LEN,
            Kind::BlockAck => BLOCK_ACK_LEN,
            Kind::BlockAckReq => BLOCK_ACK_REQ_LEN,
            Kind::Unknown { .. } => ACK_LEN,
        };
        let body = psdu.get(header..).ok_or(Malformed::Truncated {
            needed: header,
            found: psdu.len(),
        })?;
        let field = |from: usize| psdu.get(from..).filter(|_| header > from);
        Ok(Frame {
            start,
            transmitter: field(10).and_then(|rest| rest.first_chunk()),
            // In block acknowledgements these octets are something else.
            end: field(16)
                .filter(|_| control >> 2 & 3 != 1)
                .and_then(|rest| rest.first_chunk()),
            block: field(16)
                .filter(|_| control >> 2 & 3 == 1)
                .unwrap_or_default(),
            body,
        })
    }

    /// The frame type and subtype.
    #[inline]
    pub fn kind(&self) -> Kind {
        Kind::from_bits(self.start[0] >> 2 & 3, self.start[0] >> 4)
    }

    /// The frame goes to a distribution system.
    #[inline]
    pub fn to_ds(&self) -> bool {
        self.start[1] & 1 != 0
    }

    /// The frame comes from a distribution system.
    #[inline]
    pub fn from_ds(&self) -> bool {
        self.start[1] & 2 != 0
    }

    /// More fragments of the same MSDU follow.
    #[inline]
    pub fn more_fragments(&self) -> bool {
        self.start[1] & 4 != 0
    }

    /// The frame has been sent before.
    #[inline]
    pub fn retry(&self) -> bool {
        self.start[1] & 8 != 0
    }

    /// The body is encrypted.
    #[inline]
    pub fn protected(&self) -> bool {
        self.start[1] & 0x40 != 0
    }

    /// How long the medium stays reserved after this frame; `None` if the field means something else.
    #[inline]
    pub fn duration(&self) -> Option<NavTime> {
        NavTime::from_field(u16::from_le_bytes([self.start[2], self.start[3]]))
    }

    /// Address 1: the station or group that is to receive this frame.
    #[inline]
    pub fn receiver(&self) -> Address {
        Address::from_eui48(self.receiver_octets())
    }

    /// Address 1 as it stands; bit 0 of the first octet marks a group.
    #[inline]
    pub fn receiver_octets(&self) -> [u8; 6] {
        let [.., a, b, c, d, e, f] = *self.start;
        [a, b, c, d, e, f]
    }

    /// Whether the frame is for a group: broadcast or multicast.
    #[inline]
    pub fn to_group(&self) -> bool {
        self.start[4] & 1 != 0
    }

    /// Address 2: the station that transmitted this frame. ACK and CTS do not say.
    #[inline]
    pub fn transmitter(&self) -> Option<Address> {
        self.transmitter.map(|&octets| Address::from_eui48(octets))
    }

    /// Address 3: the BSSID where neither [`to_ds`](Self::to_ds) nor [`from_ds`](Self::from_ds) is set.
    #[inline]
    pub fn bssid(&self) -> Option<Address> {
        let &[a, b, c, d, e, f, _, _] = self.end?;
        Some(Address::from_eui48([a, b, c, d, e, f]))
    }

    /// The sequence control field; `None` in control frames.
    #[inline]
    pub fn sequence(&self) -> Option<Sequence> {
        let &[.., low, high] = self.end?;
        Some(Sequence::from_field(u16::from_le_bytes([low, high])))
    }

    /// Starting sequence number and bitmap of a compressed block acknowledgement for one traffic identifier; of a request the bitmap is
    /// zero. `None` if it is another kind of frame or of block acknowledgement.
    pub fn block(&self) -> Option<(Sequence, u64)> {
        let &[low, _, from_low, from_high] = self.block.first_chunk()?;
        // Bit 2 says compressed, bit 1 several identifiers (9.3.1.8.1).
        if low & 0b110 != 0b100 {
            return None;
        }
        let start = Sequence::from_field(u16::from_le_bytes([from_low, from_high]));
        let bitmap = match self.kind() {
            Kind::BlockAck => u64::from_le_bytes(*self.block.get(4..)?.first_chunk()?),
            _ => 0,
        };
        Some((start, bitmap))
    }

    /// What follows the header.
    #[inline]
    pub fn body(&self) -> &'a [u8] {
        self.body
    }
}

impl fmt::Display for Frame<'_> {
    /// `Data n1 > n2 seq=7 retry nav=314us len=208`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind())?;
        if let Some(transmitter) = self.transmitter() {
            write!(f, " {transmitter}")?;
        }
        write!(f, " > {}", self.receiver())?;
        if let Some(sequence) = self.sequence() {
            write!(f, " seq={sequence}")?;
        }
        for (set, name) in [
            (self.retry(), " retry"),
            (self.more_fragments(), " more"),
            (self.to_ds(), " to-DS"),
            (self.from_ds(), " from-DS"),
            (self.protected(), " protected"),
        ] {
            f.write_str(if set { name } else { "" })?;
        }
        if let Some(nav) = self.duration() {
            write!(f, " nav={nav}")?;
        }
        write!(f, " len={}", self.body.len())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use chappe_core::{Purpose, Seed};
    use std::string::ToString;

    #[test]
    fn a_strange_frame_can_still_be_printed() {
        // A beacon: management, subtype 8.
        let mut bytes = [0xff; 24];
        bytes[0] = 0x80;
        bytes[1] = 0;
        bytes[2..4].copy_from_slice(&[0, 0]);
        let frame = Frame::new(&bytes).unwrap();
        assert_eq!(
            frame.kind(),
            Kind::Unknown {
                kind: 0,
                subtype: 8
            }
        );
        assert_eq!(frame.to_string(), "Type0.8 > * nav=0us len=14");
    }

    #[test]
    fn short_and_foreign_bytes_are_refused() {
        assert_eq!(
            Frame::new(&[0xd4; 9]),
            Err(Malformed::Truncated {
                needed: 10,
                found: 9
            })
        );
        assert_eq!(
            Frame::new(&[0xb4; 15]),
            Err(Malformed::Truncated {
                needed: 16,
                found: 15
            })
        );
        assert_eq!(Frame::new(&[1; 40]), Err(Malformed::Version(1)));
        let mut four_addresses = [0; 29];
        four_addresses[..2].copy_from_slice(&[0x08, 0x03]);
        assert_eq!(
            Frame::new(&four_addresses),
            Err(Malformed::Truncated {
                needed: 30,
                found: 29
            })
        );
    }

    /// Every accessor of every view over random bytes, half of them of a supported kind.
    #[test]
    fn random_bytes_never_panic() {
        let mut random = Seed(11).stream(Purpose::Trial(0));
        let mut bytes = [0; 64];
        for round in 0..20_000 {
            let len = random.below(65) as usize;
            random.fill(&mut bytes[..len]);
            if round % 2 == 0 && len > 0 {
                bytes[0] = [0x08, 0xd4, 0xb4, 0xc4][random.below(4) as usize];
            }
            if let Ok(frame) = Frame::new(&bytes[..len]) {
                assert!(!frame.to_string().is_empty());
                assert!(frame.body().len() + 10 <= len);
            }
        }
    }
}
