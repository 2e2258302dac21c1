//! Classification of host packets by class, flow and addresses. Packets are untrusted: every length is checked.

use std::net::IpAddr;

use chappe_wire::host::Headers;
pub use chappe_wire::net::Net;

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
    let headers = Headers::parse(packet)?;
    let urgent = matches!(headers.protocol, ICMP | ICMPV6) || headers.dscp() >= URGENT_DSCP;
    Some(Facts {
        source: headers.source,
        destination: headers.destination,
        service: usize::from(!urgent),
        flow: (headers.flow() >> 58) as u8,
    })
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
}
