//! Next hops that are shunned: what went by them to a destination did not arrive there, as far as the application knows.

use alloc::vec::Vec;
use core::cmp::Reverse;

use chappe_core::{Duration, Instant};

/// How long a next hop is shunned the first time. The application takes seconds to notice. Of 1280 packets past a relay that passes
/// nothing on 844 arrived with 8 s, and 1072 with 64 s (docs/studies/mesh.md).
const LASTS: Duration = Duration::from_secs(64);
/// How often this time doubles.
const TWICE_MAX: u8 = 1;
/// Most entries; the one that ends first makes room.
const MOST: usize = 64;

/// Neighbours that are no next hops to a destination for a while.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shunned(Vec<Entry>);

#[derive(Clone, Copy, Debug)]
struct Entry {
    destination: u16,
    neighbour: u8,
    until: Instant,
    /// How often it was shunned, one time soon after the other.
    times: u8,
}

impl Shunned {
    /// Shuns the neighbour at a place for a destination, the second time twice as long. What was shunned for a time and then not for as
    /// long begins anew.
    pub fn add(&mut self, now: Instant, destination: u16, neighbour: u8) {
        self.0.retain(|entry| now < entry.until + entry.lasts());
        let same =
            |entry: &&mut Entry| (entry.destination, entry.neighbour) == (destination, neighbour);
        if let Some(entry) = self.0.iter_mut().find(same) {
            entry.times = (entry.times + 1).min(TWICE_MAX);
            entry.until = now + entry.lasts();
            return;
        }
        if self.0.len() >= MOST {
            let first = (0..self.0.len()).min_by_key(|&at| self.0.get(at).map(|entry| entry.until));
            self.0.swap_remove(first.unwrap_or(0));
        }
        let (times, until) = (0, now + LASTS);
        self.0.push(Entry {
            destination,
            neighbour,
            until,
            times,
        });
    }

    /// The places of neighbours that are shunned for a destination, those that will be for longest first. Allocates nothing if there are none.
    pub fn of(&self, now: Instant, destination: u16) -> Vec<u8> {
        let of = |entry: &&Entry| entry.destination == destination && now < entry.until;
        let mut entries: Vec<&Entry> = self.0.iter().filter(of).collect();
        entries.sort_unstable_by_key(|entry| Reverse(entry.until));
        entries.iter().map(|entry| entry.neighbour).collect()
    }

    /// Another neighbour may get this place.
    pub fn forget(&mut self, neighbour: u8) {
        self.0.retain(|entry| entry.neighbour != neighbour);
    }
}

impl Entry {
    fn lasts(&self) -> Duration {
        LASTS * (1 << self.times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Instant {
        Instant::from_millis(1000 * seconds)
    }

    #[test]
    fn each_time_is_twice_as_long_until_it_was_long_ago() {
        let mut shunned = Shunned::default();
        let lasts = |shunned: &Shunned, from: u64| {
            (0..1000)
                .take_while(|n| shunned.of(at(from + n), 7) == [3])
                .count()
        };
        let mut now = 10;
        for times in [64, 128, 128] {
            shunned.add(at(now), 7, 3);
            assert_eq!(lasts(&shunned, now), times);
            assert!(shunned.of(at(now), 8).is_empty());
            now += times as u64 + 1;
        }
        now += 128;
        shunned.add(at(now), 7, 3);
        assert_eq!(lasts(&shunned, now), 64);
        shunned.forget(3);
        assert!(shunned.of(at(now), 7).is_empty());
    }

    #[test]
    fn the_first_to_return_is_last() {
        let mut shunned = Shunned::default();
        for (now, neighbour) in [(1, 5), (2, 3), (3, 4), (9, 5)] {
            shunned.add(at(now), 7, neighbour);
        }
        assert_eq!(shunned.of(at(9), 7), [5, 4, 3]);
    }

    #[test]
    fn there_are_at_most_so_many() {
        let mut shunned = Shunned::default();
        for destination in 0..1000 {
            shunned.add(at(8 * u64::from(destination)), destination, 1);
        }
        assert_eq!(shunned.0.len(), 16);
        for destination in 0..1000 {
            shunned.add(at(8000), destination, 1);
        }
        assert_eq!(shunned.0.len(), MOST);
    }
}
