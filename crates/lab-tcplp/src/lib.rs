//! TCPlp in scenarios and experiments: TCP between motes over 6LoWPAN and 802.15.4, its paper's figures, its part of the
//! demo.
//!
//! The command's table of systems has one line for this crate, [`TCPLP`]. A scenario runs on it as on any other system:
//!
//! ```
//! use chappe_lab::run::Meter;
//! use chappe_lab::session::{self, Options};
//! use chappe_lab_tcplp::{SYSTEM, TCPLP};
//! use chappe_results::provenance::Program;
//! use chappe_scenario::Plan;
//!
//! // Two hops: node 2 sends 5 kB to the border router, node 0.
//! let scenario = "
//!     title = 'two hops'
//!     [network]
//!     links = [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
//!     [protocol]
//!     system = 'tcplp'
//!     [[transfer]]
//!     source = 2
//!     receivers = [0]
//!     bytes = '5 kB'
//! ";
//! let plan = Plan::parse(&[&SYSTEM], "two-hops", scenario)?;
//! let program = Program::unknown("example");
//! let session = session::run(&[&TCPLP], &plan, program, Options::default(), &Meter::default())?;
//! let run = &session.document.runs[0];
//! assert!(run.all_complete() && run.counter("hops") == 2);
//! # Ok::<(), chappe_lab::run::RunError>(())
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`plan`], `tree` | a scenario's keys and settings, and the tree of next hops |
//! | `carry`, `role` | one seed of a scenario: objects or readings over TCP, and the bound |
//! | [`experiment`], [`transport`], [`addresses`] | a network and its stacks as data |
//! | [`lln`], [`station`], [`socket_memory`] | the running network: its nodes, their memory and their counters |
//! | `bulk`, [`study`] | trials: one bulk transfer, and the paper's applications |
//! | `figure3` to `figure12`, `table3` to `table9`, `hops`, `loss`, `improved` | the figures that [`PAPER`] lists |
//! | [`context`], `bounds`, `frames`, `times` | what the figures share |
//! | [`live`] | what a border router reads from a scenario |

pub mod addresses;
mod bounds;
mod bulk;
mod carry;
pub mod context;
mod demo;
pub mod experiment;
mod figure10;
mod figure11;
mod figure12;
mod figure3;
mod figure4;
mod figure5;
mod figure6;
mod figure7;
mod figure8;
mod figure9;
mod frames;
mod hops;
mod improved;
pub mod live;
pub mod lln;
mod loss;
mod paper;
pub mod plan;
mod role;
pub mod socket_memory;
pub mod station;
pub mod study;
mod table3;
mod table4;
mod table5;
mod table6;
mod table7;
mod table9;
mod times;
pub mod transport;
mod tree;

#[cfg(test)]
mod scenario_tests;
#[cfg(test)]
mod tests;

use chappe_lab::system::RunsOn;

pub use demo::DEMO;
pub use paper::PAPER;
pub use plan::{SYSTEM, Tcplp};

/// TCPlp's line in the command's table of systems.
pub static TCPLP: chappe_lab::system::System = chappe_lab::system::System {
    scenario: &SYSTEM,
    carry: carry::run,
    paper: Some(&PAPER),
    demo: Some(&DEMO),
    page: "docs/tcplp.md",
    runs_on: &[
        RunsOn {
            what: "your programs against simulated motes: `chappe border`",
            page: "docs/border.md",
        },
        RunsOn {
            what: "Cortex-M4 (QEMU): two sockets",
            page: "proof/README.md",
        },
    ],
};
