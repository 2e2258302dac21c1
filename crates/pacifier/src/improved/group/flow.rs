//! Credits: how many frames of each batch this node still sends as its share of the plan.

use alloc::vec;
use alloc::vec::Vec;

use chappe_core::Instant;

/// The credit of one batch.
#[derive(Clone, Copy, Debug)]
struct Flow {
    batch: u32,
    credit: f32,
    /// All credit that it was given.
    earned: f32,
    /// When this node last sent or heard a frame of it.
    last: Instant,
}

/// The credits of a window of batches.
#[derive(Clone, Debug)]
pub(super) struct Flows {
    /// At the batch's number modulo the window.
    table: Vec<Flow>,
}

impl Flows {
    pub fn new(window: u32) -> Flows {
        let none = Flow {
            batch: u32::MAX,
            credit: 0.0,
            earned: 0.0,
            last: Instant::ZERO,
        };
        Flows {
            table: vec![none; window.max(1) as usize],
        }
    }

    /// The credit of a batch, and when it was last active; `None` if this node has not met it.
    pub fn credit(&self, batch: u32) -> Option<(f32, Instant)> {
        let place = batch as usize % self.table.len().max(1);
        let flow = self.table.get(place).filter(|flow| flow.batch == batch)?;
        Some((flow.credit, flow.last))
    }

    /// Gives credit to a batch, up to `most` in all. The batch is active now.
    pub fn earn(&mut self, batch: u32, credit: f32, most: f32, now: Instant) {
        if let Some(flow) = self.active(batch, now) {
            let credit = credit.min(most - flow.earned).max(0.0);
            flow.earned += credit;
            flow.credit += credit;
        }
    }

    /// Takes the credit of a frame of a batch, which is active now. It may go below zero, but not without end: else a batch that was
    /// repaired would never send its share of what comes later.
    pub fn spend(&mut self, batch: u32, now: Instant) {
        if let Some(flow) = self.active(batch, now) {
            flow.credit = (flow.credit - 1.0).max(-1.0);
        }
    }

    fn active(&mut self, batch: u32, now: Instant) -> Option<&mut Flow> {
        let place = batch as usize % self.table.len().max(1);
        let flow = self.table.get_mut(place)?;
        if flow.batch != batch {
            *flow = Flow {
                batch,
                credit: 0.0,
                earned: 0.0,
                last: now,
            };
        }
        flow.last = now;
        Some(flow)
    }
}
