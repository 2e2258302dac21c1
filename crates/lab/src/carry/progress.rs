//! The progress of a run: for the meter, and to detect that nothing arrives any more.

use crate::run::{Meter, RunError, WORK};

/// What has arrived so far, reported to a [`Meter`].
#[derive(Debug)]
pub struct Progress<'m> {
    meter: &'m Meter,
    arrived: u64,
    moved_at_s: f64,
    reported: u64,
    events: u64,
}

impl<'m> Progress<'m> {
    /// A run that has just begun.
    pub fn new(meter: &'m Meter) -> Progress<'m> {
        Progress {
            meter,
            arrived: 0,
            moved_at_s: 0.0,
            reported: 0,
            events: 0,
        }
    }

    /// The simulator has handled `events` events since it began.
    pub fn spent(&mut self, events: u64) {
        self.meter.spend(events.saturating_sub(self.events));
        self.events = events;
    }

    /// At `now_s` seconds, `arrived` of `all` parts have arrived. Any change counts as movement, also a loss by a crash;
    /// the meter never goes back.
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

    /// Ends the run: the rest of its work counts as done. [`RunError::Interrupted`] if the user asked to stop.
    pub fn finish(self) -> Result<(), RunError> {
        self.meter.advance(WORK - self.reported);
        match self.meter.stopped() {
            true => Err(RunError::Interrupted),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(meter: &Meter) -> u64 {
        meter.read().0
    }

    #[test]
    fn the_meter_follows_the_parts_and_never_goes_back() {
        let meter = Meter::default();
        let mut progress = Progress::new(&meter);
        for (arrived, expected) in [(1, 250), (3, 750), (2, 750), (4, 1000), (9, 1000)] {
            progress.at(1.0, arrived, 4);
            assert_eq!(done(&meter), expected, "{arrived}");
        }
        progress.finish().unwrap();
        assert_eq!(done(&meter), WORK);
    }

    /// A run that ends early counts as a whole one, and so does one without parts.
    #[test]
    fn every_run_counts_as_one_in_the_end() {
        for all in [0, 4] {
            let meter = Meter::default();
            let mut progress = Progress::new(&meter);
            progress.at(1.0, 0, all);
            progress.finish().unwrap();
            assert_eq!(done(&meter), WORK);
        }
    }

    #[test]
    fn idle_time_counts_from_the_last_change() {
        let meter = Meter::default();
        let mut progress = Progress::new(&meter);
        progress.at(5.0, 0, 10);
        assert_eq!(progress.idle_s(5.0), 5.0);
        progress.at(6.0, 2, 10);
        progress.at(8.0, 2, 10);
        assert_eq!(progress.idle_s(8.0), 2.0);
        // A crash took a part.
        progress.at(9.0, 1, 10);
        assert_eq!(progress.idle_s(9.5), 0.5);
    }

    /// The budget counts events of all runs of its meter, each from its own beginning.
    #[test]
    fn a_run_stops_when_its_budget_is_spent() {
        let meter = Meter::default().within(10);
        let mut first = Progress::new(&meter);
        [3, 3, 6].into_iter().for_each(|events| first.spent(events));
        assert!(!first.stopped());
        first.finish().unwrap();
        let mut second = Progress::new(&meter);
        second.spent(4);
        assert!(!second.stopped());
        second.spent(5);
        assert!(matches!(second.finish(), Err(RunError::Interrupted)));
    }

    #[test]
    fn a_stopped_run_is_interrupted() {
        let meter = Meter::default();
        let progress = Progress::new(&meter);
        meter.stop();
        assert!(progress.stopped());
        assert!(matches!(progress.finish(), Err(RunError::Interrupted)));
        assert_eq!(done(&meter), WORK);
    }
}
