//! P³ in scenarios, its paper's tables and figures, its part of the demo.
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
//! | `prepare`, `route` | the true links, the gateway's measurement of them, and its route |
//! | `carry`, `role` | one seed: the transfer along the route, the counters, and the bound |
//! | [`campaign`] | the trials of the paper's evaluation, each run once |
//! | `table1` to `table4`, `figure5` to `figure7`, `energy`, `overhead`, `large`, `calibration` | the figures that [`PAPER`] lists |
//! | `claims` | the kinds of claims that several figures make |
//! | [`pipeline`] | a drawing of one transfer, cycle by cycle |
//!
//! No parameter is tuned to reproduce a number of P³. One parameter is fitted to a result of the paper: the share of bad
//! links. That result is its baseline's, PIP's (`calibration`).

mod calibration;
pub mod campaign;
mod carry;
mod claims;
mod demo;
mod energy;
mod figure5;
mod figure6;
mod figure7;
mod label;
mod large;
mod overhead;
mod paper;
pub mod pipeline;
mod plan;
mod prepare;
mod role;
mod route;
mod table1;
mod table2;
mod table3;
mod table4;

use chappe_lab::system::RunsOn;

pub use carry::{RADIO_WATTS, carry, check, watched};
pub use demo::DEMO;
pub use paper::{PAPER, make};
pub use plan::{P3, SYSTEM, Variant, radio_bound_bps};
pub use prepare::{Knowledge, Prepared, Ratios, prepare};
pub use route::{Route, route};

/// P³'s line in the command's table of systems.
pub static P3_SYSTEM: chappe_lab::system::System = chappe_lab::system::System {
    scenario: &SYSTEM,
    carry: carry::run,
    paper: Some(&PAPER),
    demo: Some(&DEMO),
    page: "docs/p3.md",
    runs_on: &[RunsOn {
        what: "Cortex-M4 (QEMU): the relay",
        page: "proof/README.md",
    }],
};

#[cfg(test)]
mod tests;
