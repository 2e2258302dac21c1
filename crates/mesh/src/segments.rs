//! TCP segments that pass the TUN device together: one system call for many packets.
//!
//! The host hands segments of one connection over as a single packet (TSO), which is [`cut`] here, since the mesh sends and
//! repeats packets one by one. Segments for the host that follow each other are [joined](Joiner) again (GRO), if their headers
//! and checksums allow, so that the host sees the octets that the other host sent. All lengths are checked.

use chappe_sys::tun::Joined;
use chappe_wire::checksum;

/// Flags of TCP (RFC 9293, 3.1; RFC 3168).
const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const ACK: u8 = 0x10;
const CWR: u8 = 0x80;
/// IPv4's flag that forbids fragments: such packets need no identification of their own (RFC 6864, 4.1).
const DONT_FRAGMENT: u8 = 0x40;
/// The protocol number of TCP.
const TCP: u8 = 6;
/// The largest packet that IPv4's length field can say.
const LONGEST: usize = 65_535;
/// Octets of the least headers of IPv4, IPv6 and TCP.
const V4: usize = 20;
const V6: usize = 40;
const TCP_LEAST: usize = 20;
/// [`Joined::kind`] of TCP over IPv4 and IPv6 (VIRTIO_NET_HDR_GSO_TCPV4 and TCPV6).
const JOINED_V4: u8 = 1;
const JOINED_V6: u8 = 4;

/// Where the parts of a TCP packet begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    six: bool,
    /// Octets of the IP header, and of IP and TCP headers together.
    ip: usize,
    head: usize,
}

impl Layout {
    /// `None` unless the packet is one whole TCP segment with IPv4 or plain IPv6.
    fn of(packet: &[u8]) -> Option<Layout> {
        let six = match packet.first()? >> 4 {
            4 => false,
            6 => true,
            _ => return None,
        };
        let ip = match six {
            true => V6,
            false => usize::from(packet.first()? & 15) * 4,
        };
        let (protocol, len) = match six {
            true => (*packet.get(6)?, V6 + usize::from(number(packet, 4)?)),
            false => (*packet.get(9)?, usize::from(number(packet, 2)?)),
        };
        let part = !six && number(packet, 6)? & 0x3fff != 0;
        let tcp = usize::from(packet.get(ip + 12)? >> 4) * 4;
        let head = ip + tcp;
        let whole = ip >= V4 && tcp >= TCP_LEAST && len == packet.len() && head <= len;
        (protocol == TCP && whole && !part).then_some(Layout { six, ip, head })
    }

    fn sequence(self, packet: &[u8]) -> u32 {
        let octets = packet.get(self.ip + 4..).and_then(<[u8]>::first_chunk);
        u32::from_be_bytes(octets.copied().unwrap_or_default())
    }

    fn flags(self, packet: &[u8]) -> u8 {
        packet.get(self.ip + 13).copied().unwrap_or(0)
    }

    /// The sum of the pseudo header of a packet of `len` octets (RFC 9293, 3.1; RFC 8200, 8.1).
    fn pseudo(self, packet: &[u8], len: usize) -> u16 {
        let ends = match self.six {
            true => packet.get(8..V6),
            false => packet.get(12..V4),
        };
        let ends = checksum::sum(ends.unwrap_or_default());
        checksum::fold([u64::from(ends), (len - self.ip) as u64, u64::from(TCP)])
    }

    /// Whether the checksum of TCP is right.
    fn is_right(self, packet: &[u8]) -> bool {
        let segment = checksum::sum(packet.get(self.ip..).unwrap_or_default());
        checksum::fold([segment, self.pseudo(packet, packet.len())]) == 0xffff
    }

    /// Writes lengths and IPv4's checksum for a packet of `len` octets.
    fn set_len(self, packet: &mut [u8], len: usize) {
        if self.six {
            return set(packet, 4, (len - V6) as u16);
        }
        set(packet, 2, len as u16);
        set(packet, 10, 0);
        let sum = checksum::sum(packet.get(..self.ip).unwrap_or_default());
        set(packet, 10, !sum);
    }
}

fn number(packet: &[u8], at: usize) -> Option<u16> {
    let octets = packet.get(at..)?.first_chunk()?;
    Some(u16::from_be_bytes(*octets))
}

fn set(packet: &mut [u8], at: usize, value: u16) {
    if let Some(place) = packet.get_mut(at..at + 2) {
        place.copy_from_slice(&value.to_be_bytes());
    }
}

/// Gives each segment of a packet that the host has joined to `each`, as a packet of its own; `room` is overwritten. The number of
/// segments: none if the packet is not what it is said to be.
pub fn cut(
    packet: &[u8],
    joined: Joined,
    room: &mut Vec<u8>,
    mut each: impl FnMut(&[u8]),
) -> usize {
    let segment = usize::from(joined.segment);
    let Some(layout) = Layout::of(packet).filter(|_| segment > 0) else {
        return 0;
    };
    let Some((head, payload)) = packet.split_at_checked(layout.head) else {
        return 0;
    };
    let (sequence, flags) = (layout.sequence(packet), layout.flags(packet));
    let count = payload.len().div_ceil(segment);
    for (place, part) in payload.chunks(segment).enumerate() {
        room.clear();
        room.extend_from_slice(head);
        room.extend_from_slice(part);
        if !layout.six {
            let identification = number(packet, 4).unwrap_or(0);
            set(room, 4, identification.wrapping_add(place as u16));
        }
        let number = sequence.wrapping_add((place * segment) as u32);
        if let Some(to) = room.get_mut(layout.ip + 4..layout.ip + 8) {
            to.copy_from_slice(&number.to_be_bytes());
        }
        // The end is in the last segment, and what answers a mark in the first (RFC 3168, 6.1.2).
        let mut flags = flags;
        flags &= if place + 1 < count { !(FIN | PSH) } else { !0 };
        flags &= if place > 0 { !CWR } else { !0 };
        if let Some(to) = room.get_mut(layout.ip + 13) {
            *to = flags;
        }
        let len = room.len();
        layout.set_len(room, len);
        set(room, layout.ip + 16, 0);
        let sum = checksum::sum(room.get(layout.ip..).unwrap_or_default());
        let pseudo = layout.pseudo(room, len);
        set(room, layout.ip + 16, !checksum::fold([sum, pseudo]));
        each(room);
    }
    count
}

/// Packets for the host: segments of a connection that follow each other become one.
#[derive(Debug, Default)]
pub struct Joiner {
    packet: Vec<u8>,
    /// How many segments are in the packet.
    count: usize,
    /// What the next segment must be; `None` if none may follow.
    next: Option<Next>,
    /// How the packet is joined once it has two.
    joined: Option<(Layout, Joined)>,
}

/// What continues a packet.
#[derive(Clone, Copy, Debug)]
struct Next {
    layout: Layout,
    /// Octets of payload of each segment but the last.
    segment: usize,
    sequence: u32,
}

impl Joiner {
    /// Takes a packet behind those that it has. False, and nothing is taken, if the packet does not continue them: give those away
    /// first ([`take`](Self::take)). A joiner that has none takes any packet.
    pub fn push(&mut self, packet: &[u8]) -> bool {
        if self.count == 0 {
            self.packet.clear();
            self.packet.extend_from_slice(packet);
            (self.count, self.next, self.joined) = (1, Next::after(packet), None);
            return true;
        }
        let Some(next) = self.next.filter(|next| self.is_continued(next, packet)) else {
            return false;
        };
        let layout = next.layout;
        let payload = packet.get(layout.head..).unwrap_or_default();
        self.packet.extend_from_slice(payload);
        self.count += 1;
        let pushed = layout.flags(packet) & PSH;
        if let Some(flags) = self.packet.get_mut(layout.ip + 13) {
            *flags |= pushed;
        }
        let ends = pushed != 0 || payload.len() < next.segment;
        self.next = (!ends).then_some(Next {
            sequence: next.sequence.wrapping_add(payload.len() as u32),
            ..next
        });
        let kind = if layout.six { JOINED_V6 } else { JOINED_V4 };
        let segment = next.segment as u16;
        self.joined = Some((layout, Joined { kind, segment }));
        true
    }

    /// The packet so far, with how it was joined if it has several segments. The joiner has none then; `None` if it had none.
    pub fn take(&mut self) -> Option<(&[u8], Option<Joined>)> {
        if std::mem::take(&mut self.count) == 0 {
            return None;
        }
        let joined = self.joined.map(|(layout, joined)| {
            let len = self.packet.len();
            layout.set_len(&mut self.packet, len);
            // The host expects the sum of the pseudo header in the place of a checksum that is left to it.
            let pseudo = layout.pseudo(&self.packet, len);
            set(&mut self.packet, layout.ip + 16, pseudo);
            joined
        });
        Some((&self.packet, joined))
    }

    /// Whether a packet is the next segment: the same headers but for what differs from segment to segment, the next octets, and
    /// right checksums, since the host checks none of joined segments.
    fn is_continued(&self, next: &Next, packet: &[u8]) -> bool {
        let layout = next.layout;
        let len = packet.len();
        let fits = len > layout.head
            && len - layout.head <= next.segment
            && self.packet.len() + len - layout.head <= LONGEST;
        fits && Layout::of(packet) == Some(layout)
            && layout.sequence(packet) == next.sequence
            && layout.flags(packet) & !PSH == ACK
            && layout.agree(&self.packet, packet)
            && (self.count > 1 || layout.is_right(&self.packet))
            && layout.is_right(packet)
    }
}

impl Next {
    /// What continues a first segment: one with data, without a flag that ends or changes something.
    fn after(packet: &[u8]) -> Option<Next> {
        let layout = Layout::of(packet)?;
        let segment = packet.len() - layout.head;
        let atomic = layout.six || packet.get(6)? & DONT_FRAGMENT != 0;
        let plain = segment > 0 && layout.flags(packet) == ACK && atomic;
        plain.then_some(Next {
            layout,
            segment,
            sequence: layout.sequence(packet).wrapping_add(segment as u32),
        })
    }
}

impl Layout {
    /// Whether the headers of two packets of this layout say the same, but for length, identification, sequence number, PSH and
    /// checksums.
    fn agree(self, one: &[u8], other: &[u8]) -> bool {
        let differs: [std::ops::Range<usize>; 2] = match self.six {
            true => [4..6, 4..6],
            false => [2..6, 10..12],
        };
        let ip = self.ip;
        let may = |at: &usize| {
            differs.iter().any(|range| range.contains(at))
                || (ip + 4..ip + 8).contains(at)
                || *at == ip + 13
                || (ip + 16..ip + 18).contains(at)
        };
        let pairs = one.iter().zip(other).take(self.head).enumerate();
        pairs.into_iter().all(|(at, (a, b))| a == b || may(&at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_core::{Purpose, Seed, Stream};

    const V4_HEAD: usize = 52;

    /// A segment of a connection with timestamps, as the kernel makes it: from `sequence`, with right checksums.
    fn segment(six: bool, sequence: u32, flags: u8, payload: &[u8]) -> Vec<u8> {
        let ip = if six { V6 } else { V4 };
        let mut packet = vec![0; ip + 32];
        match six {
            true => {
                (packet[0], packet[6], packet[7]) = (0x60, TCP, 64);
                (packet[23], packet[39]) = (1, 2);
            }
            false => {
                (packet[0], packet[6], packet[8], packet[9]) = (0x45, DONT_FRAGMENT, 64, TCP);
                packet[12..20].copy_from_slice(&[10, 77, 0, 1, 10, 77, 0, 2]);
                // The identification counts packets, but here only begins somewhere.
                set(&mut packet, 4, 0xfffe);
            }
        }
        packet[ip + 3] = 80;
        packet[ip + 4..ip + 8].copy_from_slice(&sequence.to_be_bytes());
        (packet[ip + 12], packet[ip + 13], packet[ip + 24]) = (0x80, flags, 7);
        packet.extend_from_slice(payload);
        let layout = Layout {
            six,
            ip,
            head: ip + 32,
        };
        let len = packet.len();
        layout.set_len(&mut packet, len);
        let sum = checksum::sum(&packet[ip..]);
        let pseudo = layout.pseudo(&packet, len);
        set(&mut packet, ip + 16, !checksum::fold([sum, pseudo]));
        assert!(layout.is_right(&packet));
        packet
    }

    fn payload(stream: &mut Stream, len: usize) -> Vec<u8> {
        let mut octets = vec![0; len];
        stream.fill(&mut octets);
        octets
    }

    fn cuts(packet: &[u8], joined: Joined) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        cut(packet, joined, &mut Vec::new(), |one| {
            all.push(one.to_vec())
        });
        all
    }

    fn joins(packets: &[Vec<u8>]) -> Vec<(Vec<u8>, Option<Joined>)> {
        let (mut joiner, mut all) = (Joiner::default(), Vec::new());
        let mut give = |joiner: &mut Joiner| {
            if let Some((packet, joined)) = joiner.take() {
                all.push((packet.to_vec(), joined));
            }
        };
        for packet in packets {
            if !joiner.push(packet) {
                give(&mut joiner);
                assert!(joiner.push(packet));
            }
        }
        give(&mut joiner);
        all
    }

    /// Goal: what one host joins reaches the other octet by octet. Method: packets of any length are cut, joined, and cut again; each
    /// segment is a right packet, and their payloads are the first packet's.
    #[test]
    fn what_is_cut_and_joined_stays_the_same() {
        let mut stream = Seed(3).stream(Purpose::Trial(0));
        for (six, octets) in [(false, 5000), (true, 5000), (false, 1301), (true, 60_000)] {
            let data = payload(&mut stream, octets);
            // The sequence number passes its end.
            let first = u32::MAX - 2000;
            let whole = segment(six, first, ACK | PSH, &data);
            let kind = if six { JOINED_V6 } else { JOINED_V4 };
            let joined = Joined {
                kind,
                segment: 1300,
            };
            let packets = cuts(&whole, joined);
            assert_eq!(packets.len(), octets.div_ceil(1300));
            let mut sequence = first;
            for (place, packet) in packets.iter().enumerate() {
                let layout = Layout::of(packet).unwrap();
                assert!(layout.is_right(packet) && layout.sequence(packet) == sequence);
                assert!(six || checksum::sum(&packet[..V4]) == 0xffff);
                assert_eq!(layout.flags(packet) & PSH != 0, place + 1 == packets.len());
                sequence = sequence.wrapping_add((packet.len() - layout.head) as u32);
            }
            let again = joins(&packets);
            let [(one, Some(as_before))] = &again[..] else {
                panic!("{} packets", again.len());
            };
            assert_eq!(*as_before, joined);
            let layout = Layout::of(one).unwrap();
            assert_eq!(one[layout.head..], data[..]);
            assert_eq!(
                number(one, layout.ip + 16),
                Some(layout.pseudo(one, one.len()))
            );
            assert_eq!(cuts(one, joined), packets);
        }
    }

    /// Goal: only segments that follow each other are joined. Method: a second segment that differs in one thing stays alone.
    #[test]
    fn what_does_not_continue_stays_alone() {
        let data = [9; 1000];
        let first = segment(false, 500, ACK, &data);
        let follows = segment(false, 1500, ACK, &data);
        assert_eq!(joins(&[first.clone(), follows.clone()]).len(), 1);
        let alone = |second: Vec<u8>| {
            let all = joins(&[first.clone(), second.clone()]);
            assert_eq!(all, [(first.clone(), None), (second, None)]);
        };
        alone(segment(false, 1501, ACK, &data));
        alone(segment(true, 1500, ACK, &data));
        alone(segment(false, 1500, ACK, &[]));
        alone(segment(false, 1500, ACK, &[9; 1001]));
        alone(segment(false, 1500, ACK | FIN, &data));
        alone(segment(false, 1500, ACK | CWR, &data));
        // A wrong checksum, a mark of congestion, another timestamp, another port.
        for (at, value) in [(V4_HEAD, 8), (1, 3), (V4 + 27, 9), (V4 + 1, 7)] {
            let mut second = follows.clone();
            second[at] = value;
            if at == 1 || at == V4 + 27 || at == V4 + 1 {
                mend(&mut second);
            }
            alone(second);
        }
        // After PSH or a short segment nothing follows.
        let last = segment(false, 1500, ACK | PSH, &[9; 400]);
        let more = segment(false, 1900, ACK, &data);
        assert_eq!(joins(&[first.clone(), last, more]).len(), 2);
    }

    fn mend(packet: &mut [u8]) {
        let layout = Layout::of(packet).unwrap();
        let len = packet.len();
        layout.set_len(packet, len);
        set(packet, layout.ip + 16, 0);
        let sum = checksum::sum(&packet[layout.ip..]);
        let pseudo = layout.pseudo(packet, len);
        set(packet, layout.ip + 16, !checksum::fold([sum, pseudo]));
    }

    /// Goal: nothing outside makes it panic or grow. Method: noise, and right packets with one octet changed or cut short.
    #[test]
    fn noise_is_taken_as_it_is() {
        let mut stream = Seed(5).stream(Purpose::Trial(0));
        let mut joiner = Joiner::default();
        let right = segment(false, 1, ACK, &[1; 100]);
        for n in 0..20_000 {
            let mut packet = match n % 2 {
                0 => right.clone(),
                _ => payload(&mut stream, n % 90),
            };
            let at = stream.below(packet.len().max(1) as u64) as usize;
            if let Some(octet) = packet.get_mut(at) {
                *octet = stream.below(256) as u8;
            }
            packet.truncate(packet.len().saturating_sub(stream.below(3) as usize * 20));
            let kind = stream.below(256) as u8;
            let joined = Joined {
                kind,
                segment: stream.below(200) as u16,
            };
            cut(&packet, joined, &mut Vec::new(), |one| {
                assert!(one.len() <= packet.len());
            });
            if !joiner.push(&packet) {
                joiner.take().unwrap();
                assert!(joiner.push(&packet));
            }
            assert!(joiner.packet.len() <= LONGEST);
        }
    }
}
