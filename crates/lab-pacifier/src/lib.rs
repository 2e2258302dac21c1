//! Pacifier in experiments: scenarios on simulated 802.11b, and the figures of its paper.
//!
//! Pacifier (Koutsonikolas, Hu, Wang) carries one object to many receivers over a lossy mesh. This crate joins
//! `chappe-pacifier` with the MAC and the simulator, and adds the baselines MORE, TREE and TREE+RL.
//!
//! ```
//! use chappe_lab::{run::Meter, session};
//! use chappe_lab_pacifier::{PACIFIER, SYSTEM};
//! use chappe_results::provenance::Program;
//! use chappe_scenario::Plan;
//!
//! let text = r#"
//! [network]
//! links = [[0.0, 0.8, 0.0], [0.8, 0.0, 0.8], [0.0, 0.8, 0.0]]
//! [protocol]
//! system = "pacifier"
//! variant = "improved"
//! probing = "20 s"
//! [[transfer]]
//! source = 0
//! receivers = [1, 2]
//! bytes = "20 kB"
//! "#;
//! let plan = Plan::parse(&[&SYSTEM], "line", text).expect("a valid scenario");
//! let (program, options) = (Program::unknown("example"), session::Options::default());
//! let session = session::run(&[&PACIFIER], &plan, program, options, &Meter::default()).expect("a run");
//! assert!(session.document.runs[0].all_complete());
//! ```
//!
//! | module | content |
//! |---|---|
//! | `plan` | keys, variants and limits of scenarios; the checked settings ([`Pacifier`]) |
//! | `bound` | the throughput that no protocol can exceed on a network ([`TransferBound`]) |
//! | `proven` | the bounds that hold for one run, and the check against them ([`check()`]) |
//! | `prepare` | a seed's network, its bounds, and the link probes ([`prepare()`]) |
//! | `carry` | the transfers of a seed on 802.11 ([`carry()`]) |
//! | `turns` | which members send together, where they send in turns ([`turns()`]) |
//! | `interference` | the ideal schedule with interference ([`ideal()`]) |
//! | `ideal` | the same transfers on an ideal channel access ([`carry_ideally`]) |
//! | [`cast`] | how each addition of `chappe cast` changes a simulated transfer |
//! | `demo` | Pacifier's part of `chappe demo` ([`DEMO`]) |
//!
//! The figures of the paper are in `chappe-paper-pacifier`.

mod bound;
mod carry;
pub mod cast;
mod demo;
mod ideal;
mod interference;
mod label;
mod plan;
mod prepare;
mod proven;
mod strengths;
mod turns;

use chappe_lab::system::RunsOn;

pub use bound::{Depth, Serial, TransferBound};
pub use carry::carry;
pub use demo::DEMO;
pub use ideal::carry_ideally;
pub use interference::ideal;
pub use plan::{Pacifier, ProtocolPlan, SYSTEM, Variant};
pub use prepare::{Prepared, prepare};
pub use proven::check;
pub use strengths::Strengths;
pub use turns::turns;

/// Pacifier's entry in the table of systems.
pub static PACIFIER: chappe_lab::system::System = chappe_lab::system::System {
    scenario: &SYSTEM,
    carry: carry::run,
    demo: Some(&DEMO),
    template: include_str!("template.toml"),
    page: "docs/pacifier.md",
    runs_on: &[
        RunsOn {
            what: "real networks: `chappe cast`",
            page: "docs/cast.md",
        },
        RunsOn {
            what: "emulated radios: `chappe emu cast`",
            page: "docs/media.md",
        },
    ],
};

#[cfg(test)]
mod tests;
