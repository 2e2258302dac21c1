//! The library behind the command: the table of all systems, sweeps with their folders, what ends a
//! command early and the text about it, and figures as columns.
//!
//! ```
//! use chappe::systems::{self, SYSTEMS};
//! use chappe_lab::run::Meter;
//! use chappe_lab::session::{self, Options};
//! use chappe_results::provenance::Program;
//! use chappe_scenario::Plan;
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
//! let plan = Plan::parse(&systems::scenarios(), "line", text)?;
//! let program = Program::unknown("example");
//! let session = session::run(SYSTEMS, &plan, program, Options::default(), &Meter::default())?;
//! assert!(session.document.all_complete());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod failure;
pub mod message;
pub mod packed;
pub mod points;
pub mod sweep;
pub mod systems;

use chappe_results::provenance::Program;

/// This program as the origin of results that the command line `command` makes.
pub fn program(command: &str) -> Program<'_> {
    Program {
        commit: env!("CHAPPE_COMMIT"),
        dirty: env!("CHAPPE_DIRTY") == "true",
        command,
    }
}
