//! Detection of duplicate frames.

use chappe_core::{Address, Duration, Instant};

/// How many neighbours are remembered: a new one replaces the one that was noted first.
const NEIGHBOURS: usize = 16;
/// A sequence number of 8 bits soon wraps, so an equal number marks a duplicate only for this long. The frame of a sender
/// that pauses longer between attempts may be delivered twice, which the layers above must tolerate anyway.
const MEMORY: Duration = Duration::from_secs(1);

/// The last sequence number of each neighbour.
#[derive(Clone, Debug, Default)]
pub(super) struct Duplicates {
    last: [Option<(Address, u8, Instant)>; NEIGHBOURS],
    oldest: usize,
}

impl Duplicates {
    /// Records a frame and returns whether it repeats the neighbour's previous one.
    pub fn is_duplicate(&mut self, now: Instant, from: Address, sequence: u8) -> bool {
        let known = |entry: &&mut Option<(Address, u8, Instant)>| {
            entry.is_some_and(|(neighbour, ..)| neighbour == from)
        };
        if let Some(entry) = self.last.iter_mut().find(known) {
            let repeats = entry.is_some_and(|(_, before, at)| {
                before == sequence && now.saturating_since(at) < MEMORY
            });
            // A repetition leaves the time of the first copy, or a run of them would stretch the memory past the wrap.
            if !repeats {
                *entry = Some((from, sequence, now));
            }
            return repeats;
        }
        if let Some(entry) = self.last.get_mut(self.oldest) {
            *entry = Some((from, sequence, now));
        }
        self.oldest = (self.oldest + 1) % NEIGHBOURS;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_repeats_only_soon() {
        let mut duplicates = Duplicates::default();
        let (a, b) = (Address::node(1), Address::node(2));
        let ms = Instant::from_millis;
        assert!(!duplicates.is_duplicate(ms(0), a, 7));
        assert!(duplicates.is_duplicate(ms(40), a, 7));
        assert!(!duplicates.is_duplicate(ms(40), b, 7));
        assert!(
            !duplicates.is_duplicate(ms(1000), a, 7),
            "the number came round"
        );
        assert!(!duplicates.is_duplicate(ms(1001), a, 8));
    }
}
