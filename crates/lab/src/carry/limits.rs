//! When a run ends whose scenario sets no limit.

use chappe_scenario::Plan;

/// A run without a limit may take this long in any case, in seconds.
const AT_LEAST_S: f64 = 600.0;
/// ... and this many times as long as the bound says that it must.
const FACTOR: f64 = 300.0;

/// The end of a run, in seconds of simulated time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// The run ends here, finished or not.
    pub end_s: f64,
    /// It also ends when nothing has arrived for this long.
    pub stall_s: Option<f64>,
}

impl Limits {
    /// The scenario's limit. Without one: ten minutes and 300 times the least possible time, after the last fault.
    pub fn of(plan: &Plan, least_s: f64) -> Limits {
        Limits::within(plan, AT_LEAST_S + FACTOR * least_s + last_change_s(plan))
    }

    /// The scenario's limit, or `usual_s`.
    pub fn within(plan: &Plan, usual_s: f64) -> Limits {
        let given = plan.limit.map(|limit| limit.as_secs_f64());
        Limits {
            end_s: given.unwrap_or(usual_s),
            stall_s: None,
        }
    }

    /// Ends a run without a given limit when nothing has arrived for `stall_s` after the last fault.
    pub fn stalling(self, plan: &Plan, stall_s: f64) -> Limits {
        Limits {
            stall_s: plan
                .limit
                .is_none()
                .then_some(stall_s + last_change_s(plan)),
            ..self
        }
    }
}

/// When the last fault strikes, or the last link changes its loss.
fn last_change_s(plan: &Plan) -> f64 {
    let faults = plan.faults.iter().map(|(at, _)| *at);
    let changes = faults.chain(plan.losses.iter().map(|step| step.at));
    changes.max().map_or(0.0, |at| at.as_secs_f64())
}
