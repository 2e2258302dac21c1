//! All systems that scenarios can name, all papers whose figures the lab makes again, and all parts of the demo.
//!
//! A system is a crate beside this one, `crates/lab-<system>`: how it carries real bytes in a scenario
//! ([`System`] with a `Carrier`), its paper's figures with claims ([`Paper`]), its [`Part`] of the demo. To add one: the
//! crate, a line in each table here, and its keys in [`scenario::Protocol`](chappe_lab::scenario::Protocol).
//!
//! ```
//! use chappe_lab::plan::Plan;
//! use chappe_lab::provenance::Program;
//! use chappe_lab::run::Meter;
//! use chappe_lab::session::{self, Options};
//! use chappe_lab_all::SYSTEMS;
//!
//! let text = r#"
//!     [network]
//!     links = [[0, 0.8, 0.1], [0.8, 0, 0.8], [0.1, 0.8, 0]]
//!     [protocol]
//!     links = "true"
//!     [[transfer]]
//!     source = 0
//!     receivers = [1, 2]
//!     bytes = "20 kB"
//! "#;
//! let plan = Plan::parse(&SYSTEMS, "line", text)?;
//! let program = Program::unknown("example");
//! let session = session::run(&plan, program, Options::default(), &Meter::default())?;
//! assert!(session.document.all_complete());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use chappe_lab::demo::Part;
use chappe_lab::paper::Paper;
use chappe_lab::system::System;

mod template;

pub use template::TEMPLATE;

/// All systems; the first one is meant where a scenario names none.
pub static SYSTEMS: [&System; 5] = [
    &chappe_lab_pacifier::SYSTEM,
    &chappe_lab_p3::SYSTEM,
    &chappe_lab_tcplp::SYSTEM,
    &chappe_lab_wildnet::SYSTEM,
    &chappe_lab_dpclo::SYSTEM,
];

/// All papers, in the order in which they are listed.
pub static PAPERS: [&Paper; 5] = [
    &chappe_lab_pacifier::PAPER,
    &chappe_lab_p3::PAPER,
    &chappe_lab_wildnet::PAPER,
    &chappe_lab_tcplp::PAPER,
    &chappe_lab_dpclo::PAPER,
];

/// All parts of the demo, in the order in which they are shown.
pub static PARTS: [&Part; 4] = [
    &chappe_lab_pacifier::DEMO,
    &chappe_lab_p3::DEMO,
    &chappe_lab_wildnet::DEMO,
    &chappe_lab_tcplp::DEMO,
];

#[cfg(test)]
mod tests;
