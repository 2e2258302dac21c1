//! Who decides the pace: of all neighbours the one with the worst path does, as it tells of it itself. So a member that lies can slow
//! the others down, and only naming it helps: the owner of the group can revoke it.

use chappe_core::{Duration, Instant};
use chappe_live::Statistics;
use litemap::LiteMap;

/// Which neighbours have decided this member's pace, and for how long.
#[derive(Debug, Default)]
pub(crate) struct Deciders {
    times: LiteMap<u16, Duration>,
    noted: Option<Instant>,
    /// Who slows the pace down much, and since when.
    slow: Option<(u16, Instant)>,
    /// Who was named already.
    named: Vec<u16>,
}

/// A path that carries less than this part of what half of the neighbours carry is named: then parts of batches for a single receiver
/// would be no slower either ([`parts`](crate::member)).
const PART: u64 = 8;
/// For how long it must have been so: the longest usual time for which a rate stays below the end of a path.
const LASTS: Duration = Duration::from_secs(10);

impl Deciders {
    /// Notes the present pace. Returns a neighbour that has slowed it down much, once for each.
    pub fn note(&mut self, now: Instant, statistics: &Statistics) -> Option<u16> {
        let passed = self
            .noted
            .map_or(Duration::ZERO, |last| now.saturating_since(last));
        self.noted = Some(now);
        let decider = statistics.decider?;
        let time = self.times.entry(decider).or_insert(Duration::ZERO);
        *time += passed;
        let slow = statistics.rate.saturating_mul(PART) < statistics.carried;
        self.slow = match self.slow {
            _ if !slow => None,
            Some((node, since)) if node == decider => Some((node, since)),
            _ => Some((decider, now)),
        };
        let lasts = self.slow.is_some_and(|(_, since)| now >= since + LASTS);
        if !lasts || self.named.contains(&decider) {
            return None;
        }
        self.named.push(decider);
        Some(decider)
    }

    /// Who has decided the pace for the longest time, and for how long.
    pub fn longest(&self) -> Option<(u16, Duration)> {
        let times = self.times.iter().map(|(node, time)| (*node, *time));
        times.max_by_key(|(_, time)| *time)
    }
}

/// The warning about a neighbour that slows the pace down much.
pub(crate) fn warning(node: u16, name: &str, statistics: &Statistics) -> String {
    let mbits = |rate: u64| rate as f64 / 1e6;
    format!(
        "the path to {node} ({name}), as it tells of it, keeps the pace at {:.2} Mbit/s, while half of the neighbours carry {:.2} Mbit/s. If that path \
         should carry more, look at that host; a member that lies about it can be revoked (`chappe cast revoke`)",
        mbits(statistics.rate),
        mbits(statistics.carried)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: who slows the pace down for long is named once; who does so for a moment, or like the others, is not.
    #[test]
    fn who_slows_the_pace_down_is_named_once() {
        let mut deciders = Deciders::default();
        let mut named = Vec::new();
        for second in 0..100u64 {
            let decider = match second {
                0..20 => 1,
                20..25 => 2,
                _ => 3,
            };
            let statistics = Statistics {
                decider: Some(decider),
                // The first one's path is not much worse than the others'.
                rate: if decider == 1 { 2_600_000 } else { 240_000 },
                carried: 20_000_000,
                ..Statistics::default()
            };
            let now = Instant::from_millis(1000 * second);
            named.extend(deciders.note(now, &statistics));
        }
        assert_eq!(named, [3]);
        assert_eq!(deciders.longest(), Some((3, Duration::from_secs(75))));
    }
}
