//! Copies of small bodies that no report has confirmed yet.
//!
//! An acknowledgement of TCP is a dozen octets in a frame whose headers take ninety. When that frame is lost, a round trip
//! passes until it is sent again; all later acknowledgements wait for it, and the flow stalls. A copy in each of the next
//! frames costs a tenth of that frame's air time. So where enough frames are lost, each small frame also carries copies of
//! the small bodies that are not reported yet.

use alloc::collections::VecDeque;

use super::choice::Choice;
use super::queues::SMALL_PACKET;
use super::window::{SendWindow, State};
use crate::config::COPIES_MOST;
use crate::header::put_among;

/// Octets of a small body at most.
const BODY_MOST: usize = SMALL_PACKET;
/// Bodies that are remembered; when there are more, the oldest is left to repetition.
const REMEMBERED: usize = 32;
/// Loss from which on copies are sent.
const LOSS_LEAST: f64 = 0.01;
/// Room for one small body, and for copies beside it.
pub(crate) const ROOM: usize = BODY_MOST + COPIES_MOST + 8;

/// Numbers of small bodies in flight, oldest first.
#[derive(Clone, Debug)]
pub(super) struct SmallPackets {
    seqs: VecDeque<u32>,
}

impl SmallPackets {
    pub fn new() -> SmallPackets {
        SmallPackets {
            seqs: VecDeque::with_capacity(REMEMBERED),
        }
    }

    pub fn clear(&mut self) {
        self.seqs.clear();
    }

    /// A new body has been made, which is remembered if it is small.
    pub fn remember(&mut self, window: &SendWindow, seq: u32) {
        if window.body(seq).len() > BODY_MOST {
            return;
        }
        if self.seqs.len() == REMEMBERED {
            self.seqs.pop_front();
        }
        self.seqs.push_back(seq);
    }

    /// Writes the chosen body, if it is small or if there is none, and copies of others to the front of `octets`: how many
    /// octets; 0 if there is nothing to copy. `most`: octets of copies.
    pub fn write(
        &mut self,
        window: &mut SendWindow,
        (choice, loss): (Option<Choice>, f64),
        most: usize,
        octets: &mut [u8],
    ) -> usize {
        let chosen = match choice {
            _ if self.seqs.is_empty() || loss < LOSS_LEAST => return 0,
            Some(Choice::Pair { .. } | Choice::Copy(_) | Choice::Repair { .. }) => return 0,
            Some(Choice::Body(seq)) => Some(seq),
            None => None,
        };
        let mut used = 0;
        if let Some(seq) = chosen {
            let body = window.body(seq);
            if body.len() > BODY_MOST {
                return 0;
            }
            match put_among(window.next(), seq, body, octets) {
                Some(len) => used = len,
                None => return 0,
            }
        }
        let own = used;
        let end = octets.len().min(own + most);
        self.seqs
            .retain(|&seq| window.state(seq) == Some(State::InFlight));
        for &seq in self.seqs.iter().filter(|&&seq| Some(seq) != chosen) {
            let space = octets.get_mut(used..end).unwrap_or_default();
            if let Some(len) = put_among(window.next(), seq, window.body(seq), space) {
                window.note_copy(seq);
                used += len;
            }
        }
        if used > own { used } else { 0 }
    }
}
