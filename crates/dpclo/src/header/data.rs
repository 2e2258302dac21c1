//! The header of a data frame, written and parsed.

use super::{Backlog, DATA, KIND_DATA, KIND_PRICED, Malformed, Stamp, VERSION, Writer};

const FLAG_CONGESTED: u8 = 1;
const FLAG_EMPTY: u8 = 2;
/// Bits below the room in the octet of the flags.
const ROOM_SHIFT: u32 = 2;

/// The bit of the hop limit's octet that marks a packet which goes first.
const FIRST: u8 = 0x80;

/// The most room that a packet can advertise.
pub const ROOM_MAX: u8 = 63;

/// The header of a data frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// The number of times it may still be forwarded, this transmission included.
    pub hop_limit: u8,
    /// It goes before packets that are not marked so, at every node.
    pub first: bool,
    /// The node that offered it.
    pub source: u16,
    /// The node that it is addressed to.
    pub destination: u16,
    /// The number that the source gave to the flow.
    pub flow: u16,
    /// The packet's number within the flow.
    pub number: u32,
    /// The sender's queue for the destination, without this packet.
    pub backlog: Backlog,
    /// The sender is congested (Fusion).
    pub congested: bool,
    /// No payload: the frame only moves a unit of queue length.
    pub empty: bool,
    /// How many more packets for the destination the sender can take; [`ROOM_MAX`] means that many or more.
    pub room: u8,
    /// The epoch of the source.
    pub epoch: u8,
}

impl Data {
    pub(super) fn parse(octets: &[u8]) -> Result<(Data, &[u8]), Malformed> {
        let (head, payload) = octets.split_first_chunk::<DATA>().ok_or(Malformed::Short)?;
        let [
            _,
            hop_limit,
            s0,
            s1,
            d0,
            d1,
            f0,
            f1,
            n0,
            n1,
            n2,
            n3,
            b0,
            b1,
            flags,
            epoch,
        ] = *head;
        let data = Data {
            hop_limit: hop_limit & !FIRST,
            first: hop_limit & FIRST != 0,
            source: u16::from_be_bytes([s0, s1]),
            destination: u16::from_be_bytes([d0, d1]),
            flow: u16::from_be_bytes([f0, f1]),
            number: u32::from_be_bytes([n0, n1, n2, n3]),
            backlog: Backlog(u16::from_be_bytes([b0, b1])),
            congested: flags & FLAG_CONGESTED != 0,
            empty: flags & FLAG_EMPTY != 0,
            room: flags >> ROOM_SHIFT,
            epoch,
        };
        // A stamp is the only thing that may follow.
        let most = match head.first() {
            Some(&first) if first & 15 == KIND_PRICED => super::STAMP,
            _ => 0,
        };
        match data.empty && payload.len() > most {
            true => Err(Malformed::Contradiction),
            false => Ok((data, payload)),
        }
    }

    /// Writes header and payload; how long they are, or `None` if there is no room.
    pub fn emit(&self, payload: &[u8], room: &mut [u8]) -> Option<usize> {
        self.emit_with(None, payload, room)
    }

    /// The same with a stamp, if there is one.
    pub fn emit_with(
        &self,
        stamp: Option<Stamp>,
        payload: &[u8],
        room: &mut [u8],
    ) -> Option<usize> {
        let mut writer = Writer { room, len: 0 };
        let kind = if stamp.is_some() {
            KIND_PRICED
        } else {
            KIND_DATA
        };
        let first = if self.first { FIRST } else { 0 };
        writer.put(&[VERSION << 4 | kind, self.hop_limit & !FIRST | first])?;
        for field in [self.source, self.destination, self.flow] {
            writer.put(&field.to_be_bytes())?;
        }
        writer.put(&self.number.to_be_bytes())?;
        writer.put(&self.backlog.0.to_be_bytes())?;
        let congested = if self.congested { FLAG_CONGESTED } else { 0 };
        let empty = if self.empty { FLAG_EMPTY } else { 0 };
        let room_told = self.room.min(ROOM_MAX) << ROOM_SHIFT;
        writer.put(&[room_told | congested | empty, self.epoch])?;
        if let Some(stamp) = stamp {
            stamp.put(&mut writer)?;
        }
        writer.put(payload)?;
        Some(writer.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::{Cost, Frame, Share, parse};

    const DATA_FRAME: Data = Data {
        hop_limit: 31,
        first: false,
        source: 1,
        destination: 0x203,
        flow: 4,
        number: 0x0506_0708,
        backlog: Backlog(40),
        congested: true,
        empty: false,
        room: 5,
        epoch: 9,
    };

    #[test]
    fn data_matches_the_layout() {
        let mut room = [0; 20];
        let len = DATA_FRAME.emit(&[0xaa, 0xbb], &mut room).unwrap();
        let want = [
            0x13, 31, 0, 1, 2, 3, 0, 4, 5, 6, 7, 8, 0, 40, 0x15, 9, 0xaa, 0xbb,
        ];
        assert_eq!(room[..len], want);
        assert_eq!(parse(&want), Ok(Frame::Data(DATA_FRAME, &[0xaa, 0xbb][..])));
        assert_eq!(DATA_FRAME.emit(&[0; 5], &mut room), None);
        let first = Data {
            first: true,
            ..DATA_FRAME
        };
        first.emit(&[], &mut room).unwrap();
        assert_eq!(room[1], 0x9f);
        assert_eq!(parse(&room[..16]), Ok(Frame::Data(first, &[][..])));
    }

    #[test]
    fn a_stamp_stands_before_the_payload() {
        let stamp = Stamp {
            share: Share::new(0.2, 0.5),
            cost: Cost::new(0.04),
        };
        let mut room = [0; 23];
        assert_eq!(
            DATA_FRAME.emit_with(Some(stamp), &[7, 8], &mut room),
            Some(23)
        );
        assert_eq!(room[0], 0x18);
        assert_eq!(
            parse(&room),
            Ok(Frame::Priced(DATA_FRAME, stamp, &[7, 8][..]))
        );
        assert_eq!(parse(&room[..20]), Err(Malformed::Short));
        room[14] |= FLAG_EMPTY;
        assert_eq!(parse(&room), Err(Malformed::Contradiction));
        assert!(parse(&room[..21]).is_ok());
    }
}
