//! The IPv6 header, and skipping of its extension headers.
//!
//! ```text
//! +---------+---------------+------------+
//! | version | traffic class | flow label |    4 octets: 4, 8 and 20 bits
//! +---------+------+--------+------------+
//! | payload length | next header | hop limit |   2, 1, 1
//! +----------------+-------------+-----------+
//! | source, 16             | destination, 16 |
//! +------------------------+-----------------+
//! ```
//!
//! RFC 8200, 3 and 4. The traffic class holds six bits of DSCP (RFC 2474) and two of ECN (RFC 3168).

use core::fmt;
use core::net::Ipv6Addr;

use crate::{Malformed, Writer, head};

/// Octets of the header.
pub const HEADER_LEN: usize = 40;
/// The smallest MTU of an IPv6 link (RFC 8200, 5).
pub const MTU_MIN: usize = 1280;
/// Most extension headers that [`parse`] skips. No legitimate packet has more, and the limit bounds the work.
pub const EXTENSIONS_MAX: usize = 8;

/// Numbers of upper layers and extension headers (IANA, "Protocol Numbers").
pub mod next {
    /// Hop-by-hop options (RFC 8200, 4.3).
    pub const HOP_BY_HOP: u8 = 0;
    /// The Transmission Control Protocol (RFC 9293).
    pub const TCP: u8 = 6;
    /// The User Datagram Protocol (RFC 768).
    pub const UDP: u8 = 17;
    /// Routing header (RFC 8200, 4.4).
    pub const ROUTING: u8 = 43;
    /// Fragment header (RFC 8200, 4.5).
    pub const FRAGMENT: u8 = 44;
    /// The Internet Control Message Protocol (RFC 4443).
    pub const ICMPV6: u8 = 58;
    /// No next header (RFC 8200, 4.7).
    pub const NONE: u8 = 59;
    /// Destination options (RFC 8200, 4.6).
    pub const DESTINATION: u8 = 60;
}

/// The fixed header of an IPv6 packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// DSCP in the high six bits, ECN in the low two.
    pub traffic_class: u8,
    /// The flow label, 20 bits (RFC 6437).
    pub flow_label: u32,
    /// Octets behind this header, extension headers included.
    pub payload_len: u16,
    /// The number of the next header, from [`next`].
    pub next_header: u8,
    /// Hop limit: routers it may still pass.
    pub hop_limit: u8,
    /// The address of the sender.
    pub source: Ipv6Addr,
    /// The address of the receiver.
    pub destination: Ipv6Addr,
}

impl Header {
    /// Reads the fixed header. Does not compare the payload length with what is there; [`parse`] does.
    pub fn parse(packet: &[u8]) -> Result<Header, Malformed> {
        let header: &[u8; HEADER_LEN] = head(packet)?;
        let [a, b, c, d, e, f, next_header, hop_limit, ..] = *header;
        if a >> 4 != 6 {
            return Err(Malformed::Version(a >> 4));
        }
        let address = |at: usize| -> Ipv6Addr {
            let octets = header.get(at..).and_then(|rest| rest.first_chunk::<16>());
            Ipv6Addr::from(octets.copied().unwrap_or_default())
        };
        Ok(Header {
            traffic_class: a << 4 | b >> 4,
            flow_label: u32::from_be_bytes([0, b & 15, c, d]),
            payload_len: u16::from_be_bytes([e, f]),
            next_header,
            hop_limit,
            source: address(8),
            destination: address(24),
        })
    }

    /// Writes the header to the front of `packet`. Fails if it does not fit.
    pub fn emit(&self, packet: &mut [u8]) -> Result<usize, Malformed> {
        let [_, b, c, d] = self.flow_label.to_be_bytes();
        let class = self.traffic_class;
        let mut writer = Writer::new(packet);
        writer.put(&[6 << 4 | class >> 4, class << 4 | b & 15, c, d])?;
        writer.put(&self.payload_len.to_be_bytes())?;
        writer.put(&[self.next_header, self.hop_limit])?;
        writer.put(&self.source.octets())?;
        writer.put(&self.destination.octets())?;
        Ok(writer.at)
    }
}

/// The upper-layer part of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upper<'a> {
    /// The protocol's number, from [`next`].
    pub protocol: u8,
    /// Its header and payload, exactly as long as the IPv6 header states.
    pub packet: &'a [u8],
}

/// Reads a whole packet: its header, and the upper layer behind at most [`EXTENSIONS_MAX`] extension headers.
///
/// Octets behind the stated length are ignored; a packet shorter than stated is an error. Hop-by-hop options,
/// destination options and spent routing headers are skipped; fragments, unspent routing headers and IPv6 in
/// IPv6 are [`Malformed::Unsupported`].
pub fn parse(packet: &[u8]) -> Result<(Header, Upper<'_>), Malformed> {
    let header = Header::parse(packet)?;
    let needed = HEADER_LEN + usize::from(header.payload_len);
    let found = packet.len();
    let mut rest = packet
        .get(HEADER_LEN..needed)
        .ok_or(Malformed::Truncated { needed, found })?;
    let mut protocol = header.next_header;
    for _ in 0..=EXTENSIONS_MAX {
        match protocol {
            next::HOP_BY_HOP | next::DESTINATION => {}
            // Segments left, the fourth octet: nothing more to visit.
            next::ROUTING if matches!(rest, [_, _, _, 0, ..]) => {}
            next::ROUTING | next::FRAGMENT | 41 | 4 => return Err(Malformed::Unsupported),
            _ => {
                let packet = rest;
                return Ok((header, Upper { protocol, packet }));
            }
        }
        let &[next, units]: &[u8; 2] = head(rest)?;
        // RFC 8200, 4.3: in units of 8 octets, not counting the first 8.
        let needed = 8 + 8 * usize::from(units);
        let found = rest.len();
        if protocol != next::ROUTING {
            let options = rest.get(2..needed);
            options_are_sound(options.ok_or(Malformed::Truncated { needed, found })?)?;
        }
        rest = rest
            .get(needed..)
            .ok_or(Malformed::Truncated { needed, found })?;
        protocol = next;
    }
    Err(Malformed::Unsupported)
}

/// Each option must end inside its header, and unknown ones must not ask to discard the packet (RFC 8200, 4.2).
fn options_are_sound(mut options: &[u8]) -> Result<(), Malformed> {
    while let Some((&kind, rest)) = options.split_first() {
        if kind == 0 {
            options = rest;
            continue;
        }
        let (&len, rest) = rest.split_first().ok_or(Malformed::Illegal)?;
        options = rest.get(usize::from(len)..).ok_or(Malformed::Illegal)?;
        if kind != 1 && kind >> 6 != 0 {
            return Err(Malformed::Unsupported);
        }
    }
    Ok(())
}

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} > {} next={} hops={} class={:02x} len={}",
            self.source,
            self.destination,
            self.next_header,
            self.hop_limit,
            self.traffic_class,
            self.payload_len
        )
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    fn header(next_header: u8, payload_len: u16) -> Header {
        Header {
            traffic_class: 0xb9,
            flow_label: 0xf_1234,
            payload_len,
            next_header,
            hop_limit: 64,
            source: "fd00::1".parse().unwrap(),
            destination: "ff02::2".parse().unwrap(),
        }
    }

    fn packet(next_header: u8, body: &[u8]) -> Vec<u8> {
        let mut packet = std::vec![0; HEADER_LEN];
        header(next_header, body.len() as u16)
            .emit(&mut packet)
            .unwrap();
        packet.extend_from_slice(body);
        packet
    }

    #[test]
    fn a_header_reads_back_and_needs_its_room() {
        let header = header(6, 777);
        let mut octets = [0; 40];
        assert_eq!(header.emit(&mut octets), Ok(40));
        assert_eq!(Header::parse(&octets), Ok(header));
        assert!(header.emit(&mut [0; 39]).is_err());
        assert!(Header::parse(&octets[..39]).is_err());
        octets[0] = 0x4f;
        assert_eq!(Header::parse(&octets), Err(Malformed::Version(4)));
    }

    /// P01, P05: a length field of 0 to 255 in every header type, in chains of 1 to 64: walked past, or refused, in
    /// a bounded number of steps.
    #[test]
    fn p01_p05_extension_header_chains_are_bounded() {
        for kind in [next::HOP_BY_HOP, next::DESTINATION, next::ROUTING] {
            for chain in 1..=64usize {
                let mut body = Vec::new();
                for link in 0..chain {
                    let next = if link + 1 == chain { 17 } else { kind };
                    body.extend_from_slice(&[next, 0, 1, 0, 0, 0, 0, 0]);
                    if kind != next::ROUTING {
                        let at = body.len() - 6;
                        body[at..at + 2].copy_from_slice(&[1, 4]);
                    }
                }
                body.extend_from_slice(&[9; 4]);
                let packet = packet(kind, &body);
                let found = parse(&packet);
                match chain <= EXTENSIONS_MAX {
                    true => assert_eq!(found.unwrap().1.packet, [9; 4], "{kind} {chain}"),
                    false => assert_eq!(found, Err(Malformed::Unsupported)),
                }
            }
            for units in 0..=255 {
                let mut body = [0; 24];
                (body[0], body[1]) = (59, units);
                let packet = packet(kind, &body);
                let found = parse(&packet);
                match units {
                    0..=2 => assert_eq!(found.unwrap().1.packet.len(), 16 - 8 * units as usize),
                    _ => assert!(matches!(found, Err(Malformed::Truncated { .. }))),
                }
            }
        }
    }

    /// P02, P03: options of every type with lengths 0, 1 and 255, cut at each octet.
    #[test]
    fn p02_p03_option_lengths_are_checked() {
        for kind in 0..=255u8 {
            for len in [0, 1, 255] {
                let mut body = [0; 16];
                (body[0], body[2], body[3]) = (17, kind, len);
                for cut in 0..=body.len() {
                    let packet = packet(next::DESTINATION, &body[..cut]);
                    match parse(&packet) {
                        Ok((_, upper)) => {
                            assert!(cut >= 8 && (kind == 0 || len < 255), "{kind} {len} {cut}");
                            assert_eq!(upper.packet.len(), cut - 8);
                        }
                        Err(why) => assert!(cut < 8 || len == 255 || kind >> 6 != 0, "{why}"),
                    }
                }
            }
        }
    }

    /// P07: the packet is shorter or longer than it says.
    #[test]
    fn p07_stated_and_real_length() {
        let mut packet = packet(17, &[1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(parse(&packet).unwrap().1.packet.len(), 8);
        packet.push(9);
        assert_eq!(parse(&packet).unwrap().1.packet, [1, 2, 3, 4, 5, 6, 7, 8]);
        assert!(parse(&packet[..47]).is_err());
    }

    /// P08: nothing looks inside a tunnel.
    #[test]
    fn p08_nested_ip_and_fragments_are_refused() {
        for kind in [4, 41, next::FRAGMENT] {
            let packet = packet(kind, &[0; 48]);
            assert_eq!(parse(&packet), Err(Malformed::Unsupported));
        }
        let unspent = packet(next::ROUTING, &[17, 0, 0, 1, 0, 0, 0, 0]);
        assert_eq!(parse(&unspent), Err(Malformed::Unsupported));
    }
}
