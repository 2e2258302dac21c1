//! Work on threads beside a session's own, which wakes the session when it is done.
//!
//! The end of a transfer is such work: digests, syncs and names. A session that only looks now and then learns of it late, by 50 ms
//! on the mean.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{self, TryRecvError};
use std::thread;

use crate::error::{Error, Result};

/// Wakes a session: the session watches one end, and workers hold the other.
#[derive(Debug)]
pub(crate) struct Bell {
    heard: UnixStream,
    rope: Rope,
}

/// A worker's end of a [`Bell`].
#[derive(Clone, Debug)]
pub(crate) struct Rope {
    end: Arc<UnixStream>,
    /// Whether work is done at once, on the thread that asks for it.
    #[cfg(test)]
    at_once: bool,
}

/// The result of work, once it is there.
#[derive(Debug)]
pub(crate) struct Work<T> {
    result: mpsc::Receiver<T>,
    /// What the work is, as in "the thread that reads the files".
    what: &'static str,
}

impl Bell {
    /// A bell that has not rung. Fails if the process has no descriptors left.
    pub fn new() -> io::Result<Bell> {
        let (heard, rope) = UnixStream::pair()?;
        heard.set_nonblocking(true)?;
        rope.set_nonblocking(true)?;
        let rope = Rope {
            end: Arc::new(rope),
            #[cfg(test)]
            at_once: false,
        };
        Ok(Bell { heard, rope })
    }

    /// The end that workers ring.
    pub fn rope(&self) -> Rope {
        self.rope.clone()
    }

    /// Forgets that it has rung.
    pub fn quiet(&mut self) {
        let mut rings = [0; 64];
        while self.heard.read(&mut rings).is_ok_and(|read| read > 0) {}
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.heard.as_fd()
    }
}

impl Rope {
    /// A rope without a listener, with work that is done at once: in virtual time nothing may depend on how long it really takes.
    #[cfg(test)]
    pub fn at_once() -> Rope {
        Rope {
            at_once: true,
            ..Bell::new().unwrap().rope()
        }
    }

    /// Runs `work` on a thread of its own. `what` names the thread in errors: "the thread that ...".
    pub fn spawn<T: Send + 'static>(
        &self,
        what: &'static str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Work<T> {
        let (sender, result) = mpsc::channel();
        let rope = self.clone();
        let run = move || {
            // Rings after the result is there, also if the work panics.
            let _ring = Ring(rope);
            let sender = sender;
            let _ = sender.send(work());
        };
        #[cfg(test)]
        if self.at_once {
            run();
            return Work { result, what };
        }
        thread::spawn(run);
        Work { result, what }
    }
}

/// Rings when it is dropped.
struct Ring(Rope);

impl Drop for Ring {
    fn drop(&mut self) {
        // If there is no room for one more, the session is awake anyway.
        let _ = (&*self.0.end).write(&[1]);
    }
}

impl<T> Work<T> {
    /// The result if the work is done; an error if its thread has crashed. After that there is none.
    pub fn take(&mut self) -> Option<Result<T>> {
        match self.result.try_recv() {
            Ok(result) => Some(Ok(result)),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                let what = format!("{} has crashed", self.what);
                Some(Err(Error::failed(what, "")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    /// Goal: who waits for the bell finds the result. Method: a blocking read instead of the event loop.
    #[test]
    fn the_bell_rings_when_the_result_is_there() {
        let mut bell = Bell::new().unwrap();
        let (go, wait) = channel::<()>();
        let mut work = bell.rope().spawn("the thread that waits", move || {
            wait.recv().unwrap();
            7
        });
        assert!(work.take().is_none());
        go.send(()).unwrap();
        bell.heard.set_nonblocking(false).unwrap();
        bell.heard.read_exact(&mut [0]).unwrap();
        assert_eq!(work.take().unwrap().unwrap(), 7);
        bell.heard.set_nonblocking(true).unwrap();
        let again = bell.rope().spawn("the thread that is quick", || ());
        again.result.recv().unwrap();
        bell.quiet();
    }

    #[test]
    fn a_crash_is_an_error_and_rings() {
        let mut bell = Bell::new().unwrap();
        let mut work: Work<()> = bell.rope().spawn("the thread that fails", || {
            std::panic::resume_unwind(Box::new(()));
        });
        bell.heard.set_nonblocking(false).unwrap();
        bell.heard.read_exact(&mut [0]).unwrap();
        let error = work.take().unwrap().unwrap_err();
        assert!(error.what.contains("the thread that fails"));
    }
}
