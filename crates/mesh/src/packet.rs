//! IP packets of the host: addresses, flow, class, congestion marks. Packets are untrusted; every length is checked.

use std::net::IpAddr;

use chappe_wire::host::Headers;
pub use chappe_wire::net::Net;

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
        let headers = Headers::parse(packet)?;
        Some(Facts {
            source: headers.source,
            destination: headers.destination,
            dscp: headers.dscp(),
            ecn: headers.ecn(),
            flow: (headers.flow() >> 48) as u16,
        })
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

/// Whether a packet is IPv4 or IPv6 as far as its first octet and its length say: a TUN device takes no other.
pub fn is_ip(packet: &[u8]) -> bool {
    match packet.first().map(|first| first >> 4) {
        Some(4) => packet.len() >= 20,
        Some(6) => packet.len() >= 40,
        _ => false,
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
}
