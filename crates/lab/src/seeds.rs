//! Seeds in parallel: threads take one seed after the other, and the results come back in the seeds' order.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::run::{Meter, RunError};

/// Applies `work` to every item on `threads` threads and returns the results in the order of the items. `None`
/// marks items that were not begun because `go_on` returned false.
pub fn parallel<T: Sync, U: Send>(
    items: &[T],
    threads: usize,
    go_on: impl Fn() -> bool + Sync,
    work: impl Fn(&T) -> U + Sync,
) -> Vec<Option<U>> {
    let results: Mutex<Vec<Option<U>>> = Mutex::new(items.iter().map(|_| None).collect());
    let one = |index: usize| {
        let result = work(&items[index]);
        // A thread that panicked took the whole scope down with it, so the lock is never poisoned here.
        if let Ok(mut results) = results.lock() {
            results[index] = Some(result);
        }
    };
    spread(items.len(), threads, &go_on, &one);
    results.into_inner().unwrap_or_default()
}

/// Calls `one` for every index below `count` on `threads` threads, until `go_on` returns false. Not generic, so that the threads
/// are compiled once and not for each caller.
fn spread(
    count: usize,
    threads: usize,
    go_on: &(dyn Fn() -> bool + Sync),
    one: &(dyn Fn(usize) + Sync),
) {
    let next = AtomicUsize::new(0);
    let worker = || {
        while go_on() {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                break;
            }
            one(index);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.clamp(1, count.max(1)) {
            scope.spawn(worker);
        }
        worker();
    });
}

/// As [`parallel`], for work that may fail: what was finished, each with its item, in the items' order. A request to stop leaves
/// some out; the first error ends the whole.
pub fn finished<'a, T: Sync, U: Send>(
    items: &'a [T],
    threads: usize,
    meter: &Meter,
    work: impl Fn(&T) -> Result<U, RunError> + Sync,
) -> Result<Vec<(&'a T, U)>, RunError> {
    let failed = AtomicBool::new(false);
    let go_on = || !meter.stopped() && !failed.load(Ordering::Relaxed);
    let done = parallel(items, threads, go_on, |item| {
        // It may have waited for a core for a long time.
        let done = meter.work(|| match meter.stopped() {
            true => Err(RunError::Interrupted),
            false => work(item),
        });
        failed.fetch_or(done.is_err(), Ordering::Relaxed);
        done
    });
    let mut finished = Vec::new();
    for (item, done) in items.iter().zip(done) {
        match done {
            None | Some(Err(RunError::Interrupted)) => {}
            Some(done) => finished.push((item, done?)),
        }
    }
    Ok(finished)
}

/// The number of threads to use by default: one for each core.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_stand_in_the_order_of_the_items() {
        let items: Vec<u64> = (0..100).collect();
        for threads in [1, 2, 7, 1000] {
            let squares = parallel(&items, threads, || true, |n| n * n);
            assert_eq!(
                squares,
                items.iter().map(|n| Some(n * n)).collect::<Vec<_>>()
            );
        }
        assert_eq!(
            parallel(&[0u8; 0], 3, || true, |n| *n),
            Vec::<Option<u8>>::new()
        );
    }

    #[test]
    fn stopping_leaves_the_rest_undone() {
        let begun = AtomicUsize::new(0);
        let go_on = || begun.load(Ordering::Relaxed) < 3;
        let results = parallel(&[1, 2, 3, 4, 5], 1, go_on, |n| {
            begun.fetch_add(1, Ordering::Relaxed);
            *n
        });
        assert_eq!(results, [Some(1), Some(2), Some(3), None, None]);
    }
}
