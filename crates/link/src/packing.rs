//! Packing of host packets into containers, and unpacking.
//!
//! A container is the payload of one frame of the link. It holds packets of one flow, and parts of packets at its ends, so
//! that the containers of a busy flow are full whatever sizes its packets have. If the link delivers all packets in the
//! order of their flow, TCP headers are compressed first ([`header`]).
//!
//! ```text
//! container  items, each behind two octets: kind (3 bits) and length (13 bits)
//! kind       4: a part of a packet; with 0: plain, 1: later headers refer to this one, 2: header short, 3: joined segments
//! part       number of the packet (1), place of the part (7 bits) and whether it is the last (1 bit), octets
//! ```

mod header;
mod queue;

use std::borrow::Cow;

use chappe_sys::tun::Joined;
use header::Headers;
pub(crate) use queue::{Limit, Queues};

/// Octets of kind and length before each item.
const ITEM: usize = 2;
/// Octets of packet number and place before the octets of a part.
const PART: usize = 2;
/// A smaller part is not worth its header, so the packet waits for the next container.
const PART_LEAST: usize = 32;
/// Longest packet, as in jumbo frames, and longest packet of coalesced segments, the limit of IP.
pub(crate) const PACKET_MAX: usize = 9000;
pub(crate) const JOINED_MAX: usize = 65_535;
/// Longest container: the length of an item has 13 bits.
pub(crate) const CONTAINER_MAX: usize = 8000;
/// Largest number of parts of a packet: their place has 7 bits.
const PARTS: usize = 128;
/// Largest number of packets under reassembly.
const PARTIAL: usize = 16;

/// Longest packet that can be carried in containers of at least `container` octets, including the head of a joined one.
/// The first part does not count, since it may get only the room that other packets leave.
pub(crate) fn longest(container: usize) -> usize {
    container.saturating_sub(ITEM + PART) * (PARTS - 1)
}

/// Fills containers with packets of one direction.
#[derive(Clone, Debug)]
pub(crate) struct Packer {
    headers: Headers,
    number: u8,
    short: Vec<u8>,
}

/// A packet of which the first parts have left.
#[derive(Clone, Debug)]
pub(crate) struct Rest {
    octets: Vec<u8>,
    at: usize,
    kind: Kind,
    number: u8,
    place: u8,
}

/// How a packet's header is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Whole, and no later header refers to it.
    Plain,
    /// Whole, and later headers refer to it.
    Learned,
    /// Compressed relative to the header before it.
    Short,
    /// Coalesced segments: one of the other kinds (1), `gso_type` of the segments (1) and their length (2), then the packet
    /// as the other kind says.
    Joined,
}

impl Kind {
    const ALL: [Kind; 4] = [Kind::Plain, Kind::Learned, Kind::Short, Kind::Joined];
}

/// Octets of the head of a joined packet.
pub(crate) const JOINED: usize = 4;

const PART_BIT: u16 = 4;

/// A container that is being filled.
pub(crate) struct Container<'a> {
    octets: &'a mut [u8],
    len: usize,
}

impl<'a> Container<'a> {
    pub fn new(octets: &'a mut [u8]) -> Container<'a> {
        Container { octets, len: 0 }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    fn room(&self) -> usize {
        self.octets.len() - self.len
    }

    fn put(&mut self, octets: &[u8]) {
        if let Some(to) = self.octets.get_mut(self.len..self.len + octets.len()) {
            to.copy_from_slice(octets);
            self.len += octets.len();
        }
    }

    fn item(&mut self, part: u16, kind: Kind, len: usize) {
        self.put(&((part | kind as u16) << 13 | len as u16 & 0x1fff).to_be_bytes());
    }
}

impl Packer {
    pub fn new(flows: usize) -> Packer {
        Packer {
            headers: Headers::new(flows),
            number: 0,
            short: Vec::new(),
        }
    }

    /// Forgets all headers: the next packet of each flow goes with a whole one.
    pub fn forget(&mut self) {
        self.headers.clear();
    }

    /// Adds a packet to a container. With `sure` the link delivers all packets in order, so headers may be compressed and
    /// packets split. Returns the packet if it does not go into this container, or the rest of it.
    pub fn add(
        &mut self,
        flow: usize,
        (packet, joined): (Vec<u8>, Option<Joined>),
        sure: bool,
        into: &mut Container<'_>,
    ) -> Added {
        // Where packets may be lost, a split one is lost with either part: split only what is too long for any container.
        let least = if sure {
            ITEM + PART + PART_LEAST
        } else {
            ITEM + packet.len()
        };
        if into.len > 0 && into.room() < least.min(ITEM + packet.len()) {
            return Added::Not(packet);
        }
        let kind = match sure {
            false => Kind::Plain,
            true if self.headers.shorten(flow, &packet, &mut self.short) => Kind::Short,
            true => Kind::Learned,
        };
        let octets: &[u8] = match kind {
            Kind::Short => &self.short,
            _ => &packet,
        };
        let (kind, octets) = match joined {
            None => (kind, Cow::Borrowed(octets)),
            Some(joined) => {
                let [high, low] = joined.segment.to_be_bytes();
                let head = [kind as u8, joined.kind, high, low];
                (Kind::Joined, Cow::Owned([&head, octets].concat()))
            }
        };
        if ITEM + octets.len() <= into.room() {
            into.item(0, kind, octets.len());
            into.put(&octets);
            return Added::Whole;
        }
        self.number = self.number.wrapping_add(1);
        let mut rest = Rest {
            octets: octets.into_owned(),
            at: 0,
            kind,
            number: self.number,
            place: 0,
        };
        rest.continue_in(into);
        Added::Part(rest)
    }
}

/// The result of adding a packet.
pub(crate) enum Added {
    Whole,
    Part(Rest),
    Not(Vec<u8>),
}

impl Rest {
    /// Adds the next part to a container; returns whether it was the last.
    pub fn continue_in(&mut self, into: &mut Container<'_>) -> bool {
        let left = self.octets.get(self.at..).unwrap_or_default();
        let len = into.room().saturating_sub(ITEM + PART).min(left.len());
        let last = len == left.len();
        if len == 0 {
            return last;
        }
        into.item(PART_BIT, self.kind, PART + len);
        into.put(&[self.number, self.place << 1 | u8::from(last)]);
        into.put(left.get(..len).unwrap_or_default());
        self.at += len;
        self.place = self.place.wrapping_add(1) & 0x7f;
        last
    }

    pub fn len(&self) -> usize {
        self.octets.len() - self.at
    }
}

/// Unpacks the containers of one direction.
#[derive(Clone, Debug)]
pub(crate) struct Unpacker {
    headers: Headers,
    container: Vec<u8>,
    at: usize,
    flow: usize,
    /// Packets under reassembly, oldest first.
    partial: Vec<Partial>,
    /// Packets whose short header did not follow the last header, and malformed containers.
    pub unreadable: u64,
    /// Packets given up because a part is missing.
    pub in_pieces: u64,
}

#[derive(Clone, Debug)]
struct Partial {
    flow: usize,
    number: u8,
    kind: Kind,
    next: u8,
    octets: Vec<u8>,
}

impl Unpacker {
    pub fn new(flows: usize) -> Unpacker {
        Unpacker {
            headers: Headers::new(flows),
            container: Vec::new(),
            at: 0,
            flow: 0,
            partial: Vec::new(),
            unreadable: 0,
            in_pieces: 0,
        }
    }

    /// Forgets headers and parts: the other end has restarted.
    pub fn forget(&mut self) {
        self.headers.clear();
        self.in_pieces += self.partial.len() as u64;
        self.partial.clear();
    }

    /// Opens the next container. Drain [`next`](Self::next) before.
    pub fn open(&mut self, flow: u8, container: &[u8]) {
        self.container.clear();
        self.container.extend(container);
        (self.at, self.flow) = (0, flow.into());
    }

    /// Writes the next packet of the container to the front of `packet`; returns its length.
    pub fn next(&mut self, packet: &mut [u8]) -> Option<(usize, Option<Joined>)> {
        loop {
            let rest = self.container.get(self.at..)?;
            let (head, rest) = rest.split_first_chunk::<ITEM>()?;
            let head = u16::from_be_bytes(*head);
            let len = usize::from(head & 0x1fff);
            let kind = Kind::ALL.get(usize::from(head >> 13 & 3)).copied();
            let item = rest.get(..len).filter(|item| !item.is_empty());
            let (Some(item), Some(kind)) = (item, kind) else {
                self.at = self.container.len();
                self.unreadable += 1;
                return None;
            };
            self.at += ITEM + len;
            let (headers, flow) = (&mut self.headers, self.flow);
            let taken = if head >> 13 & PART_BIT == 0 {
                finish(headers, flow, kind, item, packet)
            } else {
                match join(&mut self.partial, (flow, kind), item, &mut self.in_pieces) {
                    Some(whole) => finish(headers, flow, kind, &whole, packet),
                    None => continue,
                }
            };
            match taken {
                Some(taken) => return Some(taken),
                None => self.unreadable += 1,
            }
        }
    }
}

fn finish(
    headers: &mut Headers,
    flow: usize,
    kind: Kind,
    item: &[u8],
    packet: &mut [u8],
) -> Option<(usize, Option<Joined>)> {
    match kind {
        Kind::Joined => {
            let (&[inner, kind, high, low], rest) = item.split_first_chunk::<JOINED>()?;
            let segment = u16::from_be_bytes([high, low]);
            let inner = Kind::ALL.get(usize::from(inner)).copied();
            let inner = inner.filter(|inner| *inner != Kind::Joined)?;
            let (len, _) = finish(headers, flow, inner, rest, packet)?;
            return Some((len, Some(Joined { kind, segment })));
        }
        Kind::Short => return headers.restore(flow, item, packet).map(|len| (len, None)),
        Kind::Learned => headers.see(flow, item),
        Kind::Plain => {}
    }
    packet.get_mut(..item.len())?.copy_from_slice(item);
    Some((item.len(), None))
}

/// Adds a part to its packet; returns the packet with the last one.
fn join(
    partial: &mut Vec<Partial>,
    (flow, kind): (usize, Kind),
    item: &[u8],
    in_pieces: &mut u64,
) -> Option<Vec<u8>> {
    let (&[number, place], octets) = item.split_first_chunk::<PART>()?;
    let (place, last) = (place >> 1, place & 1 != 0);
    let known = partial
        .iter()
        .position(|one| (one.flow, one.number) == (flow, number));
    let at = match known {
        Some(at) if place > 0 => at,
        _ if place > 0 => {
            *in_pieces += u64::from(last);
            return None;
        }
        known => {
            if let Some(at) = known.or((partial.len() >= PARTIAL).then_some(0)) {
                partial.remove(at);
                *in_pieces += 1;
            }
            partial.push(Partial {
                flow,
                number,
                kind,
                next: 0,
                octets: Vec::new(),
            });
            partial.len() - 1
        }
    };
    let one = partial.get_mut(at)?;
    if one.next != place
        || one.kind != kind
        || one.octets.len() + octets.len() > JOINED_MAX + JOINED
    {
        partial.remove(at);
        *in_pieces += 1;
        return None;
    }
    one.next = place.wrapping_add(1);
    one.octets.extend(octets);
    last.then(|| partial.remove(at).octets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_core::{Duration, Instant, Purpose, Seed};

    fn limit(octets: usize) -> Limit {
        let span = Duration::from_millis(100);
        Limit { octets, span }
    }

    /// Packs everything in the queues and unpacks it at once.
    fn carry(
        queues: &mut Queues,
        packer: &mut Packer,
        far: &mut Unpacker,
        sure: bool,
    ) -> Vec<Vec<u8>> {
        let (mut octets, mut packet, mut out) = ([0; 500], [0; PACKET_MAX], Vec::new());
        loop {
            let mut container = Container::new(&mut octets);
            let Some((flow, _)) = queues.fill(1, packer, sure, &mut container) else {
                return out;
            };
            let len = container.len();
            assert!(len > 0);
            far.open(flow as u8, &octets[..len]);
            while let Some((len, _)) = far.next(&mut packet) {
                out.push(packet[..len].to_vec());
            }
        }
    }

    /// Goal: packets of any size come out once, unchanged, in the order of their flow. Method: some hundred packets of
    /// random lengths in three flows, in containers of 500 octets.
    #[test]
    fn packets_of_any_size_round_trip() {
        for sure in [true, false] {
            let mut random = Seed(3).stream(Purpose::Trial(0));
            let (mut packer, mut far) = (Packer::new(64), Unpacker::new(64));
            let mut queues = Queues::new();
            for i in 0..300u32 {
                let len = 8 + if i % 3 == 0 {
                    random.below(3000)
                } else {
                    random.below(200)
                };
                let mut packet = vec![i as u8; len as usize];
                packet[0] = (i % 3) as u8;
                packet[1..5].copy_from_slice(&i.to_be_bytes());
                queues.put(
                    Instant::ZERO,
                    (1, (i % 3) as usize),
                    (&packet, None),
                    limit(usize::MAX),
                );
            }
            let out = carry(&mut queues, &mut packer, &mut far, sure);
            assert_eq!((out.len(), queues.packets()), (300, 0));
            for flow in 0..3 {
                let numbers = out.iter().filter(|packet| packet[0] == flow);
                let numbers: Vec<u32> = numbers
                    .map(|packet| u32::from_be_bytes(*packet[1..5].first_chunk().unwrap()))
                    .collect();
                assert!(numbers.is_sorted() && numbers.len() == 100);
            }
            assert!(
                out.iter()
                    .all(|packet| packet[5..].iter().all(|&octet| octet == packet[4]))
            );
            assert_eq!((far.unreadable, far.in_pieces), (0, 0));
        }
    }

    /// A lost container loses its own packets and those it had parts of, and the loss is counted.
    #[test]
    fn a_lost_container_loses_only_its_packets() {
        let (mut packer, mut far) = (Packer::new(64), Unpacker::new(64));
        let mut queues = Queues::new();
        for i in 0..10u8 {
            queues.put(Instant::ZERO, (1, 0), (&[i; 400], None), limit(0));
        }
        let (mut octets, mut packet, mut came) = ([0; 500], [0; PACKET_MAX], Vec::new());
        for round in 0.. {
            let mut container = Container::new(&mut octets);
            let Some((flow, _)) = queues.fill(1, &mut packer, true, &mut container) else {
                break;
            };
            let len = container.len();
            if round == 2 {
                continue;
            }
            far.open(flow as u8, &octets[..len]);
            while let Some((len, _)) = far.next(&mut packet) {
                assert_eq!(len, 400);
                came.push(packet[0]);
            }
        }
        assert_eq!((came, far.in_pieces), (vec![0, 1, 4, 5, 6, 7, 8, 9], 1));
    }

    /// Coalesced segments arrive coalesced, with their length, whatever packets are before and behind them.
    #[test]
    fn joined_segments_stay_joined() {
        let joined = Joined {
            kind: 1,
            segment: 1448,
        };
        let (mut packer, mut far, mut queues) = (Packer::new(64), Unpacker::new(64), Queues::new());
        let packets = [
            (60, None),
            (40_000, Some(joined)),
            (700, None),
            (3_000, Some(joined)),
        ];
        for (len, joined) in packets {
            queues.put(
                Instant::ZERO,
                (1, 7),
                (&vec![len as u8; len], joined),
                limit(usize::MAX),
            );
        }
        let (mut octets, mut packet, mut out) = ([0; 1400], vec![0; JOINED_MAX], Vec::new());
        loop {
            let mut container = Container::new(&mut octets);
            let Some((flow, _)) = queues.fill(1, &mut packer, true, &mut container) else {
                break;
            };
            let len = container.len();
            far.open(flow as u8, &octets[..len]);
            while let Some((len, joined)) = far.next(&mut packet) {
                assert!(packet[..len].iter().all(|&octet| octet == len as u8));
                out.push((len, joined));
            }
        }
        assert_eq!(out, packets);
        assert_eq!((queues.packets(), far.unreadable), (0, 0));
    }

    /// A flow that fills the link does not delay another one, and loses its own packets when its queue is too long.
    #[test]
    fn flows_take_turns_and_the_longest_loses_packets() {
        let (mut packer, mut far) = (Packer::new(64), Unpacker::new(64));
        let mut queues = Queues::new();
        for _ in 0..450 {
            queues.put(Instant::ZERO, (1, 5), (&[5; 450], None), limit(0));
        }
        queues.put(Instant::ZERO, (1, 6), (&[6; 60], None), limit(0));
        assert!(queues.dropped > 50);
        let out = carry(&mut queues, &mut packer, &mut far, true);
        let place = out.iter().position(|packet| packet[0] == 6).unwrap();
        assert!(
            place <= 4,
            "a frame of the other flow goes first at most: {place}"
        );
        assert_eq!(out.len() as u64 + queues.dropped, 451);
    }

    /// A flow that has more queued than its share loses one packet, and another one only once it can have noticed: what it repeats is not
    /// dropped as well. A flow with little queued loses none.
    #[test]
    fn a_flow_that_queues_too_much_is_told_once_in_a_while() {
        let mut queues = Queues::new();
        let mut put = |ms: u64, flow: usize| {
            let before = queues.dropped;
            let now = Instant::from_millis(ms);
            queues.put(now, (1, flow), (&[7; 1000], None), limit(200_000));
            queues.dropped - before
        };
        let filled: u64 = (0..200).map(|_| put(1, 5)).sum();
        assert_eq!(filled, 0);
        // The first one at 3 ms, the others 100 and 71 ms later.
        let dropped: u64 = (2..=173).map(|ms| put(ms, 5)).sum();
        assert_eq!((dropped, put(174, 5)), (2, 1));
        assert_eq!(put(500, 6), 0);
    }

    #[test]
    fn random_containers_never_panic() {
        let mut random = Seed(8).stream(Purpose::Trial(0));
        let (mut far, mut octets, mut packet) = (Unpacker::new(64), [0; 60], [0; PACKET_MAX]);
        for _ in 0..20_000 {
            random.fill(&mut octets);
            (octets[0], octets[1]) = (octets[0] & 0xe0, octets[1] & 0x1f);
            let len = random.below(61) as usize;
            far.open(octets[2] & 63, &octets[..len]);
            while far.next(&mut packet).is_some() {}
        }
    }
}
