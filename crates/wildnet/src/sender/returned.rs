//! Repairs for the bodies that a path in doubt gave back.
//!
//! The flow waits for the oldest of them, and each that is lost once more on a remaining path takes another of its round trips. So
//! repairs leave among them, before anything new: after each body there have been as many as replace what the path loses of
//! those sent so far, in most cases. The first ones come early, since the flow waits for the first bodies longest.

use super::Sender;
use super::choice::{Choice, Out};
use super::repairs::reach;
use super::window::State;
use crate::header::{COVER, SPAN, before};

/// Standard deviations by which what is lost may exceed its mean: more are lost once in 44 times (normal distribution).
const DEVIATIONS: f64 = 2.0;

/// Bodies that were given back, as far as they have been sent again.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Returned {
    /// They have lower numbers than this; `None` if there are none.
    until: Option<u32>,
    /// How many have been sent again since, and how many repairs for them.
    sent: u32,
    repairs: u32,
}

impl Returned {
    /// A path gives back what was in flight on it: bodies before `next`.
    pub fn begin(&mut self, next: u32) {
        *self = Returned {
            until: Some(next),
            ..Returned::default()
        };
    }

    pub fn clear(&mut self) {
        *self = Returned::default();
    }

    /// A body leaves again.
    pub fn on_sent(&mut self, seq: u32) {
        if self.until.is_some_and(|until| before(seq, until)) {
            self.sent = self.sent.saturating_add(1);
        }
    }

    /// Forgets them once all before `base` is settled.
    fn end(&mut self, base: u32) {
        if self.until.is_some_and(|until| !before(base, until)) {
            self.clear();
        }
    }

    /// Whether a repair is due on a channel that loses this share of all frames, repairs included.
    fn owes(&self, loss: f64) -> bool {
        let (sent, loss) = (f64::from(self.sent), loss.clamp(0.0, 0.9));
        let lost = loss * sent + DEVIATIONS * libm::sqrt(sent * loss * (1.0 - loss));
        self.until.is_some() && libm::round(lost / (1.0 - loss)) > f64::from(self.repairs)
    }
}

impl Sender {
    /// Whether a repair for bodies that were given back is due on the selected path.
    pub(super) fn owes_returned(&self) -> bool {
        self.returned
            .owes(self.conditions.estimate().channel().loss)
    }

    /// That repair, if it is due: over the bodies that were sent again and are not reported yet.
    pub(super) fn repair_returned(&mut self, out: &mut Out<'_>) -> Option<Choice> {
        self.returned.end(self.window.base());
        let until = self.returned.until?;
        if !self.owes_returned() {
            return None;
        }
        // It counts even if all have been reported meanwhile.
        self.returned.repairs += 1;
        let mut again = [0; SPAN as usize];
        let mut len = 0;
        let open = self.window.open().take_while(|seq| before(*seq, until));
        for (cell, seq) in again.iter_mut().zip(open.filter(|&seq| self.is_again(seq))) {
            *cell = seq;
            len += 1;
        }
        let again = again.get(..len).unwrap_or_default();
        // The newest as far as one repair reaches: the older ones were in those before.
        let reach = reach(&self.window, out);
        let last = again.last().copied().unwrap_or_default();
        let near = again.iter().copied();
        let near = near.filter(|seq| last.wrapping_sub(*seq) < reach);
        let choice = self.repairs.over(&mut self.window, near, out);
        self.counters.repairs += u64::from(choice.is_some());
        choice
    }

    /// Whether a body was sent again and is in flight.
    fn is_again(&self, seq: u32) -> bool {
        let entry = self.window.entry(seq);
        entry.is_some_and(|entry| entry.state == State::InFlight && entry.transmissions > 1)
    }

    /// Octets of that repair, or a little more.
    pub(super) fn returned_len(&self) -> Option<usize> {
        let until = self.returned.until.filter(|_| self.owes_returned())?;
        let open = self.window.open().take_while(|seq| before(*seq, until));
        let bodies = open.filter(|&seq| self.is_again(seq));
        bodies.map(|seq| self.window.body(seq).len() + COVER).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Repairs among thirty bodies: the first right behind the first body where losses are likely, none without losses.
    #[test]
    fn repairs_come_early_and_in_proportion() {
        let after = |loss: f64| {
            let mut returned = Returned::default();
            returned.begin(100);
            let mut after = alloc::vec::Vec::new();
            for seq in 0..30 {
                returned.on_sent(seq);
                while returned.owes(loss) {
                    returned.repairs += 1;
                    after.push(seq + 1);
                }
            }
            // What left later is no part of it.
            returned.on_sent(100);
            assert_eq!(returned.sent, 30);
            after
        };
        assert_eq!(after(0.0), []);
        assert_eq!(after(0.01), [6]);
        assert_eq!(after(0.05), [1, 7, 15, 24]);
        assert!(after(0.3).len() > 18);
    }
}
