//! The notification of contention, as it stands in a frame.
//!
//! ```text
//! +------+------+------------------+------------------+
//! | kind | hops |      origin      |       via        |
//! |  1   | 0, 1 | 6, the suffering | 6, its receiver  |
//! +------+------+------------------+------------------+
//! ```
//!
//! It is a broadcast data frame whose LLC/SNAP header has the second experimental EtherType. Networks without LLC
//! headers cannot carry it.

use chappe_core::Address;

const KIND: u8 = 1;
const LEN: usize = 14;

/// One notification of contention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Notice {
    /// 0: from the suffering node to the receiver of its frames. 1: from that receiver, or from the suffering node
    /// itself, to all neighbours.
    pub hops: u8,
    pub origin: Address,
    pub via: Address,
}

impl Notice {
    /// Writes it to the start of `body` and returns its length; `None` if it does not fit.
    pub fn emit(self, body: &mut [u8]) -> Option<usize> {
        let body = body.get_mut(..LEN)?;
        let (head, rest) = body.split_at_mut_checked(2)?;
        let (origin, via) = rest.split_at_mut_checked(6)?;
        head.copy_from_slice(&[KIND, self.hops]);
        origin.copy_from_slice(&self.origin.to_eui48());
        via.copy_from_slice(&self.via.to_eui48());
        Some(LEN)
    }

    /// Reads it from an SDU; `None` if the SDU is no notification.
    pub fn parse(body: &[u8]) -> Option<Notice> {
        let (&[kind, hops], rest) = body.split_first_chunk()?;
        let (&origin, rest) = rest.split_first_chunk()?;
        let (&via, _) = rest.split_first_chunk()?;
        (kind == KIND && hops <= 1).then_some(Notice {
            hops,
            origin: Address::from_eui48(origin),
            via: Address::from_eui48(via),
        })
    }
}
