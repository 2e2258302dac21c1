//! The four-tuple of a connection, and the checksum with its pseudo header.

use core::fmt;
use core::net::{IpAddr, Ipv6Addr};

/// An address and a port. An IPv4 address is held as an IPv4-mapped IPv6 address (RFC 4291 2.5.5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    address: [u8; 16],
    /// The TCP port; 0 where only the address matters.
    pub port: u16,
}

/// The first 96 bits of IPv4-mapped addresses (RFC 4291 2.5.5.2).
const MAPPED: u128 = 0xffff;

impl Endpoint {
    /// No end point: that of a socket before its first connection.
    pub(super) const NONE: Endpoint = Endpoint {
        address: [0; 16],
        port: 0,
    };

    /// The end point with this address and port.
    #[inline(never)]
    pub const fn new(address: IpAddr, port: u16) -> Endpoint {
        let address = match address {
            IpAddr::V4(address) => MAPPED << 32 | address.to_bits() as u128,
            IpAddr::V6(address) => address.to_bits(),
        };
        Endpoint {
            address: address.to_be_bytes(),
            port,
        }
    }

    /// The address; an IPv4-mapped one as IPv4.
    pub const fn address(&self) -> IpAddr {
        let address = Ipv6Addr::from_octets(self.address);
        match address.to_ipv4_mapped() {
            Some(address) => IpAddr::V4(address),
            None => IpAddr::V6(address),
        }
    }

    /// Whether the address is IPv4.
    pub(super) fn is_v4(&self) -> bool {
        u128::from_be_bytes(self.address) >> 32 == MAPPED
    }

    /// The octets of the address, for sums and hashes.
    pub(super) const fn octets(&self) -> &[u8; 16] {
        &self.address
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address() {
            IpAddr::V4(address) => write!(f, "{address}:{}", self.port),
            IpAddr::V6(address) => write!(f, "[{address}]:{}", self.port),
        }
    }
}

/// The four-tuple of a connection, seen from this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// This host's address and port.
    pub local: Endpoint,
    /// The peer's address and port.
    pub remote: Endpoint,
}

impl Flow {
    /// The flow between these two end points.
    pub const fn new(local: Endpoint, remote: Endpoint) -> Flow {
        Flow { local, remote }
    }

    /// The flow as the peer sees it.
    pub const fn reversed(self) -> Flow {
        Flow {
            local: self.remote,
            remote: self.local,
        }
    }

    /// The sum over the pseudo header of a segment of `len` octets (RFC 9293 3.1, RFC 8200 8.1). Addition commutes, so
    /// the same sum serves both directions.
    pub fn pseudo_header(&self, len: u32) -> Sum {
        let mut sum = Sum::default();
        // The prefix of a mapped address sums to 0xffff, which is zero in ones' complement, so IPv4 needs no case of
        // its own.
        sum.add(self.local.octets());
        sum.add(self.remote.octets());
        let [a, b, c, d] = len.to_be_bytes();
        sum.add(&[a, b, c, d, 0, 0, 0, PROTOCOL]);
        sum
    }
}

/// TCP's number in the IP header's protocol or next-header field.
pub const PROTOCOL: u8 = 6;

/// A running Internet checksum (RFC 1071) over parts that need not have even lengths.
///
/// It adds 32-bit words in native byte order with end-around carry and swaps the result's octets once at the end; the sum
/// does not depend on the order (RFC 1071 2).
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum {
    total: u32,
    odd: bool,
}

impl Sum {
    /// Adds a part that follows the parts before it without a gap.
    pub fn add(&mut self, part: &[u8]) {
        // Most payloads do not wrap around the end of their buffer, so their second part is empty.
        if part.is_empty() {
            return;
        }
        let mut total = 0;
        // Four words a turn: on a microcontroller the loop's own instructions are as many as those of a word.
        let (blocks, rest) = part.as_chunks::<16>();
        for &[a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] in blocks {
            total = add(total, u32::from_ne_bytes([a, b, c, d]));
            total = add(total, u32::from_ne_bytes([e, f, g, h]));
            total = add(total, u32::from_ne_bytes([i, j, k, l]));
            total = add(total, u32::from_ne_bytes([m, n, o, p]));
        }
        let (words, rest) = rest.as_chunks::<4>();
        for word in words {
            total = add(total, u32::from_ne_bytes(*word));
        }
        let mut last = [0; 4];
        for (place, octet) in last.iter_mut().zip(rest) {
            *place = *octet;
        }
        total = add(total, u32::from_ne_bytes(last));
        // A part that starts at an odd offset has its octets swapped (RFC 1071 2(B)).
        let shift = if self.odd { 8 } else { 0 };
        self.total = add(self.total, total.rotate_left(shift));
        self.odd ^= part.len() % 2 == 1;
    }

    /// The checksum: the complement of the sum. Over a segment with its correct checksum in place it is 0.
    pub const fn finish(self) -> u16 {
        let once = (self.total & 0xffff) + (self.total >> 16);
        let sum = (once as u16).wrapping_add((once >> 16) as u16);
        u16::from_be(!sum)
    }
}

/// Ones' complement addition: with end-around carry.
const fn add(a: u32, b: u32) -> u32 {
    let (sum, carry) = a.overflowing_add(b);
    sum.wrapping_add(carry as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;

    /// The worked example of RFC 1071 section 3: 0001 f203 f4f5 f6f7 sums to ddf2.
    #[test]
    fn the_example_of_rfc_1071_whole_and_in_odd_parts() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        for cut in 0..=bytes.len() {
            for second in cut..=bytes.len() {
                let mut sum = Sum::default();
                sum.add(&bytes[..cut]);
                sum.add(&bytes[cut..second]);
                sum.add(&bytes[second..]);
                assert_eq!(!sum.finish(), 0xddf2, "{cut} {second}");
            }
        }
    }

    #[test]
    fn mapped_addresses_are_ipv4() {
        let endpoint = Endpoint::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 80);
        assert_eq!(endpoint.address(), IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)));
    }
}
