//! Two groups or one? Two send a packet per cycle; one, of all relays, a packet in every second cycle, with twice
//! the diversity.

/// Whether one group of all relays delivers more per cycle than two groups do.
///
/// `delivered` is the share of packets that reaches the destination through each group, `all` the one through all
/// relays together.
pub fn single_is_faster(delivered: [f64; 2], all: f64) -> bool {
    let [zero, one] = delivered;
    all / 2.0 > (zero + one) / 2.0
}

/// What a source has measured of its groups.
///
/// One group is tried where two deliver less than half of the packets: it might deliver all. What it then really
/// delivers decides whether it stays.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Groups {
    delivered: [f64; 2],
    all: f64,
}

impl Default for Groups {
    fn default() -> Self {
        Groups {
            delivered: [1.0; 2],
            all: 1.0,
        }
    }
}

/// One group that delivers as much as two does so in fewer rounds, and each round has a turn. A tenth: our choice.
const ROUNDS_SAVED: f64 = 1.1;
/// Fewer packets than this say too little about a group.
const SAMPLE_MIN: u32 = 4;

impl Groups {
    /// A round is over: per group, how many packets were sent and how many of these are missing.
    pub fn observe(&mut self, both: bool, sent: [u32; 2], missing: [u32; 2]) {
        let share = |sent: u32, missing: u32| 1.0 - f64::from(missing) / f64::from(sent.max(1));
        let [sent0, sent1] = sent;
        let [missing0, missing1] = missing;
        if both {
            let all = sent0.saturating_add(sent1);
            if all >= SAMPLE_MIN {
                self.all = share(all, missing0.saturating_add(missing1));
            }
            return;
        }
        let [zero, one] = &mut self.delivered;
        for (group, sent, missing) in [(zero, sent0, missing0), (one, sent1, missing1)] {
            if sent >= SAMPLE_MIN {
                *group = share(sent, missing);
            }
        }
    }

    /// Whether the next round should use all relays as one group.
    pub fn single(&self) -> bool {
        single_is_faster(self.delivered, self.all * ROUNDS_SAVED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_group_is_for_nearly_dead_groups() {
        assert!(!single_is_faster([0.9, 0.9], 1.0));
        assert!(!single_is_faster([0.9, 0.2], 1.0));
        assert!(single_is_faster([0.9, 0.0], 1.0));
        assert!(!single_is_faster([0.9, 0.0], 0.9));
    }

    #[test]
    fn what_one_group_delivers_decides_whether_it_stays() {
        let mut groups = Groups::default();
        assert!(!groups.single());
        groups.observe(false, [250, 250], [10, 250]);
        assert!(groups.single());
        groups.observe(true, [250, 0], [200, 0]);
        assert!(!groups.single());
        // Two packets say nothing.
        groups.observe(false, [1, 1], [1, 1]);
        assert!(!groups.single());
    }
}
