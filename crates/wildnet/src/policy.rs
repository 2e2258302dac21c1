//! One controller for redundancy and retransmission: how many repairs to send in each round to meet a target at least cost.
//!
//! A block of K packets has D + 1 rounds before its deadline: the first transmission and D more, each after feedback. In
//! a round with m packets missing, the sender repeats these m and adds x coded packets over them, each of which can replace
//! any of the m. If x is too small, packets stay lost at the end; if it is too large, air time is wasted. With a
//! price λ on a packet lost at the end, the cheapest x for every m and every round follows backwards by
//! dynamic programming:
//!
//! ```text
//! V(m, no round left) = λ m
//! V(m, r left)        = min over x of  m + x + E[ V(m', r - 1 left) ]
//! ```
//!
//! where m' is 0 if at least as many coded packets arrive as repeated ones are lost, else the number of the latter. Bisection
//! finds the smallest λ whose policy leaves at most the target's share lost. With D = 0 this is the paper's block code, with
//! unlimited D its bulk acknowledgement. In between it is the cheapest mixture: mostly rounds without repairs, and a last
//! one with an exact margin.
//!
//! ```
//! use chappe_wildnet::gilbert::Channel;
//! use chappe_wildnet::policy::{Goal, Policy};
//!
//! let goal = Goal { block: 10, rounds: 0, residual: 0.01 };
//! let policy = Policy::solve(&Channel::independent(0.3), &goal);
//! assert_eq!(policy.extra(10, 0), 10); // the paper's 100 % for 30 % down to 1 %
//! ```

use alloc::vec;
use alloc::vec::Vec;

use crate::gilbert::{Channel, Losses};

/// Largest block planned for exactly; larger ones are planned in parts of this size.
pub const BLOCK_MAX: usize = 24;
/// Most rounds planned after the first; with more the overhead is within a percent of the bound (specs 2.2: D = 4).
pub const ROUNDS_MAX: u8 = 6;
/// Most coded packets that a policy adds in one round.
const EXTRA_MAX: usize = 40;
/// The largest price is 2^30, more than any residual needs; the bisection halves the exponent's range 12 times.
const DOUBLINGS: i32 = 30;
const HALVINGS: usize = 12;

/// The target of a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    /// Packets of the block in its first round, clamped to 1 to [`BLOCK_MAX`].
    pub block: usize,
    /// Rounds after the first that end before the deadline.
    pub rounds: u8,
    /// Share of packets that may be missing after the last round, greater than 0.
    pub residual: f64,
}

/// Exact overhead and residual loss of a policy on the channel it was made for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// Packets sent per packet offered, less one.
    pub overhead: f64,
    /// Share of packets missing after the last round.
    pub residual: f64,
    /// The least overhead of any code with the goal's residual.
    pub bound: f64,
}

/// The number of coded packets to add in each round.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    block: usize,
    rounds: u8,
    /// Coded packets to add, `[rounds left][missing]`.
    extra: Vec<u8>,
    prediction: Prediction,
    /// Whether the residual could be met with the packets that a round may have.
    met: bool,
}

impl Policy {
    /// Finds the cheapest policy for this channel that meets the goal; if none does, the one that leaves least.
    pub fn solve(channel: &Channel, goal: &Goal) -> Policy {
        Policy::around(channel, goal).0
    }

    /// That policy, and the most expensive one that does not meet the goal, if there is one.
    fn around(channel: &Channel, goal: &Goal) -> (Policy, Option<Policy>) {
        let block = goal.block.clamp(1, BLOCK_MAX);
        let rounds = goal.rounds.min(ROUNDS_MAX);
        let target = goal.residual.clamp(1e-9, 1.0);
        let outcomes = Outcomes::new(channel, block);
        let solve =
            |price: f64| Policy::at_price(&outcomes, (channel, target), (block, rounds), price);
        let mut high = solve(libm::exp2(DOUBLINGS.into()));
        let (mut low_price, mut high_price) = (0.0, f64::from(DOUBLINGS));
        if !high.met {
            return (high, None);
        }
        let mut low = Some(solve(1.0)).filter(|low| !low.met);
        // By the exponent: prices span nine orders of magnitude.
        for _ in 0..HALVINGS {
            let middle = (low_price + high_price) / 2.0;
            let policy = solve(libm::exp2(middle));
            if policy.met {
                (high, high_price) = (policy, middle);
            } else {
                (low, low_price) = (Some(policy), middle);
            }
        }
        (high, low)
    }

    /// The number of coded packets to add to `missing` repeated ones when `left` rounds follow this one.
    pub fn extra(&self, missing: usize, left: u8) -> usize {
        let left = usize::from(left.min(self.rounds));
        // A larger block is planned as whole blocks and a rest.
        let whole = missing / self.block;
        let at = |missing: usize| {
            let place = left * (self.block + 1) + missing;
            usize::from(self.extra.get(place).copied().unwrap_or(0))
        };
        whole * at(self.block) + at(missing % self.block)
    }

    /// Overhead and residual loss of this policy.
    pub fn prediction(&self) -> Prediction {
        self.prediction
    }

    /// Whether the policy meets the goal's residual.
    pub fn is_met(&self) -> bool {
        self.met
    }

    fn at_price(
        outcomes: &Outcomes,
        (channel, target): (&Channel, f64),
        (block, rounds): (usize, u8),
        price: f64,
    ) -> Policy {
        let side = block + 1;
        let mut extra = vec![0; side * (usize::from(rounds) + 1)];
        let mut cost: Vec<f64> = (0..side).map(|missing| price * missing as f64).collect();
        let mut next = cost.clone();
        for row in extra.chunks_mut(side) {
            for (missing, (chosen, next)) in row.iter_mut().zip(&mut next).enumerate().skip(1) {
                let (x, value) = outcomes.cheapest(missing, &cost);
                (*chosen, *next) = (x as u8, value);
            }
            cost.clone_from(&next);
        }
        let mut policy = Policy {
            block,
            rounds,
            extra,
            prediction: Prediction {
                overhead: 0.0,
                residual: 0.0,
                bound: channel.overhead_bound(target),
            },
            met: false,
        };
        let (sent, left) = policy.play(outcomes);
        policy.prediction.overhead = sent / block as f64 - 1.0;
        policy.prediction.residual = left / block as f64;
        policy.met = policy.prediction.residual <= target;
        policy
    }

    /// Means of the packets sent for a block and of those missing at its end.
    fn play(&self, outcomes: &Outcomes) -> (f64, f64) {
        let mut law = vec![0.0; self.block + 1];
        if let Some(all) = law.last_mut() {
            *all = 1.0;
        }
        let mut sent = 0.0;
        for left in (0..=self.rounds).rev() {
            let mut after = vec![0.0; self.block + 1];
            for (missing, &weight) in law.iter().enumerate().skip(1) {
                let extra = self.extra(missing, left);
                sent += weight * (missing + extra) as f64;
                for (cell, chance) in after.iter_mut().zip(outcomes.of(missing, extra)) {
                    *cell += weight * chance;
                }
            }
            law = after;
        }
        let left = law
            .iter()
            .enumerate()
            .map(|(missing, weight)| missing as f64 * weight);
        (sent, left.sum())
    }
}

/// Two policies in turn, one on each side of the goal: together they meet it exactly.
///
/// A policy adds whole packets, so the cheapest one that meets the goal leaves less than it has to, and with few packets in a block much
/// less. The cheapest one that does not leaves a little more. If a share of the blocks follows the one, and the others the other, then on
/// average the goal's residual is left. No policy is cheaper: the two lie at the same price, on the convex hull of what policies can do.
#[derive(Clone, Debug, PartialEq)]
pub struct Mixture {
    met: Policy,
    missed: Option<Policy>,
    /// Share of the blocks that follow `met`.
    share: f64,
}

impl Mixture {
    /// Finds the two policies for this channel; one of them is [`Policy::solve`]'s.
    pub fn solve(channel: &Channel, goal: &Goal) -> Mixture {
        let (met, missed) = Policy::around(channel, goal);
        let left = |policy: &Policy| policy.prediction.residual;
        let share = match &missed {
            // A number of blocks of the one cancels what the others leave too much.
            Some(missed) => (left(missed) - goal.residual) / (left(missed) - left(&met)),
            None => 1.0,
        };
        Mixture {
            met,
            missed,
            share: if share > 0.0 { share.min(1.0) } else { 1.0 },
        }
    }

    /// The policy of a block with this turn, from 0 to 1: if turns are spread evenly, the goal is met exactly. 0 is the policy that meets it
    /// by itself.
    pub fn of(&self, turn: f64) -> &Policy {
        let missed = self.missed.as_ref().filter(|_| turn >= self.share);
        missed.unwrap_or(&self.met)
    }

    /// Mean overhead and residual loss of many blocks.
    pub fn prediction(&self) -> Prediction {
        let met = self.met.prediction;
        let Some(missed) = &self.missed else {
            return met;
        };
        let mean = |a: f64, b: f64| self.share * a + (1.0 - self.share) * b;
        Prediction {
            overhead: mean(met.overhead, missed.prediction.overhead),
            residual: mean(met.residual, missed.prediction.residual),
            ..met
        }
    }
}

/// The distribution of packets missing after a round, for every number of repeated and of coded ones.
struct Outcomes {
    /// `[(missing, extra)]`: chances of 0 to `missing` missing after.
    laws: Vec<Vec<f64>>,
}

impl Outcomes {
    fn new(channel: &Channel, block: usize) -> Outcomes {
        let losses = Losses::new(channel, block.max(EXTRA_MAX));
        let law = |missing: usize, extra: usize| {
            let mut law = vec![0.0; missing + 1];
            for (lost, chance) in law.iter_mut().enumerate().skip(1) {
                let states = losses.of(missing, lost).into_iter().enumerate();
                let failed =
                    states.map(|(state, weight)| weight * losses.fewer_after(state, extra, lost));
                *chance = failed.sum();
            }
            let failed: f64 = law.iter().sum();
            if let Some(none) = law.first_mut() {
                *none = 1.0 - failed;
            }
            law
        };
        let pairs = (0..=block).flat_map(|missing| (0..=EXTRA_MAX).map(move |x| (missing, x)));
        Outcomes {
            laws: pairs.map(|(missing, extra)| law(missing, extra)).collect(),
        }
    }

    fn of(&self, missing: usize, extra: usize) -> &[f64] {
        let place = missing * (EXTRA_MAX + 1) + extra.min(EXTRA_MAX);
        self.laws.get(place).map_or(&[], Vec::as_slice)
    }

    /// The number of coded packets with the least cost, and that cost.
    fn cheapest(&self, missing: usize, cost: &[f64]) -> (usize, f64) {
        let mut best = (0, f64::INFINITY);
        for extra in 0..=EXTRA_MAX {
            // Sending these alone costs more than the best so far in total, and more coded packets only cost more.
            if (missing + extra) as f64 > best.1 {
                break;
            }
            let after = self.of(missing, extra).iter().zip(cost);
            let value =
                (missing + extra) as f64 + after.map(|(chance, cost)| chance * cost).sum::<f64>();
            if value < best.1 {
                best = (extra, value);
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;

    fn solve(loss: f64, block: usize, rounds: u8, residual: f64) -> Policy {
        let goal = Goal {
            block,
            rounds,
            residual,
        };
        Policy::solve(&Channel::independent(loss), &goal)
    }

    /// Without further rounds the policy is the shortest block code.
    #[test]
    fn without_feedback_it_is_the_block_code() {
        for (loss, block, overhead) in [
            (0.3, 10, 1.0),
            (0.3, 13, 0.92),
            (0.1, 10, 0.4),
            (0.2, 4, 1.0),
        ] {
            let policy = solve(loss, block, 0, 0.01);
            let prediction = policy.prediction();
            assert!(
                (prediction.overhead - overhead).abs() < 0.0051,
                "{loss} {block}: {prediction:?}"
            );
            assert!(prediction.residual <= 0.01);
        }
    }

    /// Goal: the numbers of specs 6 G4 (0.75, 0.52, 0.45 at one, two, four further rounds), with slots of 13 packets,
    /// which hold some 8 new ones and their repairs. No policy goes below the bound.
    #[test]
    fn feedback_brings_the_overhead_near_the_bound() {
        for (rounds, most) in [(1, 0.75), (2, 0.52), (4, 0.45)] {
            let policy = solve(0.3, 8, rounds, 0.01);
            let prediction = policy.prediction();
            std::println!("{rounds} rounds: {prediction:?}");
            assert!(prediction.overhead <= most, "{rounds}: {prediction:?}");
            assert!(prediction.overhead >= prediction.bound - 1e-9);
            assert!(prediction.residual <= 0.01 && policy.is_met());
        }
    }

    /// At 50 % loss and one further round, a rule-of-thumb margin in the last round misses 1 % (specs 2.2). The exact policy
    /// meets it more cheaply than one round alone, with redundancy in the first round too.
    #[test]
    fn high_loss_puts_redundancy_into_the_first_round() {
        let (one, two) = (solve(0.5, 12, 0, 0.01), solve(0.5, 12, 1, 0.01));
        assert!(one.is_met() && two.is_met());
        assert!(two.prediction().overhead < 0.85 * one.prediction().overhead);
        assert!(two.extra(12, 1) > 0);
        assert_eq!(solve(0.1, 24, 4, 0.01).extra(24, 4), 0);
    }

    /// Two policies in turn leave exactly the goal's residual at less than the cost of the one that meets it alone, with one packet in a
    /// block as with many.
    #[test]
    fn two_policies_in_turn_meet_the_goal_exactly() {
        for (block, rounds) in [(1, 0), (1, 1), (3, 1), (4, 1), (4, 2), (13, 0), (24, 2)] {
            let goal = Goal {
                block,
                rounds,
                residual: 0.01,
            };
            let channel = Channel::independent(0.3);
            let mixture = Mixture::solve(&channel, &goal);
            let (both, alone) = (mixture.prediction(), mixture.met.prediction);
            std::println!(
                "{block} packets, {rounds} rounds: {:.3} at {:.4} alone, {:.3} at {:.4} in turn, bound {:.3}",
                alone.overhead,
                alone.residual,
                both.overhead,
                both.residual,
                both.bound
            );
            assert_eq!(mixture.of(0.0), &solve(0.3, block, rounds, 0.01));
            assert!((both.residual - 0.01).abs() < 1e-9, "{both:?}");
            assert!(both.overhead < alone.overhead && both.overhead > both.bound);
        }
        // Repetition alone leaves less than the goal, and nothing cheaper exists.
        let goal = |rounds| Goal {
            block: 24,
            rounds,
            residual: 0.01,
        };
        let repeats = Mixture::solve(&Channel::independent(0.3), &goal(4));
        assert_eq!(repeats.of(1.0), repeats.of(0.0));
        let free = Mixture::solve(&Channel::independent(0.0), &goal(1));
        assert_eq!(
            (free.prediction().overhead, free.of(1.0).extra(4, 1)),
            (0.0, 0)
        );
    }

    /// Bursts cost more, a channel without loss costs nothing, and an impossible goal is reported.
    #[test]
    fn bursts_cost_more_and_impossible_goals_are_reported() {
        let goal = Goal {
            block: 12,
            rounds: 1,
            residual: 0.01,
        };
        let cost = |channel| Policy::solve(&channel, &goal).prediction().overhead;
        assert!(cost(Channel::bursty(0.2, 4.0)) > cost(Channel::independent(0.2)));
        assert_eq!(cost(Channel::independent(0.0)), 0.0);
        assert!(!solve(0.9, 24, 0, 1e-6).is_met());
    }
}
