//! Stations that were heard lately.

use chappe_core::{Address, Duration, Instant};

/// More stations than most hear at once; later ones replace those that were heard longest ago.
const MOST: usize = 32;

/// Stations and when a frame of theirs was heard last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Near {
    heard: [Option<(Address, Instant)>; MOST],
}

impl Near {
    /// A frame of `from` was heard.
    pub fn note(&mut self, from: Address, now: Instant) {
        let age = |entry: &&mut Option<(Address, Instant)>| match **entry {
            Some((held, _)) if held == from => None,
            Some((_, at)) => Some(at),
            None => Some(Instant::ZERO),
        };
        if let Some(place) = self.heard.iter_mut().min_by_key(age) {
            *place = Some((from, now));
        }
    }

    /// Whether a frame of `from` was heard within `span` before `now`.
    pub fn hears(&self, from: Address, now: Instant, span: Duration) -> bool {
        let mut heard = self.heard.iter().flatten();
        heard.any(|&(held, at)| held == from && now.saturating_since(at) <= span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_heard_longest_ago_is_forgotten_first() {
        let mut near = Near::default();
        let span = Duration::from_secs(10);
        let heard = |near: &Near, node, at| near.hears(Address::node(node), at, span);
        for node in 0..MOST as u16 {
            near.note(
                Address::node(node),
                Instant::from_millis(1000 + u64::from(node)),
            );
        }
        let now = Instant::from_millis(2000);
        near.note(Address::node(0), now);
        near.note(Address::node(100), now);
        assert!(heard(&near, 0, now) && heard(&near, 100, now) && heard(&near, 2, now));
        assert!(!heard(&near, 1, now), "its place was taken");
        assert!(!heard(&near, 2, Instant::from_millis(11_003)));
    }
}
