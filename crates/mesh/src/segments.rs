//! TCP segments, and datagrams of UDP, that pass the TUN device together: one system call for many packets.
//!
//! The host hands segments of one connection over as a single packet (TSO), and what a program sent as one with UDP_SEGMENT (USO).
//! They are [`cut`] here, since the mesh sends and repeats packets one by one. Packets for the host that follow each other are
//! [joined](Joiner) again (GRO), if their headers and checksums allow, so that the host sees the octets that the other host sent.
//! All lengths are checked.

use chappe_sys::tun::{DATAGRAMS, Joined, Joins};
use chappe_wire::checksum;

/// Flags of TCP (RFC 9293, 3.1; RFC 3168).
const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const ACK: u8 = 0x10;
const CWR: u8 = 0x80;
/// IPv4's flag that forbids fragments: such packets need no identification of their own (RFC 6864, 4.1).
const DONT_FRAGMENT: u8 = 0x40;
/// The protocol numbers of TCP and UDP.
const TCP: u8 = 6;
const UDP: u8 = 17;
/// The largest packet that IPv4's length field can say.
const LONGEST: usize = 65_535;
/// Octets of the least headers of IPv4, IPv6 and TCP.
const V4: usize = 20;
const V6: usize = 40;
const TCP_LEAST: usize = 20;
const UDP_HEADER: usize = 8;
/// Most datagrams that become one: no more than Linux joins by itself (net/ipv4/udp_offload.c, UDP_GRO_CNT_MAX).
const DATAGRAMS_MAX: usize = 64;
/// [`Joined::kind`] of TCP over IPv4 and IPv6 (VIRTIO_NET_HDR_GSO_TCPV4 and TCPV6).
const JOINED_V4: u8 = 1;
const JOINED_V6: u8 = 4;

/// Where the parts of a packet of TCP or UDP begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    six: bool,
    udp: bool,
    /// Octets of the IP header, and of IP and TCP or UDP headers together.
    ip: usize,
    head: usize,
}

impl Layout {
    /// `None` unless the packet is one whole TCP segment, or datagram of UDP, with IPv4 or plain IPv6.
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
        let udp = protocol == UDP;
        let next = match protocol {
            TCP => usize::from(packet.get(ip + 12)? >> 4) * 4,
            UDP => UDP_HEADER,
            _ => return None,
        };
        let head = ip + next;
        let long = match udp {
            true => number(packet, ip + 4) == u16::try_from(len.checked_sub(ip)?).ok(),
            false => next >= TCP_LEAST,
        };
        let whole = ip >= V4 && long && len == packet.len() && head <= len;
        (whole && !part).then_some(Layout { six, udp, ip, head })
    }

    /// Where the checksum of TCP or UDP is.
    fn check(self) -> usize {
        self.ip + if self.udp { 6 } else { 16 }
    }

    /// How packets of this layout are joined.
    fn kind(self) -> u8 {
        match (self.udp, self.six) {
            (true, _) => DATAGRAMS,
            (false, true) => JOINED_V6,
            (false, false) => JOINED_V4,
        }
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
        let protocol = if self.udp { UDP } else { TCP };
        checksum::fold([u64::from(ends), (len - self.ip) as u64, u64::from(protocol)])
    }

    /// Whether there is a checksum of TCP or UDP, and it is right. In UDP zero means none (RFC 768).
    fn is_right(self, packet: &[u8]) -> bool {
        if self.udp && number(packet, self.check()) == Some(0) {
            return false;
        }
        let segment = checksum::sum(packet.get(self.ip..).unwrap_or_default());
        checksum::fold([segment, self.pseudo(packet, packet.len())]) == 0xffff
    }

    /// Writes lengths and IPv4's checksum for a packet of `len` octets.
    fn set_len(self, packet: &mut [u8], len: usize) {
        if self.udp {
            set(packet, self.ip + 4, (len - self.ip) as u16);
        }
        if self.six {
            return set(packet, 4, (len - V6) as u16);
        }
        set(packet, 2, len as u16);
        set(packet, 10, 0);
        let sum = checksum::sum(packet.get(..self.ip).unwrap_or_default());
        set(packet, 10, !sum);
    }
}

impl Layout {
    /// Makes the header of a whole one that of a segment behind so many octets: number `place` of `count`.
    fn set_place(self, packet: &mut [u8], behind: u32, (place, count): (usize, usize)) {
        let (sequence, flags) = (
            self.sequence(packet).wrapping_add(behind),
            self.flags(packet),
        );
        if let Some(to) = packet.get_mut(self.ip + 4..self.ip + 8) {
            to.copy_from_slice(&sequence.to_be_bytes());
        }
        // The end is in the last segment, and what answers a mark in the first (RFC 3168, 6.1.2).
        let ends = if place + 1 < count { !(FIN | PSH) } else { !0 };
        let answers = if place > 0 { !CWR } else { !0 };
        if let Some(to) = packet.get_mut(self.ip + 13) {
            *to = flags & ends & answers;
        }
    }

    /// Writes the checksum of TCP or UDP.
    fn complete(self, packet: &mut [u8]) {
        set(packet, self.check(), 0);
        let sum = checksum::sum(packet.get(self.ip..).unwrap_or_default());
        let pseudo = self.pseudo(packet, packet.len());
        // Zero would mean none in UDP; it is the same number as 0xffff.
        let check = match !checksum::fold([sum, pseudo]) {
            0 if self.udp => 0xffff,
            check => check,
        };
        set(packet, self.check(), check);
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
    let fits = |layout: &Layout| segment > 0 && layout.udp == (joined.kind == DATAGRAMS);
    let Some(layout) = Layout::of(packet).filter(fits) else {
        return 0;
    };
    let Some((head, payload)) = packet.split_at_checked(layout.head) else {
        return 0;
    };
    let count = payload.len().div_ceil(segment);
    for (place, part) in payload.chunks(segment).enumerate() {
        room.clear();
        room.extend_from_slice(head);
        room.extend_from_slice(part);
        if !layout.six {
            let identification = number(packet, 4).unwrap_or(0);
            set(room, 4, identification.wrapping_add(place as u16));
        }
        if !layout.udp {
            layout.set_place(room, (place * segment) as u32, (place, count));
        }
        let len = room.len();
        layout.set_len(room, len);
        layout.complete(room);
        each(room);
    }
    count
}

/// Packets for the host: segments of a connection, or datagrams of a flow, that follow each other become one.
#[derive(Debug)]
pub struct Joiner {
    /// What the host takes joined.
    joins: Joins,
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
    /// The sequence number of TCP.
    sequence: u32,
}

impl Joiner {
    /// A joiner for a host that takes this joined.
    pub fn new(joins: Joins) -> Joiner {
        Joiner {
            joins,
            packet: Vec::new(),
            count: 0,
            next: None,
            joined: None,
        }
    }

    /// The host refuses packets joined like this one: no more are.
    pub fn without(&mut self, joined: Joined) {
        match joined.kind == DATAGRAMS {
            true => self.joins.datagrams = false,
            false => self.joins.segments = false,
        }
    }

    /// Takes a packet behind those that it has. False, and nothing is taken, if the packet does not continue them: give those away
    /// first ([`take`](Self::take)). A joiner that has none takes any packet.
    pub fn push(&mut self, packet: &[u8]) -> bool {
        if self.count == 0 {
            self.packet.clear();
            self.packet.extend_from_slice(packet);
            let next = Next::after(packet).filter(|next| match next.layout.udp {
                true => self.joins.datagrams,
                false => self.joins.segments,
            });
            (self.count, self.next, self.joined) = (1, next, None);
            return true;
        }
        let Some(next) = self.next.filter(|next| self.is_continued(next, packet)) else {
            return false;
        };
        let layout = next.layout;
        let payload = packet.get(layout.head..).unwrap_or_default();
        self.packet.extend_from_slice(payload);
        self.count += 1;
        let mut ends = payload.len() < next.segment;
        if layout.udp {
            ends |= self.count == DATAGRAMS_MAX;
        } else {
            let pushed = layout.flags(packet) & PSH;
            if let Some(flags) = self.packet.get_mut(layout.ip + 13) {
                *flags |= pushed;
            }
            ends |= pushed != 0;
        }
        self.next = (!ends).then_some(Next {
            sequence: next.sequence.wrapping_add(payload.len() as u32),
            ..next
        });
        let (kind, segment) = (layout.kind(), next.segment as u16);
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
            set(&mut self.packet, layout.check(), pseudo);
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
            && next.is_next(packet)
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
        let plain = segment > 0 && atomic && (layout.udp || layout.flags(packet) == ACK);
        plain.then_some(Next {
            layout,
            segment,
            sequence: layout.sequence(packet).wrapping_add(segment as u32),
        })
    }

    /// Whether a packet of this layout follows. Datagrams have no order of their own: they follow as they came.
    fn is_next(&self, packet: &[u8]) -> bool {
        let layout = self.layout;
        layout.udp || layout.sequence(packet) == self.sequence && layout.flags(packet) & !PSH == ACK
    }
}

impl Layout {
    /// Whether the headers of two packets of this layout say the same, but for lengths, identification, sequence number, PSH and
    /// checksums.
    fn agree(self, one: &[u8], other: &[u8]) -> bool {
        let differs: [std::ops::Range<usize>; 2] = match self.six {
            true => [4..6, 4..6],
            false => [2..6, 10..12],
        };
        let ip = self.ip;
        let may = |at: &usize| {
            let next = match self.udp {
                // Length and checksum.
                true => (ip + 4..ip + 8).contains(at),
                false => {
                    (ip + 4..ip + 8).contains(at)
                        || *at == ip + 13
                        || (ip + 16..ip + 18).contains(at)
                }
            };
            next || differs.iter().any(|range| range.contains(at))
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
    const ALL: Joins = Joins {
        segments: true,
        datagrams: true,
    };

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
            udp: false,
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
        let (mut joiner, mut all) = (Joiner::new(ALL), Vec::new());
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

    /// A datagram of UDP with right checksums.
    fn datagram(six: bool, payload: &[u8]) -> Vec<u8> {
        let ip = if six { V6 } else { V4 };
        let mut packet = vec![0; ip + UDP_HEADER];
        match six {
            true => (packet[0], packet[6], packet[7], packet[39]) = (0x60, UDP, 64, 2),
            false => {
                (packet[0], packet[6], packet[8], packet[9]) = (0x45, DONT_FRAGMENT, 64, UDP);
                packet[12..20].copy_from_slice(&[10, 77, 0, 1, 10, 77, 0, 2]);
            }
        }
        packet[ip + 1] = 80;
        packet.extend_from_slice(payload);
        let head = ip + UDP_HEADER;
        let layout = Layout {
            six,
            udp: true,
            ip,
            head,
        };
        let len = packet.len();
        layout.set_len(&mut packet, len);
        layout.complete(&mut packet);
        assert!(Layout::of(&packet) == Some(layout) && layout.is_right(&packet));
        packet
    }

    /// Goal: datagrams of one length reach the other host as they were, with a shorter last one, and no more than 64 at once. Method: they
    /// are joined and cut again.
    #[test]
    fn datagrams_are_joined_and_cut_as_they_were() {
        let mut stream = Seed(4).stream(Purpose::Trial(0));
        for six in [false, true] {
            let lens = [1200, 1200, 1200, 7, 500, 501, 501];
            let packets = lens.map(|len| datagram(six, &payload(&mut stream, len)));
            let all = joins(&packets);
            let counts = all.iter().map(|(packet, joined)| match joined {
                Some(joined) => cuts(packet, *joined),
                None => vec![packet.clone()],
            });
            let counts: Vec<_> = counts.collect();
            assert_eq!(
                counts.iter().map(Vec::len).collect::<Vec<_>>(),
                [4, 1, 2],
                "one that is longer begins anew"
            );
            let mut again = counts.concat();
            if !six {
                // Identifications of datagrams that are never cut mean nothing (RFC 6864).
                again.iter_mut().for_each(|packet| {
                    set(packet, 4, 0);
                    let len = packet.len();
                    Layout::of(packet).unwrap().set_len(packet, len);
                });
            }
            assert_eq!(again, packets);
            let many = vec![datagram(six, &[9; 100]); 65];
            let sizes = joins(&many).into_iter().map(|(_, joined)| joined);
            assert_eq!(
                sizes.map(|joined| joined.is_some()).collect::<Vec<_>>(),
                [true, false]
            );
        }
    }

    /// Goal: a datagram stays alone if it is marked, of another flow, damaged, without a checksum or cut by a router, or if the host refused joined ones.
    #[test]
    fn datagrams_that_differ_stay_alone() {
        let first = datagram(false, &[9; 100]);
        let alone = |second: &[u8]| {
            let all = joins(&[first.clone(), second.to_vec()]);
            assert_eq!(all, [(first.clone(), None), (second.to_vec(), None)]);
        };
        // A mark of congestion, another port, a damaged octet, a flag that allows fragments.
        for (at, value, right) in [(1, 3, true), (V4 + 1, 7, true), (60, 8, false)] {
            let mut second = first.clone();
            second[at] = value;
            let layout = Layout::of(&second).unwrap();
            let len = second.len();
            layout.set_len(&mut second, len);
            if right {
                layout.complete(&mut second);
            }
            alone(&second);
        }
        let mut unsummed = first.clone();
        set(&mut unsummed, V4 + 6, 0);
        alone(&unsummed);
        let mut joiner = Joiner::new(ALL);
        let joined = Joined {
            kind: DATAGRAMS,
            segment: 100,
        };
        joiner.without(joined);
        assert!(joiner.push(&first) && !joiner.push(&first));
        // Joined ones that are said to be segments are not what they are said to be.
        let kind = JOINED_V4;
        assert!(cuts(&first, Joined { kind, ..joined }).is_empty());
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
        let mut joiner = Joiner::new(ALL);
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
