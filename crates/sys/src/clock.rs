//! The monotonic clock, from which nodes get their time, and the processor time of threads.

use std::time::Duration;

use chappe_core::Instant;
use rustix::time::{ClockId, clock_gettime};

/// CLOCK_MONOTONIC, counted from the creation of this value. It never goes back, setting the system time does not
/// change it, and it stops while the machine is suspended.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start_ns: u64,
}

impl Clock {
    /// A clock whose zero is now.
    pub fn start() -> Clock {
        Clock {
            start_ns: monotonic_ns(),
        }
    }

    /// The time since the clock was started.
    pub fn now(&self) -> Instant {
        Instant::from_nanos(monotonic_ns().saturating_sub(self.start_ns))
    }

    /// Converts `at` to CLOCK_MONOTONIC, in nanoseconds.
    pub(crate) fn absolute_ns(&self, at: Instant) -> u64 {
        self.start_ns.saturating_add(at.nanos())
    }
}

/// The processor time that the calling thread has taken so far, user and system together.
pub fn thread_time() -> Duration {
    Duration::from_nanos(nanos(ClockId::ThreadCPUTime))
}

fn monotonic_ns() -> u64 {
    nanos(ClockId::Monotonic)
}

fn nanos(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let (seconds, nanos) = (time.tv_sec.max(0) as u64, time.tv_nsec.max(0) as u64);
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_starts_at_zero_and_is_monotonic() {
        let clock = Clock::start();
        let first = clock.now();
        assert!(first < Instant::from_millis(10_000), "{first}");
        assert!((0..1000).map(|_| clock.now()).is_sorted());
    }

    /// Sleeping takes no processor, working does.
    #[test]
    fn only_work_takes_processor_time() {
        let begun = (thread_time(), std::time::Instant::now());
        std::thread::sleep(Duration::from_millis(300));
        let slept = thread_time() - begun.0;
        assert!(slept < begun.1.elapsed() / 2, "{slept:?}");
        while thread_time() < begun.0 + slept + Duration::from_millis(5) {}
        assert!(begun.1.elapsed() >= Duration::from_millis(305));
    }
}
