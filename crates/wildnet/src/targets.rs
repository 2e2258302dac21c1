//! From what a class is promised to how it is recovered, and to how long slots are.

use chappe_core::Duration;

use crate::config::Service;
use crate::gilbert::Channel;
use crate::policy::{Goal, Policy, Prediction, ROUNDS_MAX};

/// Bodies of a block for which predictions are made.
const BLOCK: usize = 12;

/// What a class costs and leaves on a channel whose rounds take `round` and whose frames take `one_way`.
///
/// A class without a deadline, or with room for many rounds, costs what the losses cost and leaves nothing.
pub fn predict(
    channel: &Channel,
    service: &Service,
    round: Duration,
    one_way: Duration,
) -> Prediction {
    let rounds = service.deadline.map_or(u64::MAX, |deadline| {
        deadline.saturating_sub(one_way).steps(round)
    });
    if rounds > ROUNDS_MAX.into() {
        let residual = libm::pow(channel.loss, rounds.min(1000) as f64 + 1.0);
        return Prediction {
            overhead: channel.overhead_bound(0.0),
            residual,
            bound: channel.overhead_bound(0.0),
        };
    }
    let goal = Goal {
        block: BLOCK,
        rounds: rounds as u8,
        residual: service.residual,
    };
    Policy::solve(channel, &goal).prediction()
}
