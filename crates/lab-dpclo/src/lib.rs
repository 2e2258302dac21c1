//! DPCLO in experiments: flows and objects over a simulated mesh, and the figures of its paper.
//!
//! DPCLO (Warrier, Le, Rhee) routes and paces flows by queue differences between neighbours. This crate joins
//! `chappe-dpclo` with three methods of channel access and the simulator, and adds the baselines: plain forwarding,
//! Fusion, DCLO, and TCP.
//!
//! ```
//! use chappe_lab::{run::Meter, session};
//! use chappe_lab_dpclo::{DPCLO, SYSTEM};
//! use chappe_results::provenance::Program;
//! use chappe_scenario::Plan;
//!
//! let text = r#"
//! [network]
//! links = [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
//! [protocol]
//! system = "dpclo"
//! variant = "improved"
//! probing = "30 s"
//! [[flow]]
//! source = 0
//! sink = 2
//! [run]
//! limit = "5 s"
//! "#;
//! let plan = Plan::parse(&[&SYSTEM], "line", text).expect("a valid scenario");
//! let (program, options) = (Program::unknown("example"), session::Options::default());
//! let session = session::run(&[&DPCLO], &plan, program, options, &Meter::default()).expect("a run");
//! let run = &session.document.runs[0];
//! assert!(run.flows[0].goodput_bps > 0.0 && run.fairness.is_some());
//! ```
//!
//! | module | content |
//! |---|---|
//! | `plan` | keys, variants and limits of scenarios; the checked settings ([`Dpclo`]) |
//! | [`access`] | channel access of a node: the DCF, EDCA or ZMAC+ with its time slots |
//! | `load`, `streams`, `station` | sources and sinks of datagrams; TCP hosts; a router with both |
//! | [`mesh`] | routers on a medium, the streams between them, and their results |
//! | `carry` | one seed of a scenario |
//! | `demo` | DPCLO's part of the demo |
//! | `optimum` | max-min and proportionally fair rates of the same flows |
//!
//! The figures of the paper are in `chappe-paper-dpclo`.

pub mod access;
mod carry;
mod demo;
mod label;
pub mod load;
pub mod mesh;
pub mod optimum;
pub mod plan;

mod station;
pub mod streams;

use chappe_lab::system::RunsOn;

pub use demo::DEMO;
pub use plan::{Dpclo, SYSTEM, Variant};

/// DPCLO's entry in the table of systems.
pub static DPCLO: chappe_lab::system::System = chappe_lab::system::System {
    scenario: &SYSTEM,
    carry: carry::run,
    demo: Some(&DEMO),
    template: include_str!("template.toml"),
    page: "docs/dpclo.md",
    runs_on: &[RunsOn {
        what: "real networks: `chappe mesh`",
        page: "docs/mesh.md",
    }],
};

#[cfg(test)]
mod tests;
