//! Compressed IPv6 and UDP headers (RFC 6282), and the place for those of TCP.
//!
//! ```text
//! 0 1 1 | TF | NH | HLIM | CID | SAC | SAM | M | DAC | DAM      2 octets
//!         2    1     2      1     1     2    1    1     2   bits
//! then, in line where not elided: context numbers, traffic class and flow label, next header, hop limit, source,
//! destination, and if NH is set: 11110 | C | P, ports, checksum of UDP, or a TCP header after `tcphc`.
//! ```

use core::net::Ipv6Addr;

use super::address::{
    Context, Ends, compress_multicast, compress_unicast, read_multicast, read_unicast,
};
use crate::ipv6::{self, Header, next};
use crate::{Malformed, Reader, Writer, udp};

/// What compression and expansion may rely on.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// Prefixes that both ends share.
    pub contexts: &'a [Context],
    /// The interface identifiers of the frame's addresses.
    pub ends: Ends,
}

/// The part of the path over which compressed headers must keep their form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The next hop is the destination: its address, the sender's, and the hop limit may be elided.
    Link,
    /// Relays change the frame's addresses and the hop limit: these are kept in line, so that the headers have one
    /// length all the way and a first fragment that fits one link fits all (RFC 8930, 5).
    Path,
}

/// What a header became.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lengths {
    /// Octets of compressed headers.
    pub compressed: usize,
    /// Octets of the headers that they stand for: 40, or 48 with UDP.
    pub expanded: usize,
}

mod bit {
    pub const NH: u16 = 1 << 10;
    pub const CID: u16 = 1 << 7;
    pub const SAC: u16 = 1 << 6;
    pub const M: u16 = 1 << 3;
    pub const DAC: u16 = 1 << 2;
}

/// Compresses the headers of `packet`, which holds at least these, to the front of `out`. The packet's length fields
/// are left out: they follow from the frame's or the fragment's size, and must agree with it.
pub fn compress(
    packet: &[u8],
    known: &Known<'_>,
    reach: Reach,
    out: &mut [u8],
) -> Result<Lengths, Malformed> {
    let header = Header::parse(packet)?;
    let udp = udp_ports(&header, packet);
    let mut writer = Writer::new(out);
    compress_ipv6(&header, known, reach, udp.is_some(), &mut writer)?;
    let mut expanded = ipv6::HEADER_LEN;
    if let Some((from, to, checksum)) = udp {
        compress_udp(from, to, checksum, &mut writer)?;
        expanded += udp::HEADER_LEN;
    }
    Ok(Lengths {
        compressed: writer.at,
        expanded,
    })
}

/// Compresses an IPv6 header to the front of `out` so that a compressed header of the layer above has to follow, and
/// returns its length. For TCP, whose header this module does not know.
pub fn compress_before(
    header: &Header,
    known: &Known<'_>,
    reach: Reach,
    out: &mut [u8],
) -> Result<usize, Malformed> {
    let mut writer = Writer::new(out);
    compress_ipv6(header, known, reach, true, &mut writer)?;
    Ok(writer.at)
}

/// `nhc`: what follows is compressed too.
fn compress_ipv6(
    header: &Header,
    known: &Known<'_>,
    reach: Reach,
    nhc: bool,
    writer: &mut Writer<'_>,
) -> Result<(), Malformed> {
    let (to_link, from_link) = match reach {
        Reach::Link => (Some(known.ends.destination), Some(known.ends.source)),
        Reach::Path => (None, None),
    };
    let source = compress_unicast(header.source, from_link, known.contexts, true);
    let multicast = header.destination.is_multicast();
    let destination = compress_unicast(header.destination, to_link, known.contexts, false);
    let numbers = (
        source.context.unwrap_or(0),
        match multicast {
            true => 0,
            false => destination.context.unwrap_or(0),
        },
    );
    let flag = |set: bool, bit: u16| if set { bit } else { 0 };
    let (tf, class, class_len) = traffic(header);
    let hop_mode = match (reach, header.hop_limit) {
        (Reach::Link, 1) => 1,
        (Reach::Link, 64) => 2,
        (Reach::Link, 255) => 3,
        _ => 0,
    };
    let (group_mode, group, group_len) = compress_multicast(header.destination);
    let base = 0b011 << 13
        | tf << 11
        | flag(nhc, bit::NH)
        | hop_mode << 8
        | flag(numbers != (0, 0), bit::CID)
        | flag(source.context.is_some(), bit::SAC)
        | u16::from(source.mode) << 4
        | match multicast {
            true => bit::M | u16::from(group_mode),
            false => flag(destination.context.is_some(), bit::DAC) | u16::from(destination.mode),
        };
    writer.put(&base.to_be_bytes())?;
    if numbers != (0, 0) {
        writer.put(&[numbers.0 << 4 | numbers.1])?;
    }
    writer.put(class.get(..class_len).unwrap_or_default())?;
    if !nhc {
        writer.put(&[header.next_header])?;
    }
    if hop_mode == 0 {
        writer.put(&[header.hop_limit])?;
    }
    writer.put(source.inline())?;
    match multicast {
        true => writer.put(group.get(..group_len).unwrap_or_default()),
        false => writer.put(destination.inline()),
    }
}

/// Ports and checksum of a UDP header directly behind the fixed header.
fn udp_ports(header: &Header, packet: &[u8]) -> Option<(u16, u16, [u8; 2])> {
    if header.next_header != next::UDP {
        return None;
    }
    let &[a, b, c, d, e, f, g, h] = packet.get(ipv6::HEADER_LEN..)?.first_chunk()?;
    // The length is left out, so it must be the one that is worked out on the other side.
    let agrees = u16::from_be_bytes([e, f]) == header.payload_len;
    agrees.then_some((
        u16::from_be_bytes([a, b]),
        u16::from_be_bytes([c, d]),
        [g, h],
    ))
}

/// RFC 6282, 3.2.1: on this wire ECN stands before DSCP.
fn traffic(header: &Header) -> (u16, [u8; 4], usize) {
    let class = header.traffic_class;
    let (ecn, dscp) = (class & 3, class >> 2);
    let [_, high, middle, low] = (header.flow_label & 0xf_ffff).to_be_bytes();
    match (class, header.flow_label & 0xf_ffff) {
        (0, 0) => (0b11, [0; 4], 0),
        (_, 0) => (0b10, [ecn << 6 | dscp, 0, 0, 0], 1),
        _ if dscp == 0 => (0b01, [ecn << 6 | high, middle, low, 0], 3),
        _ => (0b00, [ecn << 6 | dscp, high, middle, low], 4),
    }
}

/// RFC 6282, 4.3: ports near 0xf0b0 in four bits each, near 0xf000 in eight.
fn compress_udp(
    from: u16,
    to: u16,
    checksum: [u8; 2],
    writer: &mut Writer<'_>,
) -> Result<(), Malformed> {
    let ([a, b], [c, d]) = (from.to_be_bytes(), to.to_be_bytes());
    match (a, c) {
        (0xf0, 0xf0) if b >> 4 == 0xb && d >> 4 == 0xb => {
            writer.put(&[0xf3, b << 4 | d & 15])?;
        }
        (_, 0xf0) => writer.put(&[0xf1, a, b, d])?,
        (0xf0, _) => writer.put(&[0xf2, b, c, d])?,
        _ => writer.put(&[0xf0, a, b, c, d])?,
    }
    writer.put(&checksum)
}

/// What follows a compressed IPv6 header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Whatever the header says, as it is.
    Plain,
    /// A compressed UDP header.
    Udp,
    /// A compressed TCP header ([`super::tcphc`]).
    Tcp,
}

/// A compressed IPv6 header that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// The header; its payload length, which is not transmitted, is zero.
    pub header: Header,
    /// The form of the header that follows.
    pub next: Next,
    /// Octets that it takes.
    pub len: usize,
}

impl Network {
    /// Reads the header at the front of `bytes`.
    pub fn parse(bytes: &[u8], known: &Known<'_>) -> Result<Network, Malformed> {
        let mut reader = Reader::new(bytes);
        let base = u16::from_be_bytes(reader.take()?);
        if base >> 13 != 0b011 {
            return Err(Malformed::Unsupported);
        }
        let numbers = match base & bit::CID != 0 {
            true => reader.octet()?,
            false => 0,
        };
        let (traffic_class, flow_label) = expand_traffic(base >> 11 & 3, &mut reader)?;
        let inline = match base & bit::NH != 0 {
            true => None,
            false => Some(reader.octet()?),
        };
        let hop_limit = match base >> 8 & 3 {
            0 => reader.octet()?,
            1 => 1,
            2 => 64,
            _ => 255,
        };
        let (source, destination) = expand_addresses(base, numbers, known, &mut reader)?;
        let (next, next_header) = match (inline, bytes.get(reader.at)) {
            (Some(number), _) => (Next::Plain, number),
            (None, Some(0..0x80)) => (Next::Tcp, next::TCP),
            (None, _) => (Next::Udp, next::UDP),
        };
        let header = Header {
            traffic_class,
            flow_label,
            payload_len: 0,
            next_header,
            hop_limit,
            source,
            destination,
        };
        Ok(Network {
            header,
            next,
            len: reader.at,
        })
    }
}

/// The number of the header behind a compressed IPv6 header, without knowledge of contexts: 6 for TCP, 17 for UDP, 58 for ICMPv6.
/// `None` where the octets end before it or are no such header.
pub fn next_header(bytes: &[u8]) -> Option<u8> {
    let base = u16::from_be_bytes(*bytes.first_chunk()?);
    if base >> 13 != 0b011 {
        return None;
    }
    let traffic = match base >> 11 & 3 {
        0 => 4,
        1 => 3,
        2 => 1,
        _ => 0,
    };
    let at = 2 + usize::from(base & bit::CID != 0) + traffic;
    if base & bit::NH == 0 {
        return bytes.get(at).copied();
    }
    let hop_limit = usize::from(base >> 8 & 3 == 0);
    // Octets in line by mode (RFC 6282, 3.1.1); mode 0 with a context is the unspecified address.
    let unicast = |mode: u16, context: bool| match mode & 3 {
        0 if context => 0,
        0 => 16,
        1 => 8,
        2 => 2,
        _ => 0,
    };
    let source = unicast(base >> 4, base & bit::SAC != 0);
    let destination = match (base & bit::M != 0, base & bit::DAC != 0) {
        (false, context) => unicast(base, context),
        (true, true) => 6,
        (true, false) => match base & 3 {
            0 => 16,
            1 => 6,
            2 => 4,
            _ => 1,
        },
    };
    Some(match *bytes.get(at + hop_limit + source + destination)? {
        0..0x80 => next::TCP,
        _ => next::UDP,
    })
}

fn expand_addresses(
    base: u16,
    numbers: u8,
    known: &Known<'_>,
    reader: &mut Reader<'_>,
) -> Result<(Ipv6Addr, Ipv6Addr), Malformed> {
    let (contexts, ends) = (known.contexts, known.ends);
    let with = |bit: u16, number: u8| (base & bit != 0).then_some(number & 15);
    let from = with(bit::SAC, numbers >> 4);
    let mode = (base >> 4 & 3) as u8;
    let source = read_unicast(reader, mode, from, contexts, ends.source, true)?;
    let (mode, to) = ((base & 3) as u8, with(bit::DAC, numbers));
    let destination = match base & bit::M != 0 {
        true => read_multicast(reader, mode, to, contexts)?,
        false => read_unicast(reader, mode, to, contexts, ends.destination, false)?,
    };
    if source.is_multicast() || (base & bit::M == 0 && destination.is_multicast()) {
        return Err(Malformed::Illegal);
    }
    Ok((source, destination))
}

/// Expands compressed headers at the front of `bytes` to the front of `out`. `size` is the whole datagram's, from its
/// fragment header; `None` if all of it is here. A compressed TCP header is [`Malformed::Unsupported`]: it takes
/// memory, which is not here.
pub fn expand(
    bytes: &[u8],
    known: &Known<'_>,
    size: Option<usize>,
    out: &mut [u8],
) -> Result<Lengths, Malformed> {
    let network = Network::parse(bytes, known)?;
    let mut reader = Reader {
        bytes,
        at: network.len,
    };
    let udp = match network.next {
        Next::Plain => None,
        Next::Udp => Some(expand_udp(&mut reader)?),
        Next::Tcp => return Err(Malformed::Unsupported),
    };
    let expanded = ipv6::HEADER_LEN + udp.map_or(0, |_| udp::HEADER_LEN);
    let all = size.unwrap_or(expanded + bytes.len().saturating_sub(reader.at));
    let payload = all
        .checked_sub(ipv6::HEADER_LEN)
        .ok_or(Malformed::Illegal)?;
    let payload_len = u16::try_from(payload).map_err(|_| Malformed::Illegal)?;
    let header = Header {
        payload_len,
        ..network.header
    };
    write_expanded(&header, udp, out)?;
    Ok(Lengths {
        compressed: reader.at,
        expanded,
    })
}

fn write_expanded(header: &Header, udp: Option<[u8; 6]>, out: &mut [u8]) -> Result<(), Malformed> {
    let at = header.emit(out)?;
    let Some([a, b, c, d, g, h]) = udp else {
        return Ok(());
    };
    if usize::from(header.payload_len) < udp::HEADER_LEN {
        return Err(Malformed::Illegal);
    }
    let [e, f] = header.payload_len.to_be_bytes();
    let mut writer = Writer::new(out.get_mut(at..).unwrap_or_default());
    writer.put(&[a, b, c, d, e, f, g, h])
}

fn expand_traffic(tf: u16, reader: &mut Reader<'_>) -> Result<(u8, u32), Malformed> {
    let class = |octet: u8| octet.rotate_left(2);
    Ok(match tf {
        0b00 => {
            let [first, high, middle, low] = reader.take()?;
            (
                class(first),
                u32::from_be_bytes([0, high & 15, middle, low]),
            )
        }
        0b01 => {
            let [high, middle, low] = reader.take()?;
            (high >> 6, u32::from_be_bytes([0, high & 15, middle, low]))
        }
        0b10 => (class(reader.octet()?), 0),
        _ => (0, 0),
    })
}

/// Ports and checksum. An elided checksum is refused: it may only be left out where the ends agreed to (RFC 6282,
/// 4.3.2), and these never do.
fn expand_udp(reader: &mut Reader<'_>) -> Result<[u8; 6], Malformed> {
    let first = reader.octet()?;
    if first >> 3 != 0b11110 || first & 4 != 0 {
        return Err(Malformed::Unsupported);
    }
    let [a, b, c, d] = match first & 3 {
        0 => reader.take()?,
        1 => {
            let [a, b, d] = reader.take()?;
            [a, b, 0xf0, d]
        }
        2 => {
            let [b, c, d] = reader.take()?;
            [0xf0, b, c, d]
        }
        _ => {
            let both = reader.octet()?;
            [0xf0, 0xb0 | both >> 4, 0xf0, 0xb0 | both & 15]
        }
    };
    let [g, h] = reader.take()?;
    Ok([a, b, c, d, g, h])
}

/// The ECN bits of compressed headers, if they stand in line (RFC 6282, 3.2.1: the first two bits of the traffic
/// octets); `None` if they are elided, which means "not capable".
pub fn ecn(bytes: &[u8]) -> Option<u8> {
    Some(bytes.get(traffic_at(bytes)?)? >> 6)
}

/// Sets both ECN bits ("congestion experienced") where they stand in line; false if they do not.
pub fn mark(bytes: &mut [u8]) -> bool {
    let place = traffic_at(bytes).and_then(|at| bytes.get_mut(at));
    match place {
        Some(octet) => {
            *octet |= 0xc0;
            true
        }
        None => false,
    }
}

fn traffic_at(bytes: &[u8]) -> Option<usize> {
    let base = u16::from_be_bytes(*bytes.first_chunk()?);
    let inline = base >> 13 == 0b011 && base >> 11 & 3 != 3;
    inline.then_some(if base & bit::CID != 0 { 3 } else { 2 })
}

/// The address that a link's interface identifier has under a prefix of 64 bits.
pub fn address_under(prefix: Ipv6Addr, interface_id: [u8; 8]) -> Ipv6Addr {
    let network = u128::from(prefix) >> 64 << 64;
    Ipv6Addr::from(network | u128::from(u64::from_be_bytes(interface_id)))
}

#[cfg(test)]
mod tests;
