//! Scenario files: their format, the plan that a run needs, and importers of networks.
//!
//! ```
//! use chappe_core::{Mode, Rate};
//! use chappe_scenario::{NoSettings, Plan, System, Variant};
//!
//! // What a system says of itself so that scenarios can name it.
//! static FLOOD: System = System {
//!     name: "flood",
//!     title: "Flood",
//!     about: "every node repeats every packet once",
//!     variants: &[Variant::new("paper", "Flood")],
//!     plan: |checked| {
//!         // Frames of 1564 octets at 2 Mbit/s.
//!         let frame = (Mode::long(Rate::Dsss2), 1564);
//!         Ok(std::sync::Arc::new(NoSettings::new(checked, frame)))
//!     },
//!     ..System::DOT11B
//! };
//!
//! let plan = Plan::parse(
//!     &[&FLOOD],
//!     "pair.toml",
//!     "[network]\nlinks = [[0, 0.9], [0.8, 0]]\n\
//!      [[transfer]]\nsource = 0\nreceivers = [1]\nbytes = \"20 kB\"\n",
//! )?;
//! let network = plan.network(1)?;
//! assert_eq!(network.transfers[0].object.len(), 20_000);
//! # Ok::<(), chappe_scenario::InputError>(())
//! ```
//!
//! | step | module |
//! |---|---|
//! | the file, with the place of every value | [`mod@format`] |
//! | what a run needs, or why the scenario makes no sense | [`plan`] |
//! | what a scenario may name, and a system's own keys | [`system`], [`keys`] |
//! | the values of keys that are varied together | [`sweep`] |
//! | networks from NetJSON, meshviewer, CSV | [`import`] |
//! | errors that point into a text, with the nearest right name | [`input`], [`nearest`] |
//! | numbers with units | [`quantity`] |
//!
//! **Architecture invariant:** this crate knows media and MACs, and no system by name.

mod check;
mod field_names;
pub mod format;
pub mod idle;
pub mod import;
pub mod input;
pub mod keys;
pub mod nearest;
pub mod plan;
pub mod quantity;
mod radios;
#[cfg(not(shipped))]
mod reference;
pub mod routes;
#[cfg(not(shipped))]
mod schema;
pub mod sweep;
pub mod system;

pub use input::InputError;
pub use keys::Keys;
pub use plan::{Network, Plan, Topology, Transfer};
#[cfg(not(shipped))]
pub use reference::reference;
#[cfg(not(shipped))]
pub use schema::schema;
pub use system::{CheckedScenario, NoSettings, Radios, Settings, System, Variant, Variants};
