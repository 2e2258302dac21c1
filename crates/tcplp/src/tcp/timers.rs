//! All timers of a connection: one enum, one table of deadlines, one place that says which is due.
//!
//! Timers are one-shot. Those that never run together share a slot, so that seven timers cost four deadlines.

use chappe_core::{Instant, Wake};

/// What a connection may wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// Nothing in flight was acknowledged for a retransmission timeout (RFC 6298 5).
    Retransmit,
    /// Data waits, nothing is in flight, and the peer's window is too small: ask again (RFC 9293 3.8.6.1), or send
    /// a small segment after all (the override of 3.8.6.2.1).
    Persist,
    /// The last segments of a burst may have been lost: send one more to find out (RFC 8985 7).
    Probe,
    /// A segment sent earlier than one that arrived is not lost yet, but will be then (RFC 8985 6.3).
    Reorder,
    /// An acknowledgement has waited long enough for company (RFC 9293 3.8.6.3).
    Acknowledge,
    /// The peer was silent for long (RFC 9293 3.8.4).
    KeepAlive,
    /// The end of TIME-WAIT, or of waiting for a FIN in FIN-WAIT-2.
    Linger,
}

impl Timer {
    const SLOTS: usize = 4;

    /// All of them; the first of those due at once fires first.
    pub const ALL: [Timer; 7] = [
        Timer::Acknowledge,
        Timer::Reorder,
        Timer::Probe,
        Timer::Retransmit,
        Timer::Persist,
        Timer::KeepAlive,
        Timer::Linger,
    ];

    /// The reason, in words, for a trace.
    pub const fn why(self) -> &'static str {
        match self {
            Timer::Retransmit => "retransmission timeout",
            Timer::Persist => "window probe",
            Timer::Probe => "tail loss probe",
            Timer::Reorder => "reordering window",
            Timer::Acknowledge => "delayed acknowledgement",
            Timer::KeepAlive => "keep-alive",
            Timer::Linger => "linger",
        }
    }

    const fn slot(self) -> usize {
        match self {
            Timer::Retransmit | Timer::Persist => 0,
            Timer::Probe | Timer::Reorder => 1,
            Timer::Acknowledge => 2,
            Timer::KeepAlive | Timer::Linger => 3,
        }
    }

    /// Whether this is the second of the two timers of its slot.
    const fn second(self) -> bool {
        matches!(self, Timer::Persist | Timer::Reorder | Timer::Linger)
    }
}

/// A deadline in six octets: units of 2^14 ns (16 µs), rounded up, for clocks of up to 146 years. All ones: none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Deadline([u8; 6]);

impl Deadline {
    const NEVER: Deadline = Deadline([0xff; 6]);
    const SHIFT: u32 = 14;

    fn at(instant: Instant) -> Deadline {
        let units = instant.nanos().div_ceil(1 << Deadline::SHIFT);
        let [a, b, c, d, e, f, high @ ..] = units.to_le_bytes();
        match high {
            [0, 0] => Deadline([a, b, c, d, e, f]),
            _ => Deadline::NEVER,
        }
    }

    fn instant(self) -> Option<Instant> {
        let [a, b, c, d, e, f] = self.0;
        let units = u64::from_le_bytes([a, b, c, d, e, f, 0, 0]);
        (self != Deadline::NEVER).then(|| Instant::from_nanos(units << Deadline::SHIFT))
    }
}

/// The deadlines.
#[derive(Clone, Copy, Debug)]
pub struct Timers {
    at: [Deadline; Timer::SLOTS],
    /// For each slot, which of its two timers runs.
    second: u8,
}

impl Default for Timers {
    fn default() -> Timers {
        Timers {
            at: [Deadline::NEVER; Timer::SLOTS],
            second: 0,
        }
    }
}

impl Timers {
    /// Starts a timer, or starts it anew. A timer in the same slot stops.
    pub fn start(&mut self, timer: Timer, at: Instant) {
        if let Some(slot) = self.at.get_mut(timer.slot()) {
            *slot = Deadline::at(at);
        }
        let bit = 1 << timer.slot();
        self.second = self.second & !bit | if timer.second() { bit } else { 0 };
    }

    /// Stops a timer, if it runs.
    pub fn stop(&mut self, timer: Timer) {
        if self.runs(timer)
            && let Some(slot) = self.at.get_mut(timer.slot())
        {
            *slot = Deadline::NEVER;
        }
    }

    /// Stops all.
    pub fn stop_all(&mut self) {
        *self = Timers::default();
    }

    /// When a timer fires, if it runs.
    pub fn deadline(&self, timer: Timer) -> Option<Instant> {
        let second = self.second & 1 << timer.slot() != 0;
        let at = self.at.get(timer.slot()).copied();
        at.filter(|_| second == timer.second())?.instant()
    }

    /// Whether a timer runs.
    pub fn runs(&self, timer: Timer) -> bool {
        self.deadline(timer).is_some()
    }

    /// A timer that is due, stopped by this call.
    pub fn expire(&mut self, now: Instant) -> Option<Timer> {
        let due = |timer: &Timer| self.deadline(*timer).is_some_and(|at| at <= now);
        let timer = Timer::ALL.into_iter().find(due)?;
        self.stop(timer);
        Some(timer)
    }

    /// The next deadline.
    pub fn next(&self) -> Option<Wake> {
        let wake = |timer: Timer| {
            let why = timer.why();
            self.deadline(timer).map(|at| Wake { at, why })
        };
        Timer::ALL.into_iter().map(wake).fold(None, Wake::earlier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_of_one_slot_replace_each_other() {
        let mut timers = Timers::default();
        assert_eq!(timers.next(), None);
        timers.start(Timer::Retransmit, Instant::from_millis(5));
        timers.start(Timer::Persist, Instant::from_nanos(7_000_000 - 1));
        timers.stop(Timer::Retransmit);
        assert_eq!(timers.next().map(|wake| wake.why), Some("window probe"));
        assert_eq!(timers.expire(Instant::from_millis(6)), None);
        let late = timers.deadline(Timer::Persist).map(Instant::nanos);
        assert!(late.is_some_and(|at| (6_999_999..7_016_384).contains(&at)));
        assert_eq!(timers.expire(Instant::from_millis(8)), Some(Timer::Persist));
        assert_eq!(timers.next(), None);
    }

    #[test]
    fn deadlines_reach_a_hundred_years_and_never_come_early() {
        let year = 31_557_600_000_000_000;
        for nanos in [0, 1, 16_383, 16_384, 56 * year + 12_345, 140 * year] {
            let at = Deadline::at(Instant::from_nanos(nanos)).instant();
            assert!(at.is_some_and(|at| (nanos..nanos + 16_384).contains(&at.nanos())));
        }
        assert_eq!(Deadline::at(Instant::MAX).instant(), None);
    }

    #[test]
    fn all_that_is_due_fires_once_each() {
        let mut timers = Timers::default();
        for timer in [Timer::Linger, Timer::Probe, Timer::Acknowledge] {
            timers.start(timer, Instant::from_millis(1));
        }
        let now = Instant::from_millis(2);
        assert_eq!(timers.expire(now), Some(Timer::Acknowledge));
        assert_eq!(timers.expire(now), Some(Timer::Probe));
        assert_eq!(timers.expire(now), Some(Timer::Linger));
        assert_eq!(timers.expire(now), None);
    }
}
