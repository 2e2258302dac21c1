//! The layout of a body: class order, flow and number in front, then packets, each behind its length.

use crate::config::Order;
use crate::header::{BODY, LENGTH};

/// Order, flow and number in the flow, from the front of a body.
pub(crate) fn head(body: &[u8]) -> (Order, usize, u16) {
    match body {
        [first, high, low, ..] => {
            let order = match first >> 6 {
                0 => Order::Link,
                1 => Order::Flow,
                _ => Order::None,
            };
            (
                order,
                usize::from(first & 0x3f),
                u16::from_be_bytes([*high, *low]),
            )
        }
        _ => (Order::None, 0, 0),
    }
}

/// The front of a body: the inverse of [`head`].
pub(crate) fn body_head(order: Order, flow: u8, number: u16) -> [u8; BODY] {
    let order = match order {
        Order::Link => 0,
        Order::Flow => 1,
        Order::None => 2,
    };
    let [high, low] = number.to_be_bytes();
    [order << 6 | flow & 0x3f, high, low]
}

/// A packet in a body, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part<'a> {
    pub octets: &'a [u8],
    /// What comes before it is at the end of the flow's body before.
    pub is_rest: bool,
    /// Its rest is at the front of the flow's next body.
    pub goes_on: bool,
}

/// Bits of a length, which parts do not need: they are shorter than [`PARTS_BELOW`](crate::header::PARTS_BELOW).
const IS_REST: u16 = 1 << 15;
const GOES_ON: u16 = 1 << 14;

impl Part<'_> {
    pub fn is_whole(&self) -> bool {
        !self.is_rest && !self.goes_on
    }

    /// The length that stands before it.
    pub fn length(&self) -> u16 {
        let mark = |bit: u16, set: bool| if set { bit } else { 0 };
        self.octets.len() as u16 | mark(IS_REST, self.is_rest) | mark(GOES_ON, self.goes_on)
    }
}

/// The first packet or part in the rest of a body, and the octets that it takes; `None` at the end. `in_parts`: whether packets may
/// be cut, so that lengths have 14 bits.
pub(crate) fn first_part(rest: &[u8], in_parts: bool) -> Option<(Part<'_>, usize)> {
    let (length, rest) = rest.split_first_chunk::<LENGTH>()?;
    let length = u16::from_be_bytes(*length);
    let marks = if in_parts { IS_REST | GOES_ON } else { 0 };
    let len = usize::from(length & !marks);
    let octets = rest.get(..len).filter(|octets| !octets.is_empty())?;
    let part = Part {
        octets,
        is_rest: length & marks & IS_REST != 0,
        goes_on: length & marks & GOES_ON != 0,
    };
    Some((part, LENGTH + len))
}

/// The length of a body that is padded with zeros, from the lengths of its packets.
pub(crate) fn body_len(body: &[u8], in_parts: bool) -> usize {
    let mut len = BODY.min(body.len());
    while let Some((_, used)) = first_part(body.get(len..).unwrap_or_default(), in_parts) {
        len += used;
    }
    len
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lengths say which parts a body has, and mean the same without marks as before.
    #[test]
    fn lengths_mark_the_parts_of_packets() {
        let part = |is_rest, goes_on| Part {
            octets: &[1, 2, 3],
            is_rest,
            goes_on,
        };
        for (part, length) in [
            (part(false, false), 0x0003),
            (part(true, false), 0x8003),
            (part(false, true), 0x4003),
            (part(true, true), 0xc003),
        ] {
            assert_eq!(part.length(), length);
            let [high, low] = length.to_be_bytes();
            let body = [0, 0, 7, high, low, 1, 2, 3, 0, 0, 0];
            assert_eq!(first_part(&body[BODY..], true), Some((part, 5)));
            assert_eq!(body_len(&body, true), 8);
            // Where packets are not cut, the same length is one of 16 bits.
            let plain = first_part(&body[BODY..], false);
            assert_eq!(plain.is_some(), length == 3);
        }
        // No octets, and fewer than the length says.
        assert_eq!(first_part(&[0x80, 0, 1], true), None);
        assert_eq!(first_part(&[0x40, 2, 1], true), None);
    }
}
