//! Time of 64 bits from a timer of 32 that counts microseconds.

use chappe_core::Instant;

const WRAP: u64 = 1 << 32;

/// The last known time, in microseconds. It must be advanced once in 71 minutes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Time(u64);

impl Time {
    /// The time whose low half the timer shows now.
    pub fn advance(&mut self, timer: u32) -> Instant {
        let low = self.0 % WRAP;
        let ahead = (u64::from(timer) + WRAP - low) % WRAP;
        self.0 += ahead;
        Instant::from_micros(self.0)
    }

    /// A time in the last 71 minutes, whose low half was captured.
    pub fn at(&self, captured: u32) -> Instant {
        let low = self.0 % WRAP;
        let behind = (low + WRAP - u64::from(captured)) % WRAP;
        Instant::from_micros(self.0.saturating_sub(behind))
    }
}

/// The low half of a time, rounded to the nearest microsecond, for a compare register.
pub(super) fn micros(at: Instant) -> u32 {
    (at.nanos().saturating_add(500) / 1000 % WRAP) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timer_wraps() {
        let mut time = Time::default();
        time.advance(u32::MAX - 9);
        let later = time.advance(10);
        assert_eq!(later, Instant::from_micros(WRAP + 10));
        let captured = time.at(u32::MAX);
        assert_eq!(captured, Instant::from_micros(WRAP - 1));
        assert_eq!(micros(later), 10);
    }
}
