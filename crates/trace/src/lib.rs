//! A run's events, so that "why was this frame lost" has an answer: which frames were sent, what became of each at every
//! receiver in reach, which frame destroyed it and at what ratio of signal to interference, when radios slept, and what
//! nodes held.
//!
//! [`Recording`] is a [`Recorder`](chappe_sim::Recorder) for any run of the simulator. It stores a few words for each event
//! in rings of bounded size and draws no conclusion while the run lasts. [`Recording::finish`] works out the culprits
//! and returns a [`Trace`]: tables of plain rows. `chappe-store` writes them as Parquet, `chappe view` shows them.
//!
//! ```
//! use chappe_core::{Instant, Mode, RadioEvent, RadioNode, RadioRequest, Rate, Seed, Transmit, Wake};
//! use chappe_sim::{AirTime, Matrix, Medium, Simulator, World};
//! use chappe_trace::{RECEPTIONS, Recording, standard};
//!
//! /// Sends one frame at the start.
//! struct Beacon { sent: bool }
//!
//! impl RadioNode for Beacon {
//!     fn handle_radio(&mut self, _: Instant, _: RadioEvent<'_>) {}
//!     fn poll_radio(&mut self, now: Instant, psdu: &mut [u8]) -> Option<RadioRequest> {
//!         if std::mem::replace(&mut self.sent, true) { return None; }
//!         psdu[..5].copy_from_slice(b"hello");
//!         let mode = Mode::long(Rate::Dsss2);
//!         Some(RadioRequest::Transmit(Transmit { at: now, len: 5, mode, power: None }))
//!     }
//!     fn handle_timeout(&mut self, _: Instant) {}
//!     fn poll_timeout(&self) -> Option<Wake> { None }
//! }
//!
//! // Nodes 0 and 2 begin together; node 1, which hears both, receives neither.
//! let medium = Medium::matrix(&Matrix::silent(3).with_link(0, 1, 1.0).with_link(1, 2, 1.0))?;
//! let nodes = [false, true, false].map(|sent| Box::new(Beacon { sent })).into();
//! let recording = Recording::new(&medium, RECEPTIONS, standard);
//! let mut simulator = Simulator::new(World::new(medium.clone()), nodes, Seed(1), recording)?;
//! simulator.run_until(AirTime::from_millis(1));
//! let trace = simulator.into_parts().1.finish(&medium, |_| {});
//! let lost = trace.receptions.iter().filter(|at| at.node == 1 && at.outcome.is_err());
//! for reception in lost {
//!     let culprit = &trace.frames[reception.culprit as usize];
//!     assert_eq!(culprit.node, 2 - reception.from);
//! }
//! assert_eq!(trace.frames.len(), 2);
//! # Ok::<(), chappe_sim::Error>(())
//! ```
//!
//! Jammers, foreign networks and bursts of energy have rows among the frames, so that a loss by one of them has a culprit.
//!
//! **Limits.** Frames that a receiver could not have received (too weak, or while it slept) are not kept unless asked for: they are most of all.
//! They still count in a ratio, by their power at the moment when the outcome was known, and where they alone destroyed a frame their
//! powers are worked out again from the run's seed.

mod bursts;
mod decibels;
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
pub use tables::{Column, Data, NO_SHORT, NONE, TABLES, Table, Tables, Values};
