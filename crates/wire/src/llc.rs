//! LLC and SNAP: the eight octets that say what a data frame's body carries.
//!
//! ```text
//! +------+------+---------+------------+-----------+----------------
//! | DSAP | SSAP | control |    OUI     | EtherType | payload
//! | 0xaa | 0xaa |  0x03   | 0x00 00 00 |  2, big-endian
//! +------+------+---------+------------+-----------+----------------
//! ```
//!
//! IEEE 802-2014, 9.4 (SNAP) over IEEE 802.2 unnumbered information; OUI zero means that an EtherType follows
//! (RFC 1042).

use core::fmt;

use crate::{Malformed, head, head_mut};

/// Octets before the payload.
pub const LEN: usize = 8;

/// A payload type in Ethernet's numbering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EtherType(pub u16);

impl EtherType {
    /// IP version 4 (RFC 894).
    pub const IPV4: EtherType = EtherType(0x0800);
    /// IP version 6 (RFC 2464).
    pub const IPV6: EtherType = EtherType(0x86dd);
    /// Local experimental EtherType 1 (IEEE 802-2014, 9.2.3): for protocols without an assigned one.
    pub const EXPERIMENTAL: EtherType = EtherType(0x88b5);
    /// Local experimental EtherType 2: for messages between MACs.
    pub const EXPERIMENTAL_2: EtherType = EtherType(0x88b6);
}

const PREFIX: [u8; 6] = [0xaa, 0xaa, 0x03, 0, 0, 0];

/// Splits a body into its type and its payload. Fails on any other LLC header.
pub fn parse(body: &[u8]) -> Result<(EtherType, &[u8]), Malformed> {
    let &[a, b, c, d, e, f, high, low]: &[u8; LEN] = head(body)?;
    if [a, b, c, d, e, f] != PREFIX {
        return Err(Malformed::Unsupported);
    }
    let payload = body.get(LEN..).unwrap_or_default();
    Ok((EtherType(u16::from_be_bytes([high, low])), payload))
}

/// Writes the eight octets to the front of `body` and returns their number. Fails if they do not fit.
pub fn emit(ether_type: EtherType, body: &mut [u8]) -> Result<usize, Malformed> {
    let [a, b, c, d, e, f] = PREFIX;
    let [high, low] = ether_type.0.to_be_bytes();
    let header: &mut [u8; LEN] = head_mut(body)?;
    *header = [a, b, c, d, e, f, high, low];
    Ok(LEN)
}

impl fmt::Display for EtherType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            EtherType::IPV4 => f.write_str("IPv4"),
            EtherType::IPV6 => f.write_str("IPv6"),
            EtherType(number) => write!(f, "0x{number:04x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn round_trip() {
        for ether_type in [EtherType::IPV4, EtherType::EXPERIMENTAL, EtherType(0xffff)] {
            let mut body = [7; 12];
            assert_eq!(emit(ether_type, &mut body), Ok(LEN));
            assert_eq!(parse(&body), Ok((ether_type, &[7; 4][..])));
        }
        assert!(emit(EtherType::IPV4, &mut [0; 7]).is_err());
    }

    #[test]
    fn other_headers_are_refused() {
        assert_eq!(
            parse(&[0xaa, 0xaa, 3, 0, 0, 0, 8]),
            Err(Malformed::Truncated {
                needed: 8,
                found: 7
            })
        );
        for place in 0..6 {
            let mut body = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];
            body[place] ^= 1;
            assert_eq!(parse(&body), Err(Malformed::Unsupported));
        }
    }

    #[test]
    fn types_print_by_name() {
        assert_eq!(EtherType::IPV6.to_string(), "IPv6");
        assert_eq!(EtherType::EXPERIMENTAL.to_string(), "0x88b5");
    }
}
