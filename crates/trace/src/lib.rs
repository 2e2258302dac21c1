//! A run's events, so that "why was this frame lost" has an answer: which frames were sent, what became of each at every
//! receiver in reach, which frame destroyed it and at what ratio of signal to interference, when radios slept, and what
//! nodes held.
//!
//! [`Recording`] is a [`Recorder`](chappe_sim::Recorder) for any run of the simulator. It stores a few words for each event
//! in rings of bounded size and draws no conclusion while the run lasts. [`Recording::finish`] works out the culprits
//! and returns a [`Trace`]: tables of plain rows. `chappe-store` writes them as Parquet, `chappe view` shows them.
//!
//! Jammers, foreign networks and bursts of energy have rows among the frames, so that a loss by one of them has a culprit.
//!
//! **Limits.** Frames that a receiver could not have received (too weak, or while it slept) are not kept unless asked for: they are most of all.
//! They still count in a ratio, by their power at the moment when the outcome was known, and where they alone destroyed a frame their
//! powers are worked out again from the run's seed.

mod event;
mod label;
mod recording;
mod resolve;
mod ring;
mod rows;
mod tables;
mod unheard;

pub use label::{Label, Labeller, carried, standard};
pub use recording::{RECEPTIONS, Recording};
pub use rows::{About, Frame, Link, NO_FRAME, NodeReading, Reception, Switch, Trace};
pub use tables::{Column, Data, NONE, TABLES, Table, Tables};
