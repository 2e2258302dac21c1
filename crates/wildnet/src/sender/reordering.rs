//! How long a frame may be overtaken before it counts as lost, learned from frames that arrived after all.
//!
//! RFC 8985 (RACK) waits a *reordering window* after a later frame was reported. The window is nothing until reordering is
//! seen, a quarter of the least round trip then, and grows by as much with each spurious repetition that a D-SACK reveals, up
//! to the round trip. Here reports name every body, so the evidence is exact: a body that is reported late, was sent once and
//! is in no repair, came with its first frame. So does one that was sent again, if the report covers no frame as new as the
//! repetition. Therefore the window is measured: the longest time from the report that passed a frame to the one with its body. A report
//! whose bitmap was cut before a body says nothing of it, so it passed only the frames of bodies that it shows.

use alloc::collections::VecDeque;

use chappe_core::{Duration, Instant};

use crate::header::before;

/// Reports remembered: those of a second on a fast path.
const REPORTS: usize = 512;
/// How long an observation counts, at least. RFC 8985 forgets its own after 16 recoveries, which a lossy path has in a second.
const KEPT: Duration = Duration::from_secs(10);

/// What reports have shown of the order of arrival.
#[derive(Clone, Debug, Default)]
pub(super) struct Reordering {
    /// Reports in ascending order of their highest frame.
    reports: VecDeque<Heard>,
    /// The longest that a frame came late, in the present stretch of time and in the one before.
    longest: [Duration; 2],
    since: Instant,
}

/// A report: its highest frame, when it came, and the first body of which it says nothing, if its bitmap was cut.
#[derive(Clone, Copy, Debug)]
struct Heard {
    highest: u32,
    at: Instant,
    cut_at: Option<u32>,
}

impl Reordering {
    /// Forgets the reports: frame numbers or the peer have changed. What is known of the path stays.
    pub fn forget_reports(&mut self) {
        self.reports.clear();
    }

    /// A report with a new highest frame came. `cut_at`: the first body of which it says nothing.
    pub fn on_report(&mut self, now: Instant, highest: u32, cut_at: Option<u32>) {
        if self
            .reports
            .back()
            .is_some_and(|last| !before(last.highest, highest))
        {
            return;
        }
        if self.reports.len() >= REPORTS {
            self.reports.pop_front();
        }
        self.reports.push_back(Heard {
            highest,
            at: now,
            cut_at,
        });
    }

    /// A report shows that body `seq` has arrived with frame `number`, though an earlier one had passed it: how late it was.
    pub fn on_late(&mut self, now: Instant, number: u32, seq: u32) {
        let passed = self
            .reports
            .partition_point(|report| !before(number, report.highest));
        let shows = |report: &&Heard| report.cut_at.is_none_or(|cut_at| before(seq, cut_at));
        let Some(first) = self.reports.iter().skip(passed).find(shows) else {
            return;
        };
        let late = now.saturating_since(first.at);
        if now.saturating_since(self.since) >= KEPT {
            (self.longest, self.since) = ([Duration::ZERO, self.longest[0]], now);
        }
        self.longest[0] = self.longest[0].max(late);
    }

    /// The reordering window: at most `most`; zero while no frame has come late.
    pub fn window(&self, now: Instant, most: Duration) -> Duration {
        let past = now.saturating_since(self.since);
        let longest = match self.longest {
            _ if past >= KEPT * 2 => Duration::ZERO,
            [present, _] if past >= KEPT => present,
            [present, earlier] => present.max(earlier),
        };
        // A quarter more, since the longest so far is not the longest possible.
        (longest + longest / 4).min(most)
    }

    /// The latest report: its highest frame, and when it came.
    pub fn latest(&self) -> Option<(u32, Instant)> {
        self.reports
            .back()
            .map(|report| (report.highest, report.at))
    }

    /// The highest frame that a report passed at least `window` ago: what came before it and is not here is lost.
    pub fn passed(&self, now: Instant, window: Duration) -> Option<u32> {
        let count = self
            .reports
            .partition_point(|report| report.at + window <= now);
        let report = self.reports.get(count.checked_sub(1)?)?;
        Some(report.highest)
    }

    /// When the first report that passed frame `settled` will have been there for `window`.
    pub fn next_at(&self, settled: u32, window: Duration) -> Option<Instant> {
        let first = self
            .reports
            .partition_point(|report| !before(settled, report.highest));
        let report = self.reports.get(first)?;
        Some(report.at + window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn the_window_is_the_longest_lateness_and_is_forgotten() {
        let mut order = Reordering::default();
        let most = Duration::from_millis(100);
        order.on_report(at(1_000), 10, None);
        order.on_report(at(1_005), 20, None);
        assert_eq!(order.window(at(1_005), most), Duration::ZERO);
        order.on_late(at(1_009), 15, 7);
        assert_eq!(order.window(at(1_009), most), Duration::from_millis(5));
        order.on_late(at(1_016), 9, 7);
        assert_eq!(order.window(at(1_016), most), Duration::from_millis(20));
        assert_eq!(
            order.window(at(1_016), at(3).saturating_since(at(0))),
            Duration::from_millis(3)
        );
        // A frame that no report has passed is not late.
        order.on_late(at(1_900), 30, 7);
        assert_eq!(order.window(at(1_900), most), Duration::from_millis(20));
        assert_eq!(order.passed(at(1_020), Duration::from_millis(20)), Some(10));
        assert_eq!(
            order.next_at(10, Duration::from_millis(20)),
            Some(at(1_025))
        );
        assert_eq!(order.window(at(22_000), most), Duration::ZERO);
    }
    /// A report that was cut before a body has not passed its frame. Before, a body that came in time and was shown late made each loss wait
    /// for a round trip.
    #[test]
    fn what_a_cut_report_leaves_open_is_not_late() {
        let mut order = Reordering::default();
        let most = Duration::from_millis(100);
        order.on_report(at(1_000), 10, Some(70));
        order.on_report(at(1_050), 20, Some(90));
        order.on_late(at(1_050), 9, 80);
        assert_eq!(order.window(at(1_050), most), Duration::ZERO);
        order.on_late(at(1_058), 9, 80);
        assert_eq!(order.window(at(1_058), most), Duration::from_millis(10));
        order.on_late(at(1_060), 9, 95);
        assert_eq!(order.window(at(1_060), most), Duration::from_millis(10));
    }
}
