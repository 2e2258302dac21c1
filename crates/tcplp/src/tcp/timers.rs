//! All timers of a connection in one table of deadlines.
//!
//! Timers are one-shot. Timers that never run at the same time share a slot, so seven timers cost four deadlines.

use chappe_core::{Instant, Wake};

/// The timers of a connection. Two timers share a slot if their numbers differ only in the last bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// A delayed acknowledgement is due (RFC 9293 3.8.6.3).
    DelayedAck = 0,
    /// RACK's reordering timer: a segment sent before one that was delivered counts as lost from then on (RFC 8985 6.3).
    Reordering = 2,
    /// The probe timeout (PTO): send one more segment to find out whether the tail was lost (RFC 8985 7).
    TailLossProbe = 3,
    /// The retransmission timeout (RFC 6298 5).
    Retransmit = 4,
    /// Data waits, nothing is in flight, and the peer's window is too small: probe the window (RFC 9293 3.8.6.1), or send
    /// a small segment (the override timeout of 3.8.6.2.1).
    Persist = 5,
    /// The connection was idle for the keep-alive time (RFC 9293 3.8.4).
    KeepAlive = 6,
    /// The end of TIME-WAIT (2 MSL), or of a closed socket's wait for a FIN in FIN-WAIT-2.
    TimeWait = 7,
}

impl Timer {
    const SLOTS: usize = 4;

    /// All timers, in the order in which they fire when they are due at the same time.
    pub const ALL: [Timer; 7] = [
        Timer::DelayedAck,
        Timer::Reordering,
        Timer::TailLossProbe,
        Timer::Retransmit,
        Timer::Persist,
        Timer::KeepAlive,
        Timer::TimeWait,
    ];

    /// What the timer is for, in words: the reason of a [`Wake`].
    pub const fn why(self) -> &'static str {
        match self {
            Timer::Retransmit => "retransmission timeout",
            Timer::Persist => "window probe",
            Timer::TailLossProbe => "tail loss probe",
            Timer::Reordering => "reordering window",
            Timer::DelayedAck => "delayed acknowledgement",
            Timer::KeepAlive => "keep-alive",
            Timer::TimeWait => "time wait",
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
            (0, _) => Timer::DelayedAck,
            (1, false) => Timer::Reordering,
            (1, true) => Timer::TailLossProbe,
            (2, false) => Timer::Retransmit,
            (2, true) => Timer::Persist,
            (_, false) => Timer::KeepAlive,
            (_, true) => Timer::TimeWait,
        }
    }
}

/// A deadline in six octets: units of 2^14 ns (16 µs), rounded up, for clocks of up to 146 years. All ones means none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Deadline([u8; 6]);

impl Deadline {
    const NEVER: Deadline = Deadline([0xff; 6]);
    const SHIFT: u32 = 14;

    fn at(instant: Instant) -> Deadline {
        // Saturated, it lies beyond what six octets hold.
        let units = instant.nanos().saturating_add((1 << Deadline::SHIFT) - 1) >> Deadline::SHIFT;
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

/// The deadlines of a connection's timers, by slot.
#[derive(Clone, Copy, Debug)]
pub struct Timers {
    at: [Deadline; Timer::SLOTS],
    /// A bit for each slot: which of its two timers runs.
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
    /// Starts or restarts a timer. The other timer of its slot stops.
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

    /// Stops all timers, as on entering CLOSED.
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
        // Deadlines are whole units, rounded up: one is due if it is not after the unit that `now` lies in.
        let unit = now.nanos() >> Deadline::SHIFT;
        for (slot, at) in self.at.iter_mut().enumerate() {
            // `now` reaches NEVER's 2^48 - 1 units only after 146 years.
            if at.units() <= unit {
                *at = Deadline::NEVER;
                return Some(Timer::of(slot, self.second & 1 << slot != 0));
            }
        }
        None
    }

    /// The earliest deadline and its reason.
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
    fn every_due_timer_fires_once() {
        let mut timers = Timers::default();
        for timer in [Timer::TimeWait, Timer::TailLossProbe, Timer::DelayedAck] {
            timers.start(timer, Instant::from_millis(1));
        }
        let now = Instant::from_millis(2);
        assert_eq!(timers.expire(now), Some(Timer::DelayedAck));
        assert_eq!(timers.expire(now), Some(Timer::TailLossProbe));
        assert_eq!(timers.expire(now), Some(Timer::TimeWait));
        assert_eq!(timers.expire(now), None);
    }
}
