//! Time of 64 bits from a timer of 32 that counts at 16 MHz.

use chappe_core::{Duration, Instant};

const WRAP: u64 = 1 << 32;

/// The last known time, in ticks of 62.5 ns. It must be advanced once in 268 s.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Time(u64);

/// The longest span whose ticks a division of 32 bits gives.
const SHORT: u64 = (u32::MAX / 2) as u64 - 62;

impl Time {
    /// The longest time between two calls of [`advance`](Self::advance), with room to spare.
    pub const SPAN: Duration = Duration::from_secs(100);

    /// The time whose low half the timer shows now.
    pub fn advance(&mut self, timer: u32) -> Instant {
        let low = self.0 % WRAP;
        let ahead = (u64::from(timer) + WRAP - low) % WRAP;
        self.0 += ahead;
        instant(self.0)
    }

    /// A time in the last 268 s, whose low half was captured.
    pub fn at(&self, captured: u32) -> Instant {
        let low = self.0 % WRAP;
        let behind = (low + WRAP - u64::from(captured)) % WRAP;
        instant(self.0.saturating_sub(behind))
    }

    /// What the timer shows at the tick next to a time to come, for a compare register. A time that has passed is now.
    pub fn timer_at(&self, at: Instant) -> u32 {
        let ahead = at.nanos().saturating_sub(instant(self.0).nanos());
        let ticks = match ahead < SHORT {
            // The chip divides 32 bits in an instruction, 64 in a hundred.
            true => u64::from((ahead as u32 * 2 + 62) / 125),
            false => (ahead.saturating_mul(2)) / 125,
        };
        ((self.0 + ticks) % WRAP) as u32
    }
}

fn instant(ticks: u64) -> Instant {
    Instant::from_nanos(ticks * 125 / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timer_wraps() {
        let mut time = Time::default();
        time.advance(u32::MAX - 9);
        let later = time.advance(10);
        assert_eq!(later, instant(WRAP + 10));
        assert_eq!(time.at(u32::MAX), instant(WRAP - 1));
        assert_eq!(time.timer_at(later), 10);
    }

    /// Goal: times survive the way to the timer and back to half a tick, near and far, also where a tick is no whole number
    /// of nanoseconds.
    #[test]
    fn compare_registers_are_right_to_half_a_tick() {
        let mut time = Time::default();
        let now = time.advance(12_345);
        for ahead in [
            0,
            1,
            31,
            32,
            62,
            63,
            125,
            16_000,
            152_031,
            SHORT - 1,
            SHORT,
            90_000_000_000,
        ] {
            let at = now + Duration::from_nanos(ahead);
            let mut then = time;
            let shown = then.advance(time.timer_at(at));
            let off = shown.nanos().abs_diff(at.nanos());
            let bound = if ahead < SHORT { 32 } else { 63 };
            assert!(off <= bound, "{ahead}: {off}");
        }
    }
}
