//! Reports of changed queues on links that do not overhear, for a bounded share of the air time.

use chappe_core::{Caps, Instant};

use super::Router;
use crate::config::{Extras, Reports};
use crate::header::{Backlog, QUEUES_MAX, Report, Reported};

/// Decides when a report is worth sending and affordable.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reporter {
    law: Option<Reports>,
    /// Octets that reports may use now.
    allowance: f64,
    /// A queue differs enough from its last reported length.
    wanted: bool,
}

impl Reporter {
    pub fn new(extras: &Extras, caps: &Caps) -> Reporter {
        let law = extras.reports.filter(|_| !caps.overhears);
        let mut reporter = Reporter {
            law,
            allowance: 0.0,
            wanted: false,
        };
        reporter.allowance = reporter.least();
        reporter
    }

    /// Octets on the air of a report with one queue.
    fn least(&self) -> f64 {
        self.law.map_or(0.0, |law| {
            (law.around + crate::header::REPORT + crate::header::REPORTED) as f64
        })
    }

    /// The node sent or received a frame of `octets`, which adds to the allowance.
    pub fn on_frame(&mut self, octets: usize) {
        if let Some(law) = self.law {
            // The unused allowance is capped at two reports, so that a pause is not followed by a burst.
            let more = law.share * (octets + law.around) as f64;
            self.allowance = (self.allowance + more).min(2.0 * self.least());
        }
    }

    /// A queue's length changed to `now`; `reported` was broadcast last.
    fn on_change(&mut self, now: f64, reported: f64) {
        let enough = |law: Reports| libm::fabs(now - reported) >= law.change;
        self.wanted |= self.law.is_some_and(enough);
    }

    /// Whether a report is wanted and affordable.
    pub fn is_due(&self) -> bool {
        self.wanted && self.allowance >= self.least()
    }

    fn on_sent(&mut self, octets: usize) {
        let around = self.law.map_or(0, |law| law.around);
        self.allowance -= (octets + around) as f64;
        self.wanted = false;
    }
}

impl Router {
    /// A queue changed: its length may be worth a report.
    pub(super) fn compare_with_reported(&mut self, now: Instant, destination: u16) {
        if self.reporter.law.is_none() {
            return;
        }
        let length = self.backlog(now, destination);
        let queue = self.queues.get(usize::from(destination));
        let reported = queue.map_or(0.0, |queue| queue.reported.packets());
        self.reporter.on_change(length, reported);
    }

    /// Records the length of a queue that is being broadcast.
    pub(super) fn note_reported(&mut self, destination: u16, backlog: Backlog) {
        if let Some(queue) = self.queues.get_mut(usize::from(destination)) {
            queue.reported = backlog;
        }
    }

    /// Writes a report of the queues that changed enough, lowest places first. Returns its length.
    pub(super) fn write_report(&mut self, now: Instant, sdu: &mut [u8]) -> Option<usize> {
        let law = self.reporter.law.filter(|_| self.reporter.is_due())?;
        let mut changed: [Option<(u16, Reported)>; QUEUES_MAX] = [None; QUEUES_MAX];
        let mut free = changed.iter_mut();
        for (place, queue) in (0..).zip(&self.queues) {
            let Some(destination) = self.routes.get(place) else {
                continue;
            };
            let backlog = Backlog::from_packets(self.backlog(now, place));
            if libm::fabs(backlog.packets() - queue.reported.packets()) < law.change {
                continue;
            }
            let room = self.room(place);
            let reported = Reported {
                destination: destination.node,
                backlog,
                room,
            };
            match free.next() {
                Some(slot) => *slot = Some((place, reported)),
                None => break,
            }
        }
        if changed.iter().all(Option::is_none) {
            // The queues have returned to their reported lengths.
            self.reporter.wanted = false;
            return None;
        }
        let queues = changed.iter().flatten().map(|&(_, reported)| reported);
        let len = Report::emit(queues, sdu)?;
        for (place, reported) in changed.into_iter().flatten() {
            self.note_reported(place, reported.backlog);
        }
        self.reporter.on_sent(len);
        self.counters.reports_sent += 1;
        Some(len)
    }

    /// Handles a neighbour's report of its queues.
    pub(super) fn on_report(&mut self, now: Instant, from: u16, report: &Report<'_>) {
        let Some(place) = self.links.find(from) else {
            return;
        };
        self.counters.reports_heard += 1;
        for queue in report.queues() {
            if let Some(destination) = self.routes.find(queue.destination) {
                self.routes
                    .set_backlog(now, destination, place, queue.backlog);
                self.routes.set_room(destination, place, queue.room);
            }
        }
    }
}
