//! What carries the datagrams between two hosts, and what it costs.

use std::net::SocketAddr;

use chappe_sys::Endpoint;

use crate::session::OVERHEAD;

/// What carries the datagrams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// UDP on this address and port.
    Udp(SocketAddr),
    /// Frames of an EtherType of their own on an interface, without IP. Needs CAP_NET_RAW.
    Ethernet {
        /// The interface.
        interface: String,
        /// The EtherType.
        ether_type: u16,
    },
}

impl Carrier {
    /// Octets that the layers below add on the medium: Ethernet's header, and IP and UDP.
    pub fn below(&self) -> usize {
        match self {
            Carrier::Udp(address) if address.is_ipv6() => 14 + 48,
            Carrier::Udp(_) => 14 + 28,
            Carrier::Ethernet { .. } => 14,
        }
    }

    /// Largest datagram on a path whose packets may have `mtu` octets.
    pub fn datagram_max(&self, mtu: usize) -> usize {
        mtu.saturating_sub(self.below() - 14)
    }

    /// Of the octets on the medium, the share that packets of the host have in a full frame on such a path, 0 to 1.
    pub fn payload_share(&self, mtu: usize) -> f64 {
        let frame = self.datagram_max(mtu).saturating_sub(OVERHEAD);
        let packet = chappe_wildnet::Config::tunnel(frame).packet_max();
        packet as f64 / (mtu + 14) as f64
    }

    /// Reads `host:port` (a literal address) or, for Ethernet, six octets with colons.
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
