//! Classification of host packets by class, flow and addresses. Packets are untrusted: every length is checked.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The classification of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The IP source address.
    pub source: IpAddr,
    /// The IP destination address.
    pub destination: IpAddr,
    /// The class: 0 urgent, 1 everything else.
    pub service: usize,
    /// The flow's hash, 0 to 63: the same for all packets of a flow, and rarely the same for two flows.
    pub flow: u8,
}

/// Class selector 5 and above, expedited forwarding among them (RFC 2474, RFC 3246): voice and control.
const URGENT_DSCP: u8 = 40;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;

/// Classifies a packet by its headers; `None` if it is neither IPv4 nor IPv6.
pub fn facts(packet: &[u8]) -> Option<Facts> {
    match packet.first()? >> 4 {
        4 => {
            let header: &[u8; 20] = packet.first_chunk()?;
            let address = |at: usize| {
                Ipv4Addr::from([header[at], header[at + 1], header[at + 2], header[at + 3]])
            };
            let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
            let rest = packet
                .get(usize::from(header[0] & 15) * 4..)
                .filter(|_| !fragment);
            Some(judge(
                address(12).into(),
                address(16).into(),
                header[9],
                header[1] >> 2,
                rest,
            ))
        }
        6 => {
            let header: &[u8; 40] = packet.first_chunk()?;
            let address = |octets: &[u8]| <[u8; 16]>::try_from(octets).ok().map(Ipv6Addr::from);
            let dscp = (u16::from_be_bytes([header[0], header[1]]) >> 6 & 0x3f) as u8;
            let (source, destination) = (address(&header[8..24])?, address(&header[24..40])?);
            Some(judge(
                source.into(),
                destination.into(),
                header[6],
                dscp,
                packet.get(40..),
            ))
        }
        _ => None,
    }
}

/// Classifies by the fields of the IP header. `rest` follows the IP header; a fragment has none, since only the first
/// fragment of a packet has ports.
fn judge(
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    dscp: u8,
    rest: Option<&[u8]>,
) -> Facts {
    let ports = rest
        .and_then(<[u8]>::first_chunk::<4>)
        .filter(|_| matches!(protocol, 6 | 17));
    // FNV-1a of 64 bits (RFC 9923) over addresses, protocol and ports.
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
    mix(ports.map_or(&[], |ports| &ports[..]));
    // The last octets have not reached the top bits yet: Fibonacci hashing (Knuth, 6.4) takes them there.
    hash = (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let urgent = matches!(protocol, ICMP | ICMPV6) || dscp >= URGENT_DSCP;
    Facts {
        source,
        destination,
        service: usize::from(!urgent),
        flow: (hash >> 58) as u8,
    }
}

/// An IP network in prefix notation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Net {
    /// Any address in the network.
    pub address: IpAddr,
    /// The prefix length in bits.
    pub prefix: u8,
}

impl Net {
    /// Whether an address lies in it.
    pub fn has(&self, address: IpAddr) -> bool {
        let bits = |address: IpAddr| match address {
            IpAddr::V4(address) => (u128::from(u32::from(address)) << 96, 32),
            IpAddr::V6(address) => (u128::from(address), 128),
        };
        let ((a, width), (b, other)) = (bits(self.address), bits(address));
        let mask = u128::MAX
            .checked_shl(128 - u32::from(self.prefix.min(width)))
            .unwrap_or(0);
        width == other && (a ^ b) & mask == 0
    }

    /// Reads `10.0.0.0/24` or an address alone.
    pub fn parse(text: &str) -> Option<Net> {
        let (address, prefix) = text
            .split_once('/')
            .map_or((text, None), |(a, p)| (a, Some(p)));
        let address: IpAddr = address.trim().parse().ok()?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.map_or(Some(most), |prefix| prefix.trim().parse().ok())?;
        (prefix <= most).then_some(Net { address, prefix })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_classified_by_their_headers() {
        let mut packet = vec![0; 40];
        (packet[0], packet[1], packet[9]) = (0x45, 46 << 2, 17);
        packet[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        let urgent = facts(&packet).unwrap();
        assert_eq!(
            (urgent.service, urgent.destination),
            (0, "10.0.0.2".parse().unwrap())
        );
        packet[1] = 0;
        let usual = facts(&packet).unwrap();
        packet[23] = 1;
        assert_eq!(usual.service, 1);
        assert_ne!(facts(&packet).unwrap().flow, usual.flow);
        for len in 0..20 {
            assert_eq!(facts(&packet[..len]), None);
        }
    }

    #[test]
    fn networks_contain_their_addresses() {
        let net = Net::parse("10.1.0.0/16").unwrap();
        assert!(net.has("10.1.255.1".parse().unwrap()) && !net.has("10.2.0.1".parse().unwrap()));
        assert!(
            Net::parse("0.0.0.0/0")
                .unwrap()
                .has("1.2.3.4".parse().unwrap())
        );
        assert!(!Net::parse("0.0.0.0/0").unwrap().has("::1".parse().unwrap()));
        assert!(
            Net::parse("fd00::/8")
                .unwrap()
                .has("fd12::1".parse().unwrap())
        );
        assert_eq!(Net::parse("10.0.0.1/33"), None);
    }
}
