//! How several flows of TCP share a link.

use chappe_core::{Duration, Instant};

use super::cells::Cell;
use super::{PAYLOAD, Run};

/// What each of the flows got.
#[derive(Clone, Debug)]
pub struct Fairness {
    /// Bits a second of each, in order: a flow that waits for a segment gets nothing.
    pub rates: Vec<f64>,
    /// What all together got of (1 - p) C, in order or not: whether a run ends while many segments wait is chance.
    pub share: f64,
    /// Timeouts of all flows, and how many of them were taken back.
    pub timeouts: (u64, u64),
}

impl Fairness {
    /// (sum x)^2 / (n sum x^2): 1 if all get the same, 1/n if one gets all (Jain, Chiu and Hawe, 1984).
    pub fn jain(&self) -> f64 {
        let sum: f64 = self.rates.iter().sum();
        let squares: f64 = self.rates.iter().map(|rate| rate * rate).sum();
        sum * sum / (self.rates.len() as f64 * squares).max(f64::MIN_POSITIVE)
    }
}

/// Eight flows, with which a path is judged.
pub const FLOWS: usize = 8;

/// Some flows over the path of a cell, for at least twenty seconds and sixty round trips, after a quarter as much.
pub fn of(cell: &Cell, seed: u64, flows: usize) -> Fairness {
    let mut air = cell.air;
    air.flows = flows;
    let span = Duration::from_secs(20).max(air.delay * 120);
    let begun = Instant::from_millis(2_000) + span / 4;
    let mut run = Run::new(air, seed);
    run.until(begun);
    let (before, arrived) = (run.received_by_flows(), run.arrived_of_flows());
    run.until(begun + span);
    let after = run.received_by_flows();
    let of_segment = PAYLOAD as f64 * 8.0 / span.as_secs_f64();
    let rates: Vec<f64> = (after.iter().zip(&before))
        .map(|(after, before)| f64::from(after - before) * of_segment)
        .collect();
    let arrived = f64::from(run.arrived_of_flows() - arrived) * of_segment;
    Fairness {
        share: arrived / cell.bound,
        timeouts: run.timeouts_of_flows(),
        rates,
    }
}
