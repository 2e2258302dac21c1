//! DPCLO: a mesh that decides by queue differences which packet goes where, and when, and how fast sources send.
//!
//! A. Warrier, L. Le, I. Rhee, "Cross-Layer Optimization Made Practical" (2007). Comments like `//= dpclo IV-D` name its
//! sections.
//!
//! Backpressure with a leash:
//!
//! 1. **A queue for each destination.** Every packet tells how many more wait behind it; neighbours overhear that.
//! 2. **Prices** ([`price`]). A packet goes where `(own queue - the neighbour's) / ETX` is largest, and nowhere while that is not
//!    above 0. The decision falls when the link takes the frame, from what is known then. The price also chooses the class
//!    in which the MAC competes.
//! 3. **The K best routes.** DSDV with ETX keeps every neighbour's route; K grows while the next hops in use are full, and
//!    shrinks while they are empty.
//! 4. **Rates from queues** ([`rate`]). A source looks at its own queue: unchanged, it tries more; else it follows the growth.
//!
//! | [`Settings`] | what it is |
//! |---|---|
//! | [`Settings::paper`] | DPCLO |
//! | [`Settings::improved`] | our variant: see [`Extras`], each part switchable by itself |
//! | [`Settings::shortest_path`] | the best route and one queue: what carries plain datagrams or TCP |
//! | [`Settings::fusion`] | the same with Fusion's flow control ([`baseline`]) |
//! | [`Settings::dclo`] | DCLO: pairs in rounds ([`baseline::matching`]) |
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
//! };
//! let node = |me: u16| {
//!     let random = Seed(1).stream(Purpose::Node(me.into()));
//!     Router::new(Settings::paper(), me, 0, &caps, Instant::ZERO, random)
//! };
//! let (mut here, mut there) = (node(0)?, node(1)?);
//!
//! // The world's simplest link: one frame each millisecond and direction, and none is lost.
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
//! # Where the paper is silent, or lost in print
//!
//! | question | our answer | where |
//! |---|---|---|
//! | "stops forwarding when its queue is larger" | reversed: eq. 7 and the evaluation need the neighbour's to be larger | [`price`] |
//! | sign of the rate update | minus: the rate becomes what the queue was served with; [`QueueLaw::plus`] for the other | [`rate`] |
//! | K <= beta N with beta = 0.1 | rounded up and at least 2; [`KMax::Literal`] for the sentence as it reads | [`KMax`] |
//! | queue limit, low watermark | 10 and 3 packets; 7 for the high one can be read | [`Queues`], [`NextHops`] |
//! | thresholds of the priorities | half and a fifth of the queue limit | [`Priorities`] |
//! | periods and intervals | De Couto's for probes, ns-2's for DSDV, ours for the rest | [`Settings`] |
//! | which queue length a packet tells | that of its destination, without itself | [`header`] |
//! | what a silent neighbour told | holds for three seconds, then the queue counts as empty; probes tell the 8 longest | [`Queues`] |
//! | an ETX that is not known yet | three probes each way are needed; the first full window is not damped | `links.rs` |
//! | loops | poisoned reverse for two nodes, the hop limit for the rest | `routes.rs` |
//! | a packet that the link gave up | goes first again; the second time it is lost; the link's ETX grows | `router/send.rs` |
//! | a packet that comes round again | a detour if its hop limit is smaller, else a copy | `seen.rs` |
//! | a full queue | drops what a neighbour sends, refuses what the application offers | `router/send.rs` |
//! | equal prices | the packet that came first | `router/schedule.rs` |
//! | DCLO's rounds, rates and limits | 100 ms, the fastest clock leads; `1000 / queue` packets a second; 50 packets | [`Settings::dclo`] |
//! | Fusion's tokens get lost with packets | one a second comes without listening | [`TurnLaw`] |
//! | a node that starts over | passes the sequence number that others remember of it; flows carry an epoch | `router/receive.rs` |
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

pub mod baseline;
mod config;
mod counters;
pub mod header;
mod links;
pub mod price;
pub mod rate;
mod router;
mod routes;
mod seen;
mod store;

pub use config::{
    ConfigError, Drain, Extras, Fusion, KMax, Matching, NEXT_HOPS_MAX, NextHops, Pins, PriceLaw,
    Priorities, Probes, QueueLaw, Queues, RateLaw, Reports, Room, Routing, Scheme, Settings,
    TurnLaw,
};
pub use counters::{Counters, Losses};
pub use router::{Delivery, Refused, Router};
