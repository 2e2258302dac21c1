//! How many of some nodes miss a frame.

/// For each of some senders the probabilities that 0, 1, ... up to a most of other nodes miss its frame.
pub(super) struct Missed {
    senders: usize,
    /// One row of all senders for each number of nodes.
    chances: Vec<f64>,
}

impl Missed {
    /// No node yet, so none misses a frame.
    pub fn none(most: usize, senders: usize) -> Missed {
        let mut chances = vec![0.0; (most + 1) * senders];
        chances[..senders].fill(1.0);
        Missed { senders, chances }
    }

    /// One more node, which senses the frames of each sender with the probabilities `heard`. A sender that is the node itself has 1, which changes
    /// nothing.
    pub fn add(&mut self, heard: &[f64]) {
        let all = self.senders;
        for count in (1..self.chances.len() / all.max(1)).rev() {
            let (fewer, these) = self.chances.split_at_mut(count * all);
            let fewer = &fewer[(count - 1) * all..];
            for ((this, fewer), heard) in these.iter_mut().zip(fewer).zip(heard) {
                *this = *this * heard + fewer * (1.0 - heard);
            }
        }
        let none = self.chances.iter_mut().zip(heard);
        none.for_each(|(none, heard)| *none *= heard);
    }

    /// The probability that at most so many nodes miss the frame of the sender at a place.
    pub fn at_most(&self, place: usize) -> f64 {
        let chances = self.chances.iter().skip(place);
        chances.step_by(self.senders.max(1)).sum()
    }

    /// The probability, of each sender, that just the most nodes miss its frame.
    pub fn exactly_most(&self) -> &[f64] {
        &self.chances[self.chances.len() - self.senders..]
    }
}
