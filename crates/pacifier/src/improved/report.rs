//! Reports: the state of a node's batches, in few octets.
//!
//! A report names a batch, the *base*, and gives one state for it and for each following batch. All batches before
//! the base are satisfied. One octet each, or one octet for a run of equal states, since most batches of a window
//! are either untouched or finished:
//!
//! | octet | meaning |
//! |---|---|
//! | 0 to 96 | the rank of one batch |
//! | 0x7f | only at the end: there was no room for more; the following states are unknown |
//! | 0x80 + n | the next n + 1 batches are satisfied, n below 64 |
//! | 0xC0 + n | the next n + 1 batches are empty, n below 64 |
//!
//! Batches after the last octet are empty, unless that is 0x7f. The mark is needed because a sender may leave less room in
//! some frames than in others, so the number of octets does not show whether there was enough.

use crate::improved::K_MAX;

/// Most octets of states in a frame. A longer report is cut: batches left out keep their former state.
pub const STATES_MAX: usize = 64;

const CUT: u8 = 0x7f;
const SATISFIED_RUN: u8 = 0x80;
const EMPTY_RUN: u8 = 0xc0;
const RUN_MAX: u8 = 64;

/// What a node reports of one batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It wants more, and holds this many independent packets.
    Rank(u8),
    /// It wants no more: it has all packets, or no node behind it lacks any.
    Satisfied,
}

/// The states in a frame, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report<'a> {
    base: u32,
    states: &'a [u8],
    cut: bool,
}

impl<'a> Report<'a> {
    /// The report in these octets; `None` if one of them is undefined.
    pub fn new(base: u32, states: &'a [u8]) -> Option<Report<'a>> {
        let known = |&octet: &u8| octet >= SATISFIED_RUN || usize::from(octet) <= K_MAX;
        let said = states.strip_suffix(&[CUT]);
        let report = Report {
            base,
            states: said.unwrap_or(states),
            cut: said.is_some(),
        };
        report.states.iter().all(known).then_some(report)
    }

    /// All batches before this one are satisfied.
    pub fn base(&self) -> u32 {
        self.base
    }

    /// Whether there was no room for all states: the batches that follow are unknown. Otherwise they are empty.
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// The state of each batch from the base on.
    pub fn states(&self) -> impl Iterator<Item = State> + 'a {
        self.states.iter().flat_map(|&octet| {
            let (state, count) = match octet {
                EMPTY_RUN.. => (State::Rank(0), octet - EMPTY_RUN + 1),
                SATISFIED_RUN.. => (State::Satisfied, octet - SATISFIED_RUN + 1),
                rank => (State::Rank(rank), 1),
            };
            core::iter::repeat_n(state, usize::from(count))
        })
    }
}

/// Whether these octets of states end with the mark of a cut report.
pub(crate) fn is_cut(states: &[u8]) -> bool {
    states.last() == Some(&CUT)
}

/// Writes states to the front of `to`, until they end or the room does; the last octet marks a cut report. Returns the
/// number of octets used.
pub fn write(states: impl Iterator<Item = State>, to: &mut [u8]) -> usize {
    let mut used: usize = 0;
    for state in states {
        let (single, run) = match state {
            State::Satisfied => (SATISFIED_RUN, SATISFIED_RUN),
            State::Rank(0) => (EMPTY_RUN, EMPTY_RUN),
            State::Rank(rank) => (rank, 0),
        };
        let last = used
            .checked_sub(1)
            .and_then(|last| to.get_mut(last))
            .filter(|last| run > 0 && (run..=run + (RUN_MAX - 2)).contains(*last));
        if let Some(last) = last {
            *last += 1;
            continue;
        }
        match to.get_mut(used) {
            Some(octet) => *octet = single,
            None => {
                if let Some(last) = to.last_mut() {
                    *last = CUT;
                }
                break;
            }
        }
        used += 1;
    }
    used
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    fn states(ranks: &[i16]) -> Vec<State> {
        let state = |&rank: &i16| u8::try_from(rank).map_or(State::Satisfied, State::Rank);
        ranks.iter().map(state).collect()
    }

    #[test]
    fn runs_take_one_octet() {
        let said = states(&[-1, -1, -1, 31, 7, -1, 0, 0, 64]);
        let mut octets = [0; 8];
        let used = write(said.iter().copied(), &mut octets);
        assert_eq!(octets[..used], [0x82, 31, 7, 0x80, 0xc1, 64]);
        let report = Report::new(5, &octets[..used]).unwrap();
        assert_eq!(report.states().collect::<Vec<_>>(), said);
    }

    #[test]
    fn long_runs_take_another_octet_and_full_buffers_cut_reports() {
        let said = vec![State::Satisfied; 130];
        let mut octets = [0; 4];
        assert_eq!(write(said.iter().copied(), &mut octets), 3);
        assert_eq!(octets[..3], [0xbf, 0xbf, 0x81]);
        let empty = vec![State::Rank(0); 100];
        assert_eq!(write(empty.into_iter(), &mut octets), 2);
        assert_eq!(octets[..2], [0xff, 0xe3]);
        assert_eq!(write(states(&[1, 2, 3]).into_iter(), &mut octets[..2]), 2);
        let cut = Report::new(0, &octets[..2]).unwrap();
        assert!(cut.is_cut() && cut.states().eq(states(&[1])));
        assert_eq!(write(states(&[1, 2]).into_iter(), &mut octets[..2]), 2);
        assert!(!Report::new(0, &octets[..2]).unwrap().is_cut());
        assert!(Report::new(0, &[CUT, 1]).is_none());
    }

    #[test]
    fn ranks_beyond_the_largest_batch_are_refused() {
        let most = K_MAX as u8;
        assert!(Report::new(0, &[most]).is_some() && Report::new(0, &[most + 1]).is_none());
    }
}
