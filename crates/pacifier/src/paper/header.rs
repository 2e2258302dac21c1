//! The frames of Pacifier and its baselines: a view for each, which checks the octets once and cannot panic afterwards, and
//! a repr that writes them.
//!
//! Octets of a data frame. Numbers are big-endian.
//!
//! ```text
//!  0        version (4 bits), type (4 bits)
//!  1        source of the group
//!  2        object: number of the source's transfer, modulo 256
//!  3..5     turn: number of the source's plan, modulo 65,536
//!  5..9     batch
//!  9        packets in the batch = octets of the code vector
//! 10        F, the number of forwarding nodes
//! 11        D, the number of destinations (MORE; 0 otherwise)
//! 12..17    last ACK received: its receiver (the source itself: none yet) and batch
//! 17..      F times: node, credit in 1/512 (2 octets); by increasing ETX from the source
//!   ..      D times: node
//!   ..      code vector
//!   ..      payload
//! ```
//!
//! The paper names type, group, batch, the sorted list of forwarding nodes with their credits, the code vector
//! and the last ACK. `turn` and `object` are ours. Batches come round again, so their numbers do not distinguish a
//! late frame of the previous batch from the first frame of the next one, and only the latter may flush a
//! relay's buffer. `turn` increases with each batch switch and each new plan.

use alloc::vec::Vec;
use core::fmt;

pub use crate::frame::Malformed;
use crate::frame::{SOURCE, TYPE, VERSION, big_endian, octet, octet_at};

/// Octets of one entry of the list of forwarding nodes.
pub(crate) const FORWARDER: usize = 3;
/// A credit of one transmission, in the units of frames and counters.
///
/// 1/512: credits of 0.05 are exact to 2 %, and the largest is just under 128. Only a link of less than 1 % on a
/// shortest path exceeds that.
pub const CREDIT_ONE: i64 = 512;

mod field {
    use core::ops::Range;
    pub const OBJECT: usize = 2;
    pub const TURN: Range<usize> = 3..5;
    pub const BATCH: Range<usize> = 5..9;
    pub const PACKETS: usize = 9;
    pub const FORWARDERS: usize = 10;
    pub const DESTINATIONS: usize = 11;
    pub const LAST_RECEIVER: usize = 12;
    pub const LAST_BATCH: Range<usize> = 13..17;
    pub const DATA: usize = 17;

    pub const ACK_BATCH: Range<usize> = 3..7;
    pub const ACK_RECEIVER: usize = 7;
    pub const ACK_REPEAT: usize = 8;
    pub const ACK: usize = 9;

    pub const PROBE_NUMBER: Range<usize> = 1..5;
    pub const PROBE: usize = 5;
}

/// Octets of a data frame with `forwarders` forwarding nodes, no destinations, and a batch of `k` packets.
pub const fn frame_len(forwarders: usize, k: usize, payload: usize) -> usize {
    field::DATA + FORWARDER * forwarders + k + payload
}

/// A frame, by its type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Frame<'a> {
    /// A combination of the packets of a batch, with the source's plan.
    Data(Data<'a>),
    /// An acknowledgement on its way to the source.
    Ack(Ack),
    /// A probe of the ETX phase and its number.
    Probe(u32),
}

/// Names an ACK: which receiver has which batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckId {
    /// The receiver that has the batch.
    pub receiver: u16,
    /// Number of the batch in the object.
    pub batch: u32,
}

/// An acknowledgement: 9 octets.
///
/// `Pacifier ack source=0 object=1 receiver=4 batch=7 repeat=0`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The source it goes to.
    pub source: u16,
    /// Number of the source's transfer, modulo 256.
    pub object: u8,
    /// The receiver and the batch that it acknowledges.
    pub id: AckId,
    /// How often the receiver has acknowledged this batch anew. A hop forwards each repeat once.
    pub repeat: u8,
}

/// A data frame that has been checked for length.
#[derive(Clone, Copy, PartialEq)]
pub struct Data<'a> {
    head: [u8; field::DATA],
    forwarders: &'a [u8],
    destinations: &'a [u8],
    vector: &'a [u8],
    payload: &'a [u8],
}

/// The fields of a data frame before its code vector.
#[derive(Clone, Copy, Debug)]
pub struct DataRepr<'a> {
    /// The source of the group.
    pub source: u16,
    /// Number of the source's transfer, modulo 256.
    pub object: u8,
    /// The number of the source's plan.
    pub turn: u16,
    /// Number of the batch in the object.
    pub batch: u32,
    /// Packets in the batch, 1 to 255.
    pub packets: u8,
    /// The forwarding nodes, three octets each (at most 255 nodes).
    pub forwarders: &'a [u8],
    /// MORE: the destinations (at most 255).
    pub destinations: &'a [u8],
    /// The last ACK that the sender has received for this group.
    pub last_ack: Option<AckId>,
}

/// Parses and checks the frame in `sdu`.
pub fn parse(sdu: &[u8]) -> Result<Frame<'_>, Malformed> {
    let first = *sdu.first().ok_or(Malformed::Short)?;
    match (first >> 4, first & 15) {
        (VERSION, 1) => Data::new(sdu).map(Frame::Data),
        (VERSION, 2) => Ack::parse(sdu).ok_or(Malformed::Short).map(Frame::Ack),
        (VERSION, 3) => {
            let number = sdu.get(field::PROBE_NUMBER).ok_or(Malformed::Short)?;
            Ok(Frame::Probe(big_endian(number)))
        }
        _ => Err(Malformed::Type(first)),
    }
}

impl<'a> Data<'a> {
    /// A view of a data frame; does not check the type octet.
    pub fn new(sdu: &'a [u8]) -> Result<Data<'a>, Malformed> {
        let (head, rest) = sdu.split_first_chunk().ok_or(Malformed::Short)?;
        let count = |place: usize| usize::from(octet_at(head, place));
        let (forwarders, rest) = rest
            .split_at_checked(count(field::FORWARDERS) * FORWARDER)
            .ok_or(Malformed::Short)?;
        let (destinations, rest) = rest
            .split_at_checked(count(field::DESTINATIONS))
            .ok_or(Malformed::Short)?;
        let (vector, payload) = rest
            .split_at_checked(count(field::PACKETS))
            .ok_or(Malformed::Short)?;
        if vector.is_empty() || payload.is_empty() {
            return Err(Malformed::Empty);
        }
        Ok(Data {
            head: *head,
            forwarders,
            destinations,
            vector,
            payload,
        })
    }

    /// The source of the group.
    pub fn source(&self) -> u16 {
        octet_at(&self.head, SOURCE).into()
    }

    /// Number of the source's transfer, modulo 256.
    pub fn object(&self) -> u8 {
        octet_at(&self.head, field::OBJECT)
    }

    /// The number of the source's plan.
    pub fn turn(&self) -> u16 {
        big_endian(self.head.get(field::TURN).unwrap_or_default()) as u16
    }

    /// Number of the batch in the object.
    pub fn batch(&self) -> u32 {
        big_endian(self.head.get(field::BATCH).unwrap_or_default())
    }

    /// The last ACK that the sender received for this group.
    pub fn last_ack(&self) -> Option<AckId> {
        // The source never acknowledges its own batches, so its number stands for "none yet".
        let receiver = u16::from(octet_at(&self.head, field::LAST_RECEIVER));
        let batch = big_endian(self.head.get(field::LAST_BATCH).unwrap_or_default());
        (receiver != self.source()).then_some(AckId { receiver, batch })
    }

    /// The code vector: one coefficient for each packet of the batch.
    pub fn vector(&self) -> &'a [u8] {
        self.vector
    }

    /// The combination of the packets.
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// The list of forwarding nodes as in the frame, three octets each.
    pub fn forwarders(&self) -> &'a [u8] {
        self.forwarders
    }

    /// MORE: the destinations as in the frame, one octet each.
    pub fn destinations(&self) -> &'a [u8] {
        self.destinations
    }
}

impl DataRepr<'_> {
    /// Octets of the whole frame with a payload of `payload` octets.
    pub fn frame_len(&self, payload: usize) -> usize {
        let lists = self.forwarders.len() + self.destinations.len();
        field::DATA + lists + usize::from(self.packets) + payload
    }

    /// Writes the header to the front of `sdu`. Returns the places for code vector and payload, or `None` if they do not
    /// fit.
    pub fn emit<'b>(
        &self,
        sdu: &'b mut [u8],
        payload: usize,
    ) -> Option<(&'b mut [u8], &'b mut [u8])> {
        let frame = sdu.get_mut(..self.frame_len(payload))?;
        let (head, rest) = frame.split_first_chunk_mut::<{ field::DATA }>()?;
        let source = octet(self.source);
        let last = self
            .last_ack
            .map_or((source, 0), |ack| (octet(ack.receiver), ack.batch));
        let [t0, t1] = self.turn.to_be_bytes();
        let [b0, b1, b2, b3] = self.batch.to_be_bytes();
        let [l0, l1, l2, l3] = last.1.to_be_bytes();
        let forwarders = u8::try_from(self.forwarders.len() / FORWARDER).ok()?;
        let destinations = u8::try_from(self.destinations.len()).ok()?;
        *head = [
            VERSION << 4 | 1,
            source,
            self.object,
            t0,
            t1,
            b0,
            b1,
            b2,
            b3,
            self.packets,
            forwarders,
            destinations,
            last.0,
            l0,
            l1,
            l2,
            l3,
        ];
        let (list, rest) = rest.split_at_mut_checked(self.forwarders.len())?;
        list.copy_from_slice(self.forwarders);
        let (list, rest) = rest.split_at_mut_checked(self.destinations.len())?;
        list.copy_from_slice(self.destinations);
        rest.split_at_mut_checked(usize::from(self.packets))
    }
}

impl Ack {
    fn parse(sdu: &[u8]) -> Option<Ack> {
        let frame = sdu.get(..field::ACK)?;
        Some(Ack {
            source: octet_at(frame, SOURCE).into(),
            object: octet_at(frame, field::OBJECT),
            id: AckId {
                receiver: octet_at(frame, field::ACK_RECEIVER).into(),
                batch: big_endian(frame.get(field::ACK_BATCH)?),
            },
            repeat: octet_at(frame, field::ACK_REPEAT),
        })
    }

    /// Writes the frame to the front of `sdu` and returns its length, or `None` if it does not fit.
    pub fn emit(&self, sdu: &mut [u8]) -> Option<usize> {
        let [b0, b1, b2, b3] = self.id.batch.to_be_bytes();
        let frame = [
            VERSION << 4 | 2,
            octet(self.source),
            self.object,
            b0,
            b1,
            b2,
            b3,
            octet(self.id.receiver),
            self.repeat,
        ];
        sdu.get_mut(..field::ACK)?.copy_from_slice(&frame);
        Some(field::ACK)
    }
}

/// Writes probe `number` with `payload` octets of padding. Returns its length, or `None` if it does not fit.
pub fn emit_probe(number: u32, payload: usize, sdu: &mut [u8]) -> Option<usize> {
    let frame = sdu.get_mut(..field::PROBE + payload)?;
    let (head, padding) = frame.split_at_mut_checked(field::PROBE)?;
    *head.get_mut(TYPE)? = VERSION << 4 | 3;
    head.get_mut(field::PROBE_NUMBER)?
        .copy_from_slice(&number.to_be_bytes());
    padding.fill(0);
    Some(field::PROBE + payload)
}

/// Appends a forwarding node to a list. The credit is rounded to the nearest 1/512, up to the largest that 16
/// bits hold; a node that has to send at all gets at least one unit.
pub(crate) fn push_forwarder(list: &mut Vec<u8>, node: u16, credit: f64) {
    let units = libm::round(credit * CREDIT_ONE as f64).clamp(0.0, f64::from(u16::MAX)) as u16;
    let units = if credit > 0.0 { units.max(1) } else { 0 };
    let [high, low] = units.to_be_bytes();
    list.extend_from_slice(&[octet(node), high, low]);
}

/// The place of a node in a list and its credit in units of 1/512.
pub(crate) fn find_forwarder(list: &[u8], node: u16) -> Option<(usize, i64)> {
    let (entries, _) = list.as_chunks::<FORWARDER>();
    entries
        .iter()
        .enumerate()
        .find_map(|(place, &[id, high, low])| {
            let credit = u16::from_be_bytes([high, low]);
            (u16::from(id) == node).then_some((place, i64::from(credit)))
        })
}

impl fmt::Debug for Data<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Data<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Pacifier data source={} object={} turn={} batch={} packets={} forwarders={} len={}",
            self.source(),
            self.object(),
            self.turn(),
            self.batch(),
            self.vector.len(),
            self.forwarders.len() / FORWARDER,
            self.payload.len()
        )
    }
}

impl fmt::Display for Ack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ack {
            source,
            object,
            id,
            repeat,
        } = self;
        let AckId { receiver, batch } = id;
        write!(
            f,
            "Pacifier ack source={source} object={object} receiver={receiver} batch={batch} repeat={repeat}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec;

    #[test]
    fn data_frames_round_trip() {
        let mut forwarders = vec![];
        push_forwarder(&mut forwarders, 7, 1.5);
        push_forwarder(&mut forwarders, 255, 1000.0);
        push_forwarder(&mut forwarders, 9, 0.0001);
        let last_ack = Some(AckId {
            receiver: 4,
            batch: 70_000,
        });
        let repr = DataRepr {
            source: 3,
            object: 200,
            turn: 0xfedc,
            batch: 0x0102_0304,
            packets: 4,
            forwarders: &forwarders,
            destinations: &[5, 6],
            last_ack,
        };
        let mut sdu = [0xaa; 64];
        let (vector, payload) = repr.emit(&mut sdu, 10).unwrap();
        vector.copy_from_slice(&[1, 2, 3, 4]);
        payload.fill(9);
        let len = repr.frame_len(10);
        assert_eq!(len, 17 + 9 + 2 + 4 + 10);
        let Ok(Frame::Data(data)) = parse(&sdu[..len]) else {
            panic!()
        };
        assert_eq!(
            (data.source(), data.object(), data.turn()),
            (3, 200, 0xfedc)
        );
        assert_eq!((data.batch(), data.last_ack()), (0x0102_0304, last_ack));
        assert_eq!(
            (data.vector(), data.payload()),
            (&[1, 2, 3, 4][..], &[9; 10][..])
        );
        assert_eq!(data.destinations(), [5, 6]);
        assert_eq!(find_forwarder(data.forwarders(), 7), Some((0, 768)));
        assert_eq!(
            find_forwarder(data.forwarders(), 255),
            Some((1, 65_535)),
            "saturates"
        );
        assert_eq!(
            find_forwarder(data.forwarders(), 9),
            Some((2, 1)),
            "never down to nothing"
        );
        assert_eq!(find_forwarder(data.forwarders(), 8), None);
        assert_eq!(
            data.to_string(),
            "Pacifier data source=3 object=200 turn=65244 batch=16909060 packets=4 forwarders=3 len=10"
        );
        for cut in 0..len {
            assert_eq!(parse(&sdu[..cut]).is_ok(), cut > len - 10, "{cut}");
        }
    }

    #[test]
    fn acks_and_probes_round_trip() {
        let id = AckId {
            receiver: 4,
            batch: 70_000,
        };
        let ack = Ack {
            source: 3,
            object: 2,
            id,
            repeat: 1,
        };
        let mut sdu = [0; 32];
        assert_eq!(ack.emit(&mut sdu), Some(9));
        assert_eq!(parse(&sdu[..9]), Ok(Frame::Ack(ack)));
        assert_eq!(parse(&sdu[..8]), Err(Malformed::Short));
        assert_eq!(ack.emit(&mut [0; 8]), None);
        assert_eq!(
            ack.to_string(),
            "Pacifier ack source=3 object=2 receiver=4 batch=70000 repeat=1"
        );
        assert_eq!(emit_probe(9, 20, &mut sdu), Some(25));
        assert_eq!(parse(&sdu[..25]), Ok(Frame::Probe(9)));
        assert_eq!(emit_probe(9, 28, &mut sdu), None);
        assert_eq!(parse(&[0x21; 30]), Err(Malformed::Type(0x21)));
        assert_eq!(parse(&[]), Err(Malformed::Short));
    }
}
