//! Time on a processor, which other work on the machine disturbs less than the time of the day.

use std::fs;
use std::time::Duration;

/// How long the calling thread has run on a processor; `None` where the system does not say.
///
/// Source: the first number of Linux's `/proc/thread-self/schedstat`, in nanoseconds (kernel documentation,
/// `scheduler/sched-stats`). It comes from the scheduler's own clock, so it is not rounded to ticks.
pub fn thread_time() -> Option<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanos = text.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_grows_with_work() {
        let Some(before) = thread_time() else {
            return crate::skip("this system does not report processor time");
        };
        let mut sum = 0u64;
        while thread_time().is_some_and(|now| now <= before) {
            sum = (0..100_000).fold(sum, |sum, n| std::hint::black_box(sum ^ n));
        }
        assert!(thread_time() > Some(before), "{sum}");
    }
}
