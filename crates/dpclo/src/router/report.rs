//! What neighbours cannot overhear is told to all of them, for a bounded share of the air.

use chappe_core::{Caps, Instant};

use super::Router;
use crate::config::{Extras, Reports};
use crate::header::{Backlog, QUEUES_TOLD, Report, Reported};

/// Whether there is something to report, and whether that may cost something now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reporter {
    law: Option<Reports>,
    /// Octets that reports may take now.
    allowance: f64,
    /// Some queue differs from what was told by enough.
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

    /// Octets on the air of a report of one queue.
    fn least(&self) -> f64 {
        self.law.map_or(0.0, |law| {
            (law.around + crate::header::REPORT + crate::header::REPORTED) as f64
        })
    }

    /// The node sent or received a frame with so many octets in it.
    pub fn on_frame(&mut self, octets: usize) {
        if let Some(law) = self.law {
            // What is not used is lost, except for two reports: a pause does not end in a burst.
            let more = law.share * (octets + law.around) as f64;
            self.allowance = (self.allowance + more).min(2.0 * self.least());
        }
    }

    /// A queue's length, now and as it was told last.
    fn on_change(&mut self, now: f64, told: f64) {
        let enough = |law: Reports| libm::fabs(now - told) >= law.change;
        self.wanted |= self.law.is_some_and(enough);
    }

    /// Whether a report is to be sent.
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
    /// A queue has changed: its length may be news.
    pub(super) fn compare_with_told(&mut self, now: Instant, destination: u16) {
        if self.reporter.law.is_none() {
            return;
        }
        let length = self.backlog(now, destination);
        let queue = self.queues.get(usize::from(destination));
        let told = queue.map_or(0.0, |queue| queue.reported.packets());
        self.reporter.on_change(length, told);
    }

    /// A queue's length goes out to everybody.
    pub(super) fn note_told(&mut self, destination: u16, backlog: Backlog) {
        if let Some(queue) = self.queues.get_mut(usize::from(destination)) {
            queue.reported = backlog;
        }
    }

    /// A report of the queues that have changed by enough, those of the lowest places first; how long it is.
    pub(super) fn write_report(&mut self, now: Instant, sdu: &mut [u8]) -> Option<usize> {
        let law = self.reporter.law.filter(|_| self.reporter.is_due())?;
        let mut changed: [Option<(u16, Reported)>; QUEUES_TOLD] = [None; QUEUES_TOLD];
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
            // What had changed is as it was told again.
            self.reporter.wanted = false;
            return None;
        }
        let queues = changed.iter().flatten().map(|&(_, reported)| reported);
        let len = Report::emit(queues, sdu)?;
        for (place, reported) in changed.into_iter().flatten() {
            self.note_told(place, reported.backlog);
        }
        self.reporter.on_sent(len);
        self.counters.reports_sent += 1;
        Some(len)
    }

    /// A neighbour reports its queues.
    pub(super) fn on_report(&mut self, now: Instant, from: u16, report: &Report<'_>) {
        let Some(place) = self.links.find(from) else {
            return;
        };
        self.counters.reports_heard += 1;
        for queue in report.queues() {
            if let Some(destination) = self.routes.find(queue.destination) {
                self.routes.tell(now, destination, place, queue.backlog);
                self.routes.tell_room(destination, place, queue.room);
            }
        }
    }
}
