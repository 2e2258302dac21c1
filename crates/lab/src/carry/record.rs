//! A scenario's recorder or a trial's, as one type.

use chappe_core::TraceEvent;
use chappe_sim::{AirTime, Heard, Interference, Reading, Receivers, Recorder, Sent, Switched};

use super::watch::Watch;

/// What records a run: a scenario's [`Watch`], or a recorder `T` of the system's own trials.
///
/// A simulator is compiled for each type of recorder, with the whole protocol in it, which takes seconds. A system that uses
/// this type for its scenarios and for its trials is compiled once.
#[derive(Debug)]
pub enum Record<T> {
    /// A scenario's arrivals, captures and traces.
    Scenario(Watch),
    /// What a trial counts; `()` if the counters of the nodes are enough.
    Trial(T),
}

impl<T> Record<T> {
    /// The recorder of a scenario, if this is one.
    pub fn into_watch(self) -> Option<Watch> {
        match self {
            Record::Scenario(watch) => Some(watch),
            Record::Trial(_) => None,
        }
    }

    /// The recorder of a trial, if this is one.
    pub fn into_trial(self) -> Option<T> {
        match self {
            Record::Scenario(_) => None,
            Record::Trial(trial) => Some(trial),
        }
    }

    /// The recorder of a trial, to change it.
    pub fn trial_mut(&mut self) -> Option<&mut T> {
        match self {
            Record::Scenario(_) => None,
            Record::Trial(trial) => Some(trial),
        }
    }
}

macro_rules! pass {
    ($self:ident, $to:ident => $call:expr) => {
        match $self {
            Record::Scenario($to) => $call,
            Record::Trial($to) => $call,
        }
    };
}

impl<T: Recorder> Recorder for Record<T> {
    fn wants_frames(&self) -> bool {
        match self {
            Record::Scenario(watch) => watch.wants_frames(),
            Record::Trial(trial) => T::FRAMES && trial.wants_frames(),
        }
    }

    fn wants_unheard(&self) -> bool {
        pass!(self, to => to.wants_unheard())
    }

    #[inline]
    fn sent(&mut self, frame: &Sent<'_>) {
        pass!(self, to => to.sent(frame));
    }

    #[inline]
    fn heard(&mut self, frame: &Heard<'_>) {
        pass!(self, to => to.heard(frame));
    }

    fn interfered(&mut self, burst: &Interference, receivers: Receivers<'_>) {
        pass!(self, to => to.interfered(burst, receivers));
    }

    fn traced(&mut self, at: AirTime, node: usize, event: TraceEvent) {
        pass!(self, to => to.traced(at, node, event));
    }

    fn woken(&mut self, at: AirTime, node: usize, why: &'static str) {
        pass!(self, to => to.woken(at, node, why));
    }

    fn switched(&mut self, at: AirTime, node: usize, state: Switched) {
        pass!(self, to => to.switched(at, node, state));
    }

    fn wants_readings(&mut self, at: AirTime) -> bool {
        pass!(self, to => to.wants_readings(at))
    }

    // In the loop that reads a node, from here down to the comparison: a node has a hundred readings, of which few have changed.
    #[inline(always)]
    fn read(&mut self, at: AirTime, node: usize, reading: Reading) {
        pass!(self, to => to.read(at, node, reading));
    }
}
