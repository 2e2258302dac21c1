//! WiLDNet in scenarios, and its paper's evaluation: 802.11 links of tens of kilometres, under the DCF and in slots.
//!
//! WiLDNet and its baselines are one line of the command's table of systems, [`WILDNET`]. A scenario places masts and links them, in a
//! line or as a tree, and TCP carries objects between any of them. A session runs all seeds of a scenario:
//!
//! ```
//! use chappe_lab::run::Meter;
//! use chappe_lab::session::{self, Options};
//! use chappe_lab_wildnet::WILDNET;
//! use chappe_results::provenance::Program;
//! use chappe_scenario::Plan;
//!
//! let scenario = r#"
//!     [network]
//!     positions = [["0 km", "0 km"], ["60 km", "0 km"]]
//!     [protocol]
//!     system = "wildnet"
//!     variant = "improved"
//!     frame_loss = 0.1
//!     [[transfer]]
//!     source = 0
//!     receivers = [1]
//!     bytes = "100 kB"
//! "#;
//! let plan = Plan::parse(&[WILDNET.scenario], "example.toml", scenario)?;
//! let (program, options) = (Program::unknown("example"), Options::default());
//! let session = session::run(&[&WILDNET], &plan, program, options, &Meter::default())?;
//! let flow = &session.document.runs[0].flows[0];
//! assert!(flow.complete && flow.digest_ok);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The paper's figures use the same stations without a scenario. A [`trial::Trial`] describes one link and
//! [`masts::Masts`] several; [`experiment::Experiment`] runs either with a seed and returns what was measured.
//! No parameter is fitted to a result of the paper. The points of the paper's curves are not available, so figures compare with
//! its text and tables.
//!
//! | module | what |
//! |---|---|
//! | `plan`, `carry` | the line in the table of systems: keys and variants; one seed of a scenario |
//! | [`scheme`], [`trial`], [`masts`], [`layout`] | descriptions: channel access and recovery, one link, masts, their links |
//! | [`experiment`], `measure` | trials with a seed, and what is measured in one |
//! | `mounting`, `running_masts` | the stations of masts, and the simulation that they run in |
//! | `station` | one radio's node: WiLDNet in slots, or plain 802.11 |
//! | [`rate_control`] | how cards under the DCF choose the rate of a packet |
//! | `faults`, `life` | faults of masts and links, and masts that restart |
//! | `traffic`, `udp`, `hosts`, `pings`, `stream`, `relay` | traffic of a radio: UDP, TCP, pings, KCP, the mast's other radios |
//! | `ipv4`, `serial` | IPv4 headers on the air; numbered datagrams |
//! | `pipe` | a shared medium without slots, on which other tunnels were measured |
//! | [`dot11n`] | 802.11n and ac over distance: a separate model |
//! | `demo` | WiLDNet's part of the demo |

mod carry;
mod demo;
pub mod dot11n;
pub mod experiment;
mod faults;
pub mod hosts;
mod ipv4;
mod label;
pub mod layout;
mod life;
pub mod masts;
mod measure;
mod mounting;
mod pings;
pub mod pipe;
mod plan;
pub mod rate_control;
mod relay;
mod running_masts;
pub mod scheme;
mod serial;
mod station;
pub mod stream;
mod traffic;
pub mod trial;
pub mod udp;

use chappe_lab::system::RunsOn;

pub use demo::DEMO;
pub use plan::{SYSTEM, Variant, WildNet, WildNetKeys};

/// WiLDNet's line in the table of systems.
pub static WILDNET: chappe_lab::system::System = chappe_lab::system::System {
    scenario: &SYSTEM,
    carry: carry::run,
    demo: Some(&DEMO),
    template: include_str!("template.toml"),
    page: "docs/wildnet.md",
    runs_on: &[RunsOn {
        what: "real networks: `chappe link`",
        page: "docs/link.md",
    }],
};

#[cfg(test)]
mod fault_tests;
#[cfg(test)]
mod mast_tests;
#[cfg(test)]
mod tests;
