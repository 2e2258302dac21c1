//! The Internet checksum (RFC 1071), also over IPv6's pseudo header (RFC 8200, 8.1).

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

/// The one's complement sum of 16-bit words, big-endian; an odd octet at the end is the upper half of a word. Of several parts, all
/// but the last must have an even length; [`fold`] adds their sums. Reads four octets at a time, for packets of a host.
pub fn sum(part: &[u8]) -> u16 {
    let (words, rest) = part.as_chunks::<4>();
    let mut last = [0; 4];
    last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    // The sum of words in either order of octets is the same number in that order (RFC 1071, 2 B).
    let whole: u64 = words
        .iter()
        .map(|word| u64::from(u32::from_ne_bytes(*word)))
        .sum();
    let sum = whole + u64::from(u32::from_ne_bytes(last));
    u16::from_be_bytes(fold([sum]).to_ne_bytes())
}

/// Adds sums in one's complement.
pub fn fold(sums: impl IntoIterator<Item = impl Into<u64>>) -> u16 {
    let mut sum: u64 = sums.into_iter().map(Into::<u64>::into).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 1071, 3, and every length: the sum is that of the words one by one.
    #[test]
    fn sums_of_any_length_are_those_of_their_words() {
        assert_eq!(
            sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]),
            0xddf2
        );
        let octets: [u8; 61] = core::array::from_fn(|n| (n * 89 + 7) as u8);
        for len in 0..=octets.len() {
            let mut words = 0;
            add(&mut words, &octets[..len]);
            assert_eq!(sum(&octets[..len]), fold([words]), "{len}");
        }
    }

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
