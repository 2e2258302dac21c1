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

/// The first packet in the rest of a body, and the octets that it takes; `None` at the end.
pub(crate) fn first_packet(rest: &[u8]) -> Option<(&[u8], usize)> {
    let (length, rest) = rest.split_first_chunk::<LENGTH>()?;
    let len = usize::from(u16::from_be_bytes(*length));
    let packet = rest.get(..len).filter(|packet| !packet.is_empty())?;
    Some((packet, LENGTH + len))
}

/// The length of a body that is padded with zeros, from the lengths of its packets.
pub(crate) fn body_len(body: &[u8]) -> usize {
    let mut len = BODY.min(body.len());
    while let Some((_, used)) = first_packet(body.get(len..).unwrap_or_default()) {
        len += used;
    }
    len
}
