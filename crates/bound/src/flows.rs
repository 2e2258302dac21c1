//! The flows of a multicast answer, as the program and its repair share them.

use std::ops::Range;

/// The flows to each receiver: (from, to, frames/s), sorted by sender.
pub(crate) type Flows = Vec<Vec<(usize, usize, f64)>>;

/// Runs of equal senders in flows sorted by (from, to).
pub(crate) fn by_sender(flows: &[(usize, usize, f64)]) -> Vec<(usize, Range<usize>)> {
    let mut runs: Vec<(usize, Range<usize>)> = Vec::new();
    for (place, &(from, _, _)) in flows.iter().enumerate() {
        match runs.last_mut() {
            Some((sender, range)) if *sender == from => range.end = place + 1,
            _ => runs.push((from, place..place + 1)),
        }
    }
    runs
}
