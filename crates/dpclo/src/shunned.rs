//! Next hops that are shunned: what went by them to a destination did not arrive there, as far as the application knows.

use alloc::vec::Vec;

use chappe_core::{Duration, Instant};

/// How long a next hop is shunned the first time. The application takes seconds to notice. Of 1280 packets past a relay that passes
/// nothing on 844 arrived with 8 s, and 1072 with 64 s (docs/studies/mesh.md).
const LASTS: Duration = Duration::from_secs(64);
/// How long it is shunned if it has been shunned lately.
const LASTS_AGAIN: Duration = Duration::from_secs(128);
/// Most entries; the one that ends first makes room.
const MOST: usize = 64;

/// Neighbours that are no next hops to a destination for a while, those that will be for longest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shunned(Vec<Entry>);

#[derive(Clone, Copy, Debug)]
struct Entry {
    destination: u16,
    neighbour: u8,
    until: Instant,
    /// Whether it had been shunned lately.
    again: bool,
}

impl Shunned {
    /// Shuns the neighbour at a place for a destination, the second time twice as long. What was shunned for a time and then not for as
    /// long begins anew. Returns the destination of the entry that made room, if one had to.
    pub fn add(&mut self, now: Instant, destination: u16, neighbour: u8) -> Option<u16> {
        self.0.retain(|entry| now < entry.until + entry.lasts());
        let same = |entry: &Entry| (entry.destination, entry.neighbour) == (destination, neighbour);
        let known = self.0.iter().position(same);
        let again = known.map(|at| self.0.remove(at)).is_some();
        let gone = match self.0.len() < MOST {
            true => None,
            false => self.0.pop(),
        };
        let mut entry = Entry {
            destination,
            neighbour,
            until: now,
            again,
        };
        entry.until = now + entry.lasts();
        let at = self.0.partition_point(|other| other.until > entry.until);
        self.0.insert(at, entry);
        gone.map(|gone| gone.destination)
    }

    /// The places of neighbours that are shunned for a destination, those that will be for longest first, and the last instant for which each is.
    pub fn of(&self, now: Instant, destination: u16) -> impl Iterator<Item = (u8, Instant)> + '_ {
        let of = move |entry: &&Entry| entry.destination == destination && now < entry.until;
        let last = |until: Instant| until.saturating_before(Duration::from_nanos(1));
        let entries = self.0.iter().filter(of);
        entries.map(move |entry| (entry.neighbour, last(entry.until)))
    }

    /// Another neighbour may get this place.
    pub fn forget(&mut self, neighbour: u8) {
        self.0.retain(|entry| entry.neighbour != neighbour);
    }
}

/// Places of neighbours, a bit for each.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Places([u64; 4]);

impl Places {
    pub fn contains(&self, place: u8) -> bool {
        let word = self.0.get(usize::from(place / 64));
        word.is_some_and(|word| word >> (place % 64) & 1 == 1)
    }
}

impl FromIterator<u8> for Places {
    fn from_iter<T: IntoIterator<Item = u8>>(places: T) -> Places {
        let mut all = Places::default();
        for place in places {
            if let Some(word) = all.0.get_mut(usize::from(place / 64)) {
                *word |= 1 << (place % 64);
            }
        }
        all
    }
}

impl Entry {
    fn lasts(&self) -> Duration {
        match self.again {
            true => LASTS_AGAIN,
            false => LASTS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Instant {
        Instant::from_millis(1000 * seconds)
    }

    fn places(shunned: &Shunned, now: u64, destination: u16) -> Vec<u8> {
        let of = shunned.of(at(now), destination);
        of.map(|(neighbour, _)| neighbour).collect()
    }

    #[test]
    fn each_time_is_twice_as_long_until_it_was_long_ago() {
        let mut shunned = Shunned::default();
        let lasts = |shunned: &Shunned, from: u64| {
            (0..1000)
                .take_while(|n| places(shunned, from + n, 7) == [3])
                .count()
        };
        let mut now = 10;
        for times in [64, 128, 128] {
            shunned.add(at(now), 7, 3);
            assert_eq!(lasts(&shunned, now), times);
            assert!(places(&shunned, now, 8).is_empty());
            now += times as u64 + 1;
        }
        now += 128;
        shunned.add(at(now), 7, 3);
        assert_eq!(lasts(&shunned, now), 64);
        shunned.forget(3);
        assert!(places(&shunned, now, 7).is_empty());
    }

    #[test]
    fn places_are_told_apart() {
        let some: Places = [0, 63, 64, 255].into_iter().collect();
        let found = (0..=255).filter(|&place| some.contains(place));
        assert_eq!(found.collect::<Vec<u8>>(), [0, 63, 64, 255]);
    }

    #[test]
    fn the_first_to_return_is_last() {
        let mut shunned = Shunned::default();
        for (now, neighbour) in [(1, 5), (2, 3), (3, 4), (9, 5)] {
            shunned.add(at(now), 7, neighbour);
        }
        assert_eq!(places(&shunned, 9, 7), [5, 4, 3]);
    }

    #[test]
    fn there_are_at_most_so_many() {
        let mut shunned = Shunned::default();
        for destination in 0..1000 {
            shunned.add(at(8 * u64::from(destination)), destination, 1);
        }
        assert_eq!(shunned.0.len(), 16);
        for destination in 0..1000 {
            let gone = shunned.add(at(8000), destination, 1);
            assert!(gone.is_none() || shunned.0.len() == MOST);
        }
        assert_eq!(shunned.0.len(), MOST);
    }
}
