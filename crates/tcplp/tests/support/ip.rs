//! The 40 octets of an IPv6 header, as far as a test needs them (RFC 8200 3).

use std::net::{IpAddr, Ipv6Addr};

use chappe_tcplp::tcp::{Ecn, PROTOCOL};

/// Octets of the header.
pub const HEADER: usize = 40;

/// A TCP packet's addresses, ECN bits and segment.
pub struct Packet<'a> {
    pub source: Ipv6Addr,
    pub destination: Ipv6Addr,
    pub ecn: Ecn,
    pub segment: &'a [u8],
}

/// Reads a packet; `None` unless it is IPv6, whole, and TCP.
pub fn parse(packet: &[u8]) -> Option<Packet<'_>> {
    let header: &[u8; HEADER] = packet.first_chunk()?;
    let len = usize::from(u16::from_be_bytes([header[4], header[5]]));
    if header[0] >> 4 != 6 || header[6] != PROTOCOL {
        return None;
    }
    let address = |at: usize| {
        let octets: [u8; 16] = std::array::from_fn(|n| header[at + n]);
        Ipv6Addr::from(octets)
    };
    Some(Packet {
        source: address(8),
        destination: address(24),
        ecn: Ecn::from_bits(header[1] >> 4),
        segment: packet.get(HEADER..HEADER + len)?,
    })
}

/// Writes the header before a segment of `len` octets that already stands at [`HEADER`].
pub fn emit(packet: &mut [u8], source: IpAddr, destination: IpAddr, ecn: Ecn, len: usize) {
    let header = &mut packet[..HEADER];
    header.fill(0);
    header[0] = 6 << 4;
    header[1] = ecn.bits() << 4;
    header[4..6].copy_from_slice(&(len as u16).to_be_bytes());
    header[6] = PROTOCOL;
    header[7] = 64;
    for (at, address) in [(8, source), (24, destination)] {
        let IpAddr::V6(address) = address else {
            panic!("the tests speak IPv6");
        };
        header[at..at + 16].copy_from_slice(&address.octets());
    }
}
