//! The contracts that every protocol and every medium of Chappe agree on, with time, units, addresses and randomness.
//!
//! # A protocol is a value
//!
//! A protocol reads no clock, does no I/O and starts no thread. Its driver passes in received frames and the present
//! time. It takes out frames to send and the next deadline. The same value therefore runs in the simulator, in the
//! emulator, on a live link and in firmware, and a run can be repeated bit by bit.
//!
//! A complete protocol: the first packet that a node receives is broadcast once more, after a random pause of up to
//! 10 ms so that neighbours do not answer together.
//!
//! ```
//! use chappe_core::{
//!     Class, Classes, Duration, Instant, LinkEvent, LinkNode, LinkSend, Purpose, Seed, Stream, Wake,
//!     contract,
//! };
//!
//! struct Flood {
//!     random: Stream,
//!     packet: Option<u8>,
//!     /// When to repeat it; `None` before it arrives and after the pause.
//!     repeat_at: Option<Instant>,
//!     ready: bool,
//! }
//!
//! impl LinkNode for Flood {
//!     fn handle_link(&mut self, now: Instant, event: LinkEvent<'_>) {
//!         let LinkEvent::Received(arrival) = event else { return };
//!         // Frames come from outside: check before use.
//!         let (None, Some(&packet)) = (self.packet, arrival.sdu.first()) else { return };
//!         self.packet = Some(packet);
//!         self.repeat_at = Some(now + Duration::from_micros(self.random.below(10_000)));
//!     }
//!
//!     fn handle_timeout(&mut self, now: Instant) {
//!         self.ready |= self.repeat_at.take_if(|at| *at <= now).is_some();
//!     }
//!
//!     fn poll_timeout(&self) -> Option<Wake> {
//!         self.repeat_at.map(|at| Wake { at, why: "pause" })
//!     }
//!
//!     fn pending(&self) -> Classes {
//!         Classes::NONE.with_if(Class::Data, self.ready)
//!     }
//!
//!     fn poll_link(&mut self, _: Instant, allowed: Classes, sdu: &mut [u8]) -> Option<LinkSend> {
//!         if !self.ready || !allowed.contains(Class::Data) {
//!             return None;
//!         }
//!         self.ready = false;
//!         *sdu.first_mut()? = self.packet?;
//!         Some(LinkSend::broadcast(1, Class::Data))
//!     }
//! }
//!
//! // The contract, under 100 scripts of plausible and hostile input.
//! contract::check_link(100, |seed| Flood {
//!     random: Seed(seed).stream(Purpose::Node(0)),
//!     packet: None,
//!     repeat_at: None,
//!     ready: false,
//! });
//! ```
//!
//! # The three contracts
//!
//! | contract | sits on | its driver is |
//! |---|---|---|
//! | [`RadioNode`] | a radio: frames at exact instants | the simulator, the emulator, firmware |
//! | [`LinkNode`] | a MAC, or a network card that contains one | [`OverMac`], the live medium |
//! | [`HostNode`] | an IP layer | a link layer that carries packets |
//!
//! The rule for every driver: **after each `handle_*` call, drain `poll_*` until it returns `None`, then read
//! `poll_timeout`.** Calling `handle_timeout` early changes nothing. Time never goes back.
//! [`contract::check_radio`], [`contract::check_link`] and [`contract::check_host`] test these rules on any node.
//!
//! # The map
//!
//! | what | where |
//! |---|---|
//! | contracts and what passes through them | [`RadioNode`], [`LinkNode`], [`HostNode`], [`Mac`] |
//! | abilities of a medium, and what a protocol lacks there | [`Caps`], [`Missing`] |
//! | time and units | [`Instant`], [`Duration`], [`Dbm`], [`Db`], [`Bitrate`] |
//! | modulations and airtime | [`Rate`], [`Mode`] |
//! | seeded random streams | [`Seed`], [`Purpose`], [`Stream`] |
//! | trace events, reasons for drops and their counters | [`TraceEvent`], [`DropReason`], [`Drops`] |
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
pub use units::{Bitrate, Db, Dbm, MilliWatt, Ppm, SPEED_OF_LIGHT};
