//! What every part of Chappe agrees on: time, units, addresses, randomness, and the contracts of a node.
//!
//! A protocol is a value. It reads no clock, does no I/O and starts no thread: time and frames go in,
//! frames, events and the next deadline come out. Three contracts have one shape:
//!
//! | contract | sits on | its driver is |
//! |---|---|---|
//! | [`RadioNode`] | a radio: frames at exact instants | the simulator, the emulator, firmware |
//! | [`LinkNode`] | a MAC, or a network card that is one | [`OverMac`], the live medium |
//! | [`HostNode`] | an IP layer | a link layer that carries packets |
//!
//! The rule for every driver: **after each `handle_*` call, drain `poll_*` until it returns `None`, then
//! read `poll_timeout`.** Calling `handle_timeout` early changes nothing. Time never goes back.
//! [`contract::check_radio`] and its siblings test these rules on any node.
//!
//! ```
//! use chappe_core::{Duration, Instant, Mode, Purpose, Rate, Seed};
//!
//! // 1500 bytes of payload, 8 of LLC and 28 of 802.11 header and FCS at 2 Mbit/s, long preamble.
//! let airtime = Mode::long(Rate::Dsss2).airtime(1500 + 8 + 28);
//! assert_eq!(airtime, Duration::from_micros(6336));
//! assert_eq!(Instant::ZERO + airtime, Instant::from_micros(6336));
//!
//! // Streams of one seed are independent and can be read at any position.
//! let fading = Seed(1).stream(Purpose::Fading);
//! assert_eq!(fading.at(7), Seed(1).stream(Purpose::Fading).at(7));
//! assert_ne!(fading.at(7), Seed(1).stream(Purpose::Shadowing).at(7));
//! ```
//!
//! **Architecture invariant:** nothing here allocates, reads a clock, or knows a protocol or a medium.

#![no_std]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic
    )
)]

mod address;
mod caps;
pub mod contract;
mod host;
mod link;
mod mac;
mod phy;
mod radio;
mod random;
mod time;
mod trace;
mod units;

pub use address::Address;
pub use caps::{Caps, Missing};
pub use host::HostNode;
pub use link::{Arrival, Class, Classes, Expect, LinkEvent, LinkNode, LinkSend, Outcome};
pub use mac::{Mac, OverMac};
pub use phy::{Mode, Preamble, Rate};
pub use radio::{
    Burst, Channel, Failure, Head, RadioEvent, RadioNode, RadioRequest, Reception, Transmit, Wake,
};
pub use random::{Purpose, Seed, Stream};
pub use time::{Duration, Instant};
pub use trace::{DropReason, Drops, Layer, TraceEvent, TraceRing};
pub use units::{Bitrate, Db, Dbm, MilliWatt, Ppm};
