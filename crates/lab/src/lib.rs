//! The experiments: scenario files, runs, results, comparisons, and the papers' figures.
//!
//! From a file to a number, each step in its module:
//!
//! | step | module |
//! |---|---|
//! | the file, word for word, with the place of every value | [`scenario`] |
//! | what a run needs, or why the scenario makes no sense | [`plan`] |
//! | what carries the data: one of the systems | [`system`], and a folder for each: [`pacifier`], [`p3`], [`wildnet`], [`tcplp`] |
//! | one seed: probing, the bound, the transfer, the digests | [`run`] |
//! | all seeds on all cores, kept on disk as they finish | [`session`], [`store`] |
//! | the document with its units in the names | [`results`] |
//! | means with intervals, comparisons paired by seed | [`statistics`], [`compare`] |
//! | the papers' figures, theirs beside ours | [`paper`], [`sheet`], [`figure`], [`draw`] |
//!
//! ```
//! use chappe_lab::plan::Plan;
//! use chappe_lab::run::Meter;
//! use chappe_lab::session::{self, Options};
//!
//! let plan = Plan::parse(
//!     "line",
//!     r#"
//!     [network]
//!     links = [[0, 0.8, 0.1], [0.8, 0, 0.8], [0.1, 0.8, 0]]
//!     [protocol]
//!     links = "true"
//!     [[transfer]]
//!     source = 0
//!     receivers = [1, 2]
//!     bytes = "20 kB"
//!     "#,
//! )?;
//! let session = session::run(&plan, "example", Options::default(), &Meter::default())?;
//! assert!(session.document.all_complete());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **Architecture invariant:** only this crate and the command know both protocols and media. Files, figures and
//! serialisation live here; a protocol does not know that it is measured.

pub mod compare;
pub mod demo;
pub mod doctor;
pub mod draw;
pub mod emulation;
pub mod figure;
pub mod import;
pub mod input;
pub mod nearest;
pub mod p3;
pub mod pacifier;
pub mod paper;
pub mod plan;
pub mod provenance;
pub mod quantity;
pub mod results;
pub mod run;
pub mod scenario;
pub mod session;
pub mod sheet;
pub mod statistics;
pub mod store;
pub mod system;
pub mod table;
pub mod tcplp;
pub mod wildnet;
