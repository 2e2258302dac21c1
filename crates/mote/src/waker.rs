//! Wakers of tasks that wait.

use core::task::Waker;

/// A task that waits for something. A second one takes its place and wakes it, so that neither waits forever.
#[derive(Debug, Default)]
pub(crate) struct Waiting(Option<Waker>);

impl Waiting {
    /// The place of a task, without one.
    pub const NONE: Waiting = Waiting(None);

    /// Remembers the task until [`wake`](Self::wake).
    pub fn register(&mut self, waker: &Waker) {
        match &self.0 {
            Some(known) if known.will_wake(waker) => {}
            _ => {
                if let Some(other) = self.0.replace(waker.clone()) {
                    other.wake();
                }
            }
        }
    }

    /// Wakes the task, if one waits.
    pub fn wake(&mut self) {
        if let Some(waker) = self.0.take() {
            waker.wake();
        }
    }
}
