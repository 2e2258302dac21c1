//! Frames of the group besides Pacifier's. All of them are sealed by the link.
//!
//! ```text
//! c1  news      tickets n 1, n tickets, then records
//! c2  ask       transfer 8, first piece 4, a bit for each piece
//! c3  piece     transfer 8, piece 4, octets
//! c4  holding   transfer 8, receiver 2, its life 8, first batch 4, a bit for each batch
//! ```

/// The first octet of each kind.
pub const NEWS: u8 = 0xc1;
const ASK: u8 = 0xc2;
const PIECE: u8 = 0xc3;
const HOLDING: u8 = 0xc4;

/// Octets of bits in a holding frame: 8,000 batches.
pub const HOLDING_BITS: usize = 1000;

/// A frame, by its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// Tickets and records.
    News {
        /// The tickets, one after the other.
        tickets: &'a [u8],
        /// The records.
        records: &'a [u8],
    },
    /// A request for pieces of a manifest.
    Ask {
        /// Of which transfer.
        id: u64,
        /// The piece of the first bit.
        first: u32,
        /// Which are lacking.
        bits: &'a [u8],
    },
    /// A piece of a manifest.
    Piece {
        /// Of which transfer.
        id: u64,
        /// Which.
        piece: u32,
        /// Its octets.
        octets: &'a [u8],
    },
    /// What a receiver has, on its way to the sender.
    Holding(Holding<'a>),
}

/// What a receiver has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holding<'a> {
    /// Of which transfer.
    pub id: u64,
    /// The receiver.
    pub receiver: u16,
    /// Its life: what a former life had counts no more.
    pub life: u64,
    /// The batch of the first bit.
    pub first: u32,
    /// Which it has.
    pub bits: &'a [u8],
}

/// The frame in `sdu`, if it is one of these.
pub fn parse(sdu: &[u8]) -> Option<Frame<'_>> {
    let (&kind, rest) = sdu.split_first()?;
    if kind == NEWS {
        let (&count, rest) = rest.split_first()?;
        let length = usize::from(count) * crate::manifest::TICKET;
        let (tickets, records) = rest.split_at_checked(length)?;
        return Some(Frame::News { tickets, records });
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
            let (first, bits) = rest.split_first_chunk()?;
            Some(Frame::Holding(Holding {
                id,
                receiver: u16::from_be_bytes(*receiver),
                life: u64::from_be_bytes(*life),
                first: u32::from_be_bytes(*first),
                bits,
            }))
        }
        _ => None,
    }
}

/// A request.
pub fn ask(id: u64, first: u32, bits: &[u8]) -> Vec<u8> {
    [&[ASK], &id.to_be_bytes()[..], &first.to_be_bytes(), bits].concat()
}

/// A piece.
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
    /// The frame.
    pub fn emit(&self) -> Vec<u8> {
        let mut octets = vec![HOLDING];
        octets.extend_from_slice(&self.id.to_be_bytes());
        octets.extend_from_slice(&self.receiver.to_be_bytes());
        octets.extend_from_slice(&self.life.to_be_bytes());
        octets.extend_from_slice(&self.first.to_be_bytes());
        octets.extend_from_slice(self.bits);
        octets
    }

    /// The batches that it names.
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
        assert_eq!(parse(&[NEWS, 1, 0, 0]), None);
    }
}
