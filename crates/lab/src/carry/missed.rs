//! Faults that changed nothing: their author should know.

use chappe_scenario::Plan;
use chappe_sim::{AirTime, Counters, Fault};

/// A sentence for each fault that changed nothing in a run that ended at `now`.
///
/// A crash changed nothing if the node sent no frame in the whole run and is no end of a transfer.
pub fn missed_faults(
    plan: &Plan,
    now: AirTime,
    air: &Counters,
    is_end: impl Fn(usize) -> bool,
) -> Vec<String> {
    let mut notes = Vec::new();
    for (at, fault) in &plan.faults {
        let seconds = at.as_secs_f64();
        if AirTime::ZERO + *at > now {
            notes.push(format!(
                "the fault at {seconds} s came after the end of the run"
            ));
        } else if let Fault::Crash(node) = fault.strike(None)
            && !is_end(node)
            && air.nodes.get(node).is_some_and(|node| node.frames == 0)
        {
            notes.push(format!(
                "the crash at {seconds} s changed nothing: node {node} sent no frame in this run"
            ));
        }
    }
    notes
}
