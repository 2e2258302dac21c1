//! Random scenarios with faults for every system, as TigerBeetle's and FoundationDB's simulators make them.
//!
//! A seed makes a scenario ([`draw`]), which runs in virtual time and is judged ([`verdict`]). One that fails is made smaller
//! as long as it fails in the same way ([`shrink`]), and its text is what `chappe sim` reads. Systems come from the command's
//! table; what a system can be asked for comes from its own description and the schema of its keys. No file names a system.
//!
//! ```
//! use chappe_storm::{draw, verdict};
//!
//! let system = chappe::systems::SYSTEMS[0];
//! let draft = draw::accepted(system, 7).expect("one of the drafts is a sound scenario");
//! let verdict = verdict::judge(system, &draft, verdict::Care::default());
//! assert!(verdict.wrong.is_none(), "{verdict:?}\n{}", draft.text());
//! ```

pub mod campaign;
pub mod cost;
pub mod draft;
pub mod draw;
pub mod options;
pub mod shrink;
pub mod troubles;
mod turns;
pub mod verdict;
