//! Work that Ctrl-C ends: it runs on a thread of its own while the interpreter is free for other threads.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use chappe_lab::run::Meter;
use pyo3::prelude::*;

/// How often the interpreter is asked whether a signal came. Python answers a signal on its main thread only.
const LOOK: Duration = Duration::from_millis(50);

/// Does `work` on another thread, without the interpreter's lock. A signal, such as Ctrl-C, stops the meter; when the work has ended,
/// the signal's exception stands beside its result.
pub fn watched<T: Send>(
    py: Python<'_>,
    meter: &Arc<Meter>,
    work: impl FnOnce() -> T + Send,
) -> (T, Option<PyErr>) {
    let (sender, done) = mpsc::channel();
    // Moved into the closure that waits without the lock: a receiver may be sent to a thread, not shared.
    let mut done = Some(done);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // Nobody listens any more only if this process ends.
            let _ = sender.send(work());
        });
        let mut asked = None;
        loop {
            let (waited, back) = py.detach(|| {
                let receiver = done.take();
                let waited = receiver
                    .as_ref()
                    .map(|receiver| receiver.recv_timeout(LOOK));
                (waited, receiver)
            });
            done = back;
            match waited {
                Some(Ok(result)) => return (result, asked),
                Some(Err(RecvTimeoutError::Timeout)) => {}
                // The thread panicked; leaving the scope hands its panic on.
                _ => panic!("a run ended without a result"),
            }
            if let Err(signal) = py.check_signals() {
                meter.stop();
                asked.get_or_insert(signal);
            }
        }
    })
}
