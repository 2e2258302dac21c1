//! Small bodies ride along until they are reported.
//!
//! An acknowledgement of TCP is a dozen octets in a frame whose headers are ninety. When that frame is lost, a round trip
//! goes by until it is sent again, and all later acknowledgements wait for it: the flow they belong to stands still. A
//! copy in each of the next frames costs a tenth of that frame's air. So where losses are worth it, what is small and
//! not reported yet goes along with whatever small frame leaves next.

use super::*;

/// A body of at most so many octets is small.
const BODY_MOST: usize = SMALL;
/// Bodies that are remembered for copies; when there are more, the oldest is left to repetition.
const REMEMBERED: usize = 32;
/// Loss from which on copies are sent.
const LOSS_LEAST: f64 = 0.01;
/// Room for one small body, and for copies beside it.
pub(crate) const ROOM: usize = BODY_MOST + COPIES_MOST + 8;
/// Most octets of copies in a frame ([`Config::copies`]).
pub(crate) const COPIES_MOST: usize = 256;

/// Numbers of small bodies under way, oldest first.
#[derive(Clone, Debug)]
pub(super) struct Few(VecDeque<u32>);

impl Few {
    pub fn new() -> Few {
        Few(VecDeque::with_capacity(REMEMBERED))
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    fn push(&mut self, seq: u32) {
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(seq);
    }
}

impl Sender {
    /// A new body has been made.
    pub(super) fn remember_small(&mut self, seq: u32) {
        if self.config.copies > 0 && self.body(seq).len() <= BODY_MOST {
            self.few.push(seq);
        }
    }

    /// What was chosen, if it is small or only a note, together with copies that no report has confirmed, written to the
    /// front of `octets`: how many octets; 0 if there is nothing to copy.
    pub fn among(&mut self, choice: Option<Choice>, octets: &mut [u8]) -> usize {
        let sparse = self.few.0.is_empty() || self.estimate.loss() < LOSS_LEAST;
        if sparse || matches!(choice, Some(Choice::Repair { .. })) {
            return 0;
        }
        let mut used = 0;
        let chosen = match choice {
            Some(Choice::Body(seq)) => Some(seq),
            _ => None,
        };
        if let Some(seq) = chosen {
            let body = self.body(seq);
            if body.len() > BODY_MOST {
                return 0;
            }
            match put_among(self.next, seq, body, octets) {
                Some(len) => used = len,
                None => return 0,
            }
        }
        let own = used;
        let end = octets.len().min(own + self.config.copies);
        let mut few = core::mem::replace(&mut self.few, Few(VecDeque::new()));
        few.0.retain(|&seq| self.state(seq) == Some(State::Flight));
        for &seq in few.0.iter().filter(|&&seq| Some(seq) != chosen) {
            let space = octets.get_mut(used..end).unwrap_or_default();
            used += put_among(self.next, seq, self.body(seq), space).unwrap_or(0);
        }
        self.few = few;
        self.counters.copies += u64::from(used > own);
        if used > own { used } else { 0 }
    }
}
