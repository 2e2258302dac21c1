//! Several groups or one? Two or three send a packet per cycle; one, of all relays, a packet in every second cycle,
//! with twice or three times the diversity.

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

/// What a source has measured of its groups.
///
/// One group is tried where two deliver less than half of the packets: it might deliver all. What it then really
/// delivers decides whether it stays.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Groups {
    delivered: [f64; GROUPS_MAX as usize],
    count: u8,
    all: f64,
}

/// One group that delivers as much as two does so in fewer rounds, and each round costs a turn. A tenth: our choice.
const ROUNDS_SAVED: f64 = 1.1;
/// Least number of packets from which a group's share is measured.
const SAMPLE_MIN: u32 = 4;

impl Groups {
    /// `count` groups that have not been measured.
    pub fn new(count: u8) -> Groups {
        Groups {
            delivered: [1.0; GROUPS_MAX as usize],
            count,
            all: 1.0,
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

    /// Whether the next round should use all relays as one group.
    pub fn single(&self) -> bool {
        let delivered = self.delivered.get(..usize::from(self.count));
        single_is_faster(delivered.unwrap_or_default(), self.all * ROUNDS_SAVED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_group_is_chosen_where_one_is_nearly_dead() {
        assert!(!single_is_faster(&[0.9, 0.9], 1.0));
        assert!(!single_is_faster(&[0.9, 0.2], 1.0));
        assert!(single_is_faster(&[0.9, 0.0], 1.0));
        assert!(!single_is_faster(&[0.9, 0.0], 0.9));
    }

    #[test]
    fn the_measured_share_decides_whether_one_group_stays() {
        let mut groups = Groups::new(2);
        assert!(!groups.single());
        groups.observe(false, [250, 250, 0], [10, 250, 0]);
        assert!(groups.single());
        groups.observe(true, [250, 0, 0], [200, 0, 0]);
        assert!(!groups.single());
        // Two packets say nothing.
        groups.observe(false, [1, 1, 0], [1, 1, 0]);
        assert!(!groups.single());
    }
}
