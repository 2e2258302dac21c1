//! What a system provides: how it carries a scenario's transfers, its part of the demo.
//!
//! The lab knows no system by name. The command lists them all in one table.

use chappe_scenario::{self as scenario, Plan};

use crate::demo::Part;
use crate::run::{Meter, Outcome, RunError};

pub use crate::job::Job;

/// One line in the table of systems.
pub struct System {
    /// Its name, variants and keys in scenarios.
    pub scenario: &'static scenario::System,
    /// Carries the transfers of one seed. Advances the meter by two [`WORK`](crate::run::WORK): one when everything is
    /// prepared, one in the course of the transfer. Returns [`RunError::Defect`] if more arrived than the bound allows.
    pub carry: fn(Job<'_>, &Meter) -> Result<Outcome, RunError>,
    /// Its part of the demo, if it has one.
    pub demo: Option<&'static Part>,
    /// A commented scenario that runs as it is, for `chappe new`; empty if it has none. Every key that is commented out is valid too.
    pub template: &'static str,
    /// Its page, from the project's folder: `docs/pacifier.md`.
    pub page: &'static str,
    /// Where it runs beside the simulator: what, and the page of that.
    pub runs_on: &'static [RunsOn],
}

/// A place where a system runs beside the simulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunsOn {
    /// The place in a few words: `real networks: chappe cast`.
    pub what: &'static str,
    /// The page about it, from the project's folder.
    pub page: &'static str,
}

impl System {
    /// A system that carries its transfers with `carry`. It has no part of the demo yet.
    pub const fn new(
        scenario: &'static scenario::System,
        carry: fn(Job<'_>, &Meter) -> Result<Outcome, RunError>,
    ) -> System {
        System {
            scenario,
            carry,
            demo: None,
            template: "",
            page: "",
            runs_on: &[],
        }
    }
}

/// What scenarios may name: the scenario side of these systems.
pub fn scenarios(systems: &[&'static System]) -> Vec<&'static scenario::System> {
    systems.iter().map(|system| system.scenario).collect()
}

/// The parameters of a plan as a system's own type. A plan of another system is the caller's defect.
pub fn settings<S: scenario::Settings>(plan: &Plan) -> Result<&S, RunError> {
    plan.settings_as().ok_or_else(|| {
        let system = plan.system.name;
        RunError::Defect(format!("a plan of another system was given: {system}"))
    })
}
