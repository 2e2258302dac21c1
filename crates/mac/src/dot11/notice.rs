//! The notification of contention, as it stands in a frame.
//!
//! ```text
//! +------+------+------------------+------------------+--------+--------+
//! | kind | hops |      origin      |       via        | number | period |
//! |  1   | 0, 1 | 6, the suffering | 6, its receiver  |   2    |   2    |
//! +------+------+------------------+------------------+--------+--------+
//! ```
//!
//! The origin's time slots (big endian) stand at the end only where they alone are to be kept free.
//!
//! It is a broadcast data frame whose LLC/SNAP header has the second experimental EtherType. Networks without LLC
//! headers cannot carry it.

use chappe_core::Address;

use crate::zmac::Slot;

const KIND: u8 = 1;
const LEN: usize = 14;
const SLOT: usize = 4;

/// One notification of contention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Notice {
    /// 0: from the suffering node to the receiver of its frames. 1: from that receiver, or from the suffering node
    /// itself, to all neighbours.
    pub hops: u8,
    pub origin: Address,
    pub via: Address,
    /// The origin's time slots, if they alone are to be kept free.
    pub slot: Option<Slot>,
}

impl Notice {
    /// Writes it to the start of `body` and returns its length; `None` if it does not fit.
    pub fn emit(self, body: &mut [u8]) -> Option<usize> {
        let (body, rest) = body.split_at_mut_checked(LEN)?;
        let (head, addresses) = body.split_at_mut_checked(2)?;
        let (origin, via) = addresses.split_at_mut_checked(6)?;
        head.copy_from_slice(&[KIND, self.hops]);
        origin.copy_from_slice(&self.origin.to_eui48());
        via.copy_from_slice(&self.via.to_eui48());
        let Some(Slot { number, frame }) = self.slot else {
            return Some(LEN);
        };
        let (slot, _) = rest.split_first_chunk_mut::<SLOT>()?;
        let ([n0, n1], [f0, f1]) = (number.to_be_bytes(), frame.to_be_bytes());
        *slot = [n0, n1, f0, f1];
        Some(LEN + SLOT)
    }

    /// Reads it from an SDU; `None` if the SDU is no notification.
    pub fn parse(body: &[u8]) -> Option<Notice> {
        let (&[kind, hops], rest) = body.split_first_chunk()?;
        let (&origin, rest) = rest.split_first_chunk()?;
        let (&via, rest) = rest.split_first_chunk()?;
        let slot = rest.first_chunk().map(|&[n0, n1, f0, f1]| Slot {
            number: u16::from_be_bytes([n0, n1]),
            frame: u16::from_be_bytes([f0, f1]),
        });
        (kind == KIND && hops <= 1).then_some(Notice {
            hops,
            origin: Address::from_eui48(origin),
            via: Address::from_eui48(via),
            slot,
        })
    }
}
