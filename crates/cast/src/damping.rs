//! Changes that are announced at once, but ever less often the more of them come.

use chappe_core::{Duration, Instant};

/// The time after the first announcement in which another has to wait, and the longest (RFC 2328, B: MinLSInterval).
const FIRST: Duration = Duration::from_millis(200);
const MOST: Duration = Duration::from_secs(5);

/// Limits how often something that comes and goes is announced at once. The wait doubles with each announcement, and is short again
/// after a time without one.
#[derive(Clone, Copy, Debug)]
pub struct Damping {
    until: Instant,
    wait: Duration,
}

impl Default for Damping {
    fn default() -> Damping {
        Damping {
            until: Instant::ZERO,
            wait: FIRST,
        }
    }
}

impl Damping {
    /// Whether a change at this time is announced at once; if so, it counts as announced.
    pub fn allows(&mut self, now: Instant) -> bool {
        if now < self.until {
            return false;
        }
        if now >= self.until + self.wait {
            self.wait = FIRST;
        }
        self.until = now + self.wait;
        self.wait = (self.wait * 2).min(MOST);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a link that comes and goes costs few announcements, and a single change none of its time. Method: a change each 50 ms for a
    /// minute, then a minute without one.
    #[test]
    fn what_comes_and_goes_is_announced_less_and_less() {
        let mut damping = Damping::default();
        let change = |step: u64| Instant::from_millis(50 * step);
        let announced: Vec<u64> = (0..1200)
            .filter(|step| damping.allows(change(*step)))
            .collect();
        let gaps = announced.windows(2).map(|pair| pair[1] - pair[0]);
        assert_eq!(gaps.clone().take(5).collect::<Vec<_>>(), [4, 8, 16, 32, 64]);
        assert!(gaps.skip(5).all(|gap| gap == 100));
        assert!(damping.allows(change(2400)));
        assert!(!damping.allows(change(2403)) && damping.allows(change(2404)));
    }
}
