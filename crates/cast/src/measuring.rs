//! When the links are known well enough to send.
//!
//! The plan depends on the links. While data are sent, their own counters measure the links far better than hellos do, and plans follow
//! them. So what counts before is only whether the first plan may be badly wrong: while a link is seen to lose frames, or members still
//! come, a sender measures on; where nothing is lost, it begins.

use chappe_core::{Duration, Instant};
use chappe_live::Statistics;

/// Hellos of which none may be missing: of links that lose 30 %, one in 35 looks clean then, and of those that lose a fifth, one in nine.
const CLEAN: u64 = 10;
/// For how long no member may have come: urgent news are repeated for this time, so that records from behind a relay arrive.
const QUIET: Duration = Duration::from_millis(300);

/// Whether a sender may begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measuring {
    /// When it begins in any case.
    until: Instant,
    /// How many members it knew at the last look, and since when.
    members: (usize, Instant),
}

impl Measuring {
    /// Measures for this time at most.
    pub fn new(longest: Duration) -> Measuring {
        Measuring {
            until: Instant::ZERO + longest,
            members: (0, Instant::ZERO),
        }
    }

    /// Whether the links are known well enough. `members` is the number of the others that are known, and `reached` tells whether a path
    /// leads to each receiver: it is asked only if that decides, since it searches all links.
    pub fn is_enough(
        &mut self,
        now: Instant,
        statistics: &Statistics,
        members: usize,
        reached: impl FnOnce() -> bool,
    ) -> bool {
        if self.members.0 != members {
            self.members = (members, now);
        }
        let near = &statistics.neighbours;
        let clean = near
            .iter()
            .all(|near| near.from >= 1.0 && near.to == Some(1.0));
        let settled = now >= self.members.1 + QUIET && statistics.hellos_sent >= CLEAN;
        now >= self.until || (settled && clean && !near.is_empty() && reached())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_core::Address;
    use chappe_live::Neighbour;

    fn statistics(hellos_sent: u64, links: &[(f64, Option<f64>)]) -> Statistics {
        let near = links.iter().zip(1..).map(|(&(from, to), node)| Neighbour {
            address: Address::node(node),
            life: 1,
            heard: Instant::ZERO,
            from,
            to,
            sent: 1,
        });
        Statistics {
            hellos_sent,
            neighbours: near.collect(),
            ..Statistics::default()
        }
    }

    /// Goal: a sender waits no longer than it must. Method: two neighbours of which nothing is lost, then one thing at a time that asks for
    /// more measuring. (It waited for the longest time, two seconds, before each transfer.)
    #[test]
    fn measuring_ends_when_the_links_are_known() {
        let at = Instant::from_millis;
        let good = [(1.0, Some(1.0)); 2];
        let asked = |when: u64, statistics: &Statistics, reached| {
            let mut measuring = Measuring::new(Duration::from_secs(2));
            measuring.is_enough(at(100), statistics, 2, || reached);
            measuring.is_enough(at(when), statistics, 2, || reached)
        };
        assert!(asked(500, &statistics(10, &good), true));
        assert!(!asked(500, &statistics(9, &good), true), "few hellos");
        assert!(!asked(300, &statistics(10, &good), true), "members came");
        assert!(!asked(500, &statistics(10, &good), false), "no path");
        assert!(!asked(500, &statistics(10, &[]), true), "no neighbour");
        for weak in [(0.9, Some(1.0)), (1.0, Some(0.9)), (1.0, None)] {
            let links = statistics(30, &[good[0], weak]);
            assert!(!asked(1900, &links, true), "{weak:?}");
            assert!(asked(2000, &links, true), "{weak:?}");
        }
        assert!(asked(2000, &statistics(0, &[]), false));
    }
}
