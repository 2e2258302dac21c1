//! What all runs share: their outcome, their errors, and their progress.
//!
//! A run has two phases on one network. First the nodes learn their links, as their paper's do; then the transfer starts on
//! a fresh clock with the fading of the run's own seed. What the first phase finds depends on the seed and the network
//! only, so variants compared on one seed share it, and share the bound.
//!
//! **Architecture invariant:** one run is single-threaded and decided by (plan, seed) alone; threads only share the seeds
//! among them ([`crate::seeds`]).

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chappe_results::Run;
use chappe_results::figure::Figure;
use chappe_scenario::InputError;
use portable_atomic::AtomicU64;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::cores::Cores;
use crate::keeper::{Keeper, Piece};

/// A run that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The scenario makes no sense with this seed.
    #[error("{0}")]
    Input(Box<InputError>),
    /// A file could not be written.
    #[error("{0}")]
    Write(String),
    /// A defect of Chappe itself. Exit code 70.
    #[error("{0}")]
    Defect(String),
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
}

impl From<InputError> for RunError {
    fn from(error: InputError) -> RunError {
        RunError::Input(Box::new(error))
    }
}

impl RunError {
    /// A file that could not be written.
    pub fn unwritable(path: &Path, error: &io::Error) -> RunError {
        RunError::Write(format!("cannot write {}: {error}", path.display()))
    }
}

/// What came out of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The result with its counters and bounds.
    pub run: Run,
    /// The receivers' complete copies, in the order of the flows, if they were asked for.
    pub copies: Vec<Option<Vec<u8>>>,
    /// What the user should know about it, in sentences.
    pub notes: Vec<String>,
}

/// What one run is worth on a [`Meter`], and what preparing its seed is.
pub const WORK: u64 = 1000;

/// The progress of all runs, and the request to stop them.
#[derive(Default)]
pub struct Meter {
    done: AtomicU64,
    total: AtomicU64,
    planned: AtomicBool,
    stop: Arc<AtomicBool>,
    /// Events of simulators that may still come, if they are limited.
    budget: Option<AtomicU64>,
    watcher: Option<Box<Watcher>>,
    cores: Option<(Arc<Cores>, usize)>,
    clock: Option<ThreadClock>,
    keeper: Option<Arc<dyn Keeper>>,
    /// Nanoseconds of processor since the last figure.
    worked: AtomicU64,
}

/// Receives each figure as soon as it is finished, before the next one begins, and the processor time since the one before.
pub type Watcher = dyn Fn(&Figure, Duration) + Send + Sync;

/// The processor time that the calling thread has taken so far.
pub type ThreadClock = fn() -> Duration;

impl fmt::Debug for Meter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (done, total) = self.read();
        write!(f, "Meter({done} of {total})")
    }
}

impl Meter {
    /// A meter whose runs stop when `stop` is set, for example by a signal.
    pub fn stopped_by(stop: Arc<AtomicBool>) -> Meter {
        Meter {
            stop,
            ..Meter::default()
        }
    }

    /// The same meter, whose runs stop when their simulators have handled more than `events` events together. Unlike a limit of
    /// time it stops a run at the same place on every machine.
    pub fn within(self, events: u64) -> Meter {
        Meter {
            budget: Some(AtomicU64::new(events)),
            ..self
        }
    }

    /// The same meter, which tells `watcher` of every finished figure.
    pub fn telling(self, watcher: Box<Watcher>) -> Meter {
        Meter {
            watcher: Some(watcher),
            ..self
        }
    }

    /// The same meter, whose pieces of work wait for one of `cores`, which other papers use too.
    pub fn sharing(self, cores: Arc<Cores>, rank: usize) -> Meter {
        Meter {
            cores: Some((cores, rank)),
            ..self
        }
    }

    /// The same meter, which counts the processor time of its pieces of work.
    pub fn timed_by(self, clock: ThreadClock) -> Meter {
        Meter {
            clock: Some(clock),
            ..self
        }
    }

    /// The same meter, which keeps finished pieces of work with `keeper`.
    pub fn keeping(self, keeper: Arc<dyn Keeper>) -> Meter {
        Meter {
            keeper: Some(keeper),
            ..self
        }
    }

    /// What was kept under `name` ([`Keeper`] says what a name is), or else the result of `work`, which is kept then. A kept text
    /// that cannot be read counts as none. Fails if the work does, or if its result cannot be written.
    pub fn kept<U: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        work: impl FnOnce() -> Result<U, RunError>,
    ) -> Result<U, RunError> {
        let Some(keeper) = &self.keeper else {
            return work();
        };
        let read = |text: String| serde_json::from_str::<Piece<U>>(&text).ok();
        if let Some(piece) = keeper.find(name).and_then(read) {
            self.worked.fetch_add(piece.nanos, Ordering::Relaxed);
            return Ok(piece.result);
        }
        let begun = self.clock.map(|clock| clock());
        let result = work()?;
        let took = self.clock.zip(begun);
        let took = took.map_or(Duration::ZERO, |(clock, begun)| clock() - begun);
        let piece = Piece {
            nanos: took.as_nanos() as u64,
            result,
        };
        let text = serde_json::to_string(&piece);
        let text = text.map_err(|error| RunError::Defect(format!("{name}: {error}")))?;
        keeper
            .keep(name, &text)
            .map_err(|error| RunError::Write(format!("cannot keep a run: {error}")))?;
        Ok(piece.result)
    }

    /// Does a piece of work on the calling thread, once a core is free for it. It must not contain another one.
    pub fn work<U>(&self, work: impl FnOnce() -> U) -> U {
        let _core = self.cores.as_ref().map(|(cores, rank)| cores.take(*rank));
        let begun = self.clock.map(|clock| (clock, clock()));
        let done = work();
        if let Some((clock, begun)) = begun {
            let worked = clock().saturating_sub(begun).as_nanos() as u64;
            self.worked.fetch_add(worked, Ordering::Relaxed);
        }
        done
    }

    /// Tells the watcher, if there is one, that a figure is finished.
    pub fn finished(&self, figure: &Figure) {
        let worked = Duration::from_nanos(self.worked.swap(0, Ordering::Relaxed));
        if let Some(watcher) = &self.watcher {
            watcher(figure, worked);
        }
    }

    /// Sets all work in advance: `seeds` seeds with `runs` runs each.
    pub fn plan(&self, seeds: usize, runs: usize) {
        self.plan_work(WORK * (seeds * (1 + runs)) as u64);
    }

    /// Sets all work in advance.
    pub fn plan_work(&self, work: u64) {
        self.total.store(work, Ordering::Relaxed);
        self.planned.store(true, Ordering::Relaxed);
    }

    /// Adds to the known work, unless all of it was set in advance.
    pub fn expect(&self, work: u64) {
        if !self.planned.load(Ordering::Relaxed) {
            self.total.fetch_add(work, Ordering::Relaxed);
        }
    }

    /// Adds to the work that is done.
    pub fn advance(&self, work: u64) {
        self.done.fetch_add(work, Ordering::Relaxed);
    }

    /// Work done and work known.
    pub fn read(&self) -> (u64, u64) {
        (
            self.done.load(Ordering::Relaxed),
            self.total.load(Ordering::Relaxed),
        )
    }

    /// Counts events of a simulator, and asks all runs to stop if they are more than the budget has left.
    pub fn spend(&self, events: u64) {
        let Some(budget) = &self.budget else { return };
        let left = |left: u64| left.checked_sub(events);
        if budget
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, left)
            .is_err()
        {
            self.stop();
        }
    }

    /// Asks all runs to stop soon.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether the runs were asked to stop.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::sync::Mutex;

    #[derive(Default)]
    struct Memory(Arc<Mutex<BTreeMap<String, String>>>);

    impl Keeper for Memory {
        fn find(&self, name: &str) -> Option<String> {
            self.0.lock().unwrap().get(name).cloned()
        }

        fn keep(&self, name: &str, text: &str) -> io::Result<()> {
            let mut texts = self.0.lock().unwrap();
            texts.insert(name.into(), text.into());
            Ok(())
        }
    }

    /// Goal: work whose result is kept is not done again, its time counts, and numbers come back to the last bit. Failures and texts
    /// that cannot be read are not kept results.
    #[test]
    fn kept_work_is_done_once() {
        let texts = Arc::new(Mutex::new(BTreeMap::new()));
        let clock: ThreadClock = || Duration::from_nanos(7);
        let meter = Meter::default()
            .timed_by(clock)
            .keeping(Arc::new(Memory(texts.clone())));
        let never = || -> Result<Vec<f64>, RunError> { Err(RunError::Interrupted) };
        assert!(meter.kept("a", never).is_err());
        assert!(texts.lock().unwrap().is_empty());
        let numbers = vec![0.1 + 0.2, 1e-300, f64::MAX / 3.0];
        assert_eq!(meter.kept("a", || Ok(numbers.clone())).unwrap(), numbers);
        assert_eq!(meter.kept("a", never).unwrap(), numbers);
        assert!(meter.kept("b", never).is_err(), "another name");
        texts.lock().unwrap().insert("b".into(), "{".into());
        assert_eq!(meter.kept("b", || Ok(vec![2.0])).unwrap(), [2.0]);
        assert_eq!(meter.kept("b", never).unwrap(), [2.0]);
    }

    /// The processor time of kept work is that of doing it.
    #[test]
    fn kept_work_counts_its_time() {
        let texts = Arc::new(Mutex::new(BTreeMap::new()));
        let text = "{\"nanos\":250,\"result\":3}";
        texts.lock().unwrap().insert("a".into(), text.into());
        let told = Arc::new(Mutex::new(Duration::ZERO));
        let heard = told.clone();
        let tell = move |_: &Figure, worked| *heard.lock().unwrap() = worked;
        let meter = Meter::default()
            .telling(Box::new(tell))
            .keeping(Arc::new(Memory(texts)));
        let kept = meter.kept("a", || -> Result<u8, RunError> {
            Err(RunError::Interrupted)
        });
        assert_eq!(kept.unwrap(), 3);
        meter.finished(&Figure {
            id: "a",
            title: "t".into(),
            panels: Vec::new(),
            claims: Vec::new(),
            notes: Vec::new(),
        });
        assert_eq!(*told.lock().unwrap(), Duration::from_nanos(250));
    }
}
