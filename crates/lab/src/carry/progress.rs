//! How far a run is: for the meter, and to notice that nothing arrives any more.

use crate::run::{Meter, RunError, WORK};

/// What has arrived so far, reported to a [`Meter`].
#[derive(Debug)]
pub struct Progress<'m> {
    meter: &'m Meter,
    arrived: u64,
    moved_at_s: f64,
    reported: u64,
}

impl<'m> Progress<'m> {
    /// A run that has just begun.
    pub fn new(meter: &'m Meter) -> Progress<'m> {
        Progress {
            meter,
            arrived: 0,
            moved_at_s: 0.0,
            reported: 0,
        }
    }

    /// At `now_s` seconds `arrived` of `all` parts have arrived, whatever the parts are.
    pub fn at(&mut self, now_s: f64, arrived: u64, all: u64) {
        if arrived != self.arrived {
            (self.arrived, self.moved_at_s) = (arrived, now_s);
        }
        let share = (WORK * arrived / all.max(1)).min(WORK);
        self.meter.advance(share.saturating_sub(self.reported));
        self.reported = share.max(self.reported);
    }

    /// For how many seconds nothing has arrived.
    pub fn idle_s(&self, now_s: f64) -> f64 {
        now_s - self.moved_at_s
    }

    /// Whether the user asked to stop.
    pub fn stopped(&self) -> bool {
        self.meter.stopped()
    }

    /// The run is over. [`RunError::Interrupted`] if the user asked to stop.
    pub fn finish(self) -> Result<(), RunError> {
        self.meter.advance(WORK - self.reported);
        match self.meter.stopped() {
            true => Err(RunError::Interrupted),
            false => Ok(()),
        }
    }
}
