//! Medium 1: a deterministic discrete-event radio simulator.
//!
//! It runs [`RadioNode`](chappe_core::RadioNode)s in a [`World`] of a [`Medium`], clocks and faults. Nodes do not know that
//! they are simulated. The same world, nodes and [`Seed`](chappe_core::Seed) give the same bytes of trace and capture and
//! the same [digest](Simulator::digest) on any machine.
//!
//! ```
//! use chappe_core::{Instant, Mode, RadioEvent, RadioNode, RadioRequest, Rate, Seed, Transmit, Wake};
//! use chappe_sim::{AirTime, Medium, Profile, Simulator, World, topology};
//!
//! /// Sends one frame at the start and counts what it hears.
//! struct Beacon { sent: bool, heard: u32 }
//!
//! impl RadioNode for Beacon {
//!     fn handle_radio(&mut self, _: Instant, event: RadioEvent<'_>) {
//!         self.heard += u32::from(matches!(event, RadioEvent::Received(_)));
//!     }
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
//! let medium = Medium::geometric(&topology::line(2, 20.0), &Profile::chappe_physical(), Seed(1))?;
//! let nodes = vec![Box::new(Beacon { sent: false, heard: 0 }), Box::new(Beacon { sent: true, heard: 0 })];
//! let mut simulator = Simulator::new(World::new(medium), nodes, Seed(1), ())?;
//! simulator.run_until(AirTime::from_millis(1));
//! assert_eq!((simulator.node(0).heard, simulator.node(1).heard), (0, 1));
//! # Ok::<(), chappe_sim::Error>(())
//! ```
//!
//! # The physics, in five sentences
//!
//! Powers are whole zeptowatts, so a signal that ends leaves a receiver's sum exactly, in any order. A link exists if its
//! mean power is no further below the noise than a stated floor; since that is the definition, culling other links is exact.
//! A receiver locks on to a preamble, accumulates the probability that bits survive each stretch of constant interference,
//! and compares it with one random draw at the end. Fades, receptions and faults are read from seeded streams *by
//! position* (which link, which block, which frame), so they do not depend on what else happens. Every loss has one
//! reason ([`Loss`]).
//!
//! # Order of events
//!
//! Events are ordered by (time, kind, node, count). At one instant frames end, then nodes act, then frames begin,
//! then faults strike.
//!
//! # Map
//!
//! | to | see |
//! |---|---|
//! | choose the physics | [`Profile`], [`PathLoss`], [`Fading`], [`Rule`], [`Capture`], [`Lock`] |
//! | place nodes, or give their links | [`topology`], [`mod@building`], [`Position`], [`Antennas`], [`Matrix`], [`LinkPowers`] |
//! | let nodes move | [`Medium::moving`], [`Motion`], [`RandomWaypoint`] |
//! | ask about links before a run | [`Medium`] |
//! | add clocks, faults, interferers and link loss | [`World`], [`Clock`], [`Fault`], [`Jammer`], [`LinkLoss`] |
//! | run | [`Simulator`] |
//! | read results | [`Counters`], [`Losses`], [`Recorder`], [`mod@capture`] |
//! | model 802.15.4 | [`Dot15d4`], [`Chip`], [`Oqpsk`], [`mod@synchronous`], [`mod@chips`] |
//!
//! Inside, from the top down: `simulator` takes events from the `queue` and hands them to `nodes`, `scenario` or `air`.
//! `air` joins the medium, the frames, the radios and the laws of `reception`, and books outcomes in the `ledger`.
//!
//! **Architecture invariant:** this crate knows no protocol and no MAC.

#![forbid(unsafe_code)]

mod air;
mod air_time;
mod antenna;
mod arrival;
mod bit_errors;
pub mod building;
pub mod capture;
pub mod chips;
mod clock;
mod counters;
mod cursor;
mod digest;
pub mod dot15d4;
mod duty;
mod engine;
mod error;
mod error_curve;
mod event;
mod fading;
mod fault;
mod forger;
mod frame;
mod given;
mod id;
mod joint;
mod ledger;
mod level;
mod link_loss;
mod links;
mod listener;
mod logarithm;
mod loss;
mod matrix;
mod medium;
mod motion;
mod moving;
mod nodes;
mod ofdm;
mod oqpsk;
mod part;
mod parts;
mod path_loss;
mod position;
mod power;
mod profile;
mod queue;
mod radio;
mod receiver;
mod reception;
mod recorder;
mod rules;
mod scenario;
mod simulator;
mod spread;
mod survival;
pub mod synchronous;
pub mod topology;
mod world;

pub use air_time::AirTime;
pub use antenna::{Antenna, Antennas};
pub use arrival::{Arrival, At};
pub use clock::Clock;
pub use counters::{Accounts, Counters, NodeCounters};
pub use dot15d4::{Chip, Dot15d4, Selectivity};
pub use error::Error;
pub use fading::Fading;
pub use fault::{Bursts, Fault, Forgery, Jammer, Place};
pub use given::{Inverse, LinkPowers};
pub use link_loss::{Gilbert, LinkLoss, LossLaw};
pub use links::Search;
pub use loss::{Loss, Losses};
pub use matrix::{LinkTrace, Matrix};
pub use medium::{LinkView, Medium, Powers};
pub use motion::{Motion, RandomWaypoint, Waypoint};
pub use oqpsk::Oqpsk;
pub use path_loss::{PathLoss, crossover};
pub use position::Position;
pub use power::Power;
pub use profile::{Capture, DSSS_REJECTION, Lock, Profile, Rule, Window};
pub use recorder::{
    Heard, Interference, Reader, Reading, Receivers, Recorder, Sent, Switched, Value,
};
pub use simulator::{Memory, Simulator};
pub use synchronous::Synchronous;
pub use world::World;
