//! Copies of bodies that were lost several times.
//!
//! A flow waits for its oldest body, and where thousands of frames are in flight some of them are lost four or five times in a row. Each
//! time takes a round trip, for which the whole flow waits, and a sender's window does not hold that many. Few bodies come so far, so to
//! send each of them several times costs little: as many times as leave probably none for another round, but no more than
//! [`COST`] of all frames.

use alloc::collections::VecDeque;

use super::window::{SendWindow, State};
use crate::gilbert::Channel;
use crate::header::before;
use crate::paths::FrameId;

/// Share of all frames that the copies of one round may take. The overhead is to stay within a percent of the bound (specs 2.2).
const COST: f64 = 0.01;
/// Bodies of a flight that may need another round: one in ten flights waits for one.
const LEFT: f64 = 0.1;
/// Copies that wait at most; a burst of more losses is not the few that this is for.
const WAITING: usize = 256;
/// Most copies of a body in a round.
const MOST: f64 = 8.0;

/// Copies that are still to leave.
#[derive(Clone, Debug, Default)]
pub(super) struct Insistence {
    waiting: VecDeque<Copy>,
}

#[derive(Clone, Debug)]
struct Copy {
    seq: u32,
    /// How often the body had been sent.
    transmissions: u8,
    left: u8,
    /// From which frame on it may leave: a burst of losses should not take two copies.
    from: FrameId,
}

/// How often to send a body beside once, that is sent for the `times`th time while `flight` frames are in flight.
fn copies(loss: f64, times: u8, flight: f64) -> usize {
    if loss <= 0.0 || times < 2 {
        return 0;
    }
    let share = libm::pow(loss, f64::from(times - 1));
    let expected = flight * share;
    if expected <= LEFT {
        return 0;
    }
    let wanted = libm::ceil(libm::log(LEFT / expected) / libm::log(loss)) - 1.0;
    let paid = libm::floor(COST / share);
    wanted.min(paid).clamp(0.0, MOST) as usize
}

impl Insistence {
    /// A body is sent again in `frame`, for the `transmissions`th time.
    pub fn on_again(
        &mut self,
        (seq, transmissions): (u32, u8),
        frame: FrameId,
        (channel, flight): (&Channel, f64),
    ) {
        let left = copies(channel.loss, transmissions, flight);
        if left > 0 && self.waiting.len() < WAITING {
            self.waiting.push_back(Copy {
                seq,
                transmissions,
                left: left as u8,
                from: later(frame, channel),
            });
        }
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The body of the next copy, which leaves in `frame`. With `now`, although it would better leave later.
    pub fn next(
        &mut self,
        window: &SendWindow,
        frame: FrameId,
        (channel, now): (&Channel, bool),
    ) -> Option<u32> {
        loop {
            let first = self.waiting.front()?;
            let entry = window.entry(first.seq);
            let matters = entry.is_some_and(|entry| {
                entry.state == State::InFlight && entry.transmissions == first.transmissions
            });
            if !matters {
                self.waiting.pop_front();
                continue;
            }
            let same = first.from.path == frame.path;
            if !now && same && before(frame.number, first.from.number) {
                return None;
            }
            let mut copy = self.waiting.pop_front()?;
            let seq = copy.seq;
            copy.left -= 1;
            if copy.left > 0 {
                copy.from = later(frame, channel);
                self.waiting.push_back(copy);
            }
            return Some(seq);
        }
    }
}

/// The frame from which on another copy is hardly lost by the same burst: two mean lengths later.
fn later(frame: FrameId, channel: &Channel) -> FrameId {
    let burst = libm::ceil(channel.burst * 2.0).clamp(1.0, 64.0) as u32;
    FrameId {
        number: frame.number.wrapping_add(burst),
        ..frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: where hardly anything is in flight nothing is copied; where much is, few bodies are, within the cost, and as often as leave
    /// probably none.
    #[test]
    fn copies_are_few_and_suffice() {
        for loss in [0.01, 0.05, 0.15, 0.3, 0.5] {
            for times in 2..12 {
                let share = libm::pow(loss, f64::from(times - 1));
                assert_eq!(copies(loss, times, 0.09 / share), 0, "{loss} {times}");
                let more = copies(loss, times, 5_000.0);
                assert!(more as f64 * share <= COST, "{loss} {times}: {more}");
                let left = 5_000.0 * share * libm::pow(loss, more as f64 + 1.0);
                let paid = (more + 1) as f64 * share > COST;
                assert!(
                    left <= 0.1001 || paid || more == 8,
                    "{loss} {times}: {left}"
                );
            }
        }
        assert_eq!((copies(0.15, 4, 5_000.0), copies(0.3, 5, 5_000.0)), (2, 1));
        assert_eq!((copies(0.0, 9, 5_000.0), copies(0.3, 1, 5_000.0)), (0, 0));
    }
}
