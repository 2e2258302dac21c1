//! Bodies in one allocation, made once.

use alloc::vec;
use alloc::vec::Vec;

/// A fixed number of places, each for a body of up to a fixed length.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    octets: Vec<u8>,
    lens: Vec<u32>,
    body_max: usize,
}

impl Store {
    pub fn new(places: usize, body_max: usize) -> Store {
        Store {
            octets: vec![0; places * body_max],
            lens: vec![0; places],
            body_max,
        }
    }

    /// The number of places.
    pub fn places(&self) -> usize {
        self.lens.len()
    }

    /// Octets that each place takes.
    pub fn octets_of_place(&self) -> usize {
        self.body_max + size_of::<u32>()
    }

    /// Makes more places; the bodies stay where they are.
    pub fn grow(&mut self, places: usize) {
        self.octets.resize(places * self.body_max, 0);
        self.lens.resize(places, 0);
    }

    /// The body at `place`; empty if there is none.
    pub fn get(&self, place: usize) -> &[u8] {
        let len = self.lens.get(place).map_or(0, |&len| len as usize);
        let from = place.saturating_mul(self.body_max);
        self.octets.get(from..from + len).unwrap_or_default()
    }

    /// Brings the body at place `from` to place `to`.
    pub fn shift(&mut self, from: usize, to: usize) {
        let len = self.get(from).len();
        let (start, end) = (
            from.saturating_mul(self.body_max),
            to.saturating_mul(self.body_max),
        );
        if end + len <= self.octets.len() {
            self.octets.copy_within(start..start + len, end);
            self.set_len(to, len);
        }
    }

    /// All octets of a place, whatever the length of its body.
    pub fn whole_mut(&mut self, place: usize) -> &mut [u8] {
        let from = place.saturating_mul(self.body_max);
        self.octets
            .get_mut(from..from + self.body_max)
            .unwrap_or_default()
    }

    /// Sets the length of the body at a place.
    pub fn set_len(&mut self, place: usize, len: usize) {
        if let Some(known) = self.lens.get_mut(place) {
            *known = len.min(self.body_max) as u32;
        }
    }

    /// Stores `parts`, joined, at a place; false if they do not fit.
    pub fn put(&mut self, place: usize, parts: &[&[u8]]) -> bool {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        let Some(mut space) = self.whole_mut(place).get_mut(..len) else {
            return false;
        };
        for part in parts {
            let Some((to, rest)) = space.split_at_mut_checked(part.len()) else {
                return false;
            };
            to.copy_from_slice(part);
            space = rest;
        }
        self.set_len(place, len);
        true
    }

    /// Appends `part` to the body at a place; false if it does not fit.
    pub fn append(&mut self, place: usize, part: &[u8]) -> bool {
        let len = self.get(place).len();
        match self.whole_mut(place).get_mut(len..len + part.len()) {
            Some(to) => to.copy_from_slice(part),
            None => return false,
        }
        self.set_len(place, len + part.len());
        true
    }
}

/// Arithmetic between two places.
impl Store {
    /// `to += factor * from`, over whole places that differ.
    pub fn axpy(&mut self, kernel: chappe_coding::Kernel, factor: u8, from: usize, to: usize) {
        let (low, high) = (from.min(to), from.max(to));
        let Some((front, back)) = self.octets.split_at_mut_checked(high * self.body_max) else {
            return;
        };
        let first = front.get_mut(low * self.body_max..(low + 1) * self.body_max);
        let second = back.get_mut(..self.body_max);
        let (Some(first), Some(second)) = (first, second) else {
            return;
        };
        let _ = match from < to {
            true => kernel.axpy(factor, first, second),
            false => kernel.axpy(factor, second, first),
        };
    }
}
