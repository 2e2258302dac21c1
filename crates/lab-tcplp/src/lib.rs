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
//! | `carry`, [`role`] | one seed of a scenario: objects or readings over TCP, and the bound |
//! | [`experiment`], [`transport`], [`addresses`] | a network and its stacks as data |
//! | [`lln`], [`station`], [`socket_memory`] | the running network: its nodes, their memory and their counters |
//! | [`app`] | what nodes run, as one type |
//! | `bulk`, [`study`] | trials: one bulk transfer, and the paper's applications |
//! | [`frames`] | the frames of a segment, as the encoder writes them |
//! | [`times`] | the time that each frame of a run takes |
//! | [`live`] | what a border router reads from a scenario |

pub mod addresses;
pub mod app;
pub mod bulk;
mod carry;
mod demo;
pub mod experiment;
pub mod frames;
mod label;
pub mod live;
pub mod lln;
pub mod plan;
mod polls;
pub mod role;
pub mod socket_memory;
pub mod station;
pub mod study;
pub mod times;
pub mod transport;
mod tree;

#[cfg(test)]
mod scenario_tests;

use chappe_lab::system::RunsOn;

pub use demo::DEMO;
pub use label::label;
pub use plan::{SYSTEM, Tcplp};

/// TCPlp's line in the command's table of systems.
pub static TCPLP: chappe_lab::system::System = chappe_lab::system::System {
    scenario: &SYSTEM,
    carry: carry::run,
    demo: Some(&DEMO),
    template: include_str!("template.toml"),
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
        RunsOn {
            what: "nRF52840 (QEMU, no radio yet): an HTTP and CoAP thermometer",
            page: "firmware/README.md",
        },
    ],
};
