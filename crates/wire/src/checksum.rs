//! The Internet checksum over IPv6's pseudo header (RFC 1071; RFC 8200, 8.1).

use core::net::Ipv6Addr;

/// The checksum of an upper-layer packet: `next_header` numbers the protocol, `packet` holds its header and payload.
/// With the checksum field zero it is the value to write there; with a right value in place it is 0.
pub fn of(source: Ipv6Addr, destination: Ipv6Addr, next_header: u8, packet: &[u8]) -> u16 {
    let mut sum = 0;
    add(&mut sum, &source.octets());
    add(&mut sum, &destination.octets());
    add(&mut sum, &(packet.len() as u32).to_be_bytes());
    add(&mut sum, &[0, 0, 0, next_header]);
    add(&mut sum, packet);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Adds 16-bit words; only the last part may have an odd length. 64 bits hold the sum of any buffer.
fn add(sum: &mut u64, part: &[u8]) {
    let mut pairs = part.chunks_exact(2);
    for pair in &mut pairs {
        if let [high, low] = *pair {
            *sum = sum.wrapping_add(u64::from(u16::from_be_bytes([high, low])));
        }
    }
    if let [high] = *pairs.remainder() {
        *sum = sum.wrapping_add(u64::from(high) << 8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A UDP datagram whose checksum was worked out by hand: ::1 to ::2, ports 1 and 2, length 9, one octet 0x03.
    /// Words: 1 + 2 + 9 + 17 + 1 + 2 + 9 + 0x0300 = 0x0329; complement 0xfcd6.
    #[test]
    fn a_sum_by_hand() {
        let source = "::1".parse().unwrap();
        let destination = "::2".parse().unwrap();
        let mut packet = [0, 1, 0, 2, 0, 9, 0, 0, 3];
        assert_eq!(of(source, destination, 17, &packet), 0xfcd6);
        packet[6..8].copy_from_slice(&0xfcd6u16.to_be_bytes());
        assert_eq!(of(source, destination, 17, &packet), 0);
    }
}
