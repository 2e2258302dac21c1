//! The frame formats of DPCLO and its baselines.
//!
//! Numbers are big-endian. A node is a 16-bit number, that of its link address. The first octet of every frame is version
//! (4 bits) and kind (4 bits).
//!
//! ```text
//! probe   1     epoch: changes when the sender restarts
//!         2..4  number: counts the sender's probes
//!         4     how many counts follow         5   how many queues follow
//!               counts: node (2), probes of it received (1), of how many (1)
//!               queues: destination (2), length (2, units of 1/16 packet)
//!               tariff, optional: 2 (1), the sender's share and those of the nodes in the counts: airtime (1, 1/255),
//!               price (2, logarithm); the costs to the destinations of the queues (2, logarithm; ffff: unknown); how many more shares
//!               follow (1), of active nodes two hops away: node (2), share (3)
//!               anything after that is padding
//! routes  1     how many routes follow
//!               routes: destination (2), sequence number (2), metric (2, units of 1/256 ETX; ffff: none), next hop (2)
//! data    1     how often it may still be forwarded
//!         2..4  source       4..6 destination      6..8 flow
//!         8..12 number: counts the packets of this flow
//!        12..14 the sender's queue for this destination without this packet, 1/16 packet
//!        14     flags: 1 the sender is congested, 2 an empty packet that only moves a queue; in the six bits above them
//!               how many more packets for this destination the sender has room for (63: or more)
//!        15     epoch of the source
//!               payload
//! priced        a data frame with a stamp between epoch and payload: the sender's share (3, as in a probe) and its cost to
//!               the destination (2)
//! report  1     how many queues follow
//!               queues: destination (2), length (2, 1/16 packet), room (1)
//! prices  1     how many queues follow
//!         2..6  round      6..8 how far the sender is in it, units of 64 us
//!               queues as in a probe
//! pairing 1     1 a request, 2 the sender and this node are a pair
//!         2..8  as in prices
//!         8..10 node
//! request 1     how often it may still be forwarded
//!         2..4  destination        4..6 sequence number
//! ```
//!
//! The paper asks for a sequence number and counts in probes and for the queue length in data; the layout is ours. The next
//! hop in a route lets a neighbour see that a route leads back to itself.

mod data;
mod pairing;
mod probe;
mod report;
mod request;
mod routes;
mod tariff;

pub use data::{Data, ROOM_MAX};
pub use pairing::{Prices, Round, emit_pairing};
pub use probe::{Count, Probe};
pub use report::{Report, Reported};
pub use request::Request;
pub use routes::{Route, Routes};
pub use tariff::{Cost, FAR, FAR_MAX, SHARE, STAMP, Share, Stamp, Tariff};

use crate::baseline::matching::Message;
use pairing::parse_pairing;

/// Octets of a probe before its counts.
pub const PROBE: usize = 6;
/// Octets of a count.
pub const COUNT: usize = 4;
/// Octets of a queue's length.
pub const QUEUE: usize = 4;
/// Most queues in a probe or a report.
pub const QUEUES_MAX: usize = 8;
/// Octets of an update before its routes.
pub const ROUTES: usize = 2;
/// Octets of a route.
pub const ROUTE: usize = 8;
/// Octets of a data frame before its payload.
pub const DATA: usize = 16;
/// Octets of prices before the queues.
pub const PRICES: usize = 8;
/// Octets of a pairing message.
pub const PAIRING: usize = 10;
/// Octets of a report before its queues.
pub const REPORT: usize = 2;
/// Octets of a queue in a report.
pub const REPORTED: usize = 5;
/// Octets of a request.
pub const REQUEST: usize = 6;
/// The metric of a destination that cannot be reached.
pub const UNREACHABLE: u16 = u16::MAX;

const VERSION: u8 = 1;
const KIND_PROBE: u8 = 1;
const KIND_ROUTES: u8 = 2;
const KIND_DATA: u8 = 3;
const KIND_PRICES: u8 = 4;
const KIND_PAIRING: u8 = 5;
const KIND_REPORT: u8 = 6;
const KIND_REQUEST: u8 = 7;
const KIND_PRICED: u8 = 8;

/// A queue length, in sixteenths of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Backlog(pub u16);

impl Backlog {
    /// Converts from packets; saturates, and not-a-number gives zero.
    pub fn from_packets(packets: f64) -> Backlog {
        Backlog(libm::round(packets * 16.0) as u16)
    }

    /// The length in packets.
    pub fn packets(self) -> f64 {
        f64::from(self.0) / 16.0
    }
}

/// A path length, in 1/256 ETX; [`UNREACHABLE`] for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Metric(pub u16);

impl Metric {
    /// The metric at the destination itself.
    pub const ZERO: Metric = Metric(0);
    /// The metric without a path.
    pub const NONE: Metric = Metric(UNREACHABLE);

    /// Converts from ETX; a path longer than 255 counts as none.
    pub fn from_etx(etx: f64) -> Metric {
        Metric(libm::round(etx * 256.0) as u16)
    }

    /// The path length in ETX; meaningless for [`Metric::NONE`].
    pub fn etx(self) -> f64 {
        f64::from(self.0) / 256.0
    }

    /// Whether a path exists.
    pub fn exists(self) -> bool {
        self.0 != UNREACHABLE
    }

    /// The metric of this path extended by a link; [`Metric::NONE`] if either is, or if the sum is too long.
    pub fn behind(self, link: Metric) -> Metric {
        match (self.exists(), link.exists()) {
            (true, true) => Metric(self.0.saturating_add(link.0)),
            _ => Metric::NONE,
        }
    }
}

/// A parsed frame of any kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A probe: measures links.
    Probe(Probe<'a>),
    /// A routing update (DSDV).
    Routes(Routes<'a>),
    /// A report of changed queues.
    Report(Report<'a>),
    /// A data packet: header and payload.
    Data(Data, &'a [u8]),
    /// A data packet whose header has a stamp.
    Priced(Data, Stamp, &'a [u8]),
    /// All queues of the sender at the beginning of a round (DCLO).
    Prices(Round, Prices<'a>),
    /// A pairing message (DCLO).
    Pairing(Round, Message),
    /// A request for a newer sequence number.
    Request(Request),
}

/// The length of one of the sender's queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// The destination of the queue.
    pub destination: u16,
    /// The length of the queue.
    pub backlog: Backlog,
}

/// Why octets are not a valid frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Shorter than its fields require.
    Short,
    /// Another version or an unknown kind.
    Version,
    /// More probes received than sent, an empty packet with payload, or more room than [`ROOM_MAX`].
    Contradiction,
}

/// Parses a frame of any kind.
pub fn parse(octets: &[u8]) -> Result<Frame<'_>, Malformed> {
    let first = *octets.first().ok_or(Malformed::Short)?;
    match (first >> 4, first & 15) {
        (VERSION, KIND_PROBE) => Probe::parse(octets).map(Frame::Probe),
        (VERSION, KIND_ROUTES) => Routes::parse(octets).map(Frame::Routes),
        (VERSION, KIND_REPORT) => Report::parse(octets).map(Frame::Report),
        (VERSION, KIND_PRICES) => Prices::parse(octets),
        (VERSION, KIND_PAIRING) => parse_pairing(octets),
        (VERSION, KIND_REQUEST) => Request::parse(octets).map(Frame::Request),
        (VERSION, KIND_PRICED) => {
            let (data, rest) = Data::parse(octets)?;
            let (stamp, payload) = Stamp::parse(rest)?;
            Ok(Frame::Priced(data, stamp, payload))
        }
        (VERSION, KIND_DATA) => {
            Data::parse(octets).map(|(data, payload)| Frame::Data(data, payload))
        }
        _ => Err(Malformed::Version),
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

/// Writes fields one after the other.
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
