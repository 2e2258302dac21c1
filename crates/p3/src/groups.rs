//! Several groups or one? Two or three send a packet per cycle; one, of all relays, a packet in every second cycle,
//! with twice or three times the diversity.

use chappe_core::Duration;

use crate::sizes::GROUPS_MAX;

/// Whether one group of all relays delivers more per cycle than several groups do.
///
/// `delivered` is the share of packets that reaches the destination through each group, `all` the one through all
/// relays together.
pub fn single_is_faster(delivered: &[f64], all: f64) -> bool {
    let sum: f64 = delivered.iter().sum();
    all / 2.0 > sum / delivered.len().max(1) as f64
}

/// A number for each group.
pub type PerGroup = [u32; GROUPS_MAX as usize];

/// Whose turn it is, frame by frame: all groups in order, or two of three where one is left out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turns {
    groups: u8,
    left_out: Option<u8>,
}

impl Turns {
    /// Turns of `groups` groups, at least one. Only one of three can be left out.
    pub fn new(groups: u8, left_out: Option<u8>) -> Turns {
        let groups = groups.max(1);
        Turns {
            groups,
            left_out: left_out.filter(|&group| groups == 3 && group < groups),
        }
    }

    /// The group whose turn comes `turn` frames after one of group `first`.
    pub fn group(&self, first: u8, turn: u64) -> u8 {
        let Some(out) = self.left_out else {
            return ((u64::from(first) + turn) % u64::from(self.groups)) as u8;
        };
        let pair = [(out + 1) % 3, (out + 2) % 3];
        let [one, other] = pair;
        if (first == one) == turn.is_multiple_of(2) {
            one
        } else {
            other
        }
    }

    /// The group whose turn follows that of `group`, which may be the one left out.
    pub fn after(&self, group: u8) -> u8 {
        let next = (group + 1) % self.groups;
        if self.left_out == Some(next) {
            (next + 1) % self.groups
        } else {
            next
        }
    }

    /// How many turns after a frame of group `from` the next one of `group` is due. For a group that is left out it may be
    /// the next one, since the question comes by it first.
    pub fn until(&self, from: u8, group: u8) -> u64 {
        let ahead = match self.left_out {
            Some(out) if group == out || from == out => 1,
            Some(_) => 1 + u8::from(from == group),
            None => {
                let group = group % self.groups;
                let ahead = (group + self.groups).saturating_sub(from % self.groups) % self.groups;
                if ahead == 0 { self.groups } else { ahead }
            }
        };
        u64::from(ahead)
    }
}

/// What a source has measured of its groups.
///
/// One group is tried where two deliver less than half of the packets: it might deliver all. What it then really
/// delivers decides whether it stays. One group of three is left out where the two others carry more without it. It comes back
/// when its copies of the question arrive again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Groups {
    delivered: [f64; GROUPS_MAX as usize],
    count: u8,
    all: f64,
    /// A cycle of all groups over one of two, a frame each.
    pair_pace: f64,
    left_out: Option<u8>,
    /// How often each group has been left out.
    absences: [u8; GROUPS_MAX as usize],
    /// Questions in a row that came by the group that is left out.
    signs: u8,
}

/// One group that delivers as much as two does so in fewer rounds, and each round costs a turn. A tenth: our choice.
const ROUNDS_SAVED: f64 = 1.1;
/// Least number of packets from which a group's share is measured.
const SAMPLE_MIN: u32 = 4;

impl Groups {
    /// `count` groups that have not been measured. `cycle` is the time of a frame with all of them, and `pair` the one with two.
    pub fn new(count: u8, cycle: Duration, pair: Duration) -> Groups {
        Groups {
            delivered: [1.0; GROUPS_MAX as usize],
            count,
            all: 1.0,
            pair_pace: cycle.nanos() as f64 / pair.nanos().max(1) as f64,
            left_out: None,
            absences: [0; GROUPS_MAX as usize],
            signs: 0,
        }
    }

    /// Takes in a round: per group, how many packets were sent and how many of these are missing.
    pub fn observe(&mut self, both: bool, sent: PerGroup, missing: PerGroup) {
        let share = |sent: u32, missing: u32| 1.0 - f64::from(missing) / f64::from(sent.max(1));
        if both {
            let all = sent.iter().sum();
            if all >= SAMPLE_MIN {
                self.all = share(all, missing.iter().sum());
            }
            return;
        }
        for ((group, sent), missing) in self.delivered.iter_mut().zip(sent).zip(missing) {
            if sent >= SAMPLE_MIN {
                *group = share(sent, missing);
            }
        }
    }

    /// Takes in whether the question of the last round came by the group that it left out. After as many in a row as it has
    /// been left out, that group is tried again.
    pub fn hear(&mut self, sign: Option<u8>) {
        let Some(out) = self.left_out else { return };
        self.signs = match sign == Some(out) {
            true => self.signs.saturating_add(1),
            false => 0,
        };
        let absences = self.absences.get(usize::from(out)).copied().unwrap_or(0);
        if self.signs >= absences
            && let Some(group) = self.delivered.get_mut(usize::from(out))
        {
            (*group, self.left_out, self.signs) = (1.0, None, 0);
        }
    }

    /// Decides which group the next round leaves out, if any.
    pub fn decide(&mut self) -> Option<u8> {
        let (all, pair) = (self.in_turn(), self.best_pair());
        let out = pair
            .filter(|(_, carried)| *carried > all)
            .map(|(out, _)| out);
        if out != self.left_out {
            self.signs = 0;
            if let Some(absences) = out.and_then(|out| self.absences.get_mut(usize::from(out))) {
                *absences = absences.saturating_add(1);
            }
        }
        self.left_out = out;
        out
    }

    /// Whether the next round should use all relays as one group.
    pub fn single(&self) -> bool {
        let pair = self.best_pair().map_or(0.0, |(_, carried)| carried);
        self.all * ROUNDS_SAVED / 2.0 > self.in_turn().max(pair)
    }

    /// What all groups in turn deliver in a cycle.
    fn in_turn(&self) -> f64 {
        let delivered = self.delivered.iter().take(self.count.into());
        delivered.sum::<f64>() / f64::from(self.count.max(1))
    }

    /// The group without which two of three deliver most, and what they then deliver in a cycle of three.
    fn best_pair(&self) -> Option<(u8, f64)> {
        let [a, b, c] = self.delivered;
        let pairs = [(0, b + c), (1, a + c), (2, a + b)];
        let best = pairs
            .into_iter()
            .max_by(|one, other| one.1.total_cmp(&other.1));
        let best = best.filter(|_| self.count == 3);
        best.map(|(out, sum)| (out, sum / 2.0 * self.pair_pace))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Groups whose cycles are those of an nRF52840: 4.272 ms, and 4.464 ms for two of three.
    fn groups(count: u8) -> Groups {
        Groups::new(
            count,
            Duration::from_micros(4272),
            Duration::from_micros(4464),
        )
    }

    #[test]
    fn a_single_group_is_chosen_where_one_is_nearly_dead() {
        assert!(!single_is_faster(&[0.9, 0.9], 1.0));
        assert!(!single_is_faster(&[0.9, 0.2], 1.0));
        assert!(single_is_faster(&[0.9, 0.0], 1.0));
        assert!(!single_is_faster(&[0.9, 0.0], 0.9));
    }

    #[test]
    fn the_measured_share_decides_whether_one_group_stays() {
        let mut groups = groups(2);
        assert!(!groups.single());
        groups.observe(false, [250, 250, 0], [10, 250, 0]);
        assert!(groups.single());
        groups.observe(true, [250, 0, 0], [200, 0, 0]);
        assert!(!groups.single());
        // Two packets say nothing.
        groups.observe(false, [1, 1, 0], [1, 1, 0]);
        assert!(!groups.single());
        assert_eq!(groups.decide(), None, "one of two");
    }

    /// Goal: one group of three is left out exactly where the two others carry more in the same time.
    #[test]
    fn the_worst_of_three_groups_is_left_out_where_two_carry_more() {
        for (missing, out) in [
            ([0, 0, 0], None),
            ([100, 0, 0], Some(0)),
            ([0, 14, 0], Some(1)),
            ([0, 12, 0], None),
            ([3, 2, 60], Some(2)),
            ([50, 50, 50], None),
        ] {
            let mut groups = groups(3);
            groups.observe(false, [100; 3], missing);
            let single = groups.single();
            assert_eq!((groups.decide(), single), (out, missing == [50; 3]));
        }
        // Two dead groups of three: one group of all relays.
        let mut groups = groups(3);
        groups.observe(false, [100; 3], [0, 100, 100]);
        assert!(groups.single());
    }

    #[test]
    fn a_group_comes_back_after_as_many_signs_as_it_was_left_out() {
        let mut groups = groups(3);
        for absences in 1..4 {
            groups.observe(false, [100; 3], [0, 100, 0]);
            assert_eq!(groups.decide(), Some(1));
            for sign in 1..absences {
                groups.hear(Some(1));
                assert_eq!(groups.decide(), Some(1), "{sign} of {absences}");
            }
            groups.hear(None);
            assert_eq!(groups.decide(), Some(1), "a sign was missing");
            (0..absences).for_each(|_| groups.hear(Some(1)));
            assert_eq!(groups.decide(), None);
        }
    }

    #[test]
    fn turns_pass_over_the_group_that_is_left_out() {
        let list = |turns: Turns, first| -> [u8; 4] {
            core::array::from_fn(|turn| turns.group(first, turn as u64))
        };
        assert_eq!(list(Turns::new(3, None), 2), [2, 0, 1, 2]);
        assert_eq!(list(Turns::new(3, Some(1)), 2), [2, 0, 2, 0]);
        assert_eq!(list(Turns::new(3, Some(1)), 0), [0, 2, 0, 2]);
        assert_eq!(list(Turns::new(2, Some(1)), 1), [1, 0, 1, 0]);
        for out in [None, Some(0), Some(1), Some(2)] {
            let turns = Turns::new(3, out);
            for from in (0..3).filter(|&group| Some(group) != out) {
                assert_eq!(turns.group(from, 1), turns.after(from));
                for group in (0..3).filter(|&group| Some(group) != out) {
                    let ahead = turns.until(from, group);
                    assert_eq!(turns.group(from, ahead), group);
                    assert!((1..ahead).all(|turn| turns.group(from, turn) != group));
                }
            }
        }
    }
}
