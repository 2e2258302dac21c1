//! The frames of Pacifier and its baselines in scripts.

use chappe_core::Instant;
use chappe_pacifier::paper::header::{self, Ack, AckId, DataRepr, Frame};
use chappe_pacifier::{Common, Node};

use super::{Frames, Object, Said, list_of, number};

/// What fields that are not said refer to: those said last.
#[derive(Default)]
pub struct Paper {
    object: u8,
    batch: u32,
    turn: u16,
    forwarders: String,
    destinations: String,
}

impl Frames for Paper {
    fn offered(&mut self, _: &Node, _: Instant) {}

    fn write(&mut self, about: &mut Object, frame: Said<'_>, sdu: &mut [u8]) -> usize {
        match frame.kind {
            "data" => self.data(about, &frame, sdu),
            "ack" => self.ack(&frame).emit(sdu).unwrap(),
            _ => panic!("{}: a frame is data or ack", frame.place),
        }
    }

    fn compare(&mut self, about: &Object, frame: Said<'_>, sdu: &[u8]) {
        let place = frame.place;
        match (frame.kind, header::parse(sdu)) {
            ("data", Ok(Frame::Data(data))) => {
                self.object = data.object();
                let same = |field: &str, value: u32| {
                    assert_eq!(
                        frame.number(field, value),
                        value,
                        "{place}: {field} in {data}"
                    );
                };
                same("batch", data.batch());
                same("turn", data.turn().into());
                same("source", data.source().into());
                if let Some(last) = frame.get("ack") {
                    let last = (last != "none").then(|| ack_id(last, place));
                    assert_eq!(data.last_ack(), last, "{place}");
                }
                if let Some(list) = frame.get("fn") {
                    assert_eq!(forwarders(data.forwarders()), *list, "{place}");
                }
                if let Some(list) = frame.get("to") {
                    let nodes = data.destinations().iter().map(u8::to_string);
                    assert_eq!(nodes.collect::<Vec<_>>().join(","), *list, "{place}");
                }
                let empty = data.vector().iter().all(|&c| c == 0);
                assert!(!empty, "{place}: an empty combination");
                let payload = about.combination(len(about), data.batch(), data.vector());
                let found = data.payload();
                assert_eq!(found, payload, "{place}: payload and vector disagree");
            }
            ("ack", Ok(Frame::Ack(ack))) => assert_eq!(ack, self.ack(&frame), "{place}"),
            (_, frame) => panic!("{place}: it sent {frame:?}"),
        }
    }
}

impl Paper {
    /// Writes a data frame; the group is that of node 0 unless the script says otherwise.
    fn data(&mut self, about: &mut Object, frame: &Said<'_>, sdu: &mut [u8]) -> usize {
        let place = frame.place;
        let keep = |field: &str, said: &mut String| {
            if let Some(value) = frame.get(field) {
                value.clone_into(said);
            }
        };
        keep("fn", &mut self.forwarders);
        keep("to", &mut self.destinations);
        self.batch = frame.number("batch", self.batch);
        self.turn = frame.number("turn", self.turn);
        self.object = frame.number("object", self.object);
        let mut forwarders = vec![];
        for entry in list_of(&self.forwarders) {
            let (node, credit) = entry.split_once(':').unwrap_or_else(|| panic!("{place}"));
            let units = (number::<f64>(credit, place) * 512.0).round() as u16;
            forwarders.push(number(node, place));
            forwarders.extend_from_slice(&units.to_be_bytes());
        }
        let destinations: Vec<u8> = list_of(&self.destinations)
            .map(|node| number(node, place))
            .collect();
        let packets = packets(about, self.batch);
        let repr = DataRepr {
            source: frame.number("source", 0),
            object: self.object,
            turn: self.turn,
            batch: self.batch,
            packets: packets as u8,
            forwarders: &forwarders,
            destinations: &destinations,
            last_ack: frame.get("ack").map(|ack| ack_id(ack, place)),
        };
        let coefficients: Vec<u8> = match frame.get("v") {
            Some(list) => list_of(list).map(|c| number(c, place)).collect(),
            None => {
                let unit = about.unit(self.batch, frame) % packets;
                (0..packets).map(|at| u8::from(at == unit)).collect()
            }
        };
        let (vector, payload) = repr.emit(sdu, about.config.common().payload).unwrap();
        vector.copy_from_slice(&coefficients);
        payload.copy_from_slice(&about.combination(len(about), repr.batch, &coefficients));
        repr.frame_len(about.config.common().payload)
    }

    fn ack(&self, frame: &Said<'_>) -> Ack {
        Ack {
            source: frame.number("source", 0),
            object: frame.number("object", self.object),
            id: AckId {
                receiver: frame.number("from", 0),
                batch: frame.number("batch", 0),
            },
            repeat: frame.number("repeat", 0),
        }
    }
}

/// Octets of the object that frames carry: the one on offer or expected, or else all there are.
fn len(about: &Object) -> usize {
    match about.len {
        0 => about.octets.len(),
        len => len,
    }
}

/// Packets of a batch: of the object on offer or expected, or else k.
fn packets(about: &Object, batch: u32) -> usize {
    let Common { k, payload, .. } = *about.config.common();
    let all = about.len.div_ceil(payload);
    match all.saturating_sub(batch as usize * k).min(k) {
        0 => k,
        packets => packets,
    }
}

/// A list of forwarding nodes as scripts write it, credits in hundredths.
fn forwarders(list: &[u8]) -> String {
    let entry = |entry: &[u8]| {
        let credit = f64::from(u16::from_be_bytes([entry[1], entry[2]])) / 512.0;
        format!("{}:{:.2}", entry[0], credit)
    };
    list.chunks(3).map(entry).collect::<Vec<_>>().join(",")
}

fn ack_id(text: &str, place: &str) -> AckId {
    let (receiver, batch) = text.split_once('/').unwrap_or_else(|| panic!("{place}"));
    AckId {
        receiver: number(receiver, place),
        batch: number(batch, place),
    }
}
