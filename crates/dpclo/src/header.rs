//! The frames of a mesh.
//!
//! Numbers stand most significant octet first. A node is a 16-bit number, that of its link address. The first octet of
//! every frame is version (4 bits) and kind (4 bits).
//!
//! ```text
//! probe   1     epoch: another one means that the sender has started over
//!         2..4  number: counts the sender's probes
//!         4     how many counts follow         5   how many queues follow
//!               counts: node (2), probes of it received (1), of how many (1)
//!               queues: destination (2), length (2, units of 1/16 packet)
//!               anything after that is filling
//! routes  1     how many routes follow
//!               routes: destination (2), sequence number (2), metric (2, units of 1/256 ETX; ffff: none), next hop (2)
//! data    1     how often it may still be forwarded
//!         2..4  source       4..6 destination      6..8 flow
//!         8..12 number: counts the packets of this flow
//!        12..14 the sender's queue for this destination without this packet, 1/16 packet
//!        14     flags: 1 the sender is congested, 2 an empty packet that only moves a queue
//!        15     epoch of the source
//!               payload
//! prices  1     how many queues follow
//!         2..6  round      6..8 how far the sender is in it, units of 64 us
//!               queues as in a probe
//! pairing 1     1 a request, 2 the sender and this node are a pair
//!         2..8  as in prices
//!         8..10 node
//! ```
//!
//! The paper asks for a sequence number and counts in probes and for the queue length in data; the layout is ours. The next
//! hop in a route lets a neighbour see that a route leads back to itself.

use chappe_core::Duration;

use crate::baseline::matching::Message;

/// Octets of a probe before its counts.
pub const PROBE: usize = 6;
/// Octets of a count.
pub const COUNT: usize = 4;
/// Octets of a queue's length.
pub const QUEUE: usize = 4;
/// Most queues that a probe tells of: the longest ones.
pub const QUEUES_TOLD: usize = 8;
/// Octets of an update before its routes.
pub const ROUTES: usize = 2;
/// Octets of a route.
pub const ROUTE: usize = 8;
/// Octets of a data frame before its payload.
pub const DATA: usize = 16;
/// Octets of prices before the queues.
pub const PRICES: usize = 8;
/// Octets of a message that makes pairs.
pub const PAIRING: usize = 10;
/// The metric of a destination that cannot be reached.
pub const UNREACHABLE: u16 = u16::MAX;

const VERSION: u8 = 1;
const KIND_PROBE: u8 = 1;
const KIND_ROUTES: u8 = 2;
const KIND_DATA: u8 = 3;
const KIND_PRICES: u8 = 4;
const KIND_PAIRING: u8 = 5;
const REQUEST: u8 = 1;
const PAIRED: u8 = 2;
/// Unit of the time within a round.
const INTO_UNIT: Duration = Duration::from_micros(64);
const FLAG_CONGESTED: u8 = 1;
const FLAG_EMPTY: u8 = 2;

/// A queue length, in sixteenths of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Backlog(pub u16);

impl Backlog {
    /// From packets; saturates, and not-a-number is nothing.
    pub fn from_packets(packets: f64) -> Backlog {
        Backlog(libm::round(packets * 16.0) as u16)
    }

    /// In packets.
    pub fn packets(self) -> f64 {
        f64::from(self.0) / 16.0
    }
}

/// A path length, in 1/256 ETX; [`UNREACHABLE`] for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Metric(pub u16);

impl Metric {
    /// At the destination itself.
    pub const ZERO: Metric = Metric(0);
    /// No path.
    pub const NONE: Metric = Metric(UNREACHABLE);

    /// From ETX; a path longer than 255 is none.
    pub fn from_etx(etx: f64) -> Metric {
        Metric(libm::round(etx * 256.0) as u16)
    }

    /// In ETX; meaningless for [`Metric::NONE`].
    pub fn etx(self) -> f64 {
        f64::from(self.0) / 256.0
    }

    /// Whether there is a path.
    pub fn exists(self) -> bool {
        self.0 != UNREACHABLE
    }

    /// This path behind a link; [`Metric::NONE`] stays, and what is too long becomes it.
    pub fn behind(self, link: Metric) -> Metric {
        match (self.exists(), link.exists()) {
            (true, true) => Metric(self.0.saturating_add(link.0)),
            _ => Metric::NONE,
        }
    }
}

/// A frame as it was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A measurement of links.
    Probe(Probe<'a>),
    /// An update of routes.
    Routes(Routes<'a>),
    /// A packet.
    Data(Data, &'a [u8]),
    /// Queues, told at the begin of a round (DCLO).
    Prices(Round, Prices<'a>),
    /// How pairs are made (DCLO).
    Pairing(Round, Message),
}

/// Where a node is in time (DCLO).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// Counts rounds.
    pub number: u32,
    /// Since this one began.
    pub into: Duration,
}

/// Lengths of queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prices<'a>(&'a [u8]);

/// A probe ("ETX message").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe<'a> {
    /// Changes when the sender starts over.
    pub epoch: u8,
    /// Counts the sender's probes.
    pub number: u16,
    counts: &'a [u8],
    queues: &'a [u8],
}

/// What a node has received of a neighbour's probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// The neighbour.
    pub node: u16,
    /// Probes received.
    pub received: u8,
    /// Of how many.
    pub of: u8,
}

/// How much waits at the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// For this destination.
    pub destination: u16,
    /// So much.
    pub backlog: Backlog,
}

/// An update of routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Routes<'a>(&'a [u8]);

/// The sender's route to a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Where to.
    pub destination: u16,
    /// The destination's own sequence number.
    pub seq: u16,
    /// How far.
    pub metric: Metric,
    /// The next hop; the destination itself at the destination.
    pub via: u16,
}

/// What stands before a packet's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// How often it may still be forwarded, this transmission included.
    pub hop_limit: u8,
    /// The node that made it.
    pub source: u16,
    /// The node that it is for.
    pub destination: u16,
    /// The source's name for the conversation.
    pub flow: u16,
    /// Counts the packets of the flow.
    pub number: u32,
    /// The sender's queue for the destination, without this packet.
    pub backlog: Backlog,
    /// The sender has hardly any room left (Fusion).
    pub congested: bool,
    /// There is no payload, only a queue's length moves on.
    pub empty: bool,
    /// The source's epoch.
    pub epoch: u8,
}

/// Why octets are not a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Shorter than its own fields say.
    Short,
    /// Another version or an unknown kind.
    Version,
    /// A count of more probes than there were, or an empty packet with payload.
    Contradiction,
}

/// Reads a frame.
pub fn parse(octets: &[u8]) -> Result<Frame<'_>, Malformed> {
    let first = *octets.first().ok_or(Malformed::Short)?;
    match (first >> 4, first & 15) {
        (VERSION, KIND_PROBE) => Probe::parse(octets).map(Frame::Probe),
        (VERSION, KIND_ROUTES) => Routes::parse(octets).map(Frame::Routes),
        (VERSION, KIND_PRICES) => Prices::parse(octets),
        (VERSION, KIND_PAIRING) => parse_pairing(octets),
        (VERSION, KIND_DATA) => {
            Data::parse(octets).map(|(data, payload)| Frame::Data(data, payload))
        }
        _ => Err(Malformed::Version),
    }
}

impl<'a> Probe<'a> {
    fn parse(octets: &'a [u8]) -> Result<Probe<'a>, Malformed> {
        let (head, rest) = octets
            .split_first_chunk::<PROBE>()
            .ok_or(Malformed::Short)?;
        let [_, epoch, n0, n1, counts, queues] = *head;
        let (counts, rest) = split(rest, usize::from(counts) * COUNT)?;
        let (queues, _) = split(rest, usize::from(queues) * QUEUE)?;
        let probe = Probe {
            epoch,
            number: u16::from_be_bytes([n0, n1]),
            counts,
            queues,
        };
        match probe.counts().all(|count| count.received <= count.of) {
            true => Ok(probe),
            false => Err(Malformed::Contradiction),
        }
    }

    /// What the sender has received of its neighbours' probes.
    pub fn counts(&self) -> impl Iterator<Item = Count> + 'a {
        let (entries, _) = self.counts.as_chunks::<COUNT>();
        entries.iter().map(|&[n0, n1, received, of]| Count {
            node: u16::from_be_bytes([n0, n1]),
            received,
            of,
        })
    }

    /// The sender's longest queues.
    pub fn queues(&self) -> impl Iterator<Item = Queue> + 'a {
        queues(self.queues)
    }

    /// Writes a probe and fills it up to `octets`; how long it is, or `None` if there is no room.
    pub fn emit(
        (epoch, number): (u8, u16),
        counts: impl Iterator<Item = Count>,
        queues: impl Iterator<Item = Queue>,
        octets: usize,
        room: &mut [u8],
    ) -> Option<usize> {
        let mut writer = Writer { room, len: 0 };
        let [n0, n1] = number.to_be_bytes();
        writer.put(&[VERSION << 4 | KIND_PROBE, epoch, n0, n1, 0, 0])?;
        let (mut listed, mut told) = (0u8, 0u8);
        for count in counts.take(255) {
            writer.put(&count.node.to_be_bytes())?;
            writer.put(&[count.received, count.of])?;
            listed += 1;
        }
        for queue in queues.take(255) {
            writer.put_queue(queue)?;
            told += 1;
        }
        writer.room.get_mut(4..6)?.copy_from_slice(&[listed, told]);
        while writer.len < octets {
            writer.put(&[0])?;
        }
        Some(writer.len)
    }
}

impl<'a> Routes<'a> {
    fn parse(octets: &'a [u8]) -> Result<Routes<'a>, Malformed> {
        let (&[_, count], rest) = octets
            .split_first_chunk::<ROUTES>()
            .ok_or(Malformed::Short)?;
        let (routes, _) = split(rest, usize::from(count) * ROUTE)?;
        Ok(Routes(routes))
    }

    /// The routes.
    pub fn iter(&self) -> impl Iterator<Item = Route> + 'a {
        let (entries, _) = self.0.as_chunks::<ROUTE>();
        entries
            .iter()
            .map(|&[d0, d1, s0, s1, m0, m1, v0, v1]| Route {
                destination: u16::from_be_bytes([d0, d1]),
                seq: u16::from_be_bytes([s0, s1]),
                metric: Metric(u16::from_be_bytes([m0, m1])),
                via: u16::from_be_bytes([v0, v1]),
            })
    }

    /// Writes an update of as many routes as fit, at most 255; how long it is.
    pub fn emit(routes: &mut dyn Iterator<Item = Route>, room: &mut [u8]) -> Option<usize> {
        let most = (room.len().saturating_sub(ROUTES) / ROUTE).min(255);
        let mut writer = Writer { room, len: 0 };
        writer.put(&[VERSION << 4 | KIND_ROUTES, 0])?;
        let mut count = 0u8;
        for route in routes.take(most) {
            writer.put(&route.destination.to_be_bytes())?;
            writer.put(&route.seq.to_be_bytes())?;
            writer.put(&route.metric.0.to_be_bytes())?;
            writer.put(&route.via.to_be_bytes())?;
            count += 1;
        }
        *writer.room.get_mut(1)? = count;
        Some(writer.len)
    }
}

impl Data {
    fn parse(octets: &[u8]) -> Result<(Data, &[u8]), Malformed> {
        let (head, payload) = octets.split_first_chunk::<DATA>().ok_or(Malformed::Short)?;
        let [
            _,
            hop_limit,
            s0,
            s1,
            d0,
            d1,
            f0,
            f1,
            n0,
            n1,
            n2,
            n3,
            b0,
            b1,
            flags,
            epoch,
        ] = *head;
        let data = Data {
            hop_limit,
            source: u16::from_be_bytes([s0, s1]),
            destination: u16::from_be_bytes([d0, d1]),
            flow: u16::from_be_bytes([f0, f1]),
            number: u32::from_be_bytes([n0, n1, n2, n3]),
            backlog: Backlog(u16::from_be_bytes([b0, b1])),
            congested: flags & FLAG_CONGESTED != 0,
            empty: flags & FLAG_EMPTY != 0,
            epoch,
        };
        match data.empty && !payload.is_empty() {
            true => Err(Malformed::Contradiction),
            false => Ok((data, payload)),
        }
    }

    /// Writes header and payload; how long they are, or `None` if there is no room.
    pub fn emit(&self, payload: &[u8], room: &mut [u8]) -> Option<usize> {
        let mut writer = Writer { room, len: 0 };
        writer.put(&[VERSION << 4 | KIND_DATA, self.hop_limit])?;
        for field in [self.source, self.destination, self.flow] {
            writer.put(&field.to_be_bytes())?;
        }
        writer.put(&self.number.to_be_bytes())?;
        writer.put(&self.backlog.0.to_be_bytes())?;
        let congested = if self.congested { FLAG_CONGESTED } else { 0 };
        let empty = if self.empty { FLAG_EMPTY } else { 0 };
        writer.put(&[congested | empty, self.epoch])?;
        writer.put(payload)?;
        Some(writer.len)
    }
}

impl<'a> Prices<'a> {
    fn parse(octets: &'a [u8]) -> Result<Frame<'a>, Malformed> {
        let (head, rest) = octets
            .split_first_chunk::<PRICES>()
            .ok_or(Malformed::Short)?;
        let [_, count, round @ ..] = *head;
        let (queues, _) = split(rest, usize::from(count) * QUEUE)?;
        Ok(Frame::Prices(Round::from_octets(round), Prices(queues)))
    }

    /// The sender's queues; what it does not tell is empty.
    pub fn queues(&self) -> impl Iterator<Item = Queue> + 'a {
        queues(self.0)
    }

    /// Writes as many queues as fit, at most 255; how long that is.
    pub fn emit(
        round: Round,
        queues: impl Iterator<Item = Queue>,
        room: &mut [u8],
    ) -> Option<usize> {
        let most = (room.len().saturating_sub(PRICES) / QUEUE).min(255);
        let mut writer = Writer { room, len: 0 };
        writer.put(&[VERSION << 4 | KIND_PRICES, 0])?;
        writer.put(&round.to_octets())?;
        let mut count = 0u8;
        for queue in queues.take(most) {
            writer.put_queue(queue)?;
            count += 1;
        }
        *writer.room.get_mut(1)? = count;
        Some(writer.len)
    }
}

fn parse_pairing(octets: &[u8]) -> Result<Frame<'_>, Malformed> {
    let (head, _) = octets
        .split_first_chunk::<PAIRING>()
        .ok_or(Malformed::Short)?;
    let [_, what, r0, r1, r2, r3, i0, i1, n0, n1] = *head;
    let node = u16::from_be_bytes([n0, n1]);
    let message = match what {
        REQUEST => Message::Request(node),
        PAIRED => Message::Paired(node),
        _ => return Err(Malformed::Version),
    };
    let round = Round::from_octets([r0, r1, r2, r3, i0, i1]);
    Ok(Frame::Pairing(round, message))
}

/// Writes a message that makes pairs; how long it is.
pub fn emit_pairing(round: Round, message: Message, room: &mut [u8]) -> Option<usize> {
    let (what, node) = match message {
        Message::Request(node) => (REQUEST, node),
        Message::Paired(node) => (PAIRED, node),
    };
    let mut writer = Writer { room, len: 0 };
    writer.put(&[VERSION << 4 | KIND_PAIRING, what])?;
    writer.put(&round.to_octets())?;
    writer.put(&node.to_be_bytes())?;
    Some(writer.len)
}

impl Round {
    fn from_octets([r0, r1, r2, r3, i0, i1]: [u8; 6]) -> Round {
        Round {
            number: u32::from_be_bytes([r0, r1, r2, r3]),
            into: INTO_UNIT * u64::from(u16::from_be_bytes([i0, i1])),
        }
    }

    fn to_octets(self) -> [u8; 6] {
        let [r0, r1, r2, r3] = self.number.to_be_bytes();
        let into = self.into.steps(INTO_UNIT).min(u64::from(u16::MAX)) as u16;
        let [i0, i1] = into.to_be_bytes();
        [r0, r1, r2, r3, i0, i1]
    }
}

fn queues(octets: &[u8]) -> impl Iterator<Item = Queue> + '_ {
    let (entries, _) = octets.as_chunks::<QUEUE>();
    entries.iter().map(|&[d0, d1, l0, l1]| Queue {
        destination: u16::from_be_bytes([d0, d1]),
        backlog: Backlog(u16::from_be_bytes([l0, l1])),
    })
}

fn split(octets: &[u8], len: usize) -> Result<(&[u8], &[u8]), Malformed> {
    octets.split_at_checked(len).ok_or(Malformed::Short)
}

/// Writes one thing behind the other.
struct Writer<'a> {
    room: &'a mut [u8],
    len: usize,
}

impl Writer<'_> {
    fn put(&mut self, octets: &[u8]) -> Option<()> {
        let end = self.len.checked_add(octets.len())?;
        self.room.get_mut(self.len..end)?.copy_from_slice(octets);
        self.len = end;
        Some(())
    }

    fn put_queue(&mut self, queue: Queue) -> Option<()> {
        self.put(&queue.destination.to_be_bytes())?;
        self.put(&queue.backlog.0.to_be_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA_FRAME: Data = Data {
        hop_limit: 31,
        source: 1,
        destination: 0x203,
        flow: 4,
        number: 0x0506_0708,
        backlog: Backlog(40),
        congested: true,
        empty: false,
        epoch: 9,
    };

    #[test]
    fn data_stands_as_drawn() {
        let mut room = [0; 20];
        let len = DATA_FRAME.emit(&[0xaa, 0xbb], &mut room).unwrap();
        let want = [
            0x13, 31, 0, 1, 2, 3, 0, 4, 5, 6, 7, 8, 0, 40, 1, 9, 0xaa, 0xbb,
        ];
        assert_eq!(room[..len], want);
        assert_eq!(parse(&want), Ok(Frame::Data(DATA_FRAME, &[0xaa, 0xbb][..])));
        assert_eq!(DATA_FRAME.emit(&[0; 5], &mut room), None);
    }

    #[test]
    fn probes_come_back_as_they_were_told() {
        let counts =
            [(7, 9, 10), (300, 0, 10)].map(|(node, received, of)| Count { node, received, of });
        let told = [Queue {
            destination: 4,
            backlog: Backlog::from_packets(2.5),
        }];
        let mut room = [0; 200];
        let len = Probe::emit(
            (3, 0x0102),
            counts.into_iter(),
            told.into_iter(),
            134,
            &mut room,
        );
        assert_eq!(len, Some(134));
        let Ok(Frame::Probe(probe)) = parse(&room[..134]) else {
            panic!("a probe");
        };
        assert_eq!((probe.epoch, probe.number), (3, 0x0102));
        assert!(probe.counts().eq(counts));
        assert!(probe.queues().eq(told));
        assert_eq!(parse(&room[..17]), Err(Malformed::Short));
        room[8] = 11;
        assert_eq!(parse(&room[..134]), Err(Malformed::Contradiction));
    }

    #[test]
    fn an_update_takes_what_fits() {
        let route = |destination| Route {
            destination,
            seq: 2,
            metric: Metric(512),
            via: 5,
        };
        let mut room = [0; 2 + 3 * 8 + 7];
        let mut routes = (0..9).map(route);
        assert_eq!(Routes::emit(&mut routes, &mut room), Some(26));
        assert_eq!(
            routes.next(),
            Some(route(3)),
            "the rest is for the next one"
        );
        let Ok(Frame::Routes(routes)) = parse(&room[..26]) else {
            panic!("an update");
        };
        assert!(routes.iter().eq((0..3).map(route)));
    }

    #[test]
    fn rounds_and_pairs_come_back_as_they_were_told() {
        let round = Round {
            number: 0x0102_0304,
            into: Duration::from_micros(64 * 300),
        };
        let mut room = [0; 40];
        let told = [4u16, 5].map(|destination| Queue {
            destination,
            backlog: Backlog(destination * 16),
        });
        let len = Prices::emit(round, told.into_iter(), &mut room).unwrap();
        let Ok(Frame::Prices(got, prices)) = parse(&room[..len]) else {
            panic!("prices");
        };
        assert_eq!(got, round);
        assert!(prices.queues().eq(told));
        for message in [Message::Request(7), Message::Paired(300)] {
            let len = emit_pairing(round, message, &mut room).unwrap();
            assert_eq!(parse(&room[..len]), Ok(Frame::Pairing(round, message)));
        }
        room[1] = 3;
        assert_eq!(parse(&room[..10]), Err(Malformed::Version));
    }

    #[test]
    fn numbers_saturate() {
        assert_eq!(Backlog::from_packets(-1.0), Backlog(0));
        assert_eq!(Backlog::from_packets(1e9), Backlog(u16::MAX));
        assert_eq!(Backlog::from_packets(f64::NAN), Backlog(0));
        assert!(!Metric::from_etx(256.0).exists());
        let far = Metric::from_etx(200.0);
        assert_eq!(far.behind(far), Metric::NONE);
        assert_eq!(Metric::ZERO.behind(Metric::NONE), Metric::NONE);
    }
}
