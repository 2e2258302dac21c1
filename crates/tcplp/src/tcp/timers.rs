//! All timers of a connection in one table of deadlines.
//!
//! Timers are one-shot. Timers that never run at the same time share a slot, so seven timers cost four deadlines.

use chappe_core::{Duration, Instant, Wake};

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

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// Units of a deadline: 2^14 ns, 16 µs.
const SHIFT: u32 = 14;

/// The deadlines of a connection's timers, by slot, and the time that they are relative to.
///
/// A deadline is a whole unit, rounded up, modulo 2^32 (19 hours), and lies within half of that of `now`. Numbers are kept as
/// octets, without alignment: 25 octets in all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timers {
    /// The time of the call that is being processed, or of the last one: nanoseconds.
    now: [u8; 8],
    at: [[u8; 4]; Timer::SLOTS],
    /// A bit for each timer: whether it runs.
    running: u8,
}

impl Timers {
    /// The longest wait, 9.7 hours: what is further away comes then.
    const MAX: Duration = Duration::from_nanos((1 << 45) - (1 << 16));

    /// The time of the call that is being processed.
    pub fn now(&self) -> Instant {
        Instant::from_nanos(u64::from_ne_bytes(self.now))
    }

    /// A call begins at `now`.
    #[inline(never)]
    pub fn turn(&mut self, now: Instant) {
        let passed = now.nanos().wrapping_sub(self.now().nanos()) as i64;
        if passed > Timers::MAX.nanos() as i64 {
            // Whatever runs is due. It would be taken for what lies ahead.
            self.at = [Timers::units(now).to_ne_bytes(); Timer::SLOTS];
        }
        self.now = now.nanos().to_ne_bytes();
    }

    /// The unit that an instant lies in.
    fn units(instant: Instant) -> u32 {
        (instant.nanos() >> SHIFT) as u32
    }

    /// Units from now to the deadline in a slot; not above 0 if it is due.
    fn left(&self, timer: Timer) -> i32 {
        let at = self.at.get(timer.slot()).copied().unwrap_or_default();
        u32::from_ne_bytes(at).wrapping_sub(Timers::units(self.now())) as i32
    }

    /// Starts or restarts a timer that fires in `wait`. The other timer of its slot stops.
    #[inline(never)]
    pub fn start(&mut self, timer: Timer, wait: Duration) {
        let wait = wait.min(Timers::MAX).nanos();
        let wait = wait.wrapping_add((1 << SHIFT) - 1);
        let at = Instant::from_nanos(self.now().nanos().wrapping_add(wait));
        if let Some(slot) = self.at.get_mut(timer.slot()) {
            *slot = Timers::units(at).to_ne_bytes();
        }
        self.running = self.running & !(3 << (timer.slot() * 2)) | timer.bit();
    }

    /// Stops a timer, if it runs.
    pub fn stop(&mut self, timer: Timer) {
        self.running &= !timer.bit();
    }

    /// Stops all timers, as on entering CLOSED.
    pub fn stop_all(&mut self) {
        self.running = 0;
    }

    /// Whether a timer runs.
    pub fn runs(&self, timer: Timer) -> bool {
        self.running & timer.bit() != 0
    }

    /// Moves the deadline of `timer` to that of `other`, if that runs and is earlier.
    pub fn limit(&mut self, timer: Timer, other: Timer) {
        if self.runs(other) && self.left(other) < self.left(timer) {
            self.at
                .copy_within(other.slot()..=other.slot(), timer.slot());
        }
    }

    /// The timer that fires first, and the units until then.
    #[inline(never)]
    fn first(&self) -> Option<(Timer, i32)> {
        let mut first = None;
        // More than any timer has left.
        let mut least = i32::MAX;
        for timer in &Timer::ALL {
            let left = self.left(*timer);
            if self.runs(*timer) && left < least {
                (first, least) = (Some(*timer), left);
            }
        }
        first.map(|timer| (timer, least))
    }

    /// A timer that is due, stopped by this call.
    pub fn expire(&mut self) -> Option<Timer> {
        // Deadlines are rounded up: one is due if it is not after the unit that `now` lies in.
        let (timer, left) = self.first()?;
        if left > 0 {
            return None;
        }
        self.stop(timer);
        Some(timer)
    }

    /// The earliest deadline and its reason.
    pub fn next(&self) -> Option<Wake> {
        let (timer, left) = self.first()?;
        let units = (self.now().nanos() >> SHIFT).wrapping_add_signed(left.into());
        Some(Wake {
            at: Instant::from_nanos(units << SHIFT),
            why: timer.why(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    fn expire(timers: &mut Timers, now: Instant) -> Option<Timer> {
        timers.turn(now);
        timers.expire()
    }

    #[test]
    fn timers_of_one_slot_replace_each_other() {
        let mut timers = Timers::default();
        assert_eq!(timers.next(), None);
        timers.start(Timer::Retransmit, micros(5_000));
        timers.start(Timer::Persist, Duration::from_nanos(7_000_000 - 1));
        timers.stop(Timer::Retransmit);
        assert!(timers.runs(Timer::Persist) && !timers.runs(Timer::Retransmit));
        let wake = timers.next();
        assert_eq!(wake.map(|wake| wake.why), Some("window probe"));
        let late = wake.map(|wake| wake.at.nanos());
        assert!(late.is_some_and(|at| (6_999_999..7_016_384).contains(&at)));
        assert_eq!(expire(&mut timers, Instant::from_millis(6)), None);
        let persist = expire(&mut timers, Instant::from_millis(8));
        assert_eq!(persist, Some(Timer::Persist));
        assert_eq!(timers.next(), None);
    }

    /// At any time of the clock a deadline comes neither early nor more than a unit late; waits beyond 9.7 hours are cut.
    #[test]
    fn deadlines_never_come_early_in_a_hundred_years() {
        let year = 31_557_600_000_000_000;
        for now in [0, 1, 16_383, 16_384, 56 * year + 12_345, 140 * year] {
            for wait in [
                0,
                1,
                16_384,
                7_200_000_000_000,
                34_000_000_000_000,
                u64::MAX,
            ] {
                let mut timers = Timers::default();
                timers.turn(Instant::from_nanos(now));
                timers.start(Timer::KeepAlive, Duration::from_nanos(wait));
                let due = now + wait.min(Timers::MAX.nanos());
                let at = timers.next().map(|wake| wake.at.nanos());
                assert!(at.is_some_and(|at| (due..due + 16_384).contains(&at)));
                if wait > 0 {
                    let early = expire(&mut timers, Instant::from_nanos(due - 1));
                    assert_eq!(early, None, "{now} {wait}");
                }
                let later = expire(&mut timers, Instant::from_nanos(due + 16_384));
                assert_eq!(later, Some(Timer::KeepAlive));
            }
        }
    }

    /// A driver that did not call for longer than a deadline is known finds what ran due, and nothing else.
    #[test]
    fn after_a_year_without_a_call_what_runs_is_due() {
        for hours in [10, 15, 20, 25, 100, 8_766] {
            let mut timers = Timers::default();
            timers.start(Timer::KeepAlive, micros(7_200_000_000));
            let now = Instant::from_millis(hours * 3_600_000);
            assert_eq!(expire(&mut timers, now), Some(Timer::KeepAlive));
            assert_eq!(timers.expire(), None);
        }
    }

    #[test]
    fn every_due_timer_fires_once() {
        let mut timers = Timers::default();
        for timer in [Timer::TimeWait, Timer::TailLossProbe, Timer::DelayedAck] {
            timers.start(timer, micros(1_000));
        }
        let now = Instant::from_millis(2);
        assert_eq!(expire(&mut timers, now), Some(Timer::DelayedAck));
        assert_eq!(expire(&mut timers, now), Some(Timer::TailLossProbe));
        assert_eq!(expire(&mut timers, now), Some(Timer::TimeWait));
        assert_eq!(expire(&mut timers, now), None);
    }

    #[test]
    fn a_probe_waits_no_longer_than_the_timeout() {
        let mut timers = Timers::default();
        timers.start(Timer::TailLossProbe, micros(9_000));
        timers.limit(Timer::TailLossProbe, Timer::Retransmit);
        let at = |timers: &Timers| timers.next().map(|wake| wake.at.nanos() / 1_000_000);
        assert_eq!(at(&timers), Some(9));
        timers.start(Timer::Retransmit, micros(5_000));
        timers.limit(Timer::TailLossProbe, Timer::Retransmit);
        timers.stop(Timer::Retransmit);
        assert_eq!(at(&timers), Some(5));
    }
}
