//! The batches that a node holds: packets of a window of them, and the object itself if it is kept here.

use alloc::vec;
use alloc::vec::Vec;

use chappe_coding::{Encoder, Rows, Shape, non_zero, unit};

use crate::improved::K_MAX;
use crate::improved::header::{Coded, ObjectId};
use crate::improved::kept::Kept;
use crate::improved::outer::{Known, OuterCode};
use crate::improved::segments::Place;
use crate::layout::Layout;
use crate::object::Batches;
use crate::store::Store;

/// Stores kept for the next batch; more are given back to the allocator.
const SPARE: usize = 4;

/// The batches of one object at one node.
#[derive(Clone, Debug)]
pub(crate) struct Shelf {
    id: ObjectId,
    payload: usize,
    /// The first batch that has a place.
    base: u32,
    /// Places, at the batch's number modulo their count; none at the source.
    slots: Vec<Slot>,
    whole: Whole,
    spare: Vec<Store>,
    /// Batches that the object still lacks.
    missing: u32,
    /// The outer code, at the source and at a receiver that keeps the object in memory.
    outer: Option<OuterCode>,
}

#[derive(Clone, Debug)]
enum Slot {
    Empty,
    /// Independent packets, up to a full batch.
    Held(Store),
    /// Its packets are in the object.
    Decoded,
}

/// Where the complete object is.
#[derive(Clone, Debug)]
enum Whole {
    /// A relay has packets of some batches only.
    No,
    /// A receiver's memory, filled batch by batch.
    Copy(Vec<u8>),
    /// A receiver whose application keeps the batches.
    Elsewhere(Kept),
    /// The source's object, and how many packets of each batch went out uncoded.
    Original { object: Batches, plain: Vec<u8> },
}

/// What a packet added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gain {
    Nothing,
    /// It raised the rank.
    Rank,
    /// It completed its batch, which now waits for the application.
    Batch,
    /// It completed its batch, which is now in the object.
    Decoded,
    /// It completed the object by the outer code.
    Whole,
}

impl Shelf {
    /// The shelf of a relay, for at most `window` batches.
    pub fn relay(id: ObjectId, payload: usize, window: u32) -> Shelf {
        Shelf::new(id, payload, id.all().min(window), Whole::No)
    }

    /// The shelf of a receiver that keeps the object in memory.
    pub fn copy(id: ObjectId, layout: &Layout) -> Shelf {
        let memory = Whole::Copy(vec![0; layout.padded_len()]);
        let mut shelf = Shelf::new(id, layout.payload, id.all(), memory);
        shelf.outer = OuterCode::new(id, layout.payload);
        shelf
    }

    /// The shelf of a receiver whose application keeps the object: at most `places` batches are here. The application has
    /// those in `held` already.
    pub fn checked(id: ObjectId, payload: usize, places: u32, held: &[bool]) -> Shelf {
        let kept = Kept::new(id.batches, held);
        let missing = kept.lacking();
        // At least one place, or nothing could ever arrive.
        let places = id.batches.min(places.max(1));
        let mut shelf = Shelf::new(id, payload, places, Whole::Elsewhere(kept));
        shelf.missing = missing;
        shelf
    }

    /// The shelf of the source, which needs no places.
    pub fn source(id: ObjectId, payload: usize, object: Batches) -> Shelf {
        let plain = vec![0; id.all() as usize];
        let mut shelf = Shelf::new(id, payload, 0, Whole::Original { object, plain });
        shelf.missing = 0;
        shelf.outer = OuterCode::of_whole(id, payload);
        shelf
    }

    fn new(id: ObjectId, payload: usize, places: u32, whole: Whole) -> Shelf {
        Shelf {
            id,
            payload,
            base: 0,
            slots: vec![Slot::Empty; places as usize],
            whole,
            spare: Vec::with_capacity(SPARE),
            missing: id.batches,
            outer: None,
        }
    }

    fn place(&self, batch: u32) -> Option<usize> {
        place(self.base, self.slots.len(), batch)
    }

    fn slot(&self, batch: u32) -> Option<&Slot> {
        self.slots.get(self.place(batch)?)
    }

    fn slot_mut(&mut self, batch: u32) -> Option<&mut Slot> {
        let place = self.place(batch)?;
        self.slots.get_mut(place)
    }

    /// The first batch that has a place.
    pub fn base(&self) -> u32 {
        self.base
    }

    /// The first batch after those that have a place.
    pub fn end(&self) -> u32 {
        self.base.saturating_add(self.places())
    }

    /// Batches that have a place at the same time.
    pub fn places(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Gives the places of batches before `base` to later ones; a move backwards takes them from the last ones. Does nothing
    /// if every batch has a place.
    pub fn move_to(&mut self, base: u32) {
        let places = self.places();
        if places >= self.id.all() {
            return;
        }
        // At most as many as there are places: a hostile frame may move the base by billions of batches.
        let lost = match base.checked_sub(self.base) {
            Some(steps) => self.base..self.base.saturating_add(steps.min(places)),
            None => {
                let steps = self.base.saturating_sub(base).min(places);
                let end = self.base.saturating_add(places);
                end.saturating_sub(steps)..end
            }
        };
        for batch in lost {
            self.clear(batch);
        }
        self.base = base;
    }

    fn clear(&mut self, batch: u32) {
        if let Some(slot) = self.slot_mut(batch)
            && let Slot::Held(store) = core::mem::replace(slot, Slot::Empty)
            && self.spare.len() < SPARE
        {
            self.spare.push(store);
        }
    }

    /// Batches of which some packets are here and that are not decoded, with their ranks.
    pub fn ranks(&self, each: &mut dyn FnMut(u32, usize)) {
        for batch in self.base..self.end() {
            if let Some(Slot::Held(store)) = self.slot(batch) {
                each(batch, store.rank());
            }
        }
    }

    /// Independent packets of a batch that combinations can be made of.
    pub fn rank(&self, batch: u32) -> usize {
        match (self.slot(batch), &self.whole) {
            (_, Whole::Original { .. }) | (Some(Slot::Decoded), _) => self.id.packets(batch),
            (Some(Slot::Held(store)), _) => store.rank(),
            (Some(Slot::Empty) | None, _) if self.makes(batch) => self.id.packets(batch),
            (Some(Slot::Empty) | None, _) => 0,
        }
    }

    /// Whether this node can make every packet of a batch.
    pub fn is_full(&self, batch: u32) -> bool {
        self.rank(batch) >= self.id.packets(batch)
    }

    /// Whether the object needs no more packets of a batch. An application may keep a batch whose packets have left the
    /// shelf.
    pub fn is_settled(&self, batch: u32) -> bool {
        let kept = matches!(&self.whole, Whole::Elsewhere(kept) if kept.is_settled(batch));
        kept || self.is_full(batch)
    }

    /// Whether there is a place for a batch.
    pub fn has_place(&self, batch: u32) -> bool {
        self.place(batch).is_some()
    }

    /// Collects this batch and those after it before the ones that it lacks from the beginning. False if it keeps the object itself,
    /// with a place for every batch.
    pub fn begin_at(&mut self, batch: u32) -> bool {
        let Whole::Elsewhere(kept) = &mut self.whole else {
            return false;
        };
        let inside = batch < self.id.batches;
        if inside {
            kept.begin_at(batch);
            self.move_to(batch);
        }
        inside
    }

    /// The first batch of this round that the object lacks; one that the application has not accepted yet counts as lacking.
    pub fn first_missing(&self) -> Option<u32> {
        if let Whole::Elsewhere(kept) = &self.whole {
            return kept.first_missing();
        }
        let places = self.base..self.end().min(self.id.all());
        places.into_iter().find(|&batch| !self.is_full(batch))
    }

    /// Whether the object is whole.
    pub fn is_whole(&self) -> bool {
        self.missing == 0
    }

    /// Whether this node can make packets of every batch, also of those of the outer code.
    pub fn makes_all(&self) -> bool {
        self.outer.is_some() && self.is_whole()
    }

    /// Whether this node can make packets of a batch, and of every other batch of its segment, without having received them.
    pub fn makes(&self, batch: u32) -> bool {
        let outer = self.outer.as_ref();
        outer.is_some_and(|outer| {
            let segment = self.id.segment(batch);
            segment.is_some_and(|segment| outer.is_whole(segment))
        })
    }

    /// Whether all of a segment is here.
    pub fn has_segment(&self, segment: u32) -> bool {
        let outer = self.outer.as_ref();
        outer.is_some_and(|outer| outer.is_whole(segment))
    }

    /// Takes in a packet.
    pub fn insert(&mut self, coded: &Coded<'_>) -> Gain {
        if self.makes(coded.batch) {
            return Gain::Nothing;
        }
        let gain = self.put(coded);
        match gain != Gain::Nothing && self.solve(coded.batch) {
            true => {
                // Not handed to the application yet.
                if let Some(slot) = self.slot_mut(coded.batch) {
                    *slot = Slot::Empty;
                }
                Gain::Whole
            }
            false => gain,
        }
    }

    /// Counts a packet of a batch, and solves for the batch's segment by the outer code, if all its batches together suffice.
    fn solve(&mut self, batch: u32) -> bool {
        let (Some(outer), Whole::Copy(octets)) = (&mut self.outer, &mut self.whole) else {
            return false;
        };
        let Some(segment) = self.id.segment(batch).filter(|&of| outer.count(of)) else {
            return false;
        };
        let (base, slots) = (self.base, &self.slots);
        let known = |batch| match place(base, slots.len(), batch).and_then(|at| slots.get(at)) {
            Some(Slot::Held(store)) => Known::Some(store),
            Some(Slot::Decoded) => Known::All,
            Some(Slot::Empty) | None => Known::Nothing,
        };
        let Some(solved) = outer.solve(segment, known, octets) else {
            return false;
        };
        self.missing = self.missing.saturating_sub(solved);
        let numbers = outer.numbers(segment);
        self.spare.clear();
        for batch in numbers {
            if let Some(slot @ Slot::Held(_)) = self.slot_mut(batch) {
                *slot = Slot::Empty;
            }
        }
        true
    }

    /// After the segment of a batch was solved for, the next of its batches that is new to the application, by its number in the object.
    pub fn next_solved(&mut self, of: u32) -> Option<u32> {
        let segment = self.id.segment(of).filter(|_| self.makes(of))?;
        let mut numbers = self.outer.as_ref()?.numbers(segment);
        let waits = |batch: &u32| matches!(self.slot(*batch), Some(Slot::Empty));
        let batch = numbers.find(waits)?;
        let own = self.id.own(batch)?;
        *self.slot_mut(batch)? = Slot::Decoded;
        Some(own)
    }

    fn put(&mut self, coded: &Coded<'_>) -> Gain {
        let (id, payload) = (self.id, self.payload);
        let Some(place) = self.place(coded.batch) else {
            return Gain::Nothing;
        };
        let Some(slot) = self.slots.get_mut(place) else {
            return Gain::Nothing;
        };
        if matches!(slot, Slot::Empty) {
            let shape = Shape::new(id.packets(coded.batch), payload).ok();
            let fresh = shape.and_then(|shape| match self.spare.pop() {
                Some(mut store) => store.reset(shape).then_some(store),
                None => Store::new(id.k.into(), payload, shape),
            });
            let Some(store) = fresh else {
                return Gain::Nothing;
            };
            *slot = Slot::Held(store);
        }
        let Slot::Held(store) = slot else {
            // Decoded: no packet is innovative any more.
            return Gain::Nothing;
        };
        let mut room = [0; K_MAX];
        if !store.insert(coded.vector.expand(&mut room), coded.payload) {
            return Gain::Nothing;
        }
        if !store.is_full() {
            return Gain::Rank;
        }
        let Place::Own {
            segment,
            batch: own,
        } = id.place(coded.batch)
        else {
            return Gain::Batch;
        };
        let octets = match &mut self.whole {
            Whole::Copy(octets) => octets,
            Whole::Elsewhere(kept) => {
                kept.complete(own);
                return Gain::Batch;
            }
            Whole::No | Whole::Original { .. } => return Gain::Batch,
        };
        let start = own as usize * usize::from(id.k) * payload;
        let octets = octets.get_mut(start..).unwrap_or_default();
        let length = id.packets(coded.batch) * payload;
        if !store.decode_into(octets.get_mut(..length).unwrap_or_default()) {
            return Gain::Nothing;
        }
        // From now on combinations are made from the object, so the store is free for another batch.
        if let Slot::Held(store) = core::mem::replace(slot, Slot::Decoded)
            && self.spare.len() < SPARE
        {
            self.spare.push(store);
        }
        self.missing = self.missing.saturating_sub(1);
        if let Some(outer) = &mut self.outer {
            outer.complete(segment);
        }
        Gain::Decoded
    }

    /// The next packet of a batch that the source has not sent yet.
    pub fn next_plain(&self, batch: u32) -> Option<u8> {
        let Whole::Original { plain, .. } = &self.whole else {
            return None;
        };
        let next = *plain.get(batch as usize)?;
        (usize::from(next) < self.id.packets(batch)).then_some(next)
    }

    /// Writes the next packet that the source has not sent yet. False if there is none.
    pub fn write_plain(&mut self, batch: u32, payload: &mut [u8]) -> bool {
        let Some(next) = self.next_plain(batch) else {
            return false;
        };
        let Whole::Original { object, plain } = &mut self.whole else {
            return false;
        };
        let start = usize::from(next) * payload.len();
        if let Some(own) = self.id.own(batch) {
            let rows = object.batch(own).unwrap_or_default();
            let Some(row) = rows.get(start..start + payload.len()) else {
                return false;
            };
            payload.copy_from_slice(row);
        } else {
            let (Some(outer), Some(parts)) = (&mut self.outer, object.parts()) else {
                return false;
            };
            let mut vector = [0; K_MAX];
            unit(next.into(), &mut vector);
            outer.write(batch, &vector, parts, payload);
        }
        if let Some(sent) = plain.get_mut(batch as usize) {
            *sent = next + 1;
        }
        true
    }

    /// Writes a fresh combination of the packets of a batch. False if there is none.
    pub fn write(
        &mut self,
        batch: u32,
        random: &mut impl FnMut(&mut [u8]),
        vector: &mut [u8],
        payload: &mut [u8],
    ) -> bool {
        let packets = self.id.packets(batch);
        let Some(own) = self.id.own(batch) else {
            return self.write_coded(batch, random, vector, payload);
        };
        if let Whole::Original { object, .. } = &mut self.whole {
            let rows = object.batch(own).unwrap_or_default();
            return encode(rows, packets, random, vector, payload);
        }
        let start = own as usize * usize::from(self.id.k) * self.payload;
        match (self.slot(batch), &self.whole) {
            (Some(Slot::Held(store)), _) => store.recode(&mut *random, vector, payload),
            (Some(Slot::Decoded), Whole::Copy(octets)) => {
                let rows = octets.get(start..).unwrap_or_default();
                encode(rows, packets, random, vector, payload)
            }
            _ => false,
        }
    }

    /// As [`write`](Self::write), for a batch of the outer code.
    fn write_coded(
        &mut self,
        batch: u32,
        random: &mut impl FnMut(&mut [u8]),
        vector: &mut [u8],
        payload: &mut [u8],
    ) -> bool {
        if let Some(Slot::Held(store)) = self.slot(batch) {
            return store.recode(&mut *random, vector, payload);
        }
        let makes = self.makes(batch);
        let parts = match &self.whole {
            Whole::Original { object, .. } => object.parts(),
            Whole::Copy(octets) => Some([octets.as_slice(), &[]]),
            Whole::No | Whole::Elsewhere(_) => None,
        };
        let (Some(outer), Some(parts)) = (self.outer.as_mut().filter(|_| makes), parts) else {
            return false;
        };
        non_zero(vector, random);
        outer.write(batch, vector, parts, payload);
        true
    }

    /// The object, filled up to whole packets, if it is kept here.
    pub fn octets(&self) -> Option<&[u8]> {
        match &self.whole {
            Whole::Copy(octets) => Some(octets),
            Whole::No | Whole::Elsewhere(_) | Whole::Original { .. } => None,
        }
    }
}

/// For an application that keeps the batches.
impl Shelf {
    /// Writes the next complete batch that was not handed out yet, packet by packet, and returns its number.
    pub fn hand_out(&mut self, into: &mut Vec<u8>) -> Option<u32> {
        let (base, slots) = (self.base, &self.slots);
        let Whole::Elsewhere(kept) = &mut self.whole else {
            return None;
        };
        let is_full = |batch: u32| {
            let slot = place(base, slots.len(), batch).and_then(|place| slots.get(place));
            matches!(slot, Some(Slot::Held(store)) if store.is_full())
        };
        let batch = kept.next(is_full)?;
        let Some(Slot::Held(store)) = self.slot(batch) else {
            return None;
        };
        into.clear();
        into.resize(self.id.packets(batch) * self.payload, 0);
        if !store.decode_into(into) {
            return None;
        }
        if let Whole::Elsewhere(kept) = &mut self.whole {
            kept.hand_out(batch);
        }
        Some(batch)
    }

    /// Notes that the application has kept a batch; false if it was not handed out. The packets stay while there is a place,
    /// for the nodes behind.
    pub fn accept(&mut self, batch: u32) -> bool {
        let accepted = match &mut self.whole {
            Whole::Elsewhere(kept) => kept.accept(batch),
            _ => false,
        };
        if accepted {
            self.missing = self.missing.saturating_sub(1);
        }
        accepted
    }

    /// Drops all packets of a batch that the application gets by another way: it is not collected again. False if the application has
    /// it.
    pub fn set_aside(&mut self, batch: u32) -> bool {
        let aside = match &mut self.whole {
            Whole::Elsewhere(kept) => kept.set_aside(batch),
            _ => false,
        };
        if aside {
            self.clear(batch);
        }
        aside
    }

    /// Drops all packets of a batch that the application found wrong.
    pub fn reject(&mut self, batch: u32) {
        let rejected = match &mut self.whole {
            Whole::Elsewhere(kept) => kept.reject(batch),
            _ => false,
        };
        if rejected {
            self.clear(batch);
        }
    }
}

/// The place of a batch among so many, the first of which is that of `base`.
fn place(base: u32, places: usize, batch: u32) -> Option<usize> {
    let ahead = batch.checked_sub(base)? as usize;
    (ahead < places).then(|| batch as usize % places)
}

fn encode(
    rows: &[u8],
    packets: usize,
    random: &mut impl FnMut(&mut [u8]),
    vector: &mut [u8],
    payload: &mut [u8],
) -> bool {
    let rows = rows.get(..packets * payload.len()).unwrap_or_default();
    let encoder = Shape::new(packets, payload.len())
        .and_then(|shape| Rows::new(shape, rows))
        .and_then(Encoder::new);
    encoder.is_ok_and(|encoder| encoder.encode_random(&mut *random, vector, payload).is_ok())
}
