//! Which relay stands in which stage and group.

use alloc::vec;
use alloc::vec::Vec;

/// The relays of each stage and group; a place may be empty.
#[derive(Clone, Debug)]
pub(super) struct Places {
    places: Vec<Option<usize>>,
    stages: usize,
    groups: usize,
    relays: usize,
}

impl Places {
    pub fn empty(stages: usize, groups: usize, relays: usize) -> Places {
        Places {
            places: vec![None; stages * groups * relays],
            stages,
            groups,
            relays,
        }
    }

    pub fn clear(&mut self) {
        self.places.fill(None);
    }

    pub fn stages(&self) -> usize {
        self.stages
    }

    pub fn groups(&self) -> usize {
        self.groups
    }

    pub fn places(&self) -> usize {
        self.places.len()
    }

    pub fn at(&self, place: usize) -> Option<usize> {
        self.places[place]
    }

    pub fn set(&mut self, place: usize, node: Option<usize>) {
        self.places[place] = node;
    }

    /// As [`set`](Self::set); a place that does not exist is ignored.
    pub fn put(&mut self, stage: usize, group: usize, relay: usize, node: Option<usize>) {
        if relay < self.relays {
            self.places[(stage * self.groups + group) * self.relays + relay] = node;
        }
    }

    pub fn stage_of(&self, place: usize) -> usize {
        place / self.relays / self.groups
    }

    pub fn group_of(&self, place: usize) -> usize {
        place / self.relays % self.groups
    }

    pub fn place_of(&self, node: usize) -> Option<usize> {
        self.places.iter().position(|&place| place == Some(node))
    }

    pub fn members(&self, stage: usize, group: usize) -> impl Iterator<Item = usize> + '_ {
        let first = (stage * self.groups + group) * self.relays;
        self.places[first..first + self.relays]
            .iter()
            .flatten()
            .copied()
    }

    pub fn count(&self) -> usize {
        self.places.iter().flatten().count()
    }
}
