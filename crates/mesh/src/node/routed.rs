//! What the link needs to know of a body of the router.

use chappe_dpclo::header::{self, Data, Frame};

use super::RECEIPTS;
use crate::packet;
use crate::recovery::Weight;

/// A body of the router, parsed once.
#[derive(Clone, Copy, Debug)]
pub(super) enum Routed<'a> {
    Packet(Data, &'a [u8]),
    /// A request that no packet waits for.
    IdleRequest,
    /// All others, and what is malformed.
    Other,
}

impl Routed<'_> {
    pub fn of(body: &[u8]) -> Routed<'_> {
        match header::parse(body) {
            Ok(Frame::Data(data, packet) | Frame::Priced(data, _, packet)) => {
                Routed::Packet(data, packet)
            }
            Ok(Frame::Request(request)) if request.idle => Routed::IdleRequest,
            _ => Routed::Other,
        }
    }

    /// Whether it is a packet that its receiver `to` forwards.
    pub fn goes_on(&self, to: u16) -> bool {
        matches!(self, Routed::Packet(data, _) if data.destination != to)
    }

    /// The ends of an urgent packet, source first.
    pub fn urgent(&self) -> Option<[u16; 2]> {
        match self {
            Routed::Packet(data, _) if is_urgent(data) => Some([data.source, data.destination]),
            _ => None,
        }
    }

    /// What it weighs in recovery.
    pub fn weight(&self) -> Weight {
        match self {
            Routed::Packet(_, packet) if packet::pure_ack(packet).is_some() => Weight::Replaced,
            Routed::Packet(data, _) if is_urgent(data) => Weight::Awaited,
            _ => Weight::Usual,
        }
    }
}

/// Whether a packet is of a host, and goes first; receipts wait for no answer.
fn is_urgent(data: &Data) -> bool {
    data.first && data.flow != RECEIPTS
}
