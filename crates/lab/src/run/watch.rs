//! Follows a run: when each batch arrived, and, if wanted, every frame into a capture.

use chappe_core::TraceEvent;
use chappe_sim::{AirTime, Recorder};

use crate::results::Delay;
use crate::statistics::{mean, quantile};

/// When batches arrived at each node.
#[derive(Debug, Default)]
pub struct Arrivals {
    at: Vec<Vec<f64>>,
}

impl Arrivals {
    pub fn new(nodes: usize) -> Arrivals {
        Arrivals { at: vec![Vec::new(); nodes] }
    }

    /// How long batches took to reach a node, from the start of the transfer.
    pub fn delay(&self, node: usize) -> Option<Delay> {
        let at = self.at.get(node).filter(|at| !at.is_empty())?;
        let share = |p: f64| quantile(at, p);
        Some(Delay { mean: mean(at), p50: share(0.5)?, p95: share(0.95)?, p99: share(0.99)? })
    }

    fn note(&mut self, at: AirTime, node: usize, event: TraceEvent) {
        if let (TraceEvent::Delivered { .. }, Some(times)) = (event, self.at.get_mut(node)) {
            times.push(at.as_secs_f64());
        }
    }
}

impl Recorder for Arrivals {
    const FRAMES: bool = false;

    fn traced(&mut self, at: AirTime, node: usize, event: TraceEvent) {
        self.note(at, node, event);
    }
}
