//! The headers of IPv6 (RFC 8200 3) and IPv4 (RFC 791 3.1), as far as a test needs them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use chappe_tcplp::tcp::{Ecn, PROTOCOL, Sum};

/// Octets of an IPv6 header.
pub const HEADER: usize = 40;
/// Octets of an IPv4 header without options.
const HEADER4: usize = 20;

/// Octets of the header of packets to this address.
pub fn header(to: IpAddr) -> usize {
    match to {
        IpAddr::V4(_) => HEADER4,
        IpAddr::V6(_) => HEADER,
    }
}

/// A TCP packet's addresses, ECN bits and segment.
pub struct Packet<'a> {
    pub source: IpAddr,
    pub destination: IpAddr,
    pub ecn: Ecn,
    pub segment: &'a [u8],
}

/// Parses a packet; `None` unless it is complete and TCP.
pub fn parse(packet: &[u8]) -> Option<Packet<'_>> {
    match packet.first()? >> 4 {
        4 => parse4(packet),
        6 => parse6(packet),
        _ => None,
    }
}

fn parse6(packet: &[u8]) -> Option<Packet<'_>> {
    let header: &[u8; HEADER] = packet.first_chunk()?;
    let len = usize::from(u16::from_be_bytes([header[4], header[5]]));
    if header[6] != PROTOCOL {
        return None;
    }
    let address = |at: usize| {
        let octets: [u8; 16] = std::array::from_fn(|n| header[at + n]);
        IpAddr::V6(Ipv6Addr::from(octets))
    };
    Some(Packet {
        source: address(8),
        destination: address(24),
        ecn: Ecn::from_bits(header[1] >> 4),
        segment: packet.get(HEADER..HEADER + len)?,
    })
}

/// Without options and fragments, and with a right checksum.
fn parse4(packet: &[u8]) -> Option<Packet<'_>> {
    let header: &[u8; HEADER4] = packet.first_chunk()?;
    let len = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let whole = u16::from_be_bytes([header[6], header[7]]) & 0x3fff == 0;
    if header[0] != 0x45 || header[9] != PROTOCOL || !whole || sum(header) != 0 {
        return None;
    }
    let address = |at: usize| {
        let octets: [u8; 4] = std::array::from_fn(|n| header[at + n]);
        IpAddr::V4(Ipv4Addr::from(octets))
    };
    Some(Packet {
        source: address(12),
        destination: address(16),
        ecn: Ecn::from_bits(header[1]),
        segment: packet.get(HEADER4..len)?,
    })
}

fn sum(octets: &[u8]) -> u16 {
    let mut sum = Sum::default();
    sum.add(octets);
    sum.finish()
}

/// Writes the header before a segment of `len` octets that already stands at [`header`].
pub fn emit(packet: &mut [u8], source: IpAddr, destination: IpAddr, ecn: Ecn, len: usize) {
    let header = &mut packet[..header(destination)];
    header.fill(0);
    match (source, destination) {
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            header[0] = 6 << 4;
            header[1] = ecn.bits() << 4;
            header[4..6].copy_from_slice(&(len as u16).to_be_bytes());
            header[6] = PROTOCOL;
            header[7] = 64;
            header[8..24].copy_from_slice(&source.octets());
            header[24..].copy_from_slice(&destination.octets());
        }
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            header[0] = 0x45;
            header[1] = ecn.bits();
            header[2..4].copy_from_slice(&((HEADER4 + len) as u16).to_be_bytes());
            header[6] = 0x40;
            header[8] = 64;
            header[9] = PROTOCOL;
            header[12..16].copy_from_slice(&source.octets());
            header[16..].copy_from_slice(&destination.octets());
            let check = sum(header);
            header[10..12].copy_from_slice(&check.to_be_bytes());
        }
        _ => panic!("two families in one packet"),
    }
}

/// Marks the packet CE as a router would (RFC 3168 5), if it is ECN-capable.
pub fn mark(packet: &mut [u8]) {
    let (place, shift) = match packet[0] >> 4 {
        4 => (1, 0),
        _ => (1, 4),
    };
    if packet[place] >> shift & 3 == Ecn::NotCapable.bits() {
        return;
    }
    packet[place] |= Ecn::Marked.bits() << shift;
    if shift == 0 && packet.len() >= HEADER4 {
        packet[10..12].fill(0);
        let check = sum(&packet[..HEADER4]);
        packet[10..12].copy_from_slice(&check.to_be_bytes());
    }
}
