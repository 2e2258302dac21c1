//! WiLDNet: reliable transport over radio links of tens of kilometres that lose many frames.
//!
//! R. Patra, S. Nedevschi, S. Surana, A. Sheth, L. Subramanian, E. Brewer, "WiLDNet: Design and Implementation of High
//! Performance WiFi Based Long Distance Networks" (NSDI 2007). Comments like `//= wildnet 3.1` name its sections.
//!
//! Three ideas, each usable without the others:
//!
//! 1. **Slots without markers** ([`Site`], [`Radio`]). Both ends send in turns. Every frame carries its time since the start
//!    of the sender's turn, so any one of them tells the other end when its own turn begins.
//! 2. **Bulk acknowledgements** ([`Link`]). Each frame reports what its sender has received, so one frame shows all losses of
//!    a slot.
//! 3. **Redundancy from the measured loss** ([`policy`]). The paper chooses between retransmission and a block code by hand.
//!    [`Recovery::Improved`] computes the cheapest mixture that meets a deadline and a residual loss.
//!
//! | type | what it is | driven by |
//! |---|---|---|
//! | [`Link`] | recovery of one link at one end | any owner: frames in, frames out |
//! | [`Node`] | a link on a MAC or a card | [`LinkNode`](chappe_core::LinkNode): `mac`, `live` |
//! | [`Radio`] | a link in slots on its own radio | [`RadioNode`](chappe_core::RadioNode): `sim` |
//! | [`Site`] | the common slots of several radios | its radios |
//!
//! ```
//! use chappe_core::Instant;
//! use chappe_wildnet::{Config, Link, Opportunity};
//!
//! let (mut here, mut there) = (Link::new(Config::tunnel(1400), 1)?, Link::new(Config::tunnel(1400), 2)?);
//! let (now, mut frame, mut packet) = (Instant::ZERO, [0; 1400], [0; 1400]);
//! assert!(here.offer(now, 0, 0, b"a packet"));
//! let len = here.poll(now, Opportunity::ALWAYS, &mut frame).unwrap();
//! there.handle(now, &frame[..len]).unwrap();
//! let delivery = there.deliver(&mut packet).unwrap();
//! assert_eq!(&packet[..delivery.len], b"a packet");
//! # Ok::<(), chappe_wildnet::ConfigError>(())
//! ```
//!
//! | module | what |
//! |---|---|
//! | `link`, `node` | one end of a link, alone and on a MAC |
//! | `paths` | what exists once for each path to the peer |
//! | `sender` | the sending half: queues, send window, loss detection, repairs |
//! | `receiver`, `decoder`, `fragments` | the receiving half, the equations of its repairs, and packets that come in parts |
//! | [`header`], `body` | frame format |
//! | `site`, `radio` | slots |
//! | [`policy`], [`gilbert`], `estimate` | the controller, its channel model, and the loss estimate it starts from |
//! | [`targets`] | slots and promises from what an application needs |
//! | `config`, `counters` | settings with their sources, counters |
//! | [`baseline`] | 2P, static codes, Snoop |
//!
//! # Where the paper is silent
//!
//! | question | our answer | where |
//! |---|---|---|
//! | frame layout | frame numbers beside packet numbers; totals in acknowledgements | [`header`] |
//! | which loss counts | of frames of all kinds, by the receiver's own count | `estimate.rs` |
//! | a changed channel | two slots that do not fit the mean discard older ones | `estimate.rs` |
//! | weights of the ten slots | by frames | `estimate.rs` |
//! | from estimate to N - K | p / (1 - p), or the exact binomial sum | [`Redundancy`] |
//! | block and slot | a block ends with its slot, or when nothing more waits | `sender/repairs.rs` |
//! | a given-up packet | the base in every frame passes it | [`header`] |
//! | order of several flows | a number in each flow; order by link, by flow, or none | [`Order`] |
//! | no acknowledgement in a cycle | new packets, then the oldest of earlier slots again | `sender/loss.rs` |
//! | window | 256 bodies in slots | [`Config::slots`] |
//! | who begins | each at random times until one hears the other | `site.rs` |
//! | one of several links of a node is silent | the schedule ignores it, and its radio sometimes only listens | `site.rs`, `radio.rs` |
//! | odd cycles of links | not supported: nodes must be two-colourable | - |
//! | end of a slot | the slot's length in every frame | [`header`] |
//!
//! **Architecture invariant:** nothing here reads a clock or knows the medium or the experiment.
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

extern crate alloc;

pub mod baseline;
mod body;
mod config;
mod counters;
mod decoder;
mod estimate;
mod fragments;
pub mod gilbert;
pub mod header;
mod link;
mod memory;
mod node;
mod paths;
pub mod policy;
mod radio;
mod receiver;
mod sender;
mod shared;
mod site;
mod store;
pub mod targets;

pub use config::{Config, ConfigError, FLOWS, Order, Recovery, Redundancy, SERVICES, Service};
pub use counters::Counters;
pub use estimate::{Estimate, Totals};
pub use link::{Heard, Link, Opportunity, Report};
pub use memory::Memory;
pub use node::Node;
pub use paths::PATHS;
pub use radio::{Radio, SlotCounters};
pub use receiver::Delivery;
pub use sender::Role;
pub use site::{Site, SlotConfig, Turn, Turns};
