//! What the headers of a host's IP packet say: ends, protocol, class, ports. Packets are untrusted; every length is checked.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// TCP and UDP have ports at the same place (RFC 9293, RFC 768).
const WITH_PORTS: [u8; 2] = [6, 17];

/// The headers of an IPv4 or IPv6 packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers<'a> {
    /// The address of the host that sends the packet.
    pub source: IpAddr,
    /// The address of the host that the packet is for.
    pub destination: IpAddr,
    /// The protocol behind the header; of IPv6 the first one, which may be an extension header.
    pub protocol: u8,
    /// Type of service or traffic class: the code point and the two ECN bits.
    pub class: u8,
    /// What follows the header, with IPv4's options left out; `None` for a fragment, since only the first one has ports.
    pub rest: Option<&'a [u8]>,
}

impl<'a> Headers<'a> {
    /// Reads a packet; `None` if it is neither IPv4 nor IPv6, or cut short.
    pub fn parse(packet: &'a [u8]) -> Option<Headers<'a>> {
        match packet.first()? >> 4 {
            4 => Headers::v4(packet),
            6 => Headers::v6(packet),
            _ => None,
        }
    }

    fn v4(packet: &'a [u8]) -> Option<Headers<'a>> {
        let [
            first,
            class,
            _,
            _,
            _,
            _,
            f0,
            f1,
            _,
            protocol,
            _,
            _,
            ends @ ..,
        ] = packet.first_chunk::<20>()?;
        let [s0, s1, s2, s3, d0, d1, d2, d3] = *ends;
        let fragment = u16::from_be_bytes([*f0, *f1]) & 0x3fff != 0;
        let rest = packet.get(usize::from(first & 15) * 4..);
        Some(Headers {
            source: Ipv4Addr::new(s0, s1, s2, s3).into(),
            destination: Ipv4Addr::new(d0, d1, d2, d3).into(),
            protocol: *protocol,
            class: *class,
            rest: rest.filter(|_| !fragment),
        })
    }

    fn v6(packet: &'a [u8]) -> Option<Headers<'a>> {
        let [first, second, _, _, _, _, protocol, _, ends @ ..] = packet.first_chunk::<40>()?;
        let (source, destination) = (ends.first_chunk::<16>()?, ends.last_chunk::<16>()?);
        Some(Headers {
            source: Ipv6Addr::from(*source).into(),
            destination: Ipv6Addr::from(*destination).into(),
            protocol: *protocol,
            class: first << 4 | second >> 4,
            rest: packet.get(40..),
        })
    }

    /// The differentiated services code point (RFC 2474).
    pub fn dscp(&self) -> u8 {
        self.class >> 2
    }

    /// The two ECN bits (RFC 3168).
    pub fn ecn(&self) -> u8 {
        self.class & 3
    }

    /// A hash of addresses, protocol and ports: equal for all packets of a flow. Its upper bits are the best mixed.
    pub fn flow(&self) -> u64 {
        // FNV-1a of 64 bits (RFC 9923).
        let mut hash = 0xcbf2_9ce4_8422_2325u64;
        let mut mix = |octets: &[u8]| {
            for &octet in octets {
                hash = (hash ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3);
            }
        };
        for address in [self.source, self.destination] {
            match address {
                IpAddr::V4(address) => mix(&address.octets()),
                IpAddr::V6(address) => mix(&address.octets()),
            }
        }
        mix(&[self.protocol]);
        let rest = self.rest.filter(|_| WITH_PORTS.contains(&self.protocol));
        mix(rest.and_then(|rest| rest.get(..4)).unwrap_or_default());
        // The last octets have not reached the top bits yet: Fibonacci hashing (Knuth, 6.4) takes them there.
        (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_both_families_are_read() {
        let mut four = [0; 28];
        (four[0], four[1], four[9], four[23]) = (0x45, 46 << 2 | 1, 17, 80);
        four[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        let headers = Headers::parse(&four).unwrap();
        assert_eq!(headers.source, IpAddr::from([10, 0, 0, 1]));
        assert_eq!(headers.destination, IpAddr::from([10, 0, 0, 2]));
        assert_eq!(
            (headers.protocol, headers.dscp(), headers.ecn()),
            (17, 46, 1)
        );
        let flow = headers.flow();
        four[23] = 81;
        assert_ne!(Headers::parse(&four).unwrap().flow(), flow, "ports count");
        four[6] = 0x20;
        assert_eq!(Headers::parse(&four).unwrap().rest, None, "a fragment");
        let mut six = [0; 40];
        (six[0], six[1], six[6], six[39]) = (0x6b, 0x90, 6, 9);
        let headers = Headers::parse(&six).unwrap();
        assert_eq!(headers.class, 0xb9);
        assert_eq!(headers.destination, "::9".parse::<IpAddr>().unwrap());
        (0..40).for_each(|len| assert_eq!(Headers::parse(&six[..len]), None));
        (0..20).for_each(|len| assert_eq!(Headers::parse(&four[..len]), None));
    }
}
