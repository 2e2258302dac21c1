//! What all experiments share: scenario files, plans, runs, results, comparisons, figures.
//!
//! From a file to a number, each step in its module:
//!
//! | step | module |
//! |---|---|
//! | the file, word for word, with the place of every value | [`scenario`] |
//! | what a run needs, or why the scenario makes no sense | [`plan`] |
//! | what carries the data: what a system gives | [`system`] |
//! | one seed: arrivals, captures, how far it is | [`run`] |
//! | all seeds on all cores, kept on disk as they finish | [`session`], [`store`] |
//! | the document with its units in the names | [`results`] |
//! | means with intervals, comparisons paired by seed | [`statistics`], [`compare`] |
//! | the papers' figures, theirs beside ours | [`paper`], [`sheet`], [`figure`], [`draw`] |
//!
//! Each system is a crate of its own, `crates/lab-<system>`; `crates/lab-all` lists them, and shows a whole run in an
//! example.
//!
//! **Architecture invariant:** this crate knows media and no protocol, a system's crate its protocol and no other system;
//! only `lab-all` and the command know all. Files, figures and serialisation live here; a protocol does not know that it
//! is measured.

pub mod compare;
pub mod demo;
pub mod doctor;
pub mod draw;
pub mod emulation;
pub mod figure;
#[cfg(test)]
mod idle;
pub mod import;
pub mod input;
pub mod nearest;
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
