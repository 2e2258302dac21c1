//! Medium 3: drives a link node on real network interfaces.
//!
//! The network card is the MAC. [`Live`] owns a [`LinkNode`](chappe_core::LinkNode). It polls the node for a frame when
//! pace and socket can take one, and delivers the frames that arrive. One thread waits for sockets, timers and signals.
//!
//! - **Broadcasts** are UDP datagrams to the subnet or a multicast group, or Ethernet frames of a separate EtherType.
//!   The driver reports them as `Outcome::Unconfirmed` when the kernel has taken them. They are on the air later, so
//!   [`Port::caps`] says `confirms_broadcast: false`.
//! - **Unicasts** go to where the neighbour was last heard, or to all nodes if it never was. UDP confirms nothing and
//!   the card's acknowledgements are not visible. So the neighbour's driver answers each unicast with a sealed
//!   confirmation, and the sender repeats unconfirmed frames ([`Retries`]). `Outcome::Acknowledged` means that the
//!   neighbour's driver delivered the frame to its node once. `Failed` means that no confirmation came; the node may
//!   have received the frame even so.
//! - **Sealing.** Every frame is encrypted, authenticated and accepted once. There is no mode without it. Each member of a group
//!   has a key pair ([`Membership`]). Neighbours agree on the keys of a session by a Noise handshake, and give each other the keys
//!   of their broadcasts under it. Both kinds are renewed every two minutes and when the list of members changes; recordings gain
//!   nothing, and later theft of a secret key opens no recording. Frames from outside the group cost a little computation and
//!   no memory.
//! - **Hellos** carry the measured delivery ratios, with a proof for each neighbour. [`Statistics::neighbours`] has the ratio of
//!   each link, measured over all broadcasts.
//! - **Notices.** Nodes with an older list of members get the newer one ([`Statistics::notice`]).
//! - **[`Pace`]** replaces the card's back-pressure, which a UDP socket does not have. A rate is a ceiling: below it
//!   the rate follows what neighbours tell of delays, losses and their own receive queues.
//! - **Classes** become priorities: traffic class, SO_PRIORITY, and so the 802.11 access category.
//!
//! ```no_run
//! use std::ops::ControlFlow;
//! use chappe_core::{Address, Bitrate, LinkNode};
//! use chappe_live::{Carrier, Config, Live, Membership, Pace, Port};
//!
//! # fn example(membership: Membership, make_node: fn(usize) -> Box<dyn LinkNode>) -> chappe_live::Result<()> {
//! let port = Port::open("mesh0", Address::node(1), Carrier::UDP)?;
//! let node = make_node(port.caps().frame_max);
//! let config = Config::new(Pace::Rate(Bitrate(5_000_000)), membership);
//! let mut live = Live::new(config, port, node)?;
//! let ending = live.run(|_node, _now, _statistics| ControlFlow::Continue(()))?;
//! println!("{ending:?}: {:?}", live.statistics());
//! # Ok(())
//! # }
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `driver`, `config` | [`Live`]: the loop over node, sockets, timers and signals; [`Config`] |
//! | `presence` | the node's time, which stops while the process stands still |
//! | `port` | [`Port`]: an interface and its socket |
//! | `membership` | who belongs to the group; the node's own keys |
//! | `frame`, `seal` | the frame format; sealing and the replay window |
//! | `hello`, `neighbours` | link measurements; the neighbour table |
//! | `handshake`, `sessions`, `exchange` | the keys of sessions and broadcasts |
//! | `notice` | a newer list of members, in pieces |
//! | `confirm` | unconfirmed unicast frames and their retries |
//! | `queue`, `pace`, `loss` | frames on their way to the kernel; the rate limit; injected losses |
//! | `throttle`, `echo`, `backlog` | the rate below its ceiling: the loop, what neighbours tell of frames, a receive queue that stands |
//! | `statistics` | counters |
//!
//! **Architecture invariant:** this crate knows no protocol, and `chappe-sys` makes every system call.

mod backlog;
mod config;
mod confirm;
mod copy;
mod driver;
mod echo;
mod exchange;
mod frame;
mod handshake;
mod hello;
mod loss;
mod membership;
mod neighbours;
mod notice;
mod pace;
mod port;
mod presence;
mod queue;
mod seal;
mod sessions;
mod statistics;
mod throttle;

pub use chappe_sys::udp::Group;
pub use chappe_sys::{Error, Result, Signal};
pub use config::{Config, Ending};
pub use confirm::Retries;
pub use driver::Live;
pub use frame::{HEADER, TAG};
pub use hello::Hellos;
pub use loss::Loss;
pub use membership::{GroupKey, Membership, PairKey, Secret};
pub use neighbours::Neighbour;
pub use pace::Pace;
pub use port::{Carrier, Port};
pub use statistics::Statistics;
