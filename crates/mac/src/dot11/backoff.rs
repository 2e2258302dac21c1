//! The back-off counter and the contention window.

use core::ops::Range;

use chappe_core::{Duration, Instant, Stream};

/// Random back-off with freezing (IEEE 802.11-2020, 10.3.3 and 10.3.4.3).
///
/// Slot boundary `k` lies `k` slots after `from`; the station may transmit at boundary `remaining`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Backoff {
    window: u16,
    /// Slots left. `None`: no back-off was drawn, and access is immediate once the medium is idle.
    remaining: Option<u16>,
    /// Boundary zero, while slots are counted.
    from: Option<Instant>,
    /// Energy began less than a CCA time before the last boundary: the transmission goes ahead.
    committed: bool,
    /// A slot counts at its beginning, as in EDCA (10.23.2.4). Otherwise it counts once it was idle to its end.
    eager: bool,
}

impl Backoff {
    pub fn new(window: u16, eager: bool) -> Backoff {
        Backoff {
            window,
            remaining: None,
            from: None,
            committed: false,
            eager,
        }
    }

    /// Draws a new back-off, uniformly from 0 to the window inclusive (10.3.3).
    #[inline]
    pub fn draw(&mut self, random: &mut Stream) {
        let slots = random.below(u64::from(self.window) + 1);
        *self = Backoff {
            remaining: Some(slots as u16),
            from: None,
            committed: false,
            ..*self
        };
    }

    /// Draws a back-off uniformly from a range; an empty range gives its beginning.
    pub fn draw_from(&mut self, range: Range<u16>, random: &mut Stream) {
        let width = u64::from(range.end.saturating_sub(range.start));
        let slots = range.start.saturating_add(random.below(width) as u16);
        self.finish();
        self.remaining = Some(slots);
    }

    /// Widens the window after a failed attempt, from 2^k - 1 to 2^(k+1) - 1, up to `most`.
    pub fn widen(&mut self, most: u16) {
        self.window = self.window.saturating_mul(2).saturating_add(1).min(most);
    }

    /// Resets the window, after success or at the retry limit.
    pub fn reset(&mut self, least: u16) {
        self.window = least;
    }

    /// Whether a back-off was drawn and has not run out.
    #[inline]
    pub fn is_drawn(&self) -> bool {
        self.remaining.is_some()
    }

    /// Whether the transmission goes ahead regardless of the carrier.
    #[inline]
    pub fn is_committed(&self) -> bool {
        self.committed
    }

    /// Counts slots from `from` on. Returns the boundary at which the back-off runs out.
    #[inline]
    pub fn resume(&mut self, from: Instant, slot: Duration) -> Instant {
        self.from = Some(from);
        from + slot * u64::from(self.remaining.unwrap_or(0))
    }

    /// The medium became busy at `since`. Counts the slots whose boundary passed before the energy could be detected
    /// and freezes. If the last boundary is among them, commits to the transmission.
    #[inline]
    pub fn freeze(&mut self, since: Instant, slot: Duration, cca: Duration) {
        let Some(from) = self.from else { return };
        let left = self.remaining.unwrap_or(0);
        // Boundaries at or before `since` have passed. At one less than `cca` after it the station cannot have detected
        // the energy yet, so that one passes too; the nanosecond excludes a boundary exactly `cca` after.
        let seen = (since + cca)
            .saturating_before(Duration::from_nanos(1))
            .max(since);
        match seen.checked_since(from).map(|span| span.steps(slot)) {
            Some(passed) if passed >= u64::from(left) => self.committed = true,
            Some(passed) => self.count(passed.saturating_add(u64::from(self.eager))),
            // Energy came before boundary zero: no slot has begun.
            None => self.from = None,
        }
    }

    /// Stops counting at `now` for a reason other than energy. Cancels a commitment.
    pub fn pause(&mut self, now: Instant, slot: Duration) {
        let Some(from) = self.from else { return };
        // No CCA time here: what stops the count is known to the station at once.
        self.committed = false;
        self.count(now.saturating_since(from).steps(slot));
    }

    /// Stops counting without counting any slot. Cancels a commitment.
    pub fn hold(&mut self) {
        self.from = None;
        self.committed = false;
    }

    /// Ends the back-off: the last boundary is reached, or it is abandoned. The window stays.
    #[inline]
    pub fn finish(&mut self) {
        *self = Backoff::new(self.window, self.eager);
    }

    #[inline]
    fn count(&mut self, passed: u64) {
        self.from = None;
        let passed = passed.min(u64::from(u16::MAX)) as u16;
        self.remaining = self.remaining.map(|left| left.saturating_sub(passed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_core::{Purpose, Seed};

    const SLOT: Duration = Duration::from_micros(20);
    const CCA: Duration = Duration::from_micros(15);

    fn us(micros: u64) -> Instant {
        Instant::from_micros(micros)
    }

    fn with(slots: u16) -> Backoff {
        Backoff {
            remaining: Some(slots),
            ..Backoff::new(31, false)
        }
    }

    #[test]
    fn whole_idle_slots_count() {
        for (busy, left) in [(90, 9), (100, 9), (119, 9), (120, 8), (139, 8), (140, 7)] {
            let mut backoff = with(9);
            assert_eq!(backoff.resume(us(100), SLOT), us(280));
            backoff.freeze(us(busy), SLOT, Duration::ZERO);
            assert_eq!(backoff.remaining, Some(left), "busy at {busy}");
            assert!(!backoff.is_committed());
        }
    }

    /// EDCA: the slot in which the medium became busy counts too, unless that was before the first boundary.
    #[test]
    fn eager_slots_count_from_their_beginning() {
        for (busy, left) in [(90, 9), (100, 8), (119, 8), (120, 7), (279, 0)] {
            let mut backoff = Backoff {
                eager: true,
                ..with(9)
            };
            assert_eq!(backoff.resume(us(100), SLOT), us(280));
            backoff.freeze(us(busy), SLOT, Duration::ZERO);
            assert_eq!(backoff.remaining, Some(left), "busy at {busy}");
            assert!(!backoff.is_committed());
        }
    }

    /// Energy must begin `cca` before a boundary to be noticed there, at the last boundary as at any other.
    #[test]
    fn late_energy_is_not_noticed() {
        for (busy, left) in [(105, 9), (106, 8), (125, 8), (126, 7)] {
            let mut backoff = with(9);
            backoff.resume(us(100), SLOT);
            backoff.freeze(us(busy), SLOT, CCA);
            assert_eq!(backoff.remaining, Some(left), "busy at {busy}");
        }
        for (busy, committed) in [(125, false), (126, true), (139, true)] {
            let mut backoff = with(2);
            backoff.resume(us(100), SLOT);
            backoff.freeze(us(busy), SLOT, CCA);
            assert_eq!(backoff.is_committed(), committed, "busy at {busy}");
        }
        let mut immediate = Backoff::new(31, false);
        immediate.resume(us(100), SLOT);
        immediate.freeze(us(85), SLOT, CCA);
        assert!(!immediate.is_committed());
        immediate.resume(us(100), SLOT);
        immediate.freeze(us(86), SLOT, CCA);
        assert!(immediate.is_committed());
    }

    #[test]
    fn the_window_doubles_up_to_its_limit() {
        let mut backoff = Backoff::new(31, false);
        let windows = [63, 127, 255, 511, 1023, 1023].map(|_| {
            backoff.widen(1023);
            backoff.window
        });
        assert_eq!(windows, [63, 127, 255, 511, 1023, 1023]);
        backoff.reset(31);
        assert_eq!(backoff.window, 31);
    }

    #[test]
    fn draws_cover_the_window() {
        let mut random = Seed(1).stream(Purpose::Node(0));
        let mut seen = [false; 32];
        for _ in 0..2000 {
            let mut backoff = Backoff::new(31, false);
            backoff.draw(&mut random);
            seen[usize::from(backoff.remaining.unwrap())] = true;
        }
        assert!(seen.iter().all(|&seen| seen));
    }
}
