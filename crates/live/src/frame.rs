//! What stands before each SDU on the wire.
//!
//! ```text
//!  0        4         5      6        8        16       24       28       32
//!  +--------+---------+------+--------+--------+--------+--------+--------+----
//!  | magic  | version | kind | length |  from  |   to   | epoch  | number | SDU
//!  +--------+---------+------+--------+--------+--------+--------+--------+----
//! ```
//!
//! Big-endian. `length` is that of the SDU, since Ethernet pads short frames. `epoch` is drawn when the sender
//! starts, `number` counts its unicast frames, so that a repeated one is known. In a confirmation, both are those
//! of the frame that arrived. **Nothing here is authenticated.**

use chappe_core::Address;

/// Octets before the SDU.
pub const HEADER: usize = 32;

const MAGIC: [u8; 4] = *b"Chpp";
const VERSION: u8 = 0;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An SDU for everybody.
    Broadcast,
    /// An SDU for one neighbour, who confirms it.
    Unicast,
    /// The confirmation; no SDU.
    Confirmation,
}

/// The fields of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What the frame is.
    pub kind: Kind,
    /// Who sent it, by its own word.
    pub from: Address,
    /// For whom.
    pub to: Address,
    /// Which life of the sender of the SDU.
    pub epoch: u32,
    /// Which of its unicast frames; 0 in broadcasts.
    pub number: u32,
}

impl Header {
    /// Writes the header of an SDU of `len` octets to the front of `frame`; false if there is no room for both.
    pub fn emit(&self, len: usize, frame: &mut [u8]) -> bool {
        let (Ok(length), true) = (u16::try_from(len), frame.len() >= HEADER + len) else {
            return false;
        };
        let kind = match self.kind {
            Kind::Broadcast => 0,
            Kind::Unicast => 1,
            Kind::Confirmation => 2,
        };
        frame[..4].copy_from_slice(&MAGIC);
        frame[4..6].copy_from_slice(&[VERSION, kind]);
        frame[6..8].copy_from_slice(&length.to_be_bytes());
        frame[8..16].copy_from_slice(&self.from.to_u64().to_be_bytes());
        frame[16..24].copy_from_slice(&self.to.to_u64().to_be_bytes());
        frame[24..28].copy_from_slice(&self.epoch.to_be_bytes());
        frame[28..32].copy_from_slice(&self.number.to_be_bytes());
        true
    }

    /// Reads a frame; `None` for what is none of ours: another magic, version or kind, a length that is not there,
    /// a sender that is everybody, a broadcast to one or a unicast to all.
    pub fn parse(frame: &[u8]) -> Option<(Header, &[u8])> {
        let (magic, rest) = frame.split_first_chunk::<4>()?;
        let ([version, kind], rest) = rest.split_first_chunk::<2>()?;
        let (length, rest) = rest.split_first_chunk::<2>()?;
        let (from, rest) = rest.split_first_chunk::<8>()?;
        let (to, rest) = rest.split_first_chunk::<8>()?;
        let (epoch, rest) = rest.split_first_chunk::<4>()?;
        let (number, rest) = rest.split_first_chunk::<4>()?;
        let sdu = rest.get(..usize::from(u16::from_be_bytes(*length)))?;
        let kind = match kind {
            0 => Kind::Broadcast,
            1 => Kind::Unicast,
            2 => Kind::Confirmation,
            _ => return None,
        };
        let header = Header {
            kind,
            from: Address::from_u64(u64::from_be_bytes(*from)),
            to: Address::from_u64(u64::from_be_bytes(*to)),
            epoch: u32::from_be_bytes(*epoch),
            number: u32::from_be_bytes(*number),
        };
        let ours = *magic == MAGIC && *version == VERSION;
        let to_all = header.to.is_broadcast() == (kind == Kind::Broadcast);
        let empty = kind != Kind::Confirmation || sdu.is_empty();
        (ours && to_all && empty && !header.from.is_broadcast()).then_some((header, sdu))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_core::{Purpose, Seed};

    fn header(kind: Kind) -> Header {
        let to = match kind {
            Kind::Broadcast => Address::BROADCAST,
            _ => Address::node(2),
        };
        let from = Address::node(1);
        Header {
            kind,
            from,
            to,
            epoch: 0xdead_beef,
            number: 7,
        }
    }

    #[test]
    fn headers_survive_padding() {
        for (kind, len) in [
            (Kind::Broadcast, 9),
            (Kind::Unicast, 0),
            (Kind::Confirmation, 0),
        ] {
            let mut frame = [0xaa; 60];
            assert!(header(kind).emit(len, &mut frame));
            assert_eq!(
                Header::parse(&frame),
                Some((header(kind), &frame[HEADER..HEADER + len]))
            );
        }
        assert!(!header(Kind::Unicast).emit(29, &mut [0; 60]));
    }

    /// A frame cut anywhere is none; noise and a frame with one bent bit never panic.
    #[test]
    fn strange_frames_are_refused() {
        let mut frame = [0; HEADER + 8];
        header(Kind::Unicast).emit(8, &mut frame);
        assert!((0..frame.len()).all(|len| Header::parse(&frame[..len]).is_none()));
        for bit in 0..frame.len() * 8 {
            let mut bent = frame;
            bent[bit / 8] ^= 1 << (bit % 8);
            assert!(Header::parse(&bent).is_none() || bit >= 48, "bit {bit}");
        }
        let mut stream = Seed(1).stream(Purpose::Trial(0));
        for _ in 0..10_000 {
            let mut noise = [0; 64];
            stream.fill(&mut noise);
            assert!(Header::parse(&noise).is_none());
        }
    }
}
