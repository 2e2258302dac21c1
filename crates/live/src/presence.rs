//! The node's time, which stops while the process stands still.
//!
//! A process that was stopped (SIGSTOP, a suspended container), or that a busy host did not run, has served no socket
//! meanwhile. Its neighbours' frames wait in the kernel's queue. If that time counted, every neighbour would be older than
//! any lifetime before the first of these frames is read. CLOCK_MONOTONIC treats a suspended machine the same way.

use chappe_core::{Duration, Instant};

/// Turns the time of a clock into the node's time.
#[derive(Debug)]
pub struct Presence {
    /// The longest time between two looks at the clock that counts as time.
    gap_max: Duration,
    /// When the clock was last looked at, by the clock.
    last: Instant,
    /// The time that did not count.
    still: Duration,
}

impl Presence {
    /// A process that looks at its clock at least every `gap_max` while it runs.
    pub fn new(gap_max: Duration) -> Presence {
        Presence {
            gap_max,
            last: Instant::ZERO,
            still: Duration::ZERO,
        }
    }

    /// The node's time at this time of the clock.
    pub fn at(&mut self, clock: Instant) -> Instant {
        let gap = clock.saturating_since(self.last);
        self.still += gap.saturating_sub(self.gap_max);
        self.last = self.last.max(clock);
        self.last.saturating_before(self.still)
    }

    /// The clock's time at this time of the node, if the process does not stand still until then.
    pub fn on_clock(&self, node: Instant) -> Instant {
        node + self.still
    }

    /// How long the process stood still in all.
    pub fn still(&self) -> Duration {
        self.still
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    /// Short gaps count, as on every host; of a long one only the part that the driver may wait by itself.
    #[test]
    fn time_stops_while_the_process_stands_still() {
        let mut presence = Presence::new(Duration::from_millis(200));
        for at in (0..=1000).step_by(200) {
            assert_eq!(presence.at(ms(at)), ms(at));
        }
        assert_eq!(presence.at(ms(13_000)), ms(1200));
        assert_eq!(presence.still(), Duration::from_millis(11_800));
        assert_eq!(presence.at(ms(13_100)), ms(1300));
        assert_eq!(presence.on_clock(ms(1400)), ms(13_200));
        // A clock that is read out of order does not go back.
        assert_eq!(presence.at(ms(13_050)), ms(1300));
    }
}
