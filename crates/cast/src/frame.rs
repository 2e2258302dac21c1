//! Control frames of the group, in addition to Pacifier's frames. The link seals all of them.
//!
//! ```text
//! c1  news of version 1, in which tickets were shorter
//! c2  ask       transfer 8, first piece 4, a bit for each piece
//! c3  piece     transfer 8, piece 4, octets
//! c4  holding   transfer 8, receiver 2, its life 8, first batch 4, a bit for each batch, the receiver's signature 64
//! c5  news      version 1 (now 5), tickets n 1, n tickets, then records
//! c6  receipt   see `receipt`
//! c7  want      transfer 8, receiver 2, batch 4, a bit for each missing part, the receiver's signature 64
//! c8  part      transfer 8, receiver 2, batch 4, part 2, octets, the sender's signature 64
//! ```

use crate::key::VerifyKey;
use crate::receipt::Receipt;

/// The first octet of a frame with news. The constants below are those of the other types.
pub const NEWS: u8 = 0xc5;
/// The version of tickets and records in news, and of the identifiers of transfers. Members of different versions do not understand each other, but notice it.
pub const VERSION: u8 = 5;
const NEWS_1: u8 = 0xc1;
const ASK: u8 = 0xc2;
const PIECE: u8 = 0xc3;
const HOLDING: u8 = 0xc4;
/// The first octet of a frame with a receipt.
pub const RECEIPT: u8 = 0xc6;

const WANT: u8 = 0xc7;
const PART: u8 = 0xc8;

/// Largest bitmap of a want in octets: two parts for each of 128 packets.
pub const WANT_BITS: usize = 32;

/// Largest bitmap of a holding frame in octets: 8,000 batches.
pub const HOLDING_BITS: usize = 1000;
/// Octets of a holding frame beside its bitmap.
pub const HOLDING_HEAD: usize = 1 + 8 + 2 + 8 + 4 + 64;

/// A decoded control frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// Tickets and records of members, broadcast at least once a second.
    News {
        /// The tickets, one after the other.
        tickets: &'a [u8],
        /// The encoded records, one after the other.
        records: &'a [u8],
    },
    /// News of a member that runs another version.
    Foreign,
    /// A request for pieces of a manifest.
    Ask {
        /// The identifier of the transfer.
        id: u64,
        /// The piece that the first bit stands for.
        first: u32,
        /// One bit per piece, set if it is missing.
        bits: &'a [u8],
    },
    /// A piece of a manifest.
    Piece {
        /// The identifier of the transfer.
        id: u64,
        /// The index of the piece.
        piece: u32,
        /// The octets of the piece.
        octets: &'a [u8],
    },
    /// The batches of a receiver, on the way to the sender.
    Holding(Holding<'a>),
    /// A receiver's receipt, on the way to the sender.
    Receipt(Receipt),
    /// A receiver's request for parts of a polluted batch, on the way to the sender.
    Want(Want<'a>),
    /// A part of a polluted batch, on the way to the receiver.
    Part(Part<'a>),
}

/// The missing parts of a polluted batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Want<'a> {
    /// The identifier of the transfer.
    pub id: u64,
    /// The number of the receiver.
    pub receiver: u16,
    /// The index of the polluted batch.
    pub batch: u32,
    /// One bit per part, set if it is missing.
    pub bits: &'a [u8],
    /// The receiver's signature of all of it.
    pub signature: &'a [u8; 64],
}

/// A part of a batch, uncoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// The identifier of the transfer.
    pub id: u64,
    /// The number of the receiver.
    pub receiver: u16,
    /// The index of the polluted batch.
    pub batch: u32,
    /// The index of the part.
    pub part: u16,
    /// The octets of the part.
    pub octets: &'a [u8],
    /// The sender's signature of all of it.
    pub signature: &'a [u8; 64],
}

/// The batches that a receiver has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holding<'a> {
    /// The identifier of the transfer.
    pub id: u64,
    /// The number of the receiver.
    pub receiver: u16,
    /// The receiver's life. Holdings of a former life are void.
    pub life: u64,
    /// The batch that the first bit stands for.
    pub first: u32,
    /// One bit per batch, set if the receiver has it.
    pub bits: &'a [u8],
    /// The receiver's signature of all of it.
    pub signature: &'a [u8; 64],
}

/// Decodes a control frame; `None` if `sdu` is none.
pub fn parse(sdu: &[u8]) -> Option<Frame<'_>> {
    let (&kind, rest) = sdu.split_first()?;
    if kind == NEWS_1 {
        return Some(Frame::Foreign);
    }
    if kind == NEWS {
        let (&[version, count], rest) = rest.split_first_chunk()?;
        if version != VERSION {
            return Some(Frame::Foreign);
        }
        let length = usize::from(count) * crate::manifest::TICKET;
        let (tickets, records) = rest.split_at_checked(length)?;
        return Some(Frame::News { tickets, records });
    }
    if kind == RECEIPT {
        return Receipt::decode(rest).map(Frame::Receipt);
    }
    let (id, rest) = rest.split_first_chunk()?;
    let id = u64::from_be_bytes(*id);
    match kind {
        ASK => {
            let (first, bits) = rest.split_first_chunk()?;
            let first = u32::from_be_bytes(*first);
            Some(Frame::Ask { id, first, bits })
        }
        PIECE => {
            let (piece, octets) = rest.split_first_chunk()?;
            let piece = u32::from_be_bytes(*piece);
            Some(Frame::Piece { id, piece, octets })
        }
        HOLDING => {
            let (receiver, rest) = rest.split_first_chunk()?;
            let (life, rest) = rest.split_first_chunk()?;
            let (first, rest) = rest.split_first_chunk()?;
            let (bits, signature) = rest.split_last_chunk()?;
            Some(Frame::Holding(Holding {
                id,
                receiver: u16::from_be_bytes(*receiver),
                life: u64::from_be_bytes(*life),
                first: u32::from_be_bytes(*first),
                bits,
                signature,
            }))
        }
        WANT | PART => addressed(kind, id, rest),
        _ => None,
    }
}

/// A want or part behind the transfer's identifier.
fn addressed(kind: u8, id: u64, rest: &[u8]) -> Option<Frame<'_>> {
    let (receiver, rest) = rest.split_first_chunk()?;
    let (batch, rest) = rest.split_first_chunk()?;
    let (receiver, batch) = (u16::from_be_bytes(*receiver), u32::from_be_bytes(*batch));
    let (rest, signature) = rest.split_last_chunk()?;
    if kind == WANT {
        return (rest.len() <= WANT_BITS).then_some(Frame::Want(Want {
            id,
            receiver,
            batch,
            bits: rest,
            signature,
        }));
    }
    let (part, octets) = rest.split_first_chunk()?;
    Some(Frame::Part(Part {
        id,
        receiver,
        batch,
        part: u16::from_be_bytes(*part),
        octets,
        signature,
    }))
}

impl Want<'_> {
    /// Encodes the request as a frame.
    pub fn emit(&self) -> Vec<u8> {
        let head = [
            &[WANT][..],
            &self.id.to_be_bytes(),
            &self.receiver.to_be_bytes(),
        ]
        .concat();
        [
            &head[..],
            &self.batch.to_be_bytes(),
            self.bits,
            self.signature,
        ]
        .concat()
    }

    /// The octets that the receiver signs, for the group of this owner.
    pub fn message(&self, owner: &VerifyKey) -> Vec<u8> {
        signed(&b"chappe cast want v1\0"[..], owner, self.emit())
    }
}

impl Part<'_> {
    /// Encodes the part as a frame.
    pub fn emit(&self) -> Vec<u8> {
        let head = [
            &[PART][..],
            &self.id.to_be_bytes(),
            &self.receiver.to_be_bytes(),
        ]
        .concat();
        let place = [&self.batch.to_be_bytes()[..], &self.part.to_be_bytes()].concat();
        [&head[..], &place, self.octets, self.signature].concat()
    }

    /// The octets that the sender signs, for the group of this owner.
    pub fn message(&self, owner: &VerifyKey) -> Vec<u8> {
        signed(&b"chappe cast part v1\0"[..], owner, self.emit())
    }
}

/// What is signed of a frame that ends with its signature.
fn signed(domain: &[u8], owner: &VerifyKey, mut frame: Vec<u8>) -> Vec<u8> {
    frame.truncate(frame.len() - 64);
    [domain, owner.octets(), &frame].concat()
}

/// Encodes a request for pieces of a manifest.
pub fn ask(id: u64, first: u32, bits: &[u8]) -> Vec<u8> {
    [&[ASK], &id.to_be_bytes()[..], &first.to_be_bytes(), bits].concat()
}

/// Encodes a piece of a manifest.
pub fn piece(id: u64, piece: u32, octets: &[u8]) -> Vec<u8> {
    [
        &[PIECE],
        &id.to_be_bytes()[..],
        &piece.to_be_bytes(),
        octets,
    ]
    .concat()
}

impl Holding<'_> {
    /// Encodes the report as a frame.
    pub fn emit(&self) -> Vec<u8> {
        let mut octets = vec![HOLDING];
        octets.extend_from_slice(&self.id.to_be_bytes());
        octets.extend_from_slice(&self.receiver.to_be_bytes());
        octets.extend_from_slice(&self.life.to_be_bytes());
        octets.extend_from_slice(&self.first.to_be_bytes());
        octets.extend_from_slice(self.bits);
        octets.extend_from_slice(self.signature);
        octets
    }

    /// The octets that the receiver signs, for the group of this owner.
    pub fn message(&self, owner: &VerifyKey) -> Vec<u8> {
        let mut octets = self.emit();
        octets.truncate(octets.len() - 64);
        [&b"chappe cast holding v3\0"[..], owner.octets(), &octets].concat()
    }

    /// The batches whose bits are set.
    pub fn batches(&self) -> impl Iterator<Item = u32> + '_ {
        let places = 0..self.bits.len() as u32 * 8;
        let set = |place: &u32| self.bits[*place as usize / 8] >> (place % 8) & 1 == 1;
        places
            .filter(set)
            .filter_map(|place| self.first.checked_add(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_round_trip() {
        let holding = Holding {
            id: 7,
            receiver: 3,
            life: 9,
            first: 8000,
            bits: &[0b101],
            signature: &[6; 64],
        };
        assert_eq!(parse(&holding.emit()), Some(Frame::Holding(holding)));
        assert_eq!(holding.batches().collect::<Vec<_>>(), [8000, 8002]);
        let bits = &[1, 2][..];
        assert_eq!(
            parse(&ask(7, 5, bits)),
            Some(Frame::Ask {
                id: 7,
                first: 5,
                bits
            })
        );
        let want = Want {
            id: 7,
            receiver: 3,
            batch: 70_000,
            bits,
            signature: &[6; 64],
        };
        assert_eq!(parse(&want.emit()), Some(Frame::Want(want)));
        let part = Part {
            id: 7,
            receiver: 3,
            batch: 70_000,
            part: 5,
            octets: bits,
            signature: &[6; 64],
        };
        assert_eq!(parse(&part.emit()), Some(Frame::Part(part)));
        let octets = bits;
        assert_eq!(
            parse(&piece(7, 5, octets)),
            Some(Frame::Piece {
                id: 7,
                piece: 5,
                octets
            })
        );
        for frame in [holding.emit(), ask(7, 5, &[]), piece(7, 5, &[])] {
            assert!((0..9).all(|len| parse(&frame[..len]).is_none()));
        }
        assert_eq!(parse(&[NEWS, VERSION, 1, 0, 0]), None);
        for foreign in [&[NEWS_1, 0][..], &[NEWS, VERSION + 1, 0]] {
            assert_eq!(parse(foreign), Some(Frame::Foreign));
        }
    }
}
