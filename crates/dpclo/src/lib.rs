//! DPCLO: backpressure routing, scheduling and rate adaptation for a wireless mesh.
//!
//! Queue differences between neighbours decide which packet is sent to which next hop, when, and how fast sources send.
//! After A. Warrier, L. Le, I. Rhee, "Cross-Layer Optimization Made Practical" (2007). Comments like `//= dpclo IV-D` cite
//! its sections.
//!
//! ```
//! use chappe_core::{Address, Arrival, Caps, Classes, Duration, Instant, LinkEvent, LinkNode, Outcome, Purpose, Seed};
//! use chappe_dpclo::{Router, Settings};
//!
//! let caps = Caps {
//!     frame_max: 2296,
//!     schedules: false,
//!     start_error: Duration::ZERO,
//!     reports_power: false,
//!     overhears: true,
//!     confirms_broadcast: true,
//!     hastens: false,
//! };
//! let node = |me: u16| {
//!     let random = Seed(1).stream(Purpose::Node(me.into()));
//!     Router::new(Settings::paper(), me, 0, &caps, Instant::ZERO, random)
//! };
//! let (mut here, mut there) = (node(0)?, node(1)?);
//!
//! // The simplest link: one frame each millisecond and direction, without loss.
//! let (mut sdu, mut buffer) = ([0; 2296], [0; 100]);
//! let mut received = None;
//! for ms in 0..10_000 {
//!     let now = Instant::from_millis(ms);
//!     if ms == 9_000 {
//!         here.offer(now, 1, 0, b"over the mesh").unwrap();
//!     }
//!     let mut carry = |from: &mut Router, to: &mut Router| {
//!         from.handle_timeout(now);
//!         let Some(send) = from.poll_link(now, Classes::ALL, &mut sdu) else { return };
//!         let sdu = &sdu[..send.len];
//!         let arrival = Arrival { from: Address::node(from.number()), to: send.to, sdu, power: None };
//!         to.handle_link(now, LinkEvent::Received(arrival));
//!         let outcome = Outcome::Acknowledged { attempts: 1 };
//!         from.handle_link(now, LinkEvent::Sent { token: send.token, outcome });
//!     };
//!     carry(&mut here, &mut there);
//!     carry(&mut there, &mut here);
//!     received = there.poll_delivery(&mut buffer).or(received);
//! }
//! let delivery = received.unwrap();
//! assert_eq!(&buffer[..delivery.len], b"over the mesh");
//! # Ok::<(), chappe_dpclo::ConfigError>(())
//! ```
//!
//! # How it works
//!
//! 1. **A queue for each destination.** Every data frame carries the number of packets that wait behind it; neighbours
//!    overhear that.
//! 2. **Prices** ([`price`]). A packet is sent where `(own queue - the neighbour's) / ETX` is largest, and not at all while
//!    that is not above 0. The router decides when the link takes the frame, from what it knows then. The price also sets
//!    the class in which the MAC competes.
//! 3. **The K best routes.** DSDV with ETX keeps every neighbour's route. K grows while the next hops in use are full and
//!    shrinks while they are empty.
//! 4. **Rates from queues** ([`rate`]). A source observes its own queue: if it has not changed the rate grows, otherwise the
//!    rate follows the queue's growth.
//!
//! # Settings
//!
//! | [`Settings`] | what it is |
//! |---|---|
//! | [`Settings::paper`] | DPCLO |
//! | [`Settings::improved`] | the improved variant: see [`Extras`] |
//! | [`Settings::shortest_path`] | the best route and one queue: plain forwarding for datagrams or TCP |
//! | [`Settings::fusion`] | plain forwarding with Fusion's flow control ([`baseline`]) |
//! | [`Settings::dclo`] | DCLO: pairs in rounds ([`baseline::matching`]) |
//!
//! The improved variant is not a separate protocol: it is the paper's router with every field of [`Extras`] but LIFO set.
//! The router never asks which variant it is. Each extension is one field, read where it takes effect: one place for the
//! bias, the age, the credits and the reports; two for smoothing, pins, resequencing and counting sent packets (where
//! state is updated and where it is used); four for LIFO. Nodes with different extensions understand each other's frames.
//!
//! # The map
//!
//! | file | holds |
//! |---|---|
//! | `router.rs`, `router/` | a node: `receive`, `report`, `request` (of sequence numbers), `schedule` (which packet where), `send` (frames, queues), `timers` |
//! | `links.rs` | ETX from probes and from the attempts of data frames |
//! | `routes.rs`, `distance.rs` | DSDV and the K next hops; the condition that keeps them free of loops |
//! | [`price`], [`rate`] | pure computations: prices, classes, K; the source's rate |
//! | `airtime.rs` | the price of airtime, of which the improved variant makes rates |
//! | `store.rs`, `seen.rs` | packets and lists of them; duplicates and flows |
//! | [`baseline`] | Fusion's bits and tokens; DCLO's rounds and pairs |
//! | [`header`], `config.rs`, `counters.rs` | frames; parameters with their sources; counters |
//!
//! # Where the paper is silent, or lost in print
//!
//! | question | our answer | where |
//! |---|---|---|
//! | "stops forwarding when its queue is larger" | reversed: eq. 7 and the evaluation need the neighbour's to be larger | [`price`] |
//! | sign of the rate update | minus: the rate becomes the service rate of the queue; [`QueueLaw::plus`] for the other | [`rate`] |
//! | K <= beta N with beta = 0.1 | rounded up and at least 2; [`KMax::Literal`] for the literal reading | [`KMax`] |
//! | queue limit, low watermark | 10 and 3 packets; 7 for the high one can be read | [`Queues`], [`NextHops`] |
//! | thresholds of the priorities | half and a fifth of the queue limit | [`Priorities`] |
//! | periods and intervals | De Couto's for probes, ns-2's for DSDV, ours for the rest | [`Settings`] |
//! | which queue length a packet carries | that of its destination, without itself | [`header`] |
//! | a silent neighbour's queue lengths | valid for three seconds (half a second in the improved variant), then the queue counts as empty; probes carry the 8 longest | [`Queues`] |
//! | an unknown ETX | three probes each way are needed; the first full window is not damped | `links.rs` |
//! | loops | Babel's feasibility condition for the best next hop, in the improved variant for all; the hop limit for the rest | `distance.rs`, `routes.rs` |
//! | MAC retry limit reached | the packet is queued again at the head once, then dropped; the link's ETX grows | `router/send.rs` |
//! | a packet that returns to a node | a detour if its hop limit is smaller, otherwise a copy | `seen.rs` |
//! | a full queue | drops packets of neighbours, refuses packets of the application | `router/send.rs` |
//! | equal prices | the packet that came first | `router/schedule.rs` |
//! | DCLO's rounds, rates and limits | 100 ms, nodes follow the fastest clock; `1000 / queue` packets a second; 50 packets | [`Settings::dclo`] |
//! | Fusion's tokens get lost with packets | one a second comes without overhearing | [`OverhearLaw`] |
//! | a node that restarts | exceeds the sequence number that others remember of it; flows carry an epoch | `router/receive.rs` |
//!
//! **Architecture invariant:** nothing here reads a clock or knows the medium, the MAC, or that it is measured.
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

mod airtime;
pub mod baseline;
mod config;
mod counters;
mod distance;
pub mod header;
mod links;
pub mod price;
pub mod rate;
mod router;
mod routes;
mod seen;
mod shunned;
mod store;

pub use config::{
    AirtimeLaw, Attempts, ConfigError, Drain, Extras, FirstProbes, Fusion, KMax, Matching,
    NEXT_HOPS_MAX, NextHops, OverhearLaw, Pace, Pins, PriceLaw, Priorities, Probes, QueueLaw,
    Queues, RateLaw, Reports, Room, Routing, Scheme, Settings,
};
pub use counters::{Counters, Losses};
pub use router::{Delivery, Refused, Router};
pub use routes::Way;
