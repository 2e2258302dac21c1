//! The outer code at a node that has the whole object, or collects it: coded batches follow those of the object, and a receiver is
//! complete when all batches together have as much rank as the object has packets ([`Outer`]).

use alloc::vec;
use alloc::vec::Vec;

use chappe_coding::{Equations, Outer};

use super::header::ObjectId;
use crate::store::Store;

/// The outer code of one object.
#[derive(Clone, Debug)]
pub(super) struct OuterCode {
    id: ObjectId,
    code: Outer,
    payload: usize,
    /// Ranks in all batches together.
    rank: usize,
    /// The rank at which to try to solve.
    try_at: usize,
    /// The coefficients of a packet, over those of the object.
    coefficients: Vec<u8>,
}

/// What a receiver has of a batch.
pub(super) enum Known<'a> {
    Nothing,
    Some(&'a Store),
    /// The packets of the object themselves.
    All,
}

impl OuterCode {
    /// The code of an object whose packets have `payload` octets; `None` if it has no outer code.
    pub fn new(id: ObjectId, payload: usize) -> Option<OuterCode> {
        let code = Outer::new(id.sources()).ok().filter(|_| id.outer)?;
        Some(OuterCode {
            id,
            code,
            payload,
            rank: 0,
            try_at: id.sources(),
            coefficients: vec![0; id.sources()],
        })
    }

    /// Counts a packet that raised the rank of its batch; true if the object may be solved for.
    pub fn count(&mut self) -> bool {
        self.rank += 1;
        self.rank >= self.try_at
    }

    /// Writes the combination `vector` of the packets of a coded batch; the packets of the object are the `parts` one after the other.
    pub fn write(&mut self, batch: u32, vector: &[u8], parts: [&[u8]; 2], payload: &mut [u8]) {
        let coded = batch.saturating_sub(self.id.batches);
        self.code
            .coefficients(coded, vector, &mut self.coefficients);
        payload.fill(0);
        let mut rest = self.coefficients.as_slice();
        for part in parts {
            let count = part.len() / payload.len().max(1);
            let (these, others) = rest.split_at_checked(count).unwrap_or((rest, &[]));
            rest = others;
            // Whole packets: the parts are filled up.
            let _ = self.code.add(these, part, payload);
        }
    }

    /// Solves for the packets that `octets`, the object filled up to whole packets, lacks, and writes them there. If equations are
    /// missing, another try comes when so many packets more have come.
    pub fn solve<'a>(&mut self, known: impl Fn(u32) -> Known<'a>, octets: &mut [u8]) -> bool {
        let (k, payload) = (usize::from(self.id.k), self.payload);
        let mut places = vec![None; self.id.sources()];
        let mut unknowns = Vec::new();
        for (packet, place) in places.iter_mut().enumerate() {
            if !matches!(known((packet / k.max(1)) as u32), Known::All) {
                *place = Some(unknowns.len());
                unknowns.push(packet);
            }
        }
        let mut memory = vec![0; Equations::bytes(unknowns.len(), payload)];
        let Ok(mut equations) = Equations::new(unknowns.len(), payload, &mut memory) else {
            return false;
        };
        let mut row = vec![0; unknowns.len() + payload];
        let mut vector = vec![0; k];
        for batch in 0..self.id.all() {
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
                self.spread(batch, vector);
                for (factor, place) in self.coefficients.iter_mut().zip(&places) {
                    if let Some(weight) = place.and_then(|place| weights.get_mut(place)) {
                        *weight = core::mem::take(factor);
                    }
                }
                // Those of known packets are left.
                let _ = self.code.add(&self.coefficients, octets, sum);
                equations.insert(&mut row);
            }
        }
        self.try_at = self.rank + equations.missing();
        if !equations.solve() {
            return false;
        }
        for (place, packet) in unknowns.into_iter().enumerate() {
            let to = octets.get_mut(packet * payload..).unwrap_or_default();
            if let Some(to) = to.get_mut(..payload) {
                to.copy_from_slice(equations.packet(place));
            }
        }
        true
    }

    /// Sets the coefficients to those of a combination of the packets of a batch, which may be coded.
    fn spread(&mut self, batch: u32, vector: &[u8]) {
        if let Some(coded) = batch.checked_sub(self.id.batches) {
            return self
                .code
                .coefficients(coded, vector, &mut self.coefficients);
        }
        self.coefficients.fill(0);
        let start = batch as usize * usize::from(self.id.k);
        let own = self.coefficients.get_mut(start..).unwrap_or_default();
        for (to, from) in own.iter_mut().zip(vector) {
            *to = *from;
        }
    }
}
