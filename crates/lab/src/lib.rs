//! What all experiments share: carrying a scenario's transfers, sessions over seeds, the demo, the papers' figures.
//!
//! From a plan to a number, each step in its module:
//!
//! | step | module |
//! |---|---|
//! | what a system gives: a line in the command's table | [`system`] |
//! | one seed: the run loop, the stop rule, captures, faults, the report | [`carry`] |
//! | progress, errors, what comes out of a run | [`run`] |
//! | all seeds on all cores, kept as they finish | [`session`], [`seeds`] |
//! | a paper's figures, and the runs they are made of | [`paper`], [`context`] |
//! | the demo's parts | [`demo`] |
//!
//! Scenarios are read by `chappe-scenario`, results are `chappe-results`, and `chappe-figures` draws. Each system is a crate,
//! `crates/lab-<system>`; `docs/write-a-protocol.md` shows how to add one.
//!
//! **Architecture invariant:** this crate knows media and no system; a system's crate knows its protocol and no other system;
//! only the command knows all of them.

pub mod carry;
pub mod context;
pub mod demo;
pub mod job;
pub mod paper;
pub mod run;
pub mod seeds;
pub mod session;
pub mod system;
