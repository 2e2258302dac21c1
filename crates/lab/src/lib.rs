//! What all experiments share: carrying a scenario's transfers, sessions over seeds, the demo, the papers' figures.
//!
//! ```
//! use chappe_lab::carry::{Receipt, Report};
//! use chappe_lab::run::{Meter, WORK};
//! use chappe_lab::session::{self, Options};
//! use chappe_lab::system::System;
//! use chappe_results::provenance::Program;
//! use chappe_scenario::idle::{self, IDLE};
//!
//! // A system that needs no air: every receiver has the object after two seconds. Real systems call `carry::carry`.
//! static MAGIC: System = System::new(&IDLE, |job, meter| {
//!     meter.advance(2 * WORK);
//!     let mut report = Report::begin((&IDLE, &IDLE.variants[0]), job.network.seed);
//!     for (index, transfer) in job.network.transfers.iter().enumerate() {
//!         let receipt = Receipt {
//!             octets: transfer.object.len(),
//!             completed_s: Some(2.0),
//!             copy: Some(&transfer.object),
//!             delay: None,
//!         };
//!         for &sink in &transfer.receivers {
//!             report.receipt(index, transfer, sink, receipt, job.copies);
//!         }
//!     }
//!     Ok(report.finish())
//! });
//!
//! let plan = idle::plan(
//!     "[network]\nlinks = [[0, 0.9], [0.9, 0]]\n[run]\nrepeat = 3\n\
//!      [[transfer]]\nsource = 0\nreceivers = [1]\nbytes = \"20 kB\"\n",
//! );
//! let program = Program::unknown("an example");
//! let session = session::run(&[&MAGIC], &plan, program, Options::default(), &Meter::default())?;
//! assert!(session.document.all_complete());
//! assert_eq!(session.document.summary.goodput_bps.mean, 80_000.0);
//! # Ok::<(), chappe_lab::run::RunError>(())
//! ```
//!
//! From a plan to a number, each step in its module:
//!
//! | step | module |
//! |---|---|
//! | what a system provides: a line in the command's table | [`system`] |
//! | one seed: the run loop, the stop rule, captures, faults, the report | [`carry`], [`job`] |
//! | the outcome of a run, its errors, its progress | [`run`] |
//! | all seeds on all cores, kept as they finish | [`session`], [`seeds`] |
//! | the runs of many scenarios, handed over as they end | [`sweep`] |
//! | a paper's figures, the runs behind them, and the cores that papers share | [`paper`], [`context`], [`cores`] |
//! | finished pieces of that work, kept for an interrupted order | [`keeper`] |
//! | the demo's parts | [`demo`] |
//!
//! Scenarios are read by `chappe-scenario`, results are `chappe-results`, and `chappe-figures` draws. Each system is a crate,
//! `crates/lab-<system>`; `docs/write-a-protocol.md` shows how to add one.
//!
//! **Architecture invariant:** this crate knows media and no system; a system's crate knows its protocol and no other system;
//! only the command knows all of them.

pub mod carry;
pub mod context;
pub mod cores;
pub mod demo;
pub mod job;
pub mod keeper;
pub mod paper;
pub mod run;
pub mod seeds;
pub mod session;
pub mod sweep;
pub mod system;
