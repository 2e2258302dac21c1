//! The cores that several papers share: each piece of work waits for one.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// Cores for pieces of work, given out by rank.
///
/// Papers that run at the same time have threads of their own each, but only as many pieces of work go on as there are cores. A
/// paper of a lower rank is always first, so that the longest one can be first and the others fill the gaps at the ends of its
/// figures.
#[derive(Debug)]
pub struct Cores {
    state: Mutex<State>,
    freed: Condvar,
}

#[derive(Debug)]
struct State {
    free: usize,
    /// How many pieces of work of each rank wait.
    waiting: Vec<usize>,
}

/// A core that is in use; dropped, it is free for the next piece of work.
#[derive(Debug)]
pub struct Core<'a>(&'a Cores);

impl Cores {
    /// This many cores, at least one, for work of the ranks below `ranks`.
    pub fn new(count: usize, ranks: usize) -> Arc<Cores> {
        Arc::new(Cores {
            state: Mutex::new(State {
                free: count.max(1),
                waiting: vec![0; ranks],
            }),
            freed: Condvar::new(),
        })
    }

    /// Waits for a core. Work that holds one must not ask for another.
    pub fn take(&self, rank: usize) -> Core<'_> {
        let mut state = self.lock();
        state.count(rank, 1);
        while state.free == 0 || state.before(rank) {
            state = self
                .freed
                .wait(state)
                .unwrap_or_else(|broken| broken.into_inner());
        }
        state.count(rank, -1);
        state.free -= 1;
        // Whoever waits behind this one may have a second core.
        self.freed.notify_all();
        Core(self)
    }

    /// Pieces of work that wait for a core.
    pub fn waiting(&self) -> usize {
        self.lock().waiting.iter().sum()
    }

    // A panic of a piece of work leaves the counts as they were: they change only here, in one step.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state
            .lock()
            .unwrap_or_else(|broken| broken.into_inner())
    }
}

impl State {
    fn count(&mut self, rank: usize, by: isize) {
        if let Some(waiting) = self.waiting.get_mut(rank) {
            *waiting = waiting.saturating_add_signed(by);
        }
    }

    fn before(&self, rank: usize) -> bool {
        self.waiting.iter().take(rank).any(|waiting| *waiting > 0)
    }
}

impl Drop for Core<'_> {
    fn drop(&mut self) {
        self.0.lock().free += 1;
        self.0.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Goal: whoever has the lower rank is first, in whichever order they came.
    #[test]
    fn the_lower_rank_is_first() {
        let cores = Cores::new(1, 3);
        let held = cores.take(0);
        let order = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for (place, rank) in [2, 1, 0, 1].into_iter().enumerate() {
                let (cores, order) = (&cores, &order);
                scope.spawn(move || {
                    let core = cores.take(rank);
                    order.lock().unwrap().push(rank);
                    drop(core);
                });
                while cores.waiting() <= place {
                    std::thread::yield_now();
                }
            }
            drop(held);
        });
        assert_eq!(order.into_inner().unwrap(), [0, 1, 1, 2]);
    }

    /// Goal: never more pieces of work than cores, and all of them in the end.
    #[test]
    fn no_more_work_than_cores() {
        let cores = Cores::new(3, 2);
        let (now, most, done) = (
            AtomicUsize::new(0),
            AtomicUsize::new(0),
            AtomicUsize::new(0),
        );
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (cores, now, most, done) = (&cores, &now, &most, &done);
                scope.spawn(move || {
                    for _ in 0..200 {
                        let _core = cores.take(thread % 2);
                        most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        std::thread::yield_now();
                        now.fetch_sub(1, Ordering::SeqCst);
                        done.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert_eq!(done.into_inner(), 1600);
        assert!((1..=3).contains(&most.into_inner()));
    }
}
