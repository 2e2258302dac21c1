//! The encapsulation of datagrams between two hosts, and its overhead.

use std::net::SocketAddr;

use chappe_sys::Endpoint;

use chappe_session::OVERHEAD;

/// The encapsulation of datagrams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// UDP, bound to this local address and port.
    Udp(SocketAddr),
    /// Ethernet frames of a separate EtherType, without IP. Needs CAP_NET_RAW.
    Ethernet {
        /// The name of the interface.
        interface: String,
        /// The EtherType, the same at both ends.
        ether_type: u16,
    },
}

impl Carrier {
    /// Octets of the headers below on the medium: Ethernet, and for UDP also IP and UDP.
    pub fn below(&self) -> usize {
        match self {
            Carrier::Udp(address) if address.is_ipv6() => 14 + 48,
            Carrier::Udp(_) => 14 + 28,
            Carrier::Ethernet { .. } => 14,
        }
    }

    /// The same towards an address, if it is known: a socket of both families reaches IPv4 hosts over IPv4.
    pub fn below_to(&self, to: Option<Endpoint>) -> usize {
        match to {
            Some(Endpoint::Udp(to)) if to.is_ipv4() => 14 + 28,
            _ => self.below(),
        }
    }

    /// Whether a host with this address can be reached.
    pub fn reaches(&self, to: std::net::IpAddr) -> bool {
        match self {
            Carrier::Udp(own) if own.ip() == std::net::Ipv6Addr::UNSPECIFIED => true,
            Carrier::Udp(own) => own.is_ipv4() == to.is_ipv4(),
            Carrier::Ethernet { .. } => false,
        }
    }

    /// Largest datagram in octets on a path with this MTU.
    pub fn datagram_max(&self, mtu: usize) -> usize {
        mtu.saturating_sub(self.below() - 14)
    }

    /// The share of host packets in the octets of a full frame on such a path, 0 to 1.
    pub fn payload_share(&self, mtu: usize) -> f64 {
        let frame = self.datagram_max(mtu).saturating_sub(OVERHEAD);
        let packet = chappe_wildnet::Config::tunnel(frame).packet_max();
        packet as f64 / (mtu + 14) as f64
    }

    /// Parses a peer's address: `host:port` with a literal IP address, or six octets with colons for Ethernet.
    pub fn endpoint(&self, text: &str) -> Option<Endpoint> {
        match self {
            Carrier::Udp(_) => text.trim().parse().ok().map(Endpoint::Udp),
            Carrier::Ethernet { .. } => {
                let mut octets = [0; 6];
                let mut parts = text.trim().split(':');
                for octet in &mut octets {
                    *octet = u8::from_str_radix(parts.next()?, 16).ok()?;
                }
                parts.next().is_none().then_some(Endpoint::Ethernet(octets))
            }
        }
    }
}

/// The part of an address that a sender cannot choose at will, and its length: IPv4 with port, a network of IPv6 with port, or an
/// Ethernet address.
pub(crate) fn source(from: Endpoint) -> ([u8; 18], usize) {
    let mut octets = [0; 18];
    let mut put = |at: usize, part: &[u8]| {
        let place = octets.iter_mut().skip(at);
        place.zip(part).for_each(|(to, from)| *to = *from);
        at + part.len()
    };
    let len = match from {
        Endpoint::Udp(SocketAddr::V4(at)) => {
            let host = put(0, &at.ip().octets());
            put(host, &at.port().to_be_bytes())
        }
        // A host has all addresses of its network of 64 bits.
        Endpoint::Udp(SocketAddr::V6(at)) => {
            let host = put(0, at.ip().octets().get(..8).unwrap_or_default());
            put(host, &at.port().to_be_bytes())
        }
        Endpoint::Ethernet(address) => put(0, &address),
    };
    (octets, len)
}
