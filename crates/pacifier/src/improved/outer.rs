//! The outer code at a node that has the whole object, or collects it: a receiver has a segment of the object when all batches of the segment,
//! with the coded ones, have as much rank together as the segment has packets ([`Outer`], `segments.rs`).

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use chappe_coding::{Equations, MAX_SOURCES, Outer};

use super::header::ObjectId;
use super::segments::{Place, Segments};
use crate::store::Store;

/// The outer codes of one object.
#[derive(Clone, Debug)]
pub(super) struct OuterCode {
    id: ObjectId,
    segments: Segments,
    payload: usize,
    /// What is known of each segment, by its number.
    parts: Vec<Part>,
    /// The coefficients of a packet, over those of its segment.
    coefficients: Vec<u8>,
}

/// What is known of one segment.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// Ranks in all its batches together.
    rank: usize,
    /// The rank at which to try to solve.
    try_at: usize,
    /// Batches of the object that it lacks.
    missing: u32,
}

/// What a receiver has of a batch.
pub(super) enum Known<'a> {
    Nothing,
    Some(&'a Store),
    /// The packets of the object themselves.
    All,
}

impl OuterCode {
    /// The codes of an object whose packets have `payload` octets, of which all batches are missing; `None` if it has no outer code.
    pub fn new(id: ObjectId, payload: usize) -> Option<OuterCode> {
        let segments = id.segments()?;
        let part = |segment| {
            let own = segments.own(segment);
            Part {
                rank: 0,
                try_at: packets(&id, &own).len(),
                missing: own.end - own.start,
            }
        };
        Some(OuterCode {
            id,
            segments,
            payload,
            parts: (0..segments.count()).map(part).collect(),
            coefficients: vec![0; id.sources().min(MAX_SOURCES)],
        })
    }

    /// The codes of an object that is here already.
    pub fn of_whole(id: ObjectId, payload: usize) -> Option<OuterCode> {
        let mut code = OuterCode::new(id, payload)?;
        for part in &mut code.parts {
            part.missing = 0;
        }
        Some(code)
    }

    /// Whether nothing of a segment is missing.
    pub fn is_whole(&self, segment: u32) -> bool {
        let part = self.parts.get(segment as usize);
        part.is_some_and(|part| part.missing == 0)
    }

    /// The numbers of all batches of a segment.
    pub fn numbers(&self, segment: u32) -> impl Iterator<Item = u32> + use<> {
        self.segments.numbers(segment)
    }

    /// Counts a packet that raised the rank of a batch of this segment; true if the segment may be solved for.
    pub fn count(&mut self, segment: u32) -> bool {
        let Some(part) = self.parts.get_mut(segment as usize) else {
            return false;
        };
        part.rank += 1;
        part.rank >= part.try_at
    }

    /// Counts a batch of the object that is here now.
    pub fn complete(&mut self, segment: u32) {
        if let Some(part) = self.parts.get_mut(segment as usize) {
            part.missing = part.missing.saturating_sub(1);
        }
    }

    /// Writes the combination `vector` of the packets of a coded batch; the packets of the object are the `parts` one after the other.
    pub fn write(&mut self, batch: u32, vector: &[u8], parts: [&[u8]; 2], payload: &mut [u8]) {
        payload.fill(0);
        let Place::Coded { segment, number } = self.segments.place(batch) else {
            return;
        };
        let packets = packets(&self.id, &self.segments.own(segment));
        let Ok(code) = Outer::new(packets.len()) else {
            return;
        };
        code.coefficients(number, vector, &mut self.coefficients);
        let mut rest = self.coefficients.get(..packets.len()).unwrap_or_default();
        let (mut skipped, len) = (packets.start, payload.len().max(1));
        for part in parts {
            let all = part.len() / len;
            let first = skipped.min(all);
            skipped -= first;
            let (these, others) = rest.split_at_checked(all - first).unwrap_or((rest, &[]));
            rest = others;
            // Whole packets: the parts are filled up.
            let part = part.get(first * len..).unwrap_or_default();
            let _ = code.add(these, part, payload);
        }
    }

    /// Solves for the packets of a segment that `octets`, the object filled up to whole packets, lacks, and writes them there; returns
    /// how many batches of the object that completes. If equations are missing, another try comes when so many packets more have
    /// come.
    pub fn solve<'a>(
        &mut self,
        segment: u32,
        known: impl Fn(u32) -> Known<'a>,
        octets: &mut [u8],
    ) -> Option<u32> {
        let (k, payload) = (usize::from(self.id.k), self.payload);
        let packets = packets(&self.id, &self.segments.own(segment));
        let code = Outer::new(packets.len()).ok()?;
        let octets = octets.get_mut(packets.start * payload..packets.end * payload)?;
        let mut places = vec![None; packets.len()];
        let mut unknowns = Vec::new();
        for (packet, place) in packets.zip(&mut places) {
            let batch = self.segments.number((packet / k.max(1)) as u32);
            if !matches!(known(batch), Known::All) {
                *place = Some(unknowns.len());
                unknowns.push(packet);
            }
        }
        let start = self.segments.own(segment).start as usize * k;
        let mut memory = vec![0; Equations::bytes(unknowns.len(), payload)];
        let mut equations = Equations::new(unknowns.len(), payload, &mut memory).ok()?;
        let mut row = vec![0; unknowns.len() + payload];
        let mut vector = vec![0; k];
        for batch in self.numbers(segment) {
            let Known::Some(store) = known(batch) else {
                continue;
            };
            for index in 0..store.rank() {
                row.fill(0);
                let (weights, sum) = row.split_at_mut(unknowns.len());
                let vector = vector.get_mut(..self.id.packets(batch)).unwrap_or_default();
                if equations.missing() == 0 || !store.reduced(index, vector, sum) {
                    break;
                }
                self.spread(&code, batch, vector);
                for (factor, place) in self.coefficients.iter_mut().zip(&places) {
                    if let Some(weight) = place.and_then(|place| weights.get_mut(place)) {
                        *weight = core::mem::take(factor);
                    }
                }
                // Those of known packets are left.
                let left = self.coefficients.get(..places.len()).unwrap_or_default();
                let _ = code.add(left, octets, sum);
                equations.insert(&mut row);
            }
        }
        let part = self.parts.get_mut(segment as usize)?;
        part.try_at = part.rank + equations.missing();
        if !equations.solve() {
            return None;
        }
        for (place, packet) in unknowns.into_iter().enumerate() {
            let to = octets.get_mut((packet - start) * payload..);
            if let Some(to) = to.unwrap_or_default().get_mut(..payload) {
                to.copy_from_slice(equations.packet(place));
            }
        }
        Some(core::mem::take(&mut part.missing))
    }

    /// Sets the coefficients to those of a combination of the packets of a batch of the code's segment, which may be coded.
    fn spread(&mut self, code: &Outer, batch: u32, vector: &[u8]) {
        match self.segments.place(batch) {
            Place::Coded { number, .. } => {
                code.coefficients(number, vector, &mut self.coefficients);
            }
            Place::Own { segment, batch } => {
                self.coefficients.fill(0);
                let first = batch.saturating_sub(self.segments.own(segment).start);
                let start = first as usize * usize::from(self.id.k);
                let own = self.coefficients.get_mut(start..).unwrap_or_default();
                for (to, from) in own.iter_mut().zip(vector) {
                    *to = *from;
                }
            }
            Place::Beyond => self.coefficients.fill(0),
        }
    }
}

/// The packets of a range of batches of an object, by their numbers in it.
fn packets(id: &ObjectId, own: &Range<u32>) -> Range<usize> {
    let k = usize::from(id.k);
    let start = (own.start as usize).saturating_mul(k);
    let end = (own.end as usize).saturating_mul(k);
    start..end.min(id.sources())
}
