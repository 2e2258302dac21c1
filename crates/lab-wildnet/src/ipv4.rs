//! Header translation between IPv6 at the hosts and IPv4 on the air.
//!
//! The paper's packets have IPv4 headers of 20 octets, while this project's TCP speaks IPv6 with 40. Headers are translated
//! between a host and its radio (after RFC 7915, without options or fragments). Packets then have the paper's lengths: 1500
//! octets with 1448 of data, and 52 for an acknowledgement. `fd00::n` is `10.0.n`.

const V4: usize = 20;
const V6: usize = 40;
/// Offset of the checksum in a TCP header.
const CHECKSUM: usize = 16;
const TCP: u8 = 6;

/// Translates the TCP/IPv6 packet of `len` octets in `packet` to IPv4, and returns its new length. Other packets are left
/// unchanged.
pub fn shorten(packet: &mut [u8], len: usize) -> usize {
    let Some(head) = packet.first_chunk::<V6>().copied() else {
        return len;
    };
    if len < V6 + CHECKSUM + 2 || head[0] >> 4 != 6 || head[6] != TCP {
        return len;
    }
    let (total, long) = ((len - (V6 - V4)) as u16, &head[8..V6]);
    let short = [10, 0, head[22], head[23], 10, 0, head[38], head[39]];
    packet.copy_within(V6..len, V4);
    let mut new = [0; V4];
    new[0] = 0x45;
    new[1] = head[0] << 4 | head[1] >> 4;
    new[2..4].copy_from_slice(&total.to_be_bytes());
    // DF is set, so the identification may be zero (RFC 6864).
    new[6] = 0x40;
    (new[8], new[9]) = (head[7], TCP);
    new[12..].copy_from_slice(&short);
    let sum = !folded(sum(&new));
    new[10..12].copy_from_slice(&sum.to_be_bytes());
    packet[..V4].copy_from_slice(&new);
    update_checksum(packet, V4 + CHECKSUM, long, &short);
    usize::from(total)
}

/// The number of the host to which an IPv4 packet is addressed; `None` if the packet is too short or no IPv4.
pub fn destination(packet: &[u8]) -> Option<u16> {
    let head = packet.first_chunk::<V4>()?;
    (head[0] == 0x45).then(|| u16::from_be_bytes([head[18], head[19]]))
}

/// Translates the TCP/IPv4 packet `packet` to IPv6 into `out`, and returns its length. `None` if it is malformed.
pub fn lengthen(packet: &[u8], out: &mut [u8]) -> Option<usize> {
    let head = packet.first_chunk::<V4>()?;
    let total = usize::from(u16::from_be_bytes([head[2], head[3]]));
    let rest = packet.get(V4..total)?;
    if head[0] != 0x45 || head[9] != TCP || folded(sum(head)) != 0xffff {
        return None;
    }
    let address = |[high, low]: [u8; 2]| {
        let mut address = [0; 16];
        address[0] = 0xfd;
        [address[14], address[15]] = [high, low];
        address
    };
    let mut new = [0; V6];
    new[0] = 0x60 | head[1] >> 4;
    new[1] = head[1] << 4;
    new[4..6].copy_from_slice(&(rest.len() as u16).to_be_bytes());
    (new[6], new[7]) = (TCP, head[8]);
    new[8..24].copy_from_slice(&address([head[14], head[15]]));
    new[24..].copy_from_slice(&address([head[18], head[19]]));
    let len = V6 + rest.len();
    let out = out.get_mut(..len)?;
    out[..V6].copy_from_slice(&new);
    out[V6..].copy_from_slice(rest);
    update_checksum(out, V6 + CHECKSUM, &head[12..V4], &new[8..]);
    Some(len)
}

/// Updates the checksum at `place` for addresses that change from `old` to `new` (RFC 1624, equation 3).
fn update_checksum(packet: &mut [u8], place: usize, old: &[u8], new: &[u8]) {
    let Some(field) = packet.get_mut(place..place + 2) else {
        return;
    };
    let before = u32::from(!u16::from_be_bytes([field[0], field[1]]));
    // The complement of each word that goes, without touching it: 0xffff - word.
    let gone = 0xffff * (old.len() / 2) as u32 - sum(old);
    let after = folded(before + gone + sum(new));
    field.copy_from_slice(&(!after).to_be_bytes());
}

/// The sum of the 16-bit words of `octets`; an odd last octet is the high one of its word.
fn sum(octets: &[u8]) -> u32 {
    let (pairs, rest) = octets.as_chunks::<2>();
    let mut sum = 0;
    for pair in pairs {
        sum += u32::from(u16::from_be_bytes(*pair));
    }
    for last in rest {
        sum += u32::from(*last) << 8;
    }
    sum
}

/// The ones' complement sum (RFC 1071).
fn folded(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A TCP/IPv6 packet between two hosts with a valid checksum.
    fn packet(payload: usize) -> Vec<u8> {
        let mut packet = vec![0; V6 + 32 + payload];
        (packet[0], packet[1]) = (0x60, 0x20);
        let upper = (32 + payload) as u16;
        packet[4..6].copy_from_slice(&upper.to_be_bytes());
        (packet[6], packet[7]) = (TCP, 64);
        (packet[8], packet[23]) = (0xfd, 1);
        (packet[24], packet[38], packet[39]) = (0xfd, 1, 2);
        packet[V6 + 12] = 8 << 4;
        for (at, octet) in packet[V6 + 32..].iter_mut().enumerate() {
            *octet = at as u8;
        }
        let pseudo = u32::from(upper) + u32::from(TCP);
        let sum = !folded(pseudo + sum(&packet[8..]));
        packet[V6 + CHECKSUM..][..2].copy_from_slice(&sum.to_be_bytes());
        packet
    }

    /// A round trip changes nothing, and the IPv4 packet has valid checksums.
    #[test]
    fn translation_round_trips_with_valid_checksums() {
        for payload in [0, 1, 1448] {
            let long = packet(payload);
            let mut short = long.clone();
            let len = shorten(&mut short, long.len());
            assert_eq!(len, 20 + 32 + payload);
            assert_eq!((short[0], short[1], short[8]), (0x45, 2, 64));
            assert_eq!(short[12..20], [10, 0, 0, 1, 10, 0, 1, 2]);
            assert_eq!(destination(&short), Some(0x102));
            let pseudo = (len - V4) as u32 + u32::from(TCP);
            assert_eq!(folded(pseudo + sum(&short[12..len])), 0xffff);
            let mut back = [0; 2000];
            assert_eq!(lengthen(&short[..len], &mut back), Some(long.len()));
            assert_eq!(back[..long.len()], long);
            short[2] ^= 1;
            assert_eq!(lengthen(&short[..len], &mut back), None);
        }
    }
}
