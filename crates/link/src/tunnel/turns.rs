//! Whose turn it is: the peers that something has happened to, and those whose deadline has come. A round of the loop costs what
//! these peers cost, however many others there are.

use std::collections::BTreeSet;

use chappe_core::Instant;

/// The deadlines of peers by their place.
#[derive(Debug, Default)]
pub(super) struct Turns {
    due: BTreeSet<(Instant, usize)>,
    at: Vec<Option<Instant>>,
    touched: BTreeSet<usize>,
}

impl Turns {
    /// Something has happened to a peer: it gets a turn in this round.
    pub fn touch(&mut self, place: usize) {
        self.touched.insert(place);
    }

    /// Sets the deadline of a peer; `None` if it has none, or is gone.
    pub fn set(&mut self, place: usize, at: Option<Instant>) {
        if place >= self.at.len() {
            self.at.resize(place + 1, None);
        }
        let Some(own) = self.at.get_mut(place) else {
            return;
        };
        if let Some(before) = std::mem::replace(own, at) {
            self.due.remove(&(before, place));
        }
        self.due.extend(at.map(|at| (at, place)));
    }

    /// The next peer that has its turn now.
    pub fn next(&mut self, now: Instant) -> Option<usize> {
        if let Some(place) = self.touched.pop_first() {
            return Some(place);
        }
        let (at, place) = *self.due.first()?;
        if at > now {
            return None;
        }
        self.set(place, None);
        Some(place)
    }

    /// The earliest deadline of all peers.
    pub fn earliest(&self) -> Option<Instant> {
        self.due.first().map(|first| first.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: touched peers come first, then those that are due in the order of their deadlines, each once; a new deadline
    /// replaces the old one.
    #[test]
    fn turns_come_in_order() {
        let at = Instant::from_millis;
        let mut turns = Turns::default();
        for (place, millis) in [(0, 30), (1, 10), (2, 20), (3, 40)] {
            turns.set(place, Some(at(millis)));
        }
        turns.set(0, Some(at(15)));
        turns.set(2, None);
        turns.touch(3);
        turns.touch(3);
        assert_eq!(turns.earliest(), Some(at(10)));
        let order: Vec<_> = std::iter::from_fn(|| turns.next(at(30))).collect();
        assert_eq!(order, [3, 1, 0]);
        assert_eq!(turns.earliest(), Some(at(40)));
    }
}
