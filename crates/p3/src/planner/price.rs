//! How long a transfer takes by a pipeline: what a predicted loss costs in cycles.
//!
//! The rounds are those of the source (`round.rs`, `recovery.rs`, `groups.rs`): packets of a segment and a few combinations;
//! then, while much is missing, the missing packets again; then combinations. A group that delivers nothing costs a round
//! with all relays as one group, which sends in every second cycle. Without that price two groups of which one is dead look
//! better than one good group.

use super::chain::Prediction;
use crate::groups::single_is_faster;
use crate::repair::UNKNOWN_MAX;
use crate::sizes::SUMS_MAX;

/// Lower limit of the probability of an answer, so that a turn's expected time stays finite.
const ANSWERED_MIN: f64 = 0.02;
/// Combinations that a round has beyond those that are lacking: `Improved::repair_margin`'s default.
const MARGIN: f64 = 2.0;
/// Rounds after which a transfer counts as endless.
const ROUNDS_MAX: usize = 60;
/// Less than this many packets are lacking: as likely as not none.
const FEW: f64 = 0.5;

/// What a transfer is made of, in cycles of the pipeline.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    /// Packets of the object.
    pub packets: f64,
    /// New packets in one segment.
    pub segment: f64,
    /// A question to the end of the pipeline and its answer, if nothing is lost.
    pub turn: f64,
    /// A packet by one group of all relays.
    pub single: f64,
    /// Whether the plan has one group only.
    pub is_single: bool,
}

/// The expected cycles of a transfer, and the combinations to send after the packets of a segment.
pub(super) fn cycles(terms: &Terms, prediction: &Prediction) -> (f64, u8) {
    // A question that is not answered is asked again.
    let turn = terms.turn / prediction.answered.max(ANSWERED_MIN);
    let segments = libm::ceil(terms.packets / terms.segment).max(1.0);
    let packets = terms.packets / segments;
    let lost = packets * (1.0 - prediction.delivered);
    let period = if terms.is_single { terms.single } else { 1.0 };
    let (repair, more) = if lost > SUMS_MAX as f64 {
        (0, rounds(terms, prediction, lost, turn))
    } else {
        let (repair, more) = tail(lost, turn / period);
        (repair, more * period)
    };
    let sent = (packets + f64::from(repair)) * period;
    (segments * (sent + more) + (segments - 1.0) * turn, repair)
}

/// The cycles of the rounds after the first where `lost` packets are missing, more than a few combinations make up for.
fn rounds(terms: &Terms, prediction: &Prediction, lost: f64, turn: f64) -> f64 {
    let (mut missing, mut cycles) = (lost, 0.0);
    // All relays as one group deliver at least what the best group does; the source finds out by trying it.
    let together = prediction.best_group.max(prediction.delivered);
    let tries = single_is_faster(&[prediction.delivered], 1.0);
    let single = terms.is_single || tries && single_is_faster(&[prediction.delivered], together);
    let (share, period) = match (terms.is_single, single) {
        (true, _) => (prediction.delivered, terms.single),
        (false, true) => (together, terms.single),
        (false, false) => (prediction.delivered, 1.0),
    };
    for _ in 0..ROUNDS_MAX {
        if missing < FEW {
            return cycles;
        }
        let whole = missing > UNKNOWN_MAX as f64;
        let sent = if whole { missing } else { missing + MARGIN };
        cycles += turn + sent * period;
        missing = (missing - sent * share).max(0.0);
    }
    f64::INFINITY
}

/// How many combinations to send at once where `mean` packets are lost (Poisson) and a further round costs `turn`
/// cycles; and the cycles that further rounds then cost on average.
fn tail(mean: f64, turn: f64) -> (u8, f64) {
    let mut probability = libm::exp(-mean);
    let mut more = 1.0;
    let mut best = (f64::INFINITY, 0, 0.0);
    for count in 0..=SUMS_MAX {
        // P(more than `count` are lost): then one more round, of what is lacking.
        more = f64::max(more - probability, 0.0);
        let lacking = f64::max(mean - count as f64, more);
        let rounds = more * turn + lacking;
        let cost = count as f64 + rounds;
        if cost < best.0 {
            best = (cost, count, rounds);
        }
        probability *= mean / (count + 1) as f64;
    }
    (best.1 as u8, best.2)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    #[test]
    fn tails_grow_with_losses() {
        let counts: Vec<u8> = [0.0, 0.3, 1.0, 3.0]
            .into_iter()
            .map(|mean| tail(mean, 9.0).0)
            .collect();
        assert_eq!(counts[0], 0);
        assert!(counts.is_sorted() && counts[3] >= 4, "{counts:?}");
        assert!(usize::from(tail(100.0, 9.0).0) <= SUMS_MAX);
    }

    fn priced(groups: &[f64]) -> f64 {
        let delivered = groups.iter().sum::<f64>() / groups.len() as f64;
        let prediction = Prediction {
            delivered,
            worst_group: groups.iter().copied().fold(1.0, f64::min),
            best_group: groups.iter().copied().fold(0.0, f64::max),
            ..Prediction::PERFECT
        };
        let terms = Terms {
            packets: 500.0,
            segment: 880.0,
            turn: 16.0,
            single: 2.0,
            is_single: groups.len() == 1,
        };
        cycles(&terms, &prediction).0
    }

    /// Two groups of which one is dead send half of the packets, ask, and send the other half by all relays in every second
    /// cycle: as long as one good group for everything, and a turn. Before, they were priced at 750 cycles.
    #[test]
    fn a_dead_group_costs_more_than_one_good_group() {
        let good = priced(&[0.99]);
        assert!(priced(&[0.99, 0.0]) > good, "{}", priced(&[0.99, 0.0]));
        assert!(priced(&[0.99, 0.99, 0.0]) > priced(&[0.99, 0.99]));
        assert!(priced(&[0.99, 0.9]) < good);
        assert!(priced(&[0.0, 0.0]).is_infinite());
    }
}
