//! The two small clocks of a connection, cut from [`Instant`] so that they fit into 32 bits.

use chappe_core::{Duration, Instant};

/// A moment in whole microseconds modulo 2^32 (71 minutes): when a segment was sent, or when an ACK came.
///
/// Two stamps compare by signed distance, right within 35 minutes. Nothing stays in flight that long without
/// being sent anew, as the retransmission timer is capped far below.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp(u32);

impl Stamp {
    /// The stamp of a moment.
    pub fn of(now: Instant) -> Stamp {
        Stamp((now.nanos() / 1_000) as u32)
    }

    /// Microseconds from `earlier` to this moment; 0 if `earlier` is later.
    pub fn since(self, earlier: Stamp) -> u32 {
        let span = self.0.wrapping_sub(earlier.0);
        if span as i32 >= 0 { span } else { 0 }
    }

    /// The stamp in units of 2^14 µs (16 ms), modulo 2^16.
    pub fn coarse(self) -> u16 {
        (self.0 >> 14) as u16
    }

    /// Whether this moment comes after `other`.
    pub fn after(self, other: Stamp) -> bool {
        (other.0.wrapping_sub(self.0) as i32) < 0
    }
}

/// The clock of the timestamps option in whole milliseconds modulo 2^32, without the connection's offset.
///
/// RFC 7323 5.4 asks for 1 ms to 1 s a tick; at 1 ms the clock wraps its sign bit in 24.8 days.
pub fn timestamp_clock(now: Instant) -> u32 {
    (now.nanos() / 1_000_000) as u32
}

/// Units of 1024 s modulo 2^16: enough to tell that a connection was idle for more than 24 days.
pub fn coarse_clock(now: Instant) -> u16 {
    ((now.nanos() / 1_000_000_000) >> 10) as u16
}

/// A span in whole microseconds, at most 71 minutes.
pub fn micros(span: Duration) -> u32 {
    let micros = span.nanos() / 1_000;
    if micros > u64::from(u32::MAX) {
        u32::MAX
    } else {
        micros as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_compare_across_their_wrap() {
        let before = Stamp::of(Instant::from_micros((1 << 32) - 5));
        let after = Stamp::of(Instant::from_micros((1 << 32) + 5));
        assert_eq!(after.since(before), 10);
        assert_eq!(before.since(after), 0);
        assert!(after.after(before) && !before.after(after));
    }

    #[test]
    fn long_spans_saturate() {
        assert_eq!(micros(Duration::from_secs(7200)), u32::MAX);
        assert_eq!(micros(Duration::from_millis(3)), 3000);
    }
}
