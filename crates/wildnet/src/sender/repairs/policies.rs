//! A cache of policies: solving one takes long, so it is done only when the channel or the target has changed.

use alloc::vec::Vec;

use crate::config::Service;
use crate::estimate::Estimate;
use crate::gilbert::Channel;
use crate::policy::{Goal, Mixture, ROUNDS_MAX};

/// Number of policies kept.
const KEPT: usize = 16;
/// Steps of loss and burst length between policies: finer than ten slots can measure.
const LOSS_STEP: f64 = 0.01;
const BURST_STEP: f64 = 0.5;
/// Block sizes with a policy. A size in between takes the next smaller one, which is conservative.
const SIZES: [usize; 9] = [1, 2, 3, 4, 6, 8, 12, 18, 24];

#[derive(Clone, Debug)]
pub(super) struct Policies {
    kept: Vec<(Key, Mixture)>,
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

    /// The policies for the estimated channel, this class, and a block that began with `size` bodies and `rounds`; `None` if
    /// nothing needs to be added: no loss, or no deadline.
    pub fn get(
        &mut self,
        estimate: &Estimate,
        service: &Service,
        (size, rounds): (usize, u8),
    ) -> Option<&Mixture> {
        service.deadline?;
        let channel = estimate.planned_channel();
        let independent = Channel::independent(channel.loss).burst;
        let key = Key {
            // Rounded up: too much redundancy costs air time, too little misses the target.
            loss: libm::ceil(channel.loss / LOSS_STEP - 1e-9) as i32,
            // The excess over independent losses. A length rounded to below theirs would be a channel on which a
            // received frame always follows a lost one.
            burst: libm::round((channel.burst - independent).max(0.0) / BURST_STEP) as i32,
            residual: service.residual,
            rounds: rounds.min(ROUNDS_MAX),
            block: SIZES.into_iter().rfind(|&known| known <= size).unwrap_or(1),
        };
        if key.loss == 0 {
            return None;
        }
        if let Some(place) = self.kept.iter().position(|(kept, _)| *kept == key) {
            return self.kept.get(place).map(|(_, mixture)| mixture);
        }
        let independent = Channel::independent(f64::from(key.loss) * LOSS_STEP);
        let longer = f64::from(key.burst) * BURST_STEP;
        let planned = Channel::bursty(independent.loss, independent.burst + longer);
        let goal = Goal {
            block: key.block,
            rounds: key.rounds,
            residual: key.residual,
        };
        let made = (key, Mixture::solve(&planned, &goal));
        if self.kept.len() < KEPT {
            self.kept.push(made);
            return self.kept.last().map(|(_, mixture)| mixture);
        }
        self.oldest = (self.oldest + 1) % KEPT;
        let place = self.kept.get_mut(self.oldest)?;
        *place = made;
        Some(&place.1)
    }
}
