//! All timers of a connection: one enum, one table of deadlines, one place that says which is due.
//!
//! Timers are one-shot. Those that never run together share a slot, so that seven timers cost four deadlines.

use chappe_core::{Instant, Wake};

/// What a connection may wait for. Those whose numbers differ in the last bit only share a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// An acknowledgement has waited long enough for company (RFC 9293 3.8.6.3).
    Acknowledge = 0,
    /// A segment sent earlier than one that arrived is not lost yet, but will be then (RFC 8985 6.3).
    Reorder = 2,
    /// The last segments of a burst may have been lost: send one more to find out (RFC 8985 7).
    Probe = 3,
    /// Nothing in flight was acknowledged for a retransmission timeout (RFC 6298 5).
    Retransmit = 4,
    /// Data waits, nothing is in flight, and the peer's window is too small: ask again (RFC 9293 3.8.6.1), or send
    /// a small segment after all (the override of 3.8.6.2.1).
    Persist = 5,
    /// The peer was silent for long (RFC 9293 3.8.4).
    KeepAlive = 6,
    /// The end of TIME-WAIT, or of waiting for a FIN in FIN-WAIT-2.
    Linger = 7,
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
        self as usize >> 1
    }

    /// Whether this is the second of the two timers of its slot.
    const fn second(self) -> bool {
        self as u8 & 1 != 0
    }

    const fn of(slot: usize, second: bool) -> Timer {
        match (slot, second) {
            (0, _) => Timer::Acknowledge,
            (1, false) => Timer::Reorder,
            (1, true) => Timer::Probe,
            (2, false) => Timer::Retransmit,
            (2, true) => Timer::Persist,
            (_, false) => Timer::KeepAlive,
            (_, true) => Timer::Linger,
        }
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

    const fn units(self) -> u64 {
        let [a, b, c, d, e, f] = self.0;
        u64::from_le_bytes([a, b, c, d, e, f, 0, 0])
    }

    fn instant(self) -> Option<Instant> {
        (self != Deadline::NEVER).then(|| Instant::from_nanos(self.units() << Deadline::SHIFT))
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
        match self.runs(timer) {
            true => self.at.get(timer.slot())?.instant(),
            false => None,
        }
    }

    /// Whether a timer runs.
    pub fn runs(&self, timer: Timer) -> bool {
        let second = self.second & 1 << timer.slot() != 0;
        let at = self.at.get(timer.slot());
        second == timer.second() && at.is_some_and(|at| *at != Deadline::NEVER)
    }

    /// A timer that is due, stopped by this call.
    pub fn expire(&mut self, now: Instant) -> Option<Timer> {
        // A deadline is a whole number of units, so one that has come is not after the unit that now lies in.
        let unit = now.nanos() >> Deadline::SHIFT;
        for (slot, at) in self.at.iter_mut().enumerate() {
            // Never is later than any unit that a clock of 64 bits reaches.
            if at.units() <= unit {
                *at = Deadline::NEVER;
                return Some(Timer::of(slot, self.second & 1 << slot != 0));
            }
        }
        None
    }

    /// The next deadline.
    pub fn next(&self) -> Option<Wake> {
        let (mut units, mut first) = (Deadline::NEVER.units(), 0);
        for (slot, at) in self.at.iter().enumerate() {
            if at.units() < units {
                (units, first) = (at.units(), slot);
            }
        }
        let why = Timer::of(first, self.second & 1 << first != 0).why();
        let at = Instant::from_nanos(units << Deadline::SHIFT);
        (units != Deadline::NEVER.units()).then_some(Wake { at, why })
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
