//! All systems, with their papers and parts of the demo.
//!
//! To add one, write its crate and add a line here (`docs/write-a-protocol.md`).

use chappe_lab::demo::Part;
use chappe_lab::paper::Paper;
use chappe_lab::system::{self, System};
use chappe_scenario as scenario;

/// All systems; the first one is the default of scenarios.
pub static SYSTEMS: &[&System] = &[
    &chappe_lab_pacifier::PACIFIER,
    &chappe_lab_p3::P3_SYSTEM,
    &chappe_lab_wildnet::WILDNET,
    &chappe_lab_tcplp::TCPLP,
    &chappe_lab_dpclo::DPCLO,
];

/// The papers whose figures `chappe lab` makes again, in the order of the systems. A system may have none.
static PAPERS: &[&Paper] = &[
    &chappe_paper_pacifier::PAPER,
    &chappe_paper_p3::PAPER,
    &chappe_paper_wildnet::PAPER,
    &chappe_paper_tcplp::PAPER,
    &chappe_paper_dpclo::PAPER,
];

/// The scenario keys and variants of each system.
pub fn scenarios() -> Vec<&'static scenario::System> {
    system::scenarios(SYSTEMS)
}

/// The system of this name, if there is one.
pub fn named(name: &str) -> Option<&'static System> {
    SYSTEMS
        .iter()
        .copied()
        .find(|system| system.scenario.name == name)
}

/// All papers, in the order of the systems.
pub fn papers() -> impl Iterator<Item = &'static Paper> {
    PAPERS.iter().copied()
}

/// All parts of the demo, in the order of the systems.
pub fn parts() -> Vec<&'static Part> {
    SYSTEMS.iter().filter_map(|system| system.demo).collect()
}

#[cfg(test)]
mod tests;
