//! Datagrams and segments in one allocation.

use alloc::vec;
use alloc::vec::Vec;

/// A fixed number of places, each for up to a fixed number of bytes.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    octets: Vec<u8>,
    lens: Vec<usize>,
    longest: usize,
}

impl Store {
    pub fn new(places: usize, longest: usize) -> Store {
        Store {
            octets: vec![0; places * longest],
            lens: vec![0; places],
            longest,
        }
    }

    /// What is stored at `place`; empty if nothing is.
    pub fn get(&self, place: usize) -> &[u8] {
        let len = self.lens.get(place).copied().unwrap_or(0);
        let from = place.saturating_mul(self.longest);
        self.octets.get(from..from + len).unwrap_or_default()
    }

    /// Replaces what is stored at `place` by `parts`, joined; false, without a change, if they do not fit.
    pub fn put(&mut self, place: usize, parts: &[&[u8]]) -> bool {
        let total: usize = parts.iter().map(|part| part.len()).sum();
        let Some(len) = self.lens.get_mut(place).filter(|_| total <= self.longest) else {
            return false;
        };
        *len = 0;
        parts.iter().all(|part| self.append(place, part))
    }

    /// Adds `part` at the end of what is stored at `place`; false if it does not fit.
    pub fn append(&mut self, place: usize, part: &[u8]) -> bool {
        let Some(len) = self.lens.get_mut(place) else {
            return false;
        };
        let begin = place.saturating_mul(self.longest);
        let end = len.saturating_add(part.len());
        let to = self.octets.get_mut(begin + *len..begin + end);
        match to.filter(|_| end <= self.longest) {
            Some(to) => to.copy_from_slice(part),
            None => return false,
        }
        *len = end;
        true
    }
}
