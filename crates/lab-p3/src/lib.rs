//! P³ in scenarios, the studies behind its paper's figures, its part of the demo.
//!
//! The command's table of systems has one line for this crate, [`P3_SYSTEM`]. A scenario runs on it as on any other system:
//!
//! ```
//! use chappe_lab::run::Meter;
//! use chappe_lab::session::{self, Options};
//! use chappe_lab_p3::{P3_SYSTEM, SYSTEM};
//! use chappe_results::provenance::Program;
//! use chappe_scenario::Plan;
//!
//! // Two hops: the gateway, node 0, fetches 10 kB from node 2.
//! let scenario = "
//!     title = 'two hops'
//!     [network]
//!     links = [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
//!     [protocol]
//!     system = 'p3'
//!     [[transfer]]
//!     source = 2
//!     receivers = [0]
//!     bytes = '10 kB'
//! ";
//! let plan = Plan::parse(&[&SYSTEM], "two-hops", scenario)?;
//! let program = Program::unknown("example");
//! let session = session::run(&[&P3_SYSTEM], &plan, program, Options::default(), &Meter::default())?;
//! let run = &session.document.runs[0];
//! assert!(run.all_complete() && run.counter("hops") == 2);
//! # Ok::<(), chappe_lab::run::RunError>(())
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `plan` | a scenario's keys and settings ([`P3`]) |
//! | `prepare`, `route`, `replan` | the true links, the gateway's measurement of them, its route, and its further attempts |
//! | `carry`, `role` | one seed: the transfer along the route, the counters, and the bound |
//! | [`ends`] | ends of a transfer with a route of the wanted shape |
//! | [`trace`] | what each node does with each frame of a transfer |
//! | [`correlation`] | the study of receivers of synchronous transmissions |
//!
//! The figures themselves are in `chappe-paper-p3`. No parameter is tuned to reproduce a number of P³.

pub mod carry;
pub mod correlation;
mod demo;
pub mod ends;
mod label;
mod plan;
mod prepare;
mod replan;
mod role;
mod route;
pub mod trace;
mod wake;

use chappe_lab::system::RunsOn;

pub use carry::{RADIO_WATTS, carry, check, watched};
pub use demo::DEMO;
pub use plan::{P3, SYSTEM, Tags, Variant, radio_bound_bps};
pub use prepare::{Knowledge, Prepared, Ratios, prepare};
pub use route::{Route, route};

/// P³'s line in the command's table of systems.
pub static P3_SYSTEM: chappe_lab::system::System = chappe_lab::system::System {
    scenario: &SYSTEM,
    carry: carry::run,
    demo: Some(&DEMO),
    template: include_str!("template.toml"),
    page: "docs/p3.md",
    runs_on: &[RunsOn {
        what: "nRF52840 (QEMU, no radio yet): relay, source, destination",
        page: "firmware/README.md",
    }],
};

#[cfg(test)]
mod tests;
