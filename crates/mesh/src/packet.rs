//! IP packets of the host: addresses, flow, class, congestion marks. Packets are untrusted; every length is checked.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What matters of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The IP source address.
    pub source: IpAddr,
    /// The IP destination address.
    pub destination: IpAddr,
    /// The differentiated services code point (RFC 2474).
    pub dscp: u8,
    /// The two ECN bits (RFC 3168).
    pub ecn: u8,
    /// A hash of addresses, protocol and ports: equal for all packets of a flow.
    pub flow: u16,
}

/// How urgent a packet's sender calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// CS5 and above, expedited forwarding among them: voice and control (RFC 4594).
    Urgent,
    /// All other code points.
    Usual,
    /// CS1 and lower effort: yields to all (RFC 3662, RFC 8622).
    Least,
}

const CE: u8 = 3;

impl Facts {
    /// Reads a packet's headers; `None` if it is neither IPv4 nor IPv6.
    pub fn of(packet: &[u8]) -> Option<Facts> {
        match packet.first()? >> 4 {
            4 => {
                let head: &[u8; 20] = packet.first_chunk()?;
                let address = |at: usize| {
                    Ipv4Addr::from([head[at], head[at + 1], head[at + 2], head[at + 3]])
                };
                // Only the first fragment of a packet has ports.
                let fragment = u16::from_be_bytes([head[6], head[7]]) & 0x3fff != 0;
                let ports = packet
                    .get(usize::from(head[0] & 15) * 4..)
                    .filter(|_| !fragment);
                let (source, destination) = (address(12).into(), address(16).into());
                Some(facts((source, destination), head[1], head[9], ports))
            }
            6 => {
                let head: &[u8; 40] = packet.first_chunk()?;
                let address = |at: usize| {
                    let octets = head.get(at..at + 16)?;
                    Some(Ipv6Addr::from(<[u8; 16]>::try_from(octets).ok()?))
                };
                let class = head[0] << 4 | head[1] >> 4;
                let ends = (address(8)?.into(), address(24)?.into());
                Some(facts(ends, class, head[6], packet.get(40..)))
            }
            _ => None,
        }
    }

    /// Whether its sender reacts to marks.
    pub fn takes_marks(&self) -> bool {
        self.ecn != 0
    }

    /// The urgency that the code point asks for.
    pub fn urgency(&self) -> Urgency {
        match self.dscp {
            40.. => Urgency::Urgent,
            1 | 8 => Urgency::Least,
            _ => Urgency::Usual,
        }
    }
}

fn facts(
    (source, destination): (IpAddr, IpAddr),
    class: u8,
    protocol: u8,
    ports: Option<&[u8]>,
) -> Facts {
    // FNV-1a of 64 bits (RFC 9923).
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut mix = |octets: &[u8]| {
        for &octet in octets {
            hash = (hash ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for address in [source, destination] {
        match address {
            IpAddr::V4(address) => mix(&address.octets()),
            IpAddr::V6(address) => mix(&address.octets()),
        }
    }
    mix(&[protocol]);
    let ports = ports.filter(|_| matches!(protocol, 6 | 17));
    mix(ports.and_then(|ports| ports.get(..4)).unwrap_or_default());
    // The last octets have not reached the top bits yet: Fibonacci hashing (Knuth, 6.4) takes them there.
    hash = (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    Facts {
        source,
        destination,
        dscp: class >> 2,
        ecn: class & 3,
        flow: (hash >> 48) as u16,
    }
}

/// The number that a TCP segment acknowledges, if it does nothing else: no data, no flag but ACK.
pub fn pure_ack(packet: &[u8]) -> Option<u32> {
    let (head, protocol, len) = match packet.first()? >> 4 {
        4 => {
            let len = u16::from_be_bytes([*packet.get(2)?, *packet.get(3)?]);
            (
                usize::from(packet.first()? & 15) * 4,
                *packet.get(9)?,
                usize::from(len),
            )
        }
        6 => {
            let len = u16::from_be_bytes([*packet.get(4)?, *packet.get(5)?]);
            (40, *packet.get(6)?, 40 + usize::from(len))
        }
        _ => return None,
    };
    let tcp = packet.get(head..len)?;
    let (offset, flags) = (usize::from(tcp.get(12)? >> 4) * 4, *tcp.get(13)?);
    const ACK: u8 = 0x10;
    // With ECE or CWR it says more than its number.
    (protocol == 6 && flags == ACK && offset == tcp.len()).then_some(())?;
    Some(u32::from_be_bytes(*tcp.get(8..12)?.first_chunk()?))
}

/// Marks a packet as having met congestion (RFC 3168, 5), and mends the checksum of an IPv4 header (RFC 1624).
pub fn mark(packet: &mut [u8]) {
    match packet.first().map(|first| first >> 4) {
        Some(4) => {
            let Some(head) = packet.first_chunk_mut::<20>() else {
                return;
            };
            let before = u16::from_be_bytes([head[0], head[1]]);
            head[1] |= CE;
            let after = u16::from_be_bytes([head[0], head[1]]);
            let check = u16::from_be_bytes([head[10], head[11]]);
            let mut sum = u32::from(!check) + u32::from(!before) + u32::from(after);
            sum = (sum & 0xffff) + (sum >> 16);
            sum = (sum & 0xffff) + (sum >> 16);
            head[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
        }
        Some(6) => {
            if let Some(second) = packet.get_mut(1) {
                *second |= CE << 4;
            }
        }
        _ => {}
    }
}

/// An IP network in prefix notation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Net {
    /// The first address of the network.
    pub address: IpAddr,
    /// The prefix length in bits.
    pub prefix: u8,
}

impl Net {
    /// The network of all IPv4 addresses.
    pub const DEFAULT_V4: Net = Net {
        address: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        prefix: 0,
    };
    /// The network of all IPv6 addresses.
    pub const DEFAULT_V6: Net = Net {
        address: IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        prefix: 0,
    };

    /// Reads `10.0.0.0/24`, or an address alone.
    pub fn parse(text: &str) -> Option<Net> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.trim().parse().ok()?;
        let most = width(address);
        let prefix = prefix.map_or(Some(most), |prefix| prefix.trim().parse().ok())?;
        (prefix <= most).then_some(Net { address, prefix }.cut())
    }

    /// Whether an address lies in it.
    pub fn has(&self, address: IpAddr) -> bool {
        width(self.address) == width(address)
            && (bits(self.address) ^ bits(address)) & mask(self.prefix) == 0
    }

    /// The address with this number in the network; `None` if the network is too small.
    pub fn nth(&self, number: u16) -> Option<IpAddr> {
        let spare = u32::from(width(self.address) - self.prefix.min(width(self.address)));
        let most = 1u128.checked_shl(spare).unwrap_or(0).wrapping_sub(1);
        if u128::from(number) > most {
            return None;
        }
        let shift = 128 - u32::from(width(self.address));
        Some(from_bits(
            self.address,
            bits(self.address) | u128::from(number) << shift,
        ))
    }

    /// The number of an address in the network, if it is one of a node.
    pub fn number(&self, address: IpAddr) -> Option<u16> {
        let shift = 128 - u32::from(width(address));
        let rest = (bits(address) & !mask(self.prefix)) >> shift;
        self.has(address).then(|| u16::try_from(rest).ok())?
    }

    fn cut(self) -> Net {
        let address = from_bits(self.address, bits(self.address) & mask(self.prefix));
        Net { address, ..self }
    }
}

impl std::fmt::Display for Net {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)) << 96,
        IpAddr::V6(address) => u128::from(address),
    }
}

fn from_bits(like: IpAddr, bits: u128) -> IpAddr {
    match like {
        IpAddr::V4(_) => Ipv4Addr::from((bits >> 96) as u32).into(),
        IpAddr::V6(_) => Ipv6Addr::from(bits).into(),
    }
}

fn mask(prefix: u8) -> u128 {
    u128::MAX
        .checked_shl(128 - u32::from(prefix.min(128)))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checksum(head: &[u8]) -> u16 {
        let mut sum: u32 = head
            .chunks(2)
            .map(|two| u32::from(u16::from_be_bytes([two[0], two[1]])))
            .sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    #[test]
    fn marks_keep_the_checksum_right() {
        for low in 0..=255u8 {
            let mut packet = [
                0x45,
                0xb8 | 1,
                0,
                40,
                low,
                7,
                0,
                0,
                64,
                6,
                0,
                0,
                10,
                0,
                0,
                1,
                10,
                0,
                low,
                2,
            ];
            let check = checksum(&packet);
            packet[10..12].copy_from_slice(&check.to_be_bytes());
            let before = Facts::of(&packet).unwrap();
            assert_eq!(
                (before.ecn, before.dscp, before.urgency()),
                (1, 46, Urgency::Urgent)
            );
            mark(&mut packet);
            let after = Facts::of(&packet).unwrap();
            assert_eq!((after.ecn, after.dscp, after.flow), (3, 46, before.flow));
            assert_eq!(checksum(&packet), 0, "{low}");
        }
        let mut six = [0; 40];
        (six[0], six[1]) = (0x60, 0x20);
        mark(&mut six);
        assert_eq!(Facts::of(&six).unwrap().ecn, 3);
        mark(&mut []);
        (0..40).for_each(|len| assert_eq!(Facts::of(&six[..len]), None));
    }

    #[test]
    fn nodes_have_addresses_in_the_network() {
        let four = Net::parse("10.77.3.4/16").unwrap();
        assert_eq!(four.to_string(), "10.77.0.0/16");
        assert_eq!(four.nth(258), Some("10.77.1.2".parse().unwrap()));
        assert_eq!(four.number("10.77.1.2".parse().unwrap()), Some(258));
        assert_eq!(four.number("10.78.1.2".parse().unwrap()), None);
        let six = Net::parse("fd77::/64").unwrap();
        assert_eq!(six.nth(5), Some("fd77::5".parse().unwrap()));
        assert_eq!(six.number("fd77::1:0".parse().unwrap()), None);
        assert_eq!(Net::parse("10.0.0.0/30").unwrap().nth(4), None);
        assert!(Net::DEFAULT_V4.has("1.2.3.4".parse().unwrap()));
        assert!(!Net::DEFAULT_V4.has("::1".parse().unwrap()));
        assert_eq!(Net::parse("10.0.0.0/33"), None);
    }
}
