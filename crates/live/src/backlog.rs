//! Whether this host falls behind with reading.

use chappe_core::{Duration, Instant};

/// How long a queue must stand before it counts, and the shortest time between two steps of the rate: CoDel's interval, the longest
/// usual round trip (RFC 8289, 3.2).
pub const PERIOD: Duration = Duration::from_millis(100);

/// A receive queue counts as standing if it was not empty for a [`PERIOD`], or has lost frames within one.
#[derive(Debug, Default)]
pub struct Backlog {
    /// Since when frames wait that were there before the latest read.
    since: Option<Instant>,
    /// When the queue last lost frames.
    lost: Option<Instant>,
    /// The kernel's count of lost frames, and when that was looked at.
    count: Option<u32>,
    looked: Option<Instant>,
}

impl Backlog {
    /// Whether no look has shown for a period how many frames the kernel has lost. A look costs a call of the system.
    pub fn is_unknown(&self, now: Instant) -> bool {
        let old = |at: Instant| now.saturating_since(at) >= PERIOD;
        self.looked.is_none_or(old)
    }

    /// Notes a read of the queue: whether it emptied it, and, if that was looked at, the kernel's count of lost frames, if it has
    /// one. Returns how many were lost since the last look.
    pub fn read(&mut self, now: Instant, emptied: bool, look: Option<Option<u32>>) -> u32 {
        self.since = match emptied {
            true => None,
            false => self.since.or(Some(now)),
        };
        let Some(count) = look else { return 0 };
        self.looked = Some(now);
        let before = self.count.or(count);
        let lost = count
            .zip(before)
            .map_or(0, |(count, before)| count.wrapping_sub(before));
        if lost > 0 {
            self.lost = Some(now);
        }
        self.count = count;
        lost
    }

    /// Whether the neighbours should send less.
    pub fn stands(&self, now: Instant) -> bool {
        let old = |since: Instant| now.saturating_since(since) >= PERIOD;
        self.since.is_some_and(old) || self.lost.is_some_and(|at| !old(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn a_queue_counts_when_it_stands_or_overflows() {
        let mut backlog = Backlog::default();
        backlog.read(ms(0), false, Some(Some(7)));
        assert!(!backlog.stands(ms(99)) && backlog.stands(ms(100)));
        backlog.read(ms(110), true, Some(Some(7)));
        assert!(!backlog.stands(ms(300)));
        assert_eq!(backlog.read(ms(300), true, Some(Some(9))), 2);
        assert!(backlog.stands(ms(350)) && !backlog.stands(ms(400)));
        // The kernel's count wraps.
        backlog.read(ms(500), true, Some(Some(u32::MAX)));
        assert_eq!(backlog.read(ms(500), true, Some(Some(2))), 3);
    }

    /// Goal: the kernel is asked for its count once in a period, and what it lost meanwhile is found then.
    #[test]
    fn lost_frames_are_found_by_the_next_look() {
        let mut backlog = Backlog::default();
        assert!(backlog.is_unknown(ms(0)));
        backlog.read(ms(0), true, Some(Some(7)));
        assert!(!backlog.is_unknown(ms(99)));
        assert_eq!(backlog.read(ms(50), true, None), 0);
        assert!(backlog.is_unknown(ms(100)));
        assert_eq!(backlog.read(ms(100), true, Some(Some(9))), 2);
        assert!(backlog.stands(ms(150)) && !backlog.is_unknown(ms(150)));
    }
}
