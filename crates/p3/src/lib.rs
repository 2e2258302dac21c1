//! P³, a packet pipeline that keeps an 802.15.4 radio busy from end to end.
//!
//! Source: M. Doddavenkatappa and M. C. Chan, "P³: A Practical Packet Pipeline Using Synchronous
//! Transmissions for Wireless Sensor Networks", IPSN 2014. A source sends one packet per cycle. Relays stand in
//! stages between source and destination, and each stage has two groups: one receives while the other sends,
//! so that the source sends without pause. All relays of a group send the same bits at the same instant.
//!
//! One transfer, in the order of the files:
//!
//! 1. The [`planner`] finds node-distinct paths of one length; a [`Plan`] makes stages and groups of them.
//! 2. The [`Destination`] (the gateway) floods the plan (`flood.rs`). Every node that hears it repeats it.
//! 3. The [`Source`] sends one packet per cycle. Each [`Relay`] repeats the frames for its stage and group, one
//!    turnaround after the end of the frame that it heard. Relays have no other clock.
//! 4. After the last packet of a round a CTRL frame turns the pipeline around, and a NACK comes back through it with
//!    the missing packets. The next round sends these, and the next segment of a long object.
//!
//! | cycle | 0 | 1 | 2 | 3 |
//! |---|---|---|---|---|
//! | source, on c1 | sends 0 | sends 1 | sends 2 | sends 3 |
//! | stage 1, group 0 | hears 0 on c1 | sends 0 on c2 | hears 2 | sends 2 |
//! | stage 1, group 1 | | hears 1 on c1 | sends 1 on c2 | hears 3 |
//! | destination, on c2 | | hears 0 | hears 1 | hears 2 |
//!
//! The [`baseline`] PIP runs on the same machines with one path and one group: a packet every second cycle.
//!
//! ```
//! use chappe_core::{Caps, Duration, Instant, Purpose, Seed};
//! use chappe_p3::planner::{LinkGraph, largest_path_set};
//! use chappe_p3::{ChannelOrder, Config, Destination, Lent, Plan, Profile, Wanted};
//!
//! // Source 5, destination 0, and two paths of two hops: over node 1, and over node 2.
//! let graph = LinkGraph::from_edges(6, &[(5, 1), (5, 2), (1, 0), (2, 0)]);
//! let found = largest_path_set(&graph, 5, 0, 2, 1_000);
//! let mut random = Seed(1).stream(Purpose::Topology);
//! let channels = ChannelOrder::random(&mut random);
//! let wanted = Wanted { transfer: 1, payload: 118, source: 5, destination: 0, channels };
//! let profile = Profile::PAPER;
//! let plan = Plan::from_paths(wanted, &profile, &found.paths, &mut random, 0.8, |_relay| 0.95)?;
//! assert_eq!(plan.cycle(), Duration::from_micros(4537));
//!
//! let radio = Caps {
//!     frame_max: 125,
//!     schedules: true,
//!     start_error: Duration::from_nanos(250),
//!     reports_power: false,
//!     overhears: true,
//!     confirms_broadcast: true,
//!     hastens: false,
//! };
//! let mut memory = [0; 2 * 118];
//! let mut gateway = Destination::new(Config::default(), &radio, 0, Lent::new(&mut memory))?;
//! gateway.start(plan, None, Instant::ZERO)?;
//! assert_eq!(gateway.state(), "waking");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Modules
//!
//! | module | holds |
//! |---|---|
//! | `source`, `relay`, `destination` | the three roles, as `chappe_core::RadioNode`s |
//! | `flood`, `ear` | the wake-up flood; when the receiver is on |
//! | `round`, `recovery`, [`groups`] | the source's rounds; what each variant sends again; two groups or one |
//! | `nack`, `stored`, `tail` | the destination's answer, its packets, and what it solves for |
//! | [`plan`], [`part`], `channels` | who takes part, where, and on which channels |
//! | [`header`], `frame`, `seal`, `blocks`, `cipher` | frames, their layout in each variant, authentication |
//! | `repair`, `window`, `checkpoint`, `object` | combinations; sets of packets; restarts; where octets come from and go |
//! | [`config`], [`timing`], `sizes` | every parameter with its source; airtime and cycle; octets of frames |
//! | `tally` | what nodes heard of an attempt that failed |
//! | [`survey`] | the nodes measure their links, and the gateway collects what they heard |
//! | `planner`, [`baseline`] | paths, measurement and predictions at the gateway; PIP |
//!
//! The paper's protocol and the improved one share the machines. Where they differ, each has its own type behind a
//! small enum: [`Variant`], [`Part`], the terms of a [`Plan`], `Frames`, `Recovery` (the source's) and `Tail` (the
//! destination's).
//!
//! # Where the paper is silent
//!
//! | question | our answer | where |
//! |---|---|---|
//! | channel of the source while it waits for a NACK | the one that c1, c2 and c3 leave over | [`plan`] |
//! | length of CTRL and NACK | that of DATA (a shorter CTRL would overtake it); NACK longer if it must | [`header`] |
//! | how the destination learns the length | CTRL carries it | [`header`] |
//! | which group takes a retransmission | the n-th frame of a round goes to group n mod 2 | `source.rs` |
//! | cost of a turn of the pipeline beside its frames | the pauses of Splash's public code, on which P³ is built | [`Profile`] |
//! | how long a node waits in silence | 2 s and the time of one segment | [`Config::idle`] |
//! | a relay in the last slot of the flood | does not repeat it: data is about to start | `flood.rs` |
//! | relays after the last NACK | stay while the source may repeat its CTRL ([`Config::linger`]) | `relay.rs` |
//! | a relay that turned around and missed the NACK | goes forward with the next DATA that it hears | `relay.rs` |
//! | when to use all relays as one group | by the measured shares of both, round by round | `groups.rs` |
//! | objects beyond one NACK's bits | a window of packets; missing ones join the next segment | `window.rs` |
//! | a source that makes no progress | gives up after [`Config::fruitless_rounds`] | `source.rs` |
//!
//! # The improved variant
//!
//! [`Config::improved`] and a plan of [`planner::pipeline`] select it:
//!
//! | paper | here | where |
//! |---|---|---|
//! | a NACK names packets, which are sent again | combinations of the packets, as many as are missing | `repair.rs` |
//! | two groups; a turnaround between packets | up to three; the source never turns around | [`Profile::source_gap`] |
//! | random groups and channels | those with the highest predicted delivery | [`planner::pipeline`] |
//! | seven octets of header | three: transfer and hop follow from channel and nonce | [`header`] |
//! | pauses of 19 and 29 ms at a turn | one turnaround: a radio changes its channel within it | [`Profile::IMPROVED`] |
//! | no authentication | a tag of four octets in each frame, or 25 of them in each CTRL | `seal.rs`, `blocks.rs` |
//!
//! A tag in each frame costs 3.3 % of the payload, 118 octets of 122. [`Tagging`] says which, and `blocks.rs` what forgers gain.
//!
//! **Architecture invariant:** only [`planner`] allocates; a node's memory is fixed when it is created.

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

#[cfg(feature = "planner")]
extern crate alloc;

pub mod baseline;
mod blocks;
mod channels;
mod checkpoint;
mod cipher;
pub mod config;
mod destination;
mod ear;
mod flood;
mod frame;
mod gateway;
pub mod groups;
pub mod header;
mod nack;
mod object;
mod outbox;
pub mod part;
pub mod plan;
#[cfg(feature = "planner")]
#[allow(
    clippy::indexing_slicing,
    reason = "indices are the planner's own: nodes and stages that it has checked"
)]
pub mod planner;
mod recovery;
mod relay;
mod repair;
mod round;
mod seal;
mod sizes;
mod source;
mod stored;
pub mod survey;
mod tail;
mod tally;
pub mod timing;
mod window;

pub use channels::ChannelOrder;
pub use checkpoint::Checkpoint;
pub use cipher::Aes;
pub use config::{Config, ConfigError, Improved, Tagging, Variant};
pub use destination::{Destination, Progress, StartError};
pub use flood::{plan_airtime, setup_time};
pub use gateway::{ATTEMPTS_MAX, Gateway, Memory, Planner, Trial};
pub use object::{Lent, Object, Store};
pub use part::{ImprovedPart, PaperPart, Part, Place};
pub use plan::{Plan, PlanError, Stages, Wanted};
pub use relay::Relay;
pub use repair::UNKNOWN_MAX;
pub use seal::Key;
pub use sizes::{SUMS_MAX, TAG_LEN};
pub use source::{Counts, Ended, Source};
pub use tally::{Tally, Told};
pub use timing::Profile;
pub use window::WINDOW;
