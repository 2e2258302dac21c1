//! When a run ends that does not complete.

use chappe_scenario::Plan;
use chappe_sim::AirTime;

/// A run without a given limit may always take this long, in seconds.
const AT_LEAST_S: f64 = 600.0;
/// In addition it may take this many times the least possible time.
const FACTOR: f64 = 300.0;

/// The end of a run, in seconds of simulated time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// The run ends here, finished or not.
    pub end_s: f64,
    /// The run also ends when nothing has arrived for this long.
    pub stall_s: Option<f64>,
}

impl Limits {
    /// The scenario's limit. Without one: ten minutes and 300 times the least possible time `least_s`, after the last fault.
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

    /// Ends a run without a given limit when nothing has arrived for `stall_s` and the time until the last fault: what a
    /// fault stopped early can still go on when a later one ends it.
    pub fn stalling(self, plan: &Plan, stall_s: f64) -> Limits {
        Limits {
            stall_s: plan
                .limit
                .is_none()
                .then_some(stall_s + last_change_s(plan)),
            ..self
        }
    }

    /// The end as the simulator counts time. An infinite one becomes the largest, 584 years.
    pub(super) fn end(self) -> AirTime {
        AirTime::from_nanos((self.end_s * 1e9) as u64)
    }
}

/// When the last fault strikes, or the last link changes its loss, in seconds. How long a jammer lasts is not counted.
fn last_change_s(plan: &Plan) -> f64 {
    let faults = plan.faults.iter().map(|(at, _)| *at);
    let changes = faults.chain(plan.losses.iter().map(|step| step.at));
    changes.max().map_or(0.0, |at| at.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use chappe_scenario::idle;

    use super::*;

    fn plan(more: &str) -> Plan {
        idle::plan(&format!(
            "[network]\nlinks = [[0, 1], [1, 0]]\n[[transfer]]\nsource = 0\nreceivers = [1]\nbytes = \"1 kB\"\n{more}"
        ))
    }

    const CRASHES: &str = "[[fault]]\nat = \"90 s\"\nkind = \"crash\"\nnode = 1\n\
                           [[fault]]\nat = \"30 s\"\nkind = \"restart\"\nnode = 1\n";

    #[test]
    fn time_counts_from_the_last_fault() {
        assert_eq!(Limits::of(&plan(""), 0.0).end_s, 600.0);
        assert_eq!(Limits::of(&plan(""), 2.0).end_s, 1200.0);
        assert_eq!(Limits::of(&plan(CRASHES), 2.0).end_s, 1290.0);
        let stalling = Limits::of(&plan(CRASHES), 0.0).stalling(&plan(CRASHES), 5.0);
        assert_eq!(stalling.stall_s, Some(95.0));
    }

    /// A given limit holds alone: neither the bound nor a stall ends the run.
    #[test]
    fn a_given_limit_replaces_the_others() {
        let plan = plan(&format!("{CRASHES}[run]\nlimit = \"7 s\"\n"));
        let limits = Limits::of(&plan, 100.0).stalling(&plan, 5.0);
        assert_eq!((limits.end_s, limits.stall_s), (7.0, None));
        assert_eq!(Limits::within(&plan, 100.0).end_s, 7.0);
    }

    #[test]
    fn ends_fit_the_simulators_clock() {
        let end = |end_s| {
            let limits = Limits {
                end_s,
                stall_s: None,
            };
            limits.end().nanos()
        };
        assert_eq!((end(0.0), end(1.5)), (0, 1_500_000_000));
        assert_eq!(end(f64::INFINITY), u64::MAX);
    }
}
