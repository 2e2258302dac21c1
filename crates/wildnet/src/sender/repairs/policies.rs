//! Policies that have been worked out, so that this is done only when the channel or the target has changed.

use alloc::vec::Vec;

use crate::config::Service;
use crate::estimate::Estimate;
use crate::gilbert::Channel;
use crate::policy::{Goal, Policy, ROUNDS_MAX};

/// Policies that are kept.
const KEPT: usize = 16;
/// Steps of loss and burst length for which policies are made: finer than ten slots can tell.
const LOSS_STEP: f64 = 0.01;
const BURST_STEP: f64 = 0.5;
/// Sizes of blocks for which policies are made; one in between takes the next smaller, which is careful.
const SIZES: [usize; 9] = [1, 2, 3, 4, 6, 8, 12, 18, 24];

#[derive(Clone, Debug)]
pub(super) struct Policies {
    kept: Vec<(Key, Policy)>,
    oldest: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Key {
    loss: i32,
    burst: i32,
    residual: f64,
    rounds: u8,
    block: usize,
}

impl Policies {
    pub fn new() -> Policies {
        Policies {
            kept: Vec::with_capacity(KEPT),
            oldest: 0,
        }
    }

    /// The policy for the channel as it seems to be, this class, and a block that began with so many
    /// bodies and rounds; `None`
    /// where nothing needs to be added: no loss, or no deadline.
    pub fn get(
        &mut self,
        estimate: &Estimate,
        service: &Service,
        (size, rounds): (usize, u8),
    ) -> Option<&Policy> {
        service.deadline?;
        let channel = estimate.planned_channel();
        let independent = Channel::independent(channel.loss).burst;
        let key = Key {
            // Up: the plan is for a little more loss, not for a little less.
            loss: libm::ceil(channel.loss / LOSS_STEP - 1e-9) as i32,
            // Of what bursts are longer than by chance. (A length rounded to below that would be a channel on which a
            // good frame is sure to follow a lost one.)
            burst: libm::round((channel.burst - independent).max(0.0) / BURST_STEP) as i32,
            residual: service.residual,
            rounds: rounds.min(ROUNDS_MAX),
            block: SIZES.into_iter().rfind(|&known| known <= size).unwrap_or(1),
        };
        if key.loss == 0 {
            return None;
        }
        if let Some(place) = self.kept.iter().position(|(kept, _)| *kept == key) {
            return self.kept.get(place).map(|(_, policy)| policy);
        }
        let independent = Channel::independent(f64::from(key.loss) * LOSS_STEP);
        let longer = f64::from(key.burst) * BURST_STEP;
        let planned = Channel::bursty(independent.loss, independent.burst + longer);
        let goal = Goal {
            block: key.block,
            rounds: key.rounds,
            residual: key.residual,
        };
        let made = (key, Policy::solve(&planned, &goal));
        if self.kept.len() < KEPT {
            self.kept.push(made);
            return self.kept.last().map(|(_, policy)| policy);
        }
        self.oldest = (self.oldest + 1) % KEPT;
        let place = self.kept.get_mut(self.oldest)?;
        *place = made;
        Some(&place.1)
    }
}
