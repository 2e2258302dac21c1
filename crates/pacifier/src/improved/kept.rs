//! The batches of an object that the application keeps, outside this crate's memory.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

/// How far each batch is on its way into the application.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    batches: Vec<State>,
    /// All batches from the start of the first round up to this one are accepted, and all up to the other one. Each frame asks for
    /// the first that is not, so nothing searches for it.
    round: u32,
    all: u32,
    /// Batches that became complete and may wait to be handed out.
    complete: BTreeSet<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Lacking,
    /// Handed out, but neither accepted nor rejected yet.
    HandedOut,
    Accepted,
}

impl Kept {
    /// Of `count` batches the application has those in `held` already.
    pub fn new(count: u32, held: &[bool]) -> Kept {
        let state = |batch: u32| match held.get(batch as usize) {
            Some(true) => State::Accepted,
            _ => State::Lacking,
        };
        let mut kept = Kept {
            batches: (0..count).map(state).collect(),
            round: 0,
            all: 0,
            complete: BTreeSet::new(),
        };
        kept.advance();
        kept
    }

    /// Batches that were neither accepted nor handed out.
    pub fn lacking(&self) -> u32 {
        let lacking = |state: &&State| **state == State::Lacking;
        self.batches.iter().filter(lacking).count() as u32
    }

    fn is(&self, batch: u32, state: State) -> bool {
        self.batches.get(batch as usize) == Some(&state)
    }

    /// Whether no more packets of a batch are needed.
    pub fn is_settled(&self, batch: u32) -> bool {
        self.is(batch, State::HandedOut) || self.is(batch, State::Accepted)
    }

    /// Notes that the application gets a batch by another way; false if it has it.
    pub fn set_aside(&mut self, batch: u32) -> bool {
        let lacks = self.is(batch, State::Lacking) || self.is(batch, State::HandedOut);
        if lacks {
            self.hand_out(batch);
        }
        lacks
    }

    /// Begins the first round at this batch; those before it come in a second one.
    pub fn begin_at(&mut self, batch: u32) {
        self.round = batch;
        self.advance();
    }

    /// The first batch of this round that was not accepted, or else the first of all.
    pub fn first_missing(&self) -> Option<u32> {
        let count = self.batches.len() as u32;
        let inside = |batch: &u32| *batch < count;
        Some(self.round)
            .filter(inside)
            .or(Some(self.all).filter(inside))
    }

    fn advance(&mut self) {
        while self.is(self.round, State::Accepted) {
            self.round += 1;
        }
        while self.is(self.all, State::Accepted) {
            self.all += 1;
        }
    }

    /// Notes that all packets of a batch are here.
    pub fn complete(&mut self, batch: u32) {
        self.complete.insert(batch);
    }

    /// The first complete batch that was not handed out, if `is_here` says that its packets still are.
    pub fn next(&mut self, is_here: impl Fn(u32) -> bool) -> Option<u32> {
        let (batches, here) = (&self.batches, is_here);
        let lacking = |batch: u32| batches.get(batch as usize) == Some(&State::Lacking);
        self.complete.retain(|&batch| lacking(batch) && here(batch));
        self.complete.first().copied()
    }

    /// Notes that the application has got a batch and looks at it.
    pub fn hand_out(&mut self, batch: u32) {
        self.complete.remove(&batch);
        self.set(batch, State::HandedOut);
    }

    /// Notes that the application has kept a batch; false if it was not handed out.
    pub fn accept(&mut self, batch: u32) -> bool {
        let handed_out = self.is(batch, State::HandedOut);
        if handed_out {
            self.set(batch, State::Accepted);
            self.advance();
        }
        handed_out
    }

    /// Notes that the application found a batch wrong; false if it was not handed out.
    pub fn reject(&mut self, batch: u32) -> bool {
        let handed_out = self.is(batch, State::HandedOut);
        if handed_out {
            self.set(batch, State::Lacking);
        }
        handed_out
    }

    fn set(&mut self, batch: u32, state: State) {
        if let Some(place) = self.batches.get_mut(batch as usize) {
            *place = state;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_core::{Purpose, Seed};

    /// Goal: what is remembered is what a search would find. Method: random batches are completed, dropped, handed out, accepted
    /// and rejected, from a random start, until all are accepted.
    #[test]
    fn the_first_missing_batch_is_that_of_a_search() {
        for seed in 0..20 {
            let mut random = Seed(seed).stream(Purpose::Trial(0));
            let count = 1 + random.below(60) as u32;
            let held: Vec<bool> = (0..count).map(|_| random.below(4) == 0).collect();
            let mut kept = Kept::new(count, &held);
            let start = random.below(count.into()) as u32;
            kept.begin_at(start);
            let mut here: Vec<bool> = (0..count).map(|_| false).collect();
            loop {
                let accepted = |batch: &u32| kept.is(*batch, State::Accepted);
                let lacks = |batch: &u32| !accepted(batch);
                let first = (start..count)
                    .find(lacks)
                    .or_else(|| (0..count).find(lacks));
                assert_eq!(kept.first_missing(), first, "seed {seed}");
                if first.is_none() {
                    break;
                }
                let batch = random.below(count.into()) as u32;
                let place = batch as usize;
                match random.below(5) {
                    // A batch that has left the shelf may be completed again.
                    0 => here[place] = false,
                    1 => assert!(!kept.accept(batch) || kept.is(batch, State::Accepted)),
                    // The shelf drops the packets of a rejected batch.
                    2 if kept.reject(batch) => here[place] = false,
                    2 => {}
                    3 if kept.is(batch, State::Lacking) => {
                        here[place] = true;
                        kept.complete(batch);
                    }
                    _ => {
                        let waits =
                            |batch: &u32| kept.is(*batch, State::Lacking) && here[*batch as usize];
                        let expected = (0..count).find(waits);
                        let next = kept.next(|batch| here[batch as usize]);
                        assert_eq!(next, expected, "seed {seed}");
                        next.into_iter().for_each(|batch| kept.hand_out(batch));
                    }
                }
            }
        }
    }
}
