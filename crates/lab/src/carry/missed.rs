//! Faults that changed nothing: their author should know.

use chappe_core::Duration;
use chappe_scenario::Plan;
use chappe_sim::{AirTime, Fault};

/// A sentence for each fault that changed nothing in a run that ended at `now`.
///
/// A crash changed nothing if the node `took_part` in nothing: it sent no frame in the whole run, and is no end of traffic.
pub(super) fn missed_faults(
    plan: &Plan,
    now: AirTime,
    took_part: &dyn Fn(usize) -> bool,
) -> Vec<String> {
    let mut notes = Vec::new();
    let late = |at: Duration| {
        let seconds = at.as_secs_f64();
        (AirTime::ZERO + at > now)
            .then(|| format!("the fault at {seconds} s came after the end of the run"))
    };
    for (at, fault) in &plan.faults {
        let seconds = at.as_secs_f64();
        if let Some(note) = late(*at) {
            notes.push(note);
        } else if let Fault::Crash(node) = fault.strike(None)
            && !took_part(node)
        {
            notes.push(format!(
                "the crash at {seconds} s changed nothing: node {node} sent no frame in this run"
            ));
        }
    }
    notes.extend(plan.losses.iter().filter_map(|step| late(step.at)));
    notes
}
