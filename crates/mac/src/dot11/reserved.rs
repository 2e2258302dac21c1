//! Time slots that single stations were promised after they lost frames.

use chappe_core::{Duration, Instant};

use crate::zmac::{Slot, clear_from};

/// More stations than usually suffer within two hops; later ones replace those whose promise ends first.
const MOST: usize = 16;

/// The time slots to keep free, and until when.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reserved {
    slots: [Option<(Slot, Instant)>; MOST],
}

impl Reserved {
    /// Keeps these time slots free until `until`.
    pub fn keep(&mut self, slot: Slot, now: Instant, until: Instant) {
        let age = |entry: &&mut Option<(Slot, Instant)>| match **entry {
            Some((held, _)) if held == slot => Instant::ZERO,
            Some((_, until)) if until > now => until,
            _ => now,
        };
        if let Some(place) = self.slots.iter_mut().min_by_key(age) {
            *place = Some((slot, until));
        }
    }

    /// The earliest moment from `at` on at which no station was promised the channel within `guard`.
    pub fn clear_from(&self, at: Instant, slot: Duration, guard: Duration) -> Instant {
        clear_from(at, slot, guard, |index| {
            let promised = |&(kept, until): &(Slot, Instant)| at < until && kept.holds(index);
            self.slots.iter().flatten().any(promised)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    fn clear(reserved: &Reserved, at: u64) -> Instant {
        reserved.clear_from(ms(at), Duration::from_millis(10), Duration::from_millis(2))
    }

    #[test]
    fn promised_slots_are_kept_until_the_promise_ends() {
        let mut reserved = Reserved::default();
        let slot = |number| Slot { number, frame: 4 };
        reserved.keep(slot(1), ms(0), ms(100));
        assert_eq!(clear(&reserved, 5), ms(5));
        assert_eq!(clear(&reserved, 9), ms(20), "less than the guard before");
        assert_eq!(clear(&reserved, 55), ms(60));
        reserved.keep(slot(2), ms(60), ms(90));
        assert_eq!(clear(&reserved, 55), ms(70));
        assert_eq!(
            clear(&reserved, 95),
            ms(100),
            "slot 9 is of the first, slot 10 has ended at 90 ms"
        );
        assert_eq!(clear(&reserved, 135), ms(135));
    }

    /// A promise that is renewed takes no second place, and a full table gives up what ends first.
    #[test]
    fn the_table_is_bounded() {
        let mut reserved = Reserved::default();
        let slot = |number| Slot { number, frame: 64 };
        for number in 0..MOST as u16 {
            reserved.keep(slot(number), ms(0), ms(1000 + u64::from(number)));
            reserved.keep(slot(number), ms(1), ms(1100 + u64::from(number)));
        }
        assert_eq!(clear(&reserved, 0), ms(160));
        reserved.keep(slot(16), ms(2), ms(2000));
        assert_eq!(
            clear(&reserved, 0),
            ms(0),
            "the first one's place was taken"
        );
        assert_eq!(clear(&reserved, 12), ms(170));
    }
}
