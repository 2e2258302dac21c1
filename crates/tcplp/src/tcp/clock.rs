//! The small clocks of a connection, cut from [`Instant`] so that they fit into 32 or 16 bits.

use chappe_core::{Duration, Instant};

/// A time in whole microseconds modulo 2^32 (71 minutes): when a segment was sent, or when an ACK arrived.
///
/// Two stamps compare by signed distance, which is right within 35 minutes. Nothing stays in flight that long without a
/// retransmission, because the retransmission timeout is capped far below.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp(u32);

impl Stamp {
    /// The stamp of an instant.
    pub fn of(now: Instant) -> Stamp {
        Stamp(quotient(now.nanos() >> 3, 125))
    }

    /// Microseconds from `earlier` to this stamp; 0 if `earlier` is later.
    pub fn since(self, earlier: Stamp) -> u32 {
        let span = self.0.wrapping_sub(earlier.0);
        if span as i32 >= 0 { span } else { 0 }
    }

    /// The stamp in units of 2^14 µs (16 ms), modulo 2^16.
    pub fn coarse(self) -> u16 {
        (self.0 >> 14) as u16
    }

    /// Whether this stamp is later than `other`.
    pub fn after(self, other: Stamp) -> bool {
        (other.0.wrapping_sub(self.0) as i32) < 0
    }
}

/// The clock of the timestamps option in whole milliseconds modulo 2^32, without the connection's offset.
///
/// RFC 7323 5.4 asks for 1 ms to 1 s a tick; at 1 ms the clock wraps its sign bit in 24.8 days.
pub fn timestamp_clock(now: Instant) -> u32 {
    quotient(now.nanos() >> 6, 15_625)
}

/// The clock of initial sequence numbers: units of 4 µs, modulo 2^32 (RFC 6528 3).
pub fn sequence_clock(now: Instant) -> u32 {
    quotient(now.nanos() >> 5, 125)
}

/// Units of 2^45 ns (9.8 hours) modulo 2^16, which wraps after 73 years: to detect an idle time of more than 24 days (RFC 7323
/// 5.5).
pub fn coarse_clock(now: Instant) -> u16 {
    (now.nanos() >> 45) as u16
}

/// Units of 2^28 ns (268 ms) modulo 2^16 (4.9 hours), made odd: since when a connection makes no progress. Never 0.
pub fn stall_clock(now: Instant) -> u16 {
    (now.nanos() >> 28) as u16 | 1
}

/// What is left of `limit` for a stall since `since`, of [`stall_clock`]: whole units, at most 4.8 hours. One unit is within
/// the clock's error and counts as none.
pub fn patience(now: Instant, since: u16, limit: Duration) -> Duration {
    let units = ((limit.nanos() >> 28) as u32).min(0xfff0);
    let gone = stall_clock(now).wrapping_sub(since);
    match units.saturating_sub(u32::from(gone)) {
        0 | 1 => Duration::ZERO,
        left => Duration::from_nanos(u64::from(left) << 28),
    }
}

/// A duration in whole microseconds; saturates at 71 minutes.
pub fn micros(span: Duration) -> u32 {
    match span.nanos() >= 1_000 << 32 {
        true => u32::MAX,
        false => quotient(span.nanos() >> 3, 125),
    }
}

/// The duration of `micros` microseconds.
pub fn span(micros: u32) -> Duration {
    Duration::from_nanos(u64::from(micros) * 1_000)
}

/// `number / by` modulo 2^32, by long division with digits of 16 bits. A 64-bit division is a library routine of a kilobyte
/// and hundreds of instructions on a microcontroller.
fn quotient(number: u64, by: u16) -> u32 {
    let by = u32::from(by.max(1));
    let (high, low) = ((number >> 32) as u32, number as u32);
    let upper = ((high % by) << 16) | (low >> 16);
    let lower = ((upper % by) << 16) | (low & 0xffff);
    ((upper / by) << 16) | (lower / by)
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
    fn clocks_are_the_time_divided() {
        let mut random = chappe_core::Seed(1).stream(chappe_core::Purpose::Trial(0));
        for round in 0..10_000 {
            let nanos = random.next_u64() >> (round % 64);
            let now = Instant::from_nanos(nanos);
            assert_eq!(Stamp::of(now).0, (nanos / 1_000) as u32);
            assert_eq!(timestamp_clock(now), (nanos / 1_000_000) as u32);
            assert_eq!(sequence_clock(now), (nanos / 4_000) as u32);
        }
    }

    #[test]
    fn long_spans_saturate() {
        assert_eq!(micros(Duration::from_secs(7200)), u32::MAX);
        assert_eq!(micros(Duration::from_millis(3)), 3000);
    }
}
