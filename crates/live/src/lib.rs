//! Medium 3: a link node on a real network interface.
//!
//! The network card is the MAC. [`Live`] holds a [`LinkNode`](chappe_core::LinkNode), asks it for a frame when pace and
//! socket can take one, and hands it what arrives. One thread, one wait for socket, deadline and signals.
//!
//! - **Broadcasts** are UDP datagrams to the network (or a multicast group), or packets of an EtherType of their
//!   own. They are reported as `Outcome::Unconfirmed` when the kernel has taken them, which is earlier than when they
//!   are on the air; so [`Port::caps`] says `confirms_broadcast: false`.
//! - **Unicasts** go to where the neighbour was heard last, or to everybody if it never was. UDP confirms nothing and
//!   the card does not tell, so the neighbour's driver answers each with a sealed confirmation, and a
//!   frame without one is sent again ([`Retries`]). `Outcome::Acknowledged` therefore means that the neighbour's
//!   driver had the frame and gave it to its node once; `Failed` means that no confirmation came, and the node may
//!   have had it all the same.
//! - **Every frame is sealed** with a key that all members of a group have ([`GroupKey`]): encrypted, authenticated, and
//!   taken once. There is no mode without it. A member who hears another for the first time believes it only after the
//!   other has named a fresh number of its own, so recordings of former days are of no use either. Strangers cost a
//!   little arithmetic for each frame and no memory.
//! - **Hellos** carry that proof, and how well everybody hears everybody: [`Statistics::neighbours`] has the delivery
//!   ratio of each link, measured by all broadcasts.
//! - **Pace** ([`Pace`]) stands for the card's push-back, which a UDP socket does not have.
//! - **Classes** become priorities: traffic class, SO_PRIORITY, and so 802.11's access category.
//!
//! ```no_run
//! use std::ops::ControlFlow;
//! use chappe_core::{Address, Bitrate, LinkNode};
//! use chappe_live::{Carrier, Config, GroupKey, Live, Pace, Port};
//!
//! # fn example(key: GroupKey, make_node: fn(usize) -> Box<dyn LinkNode>) -> chappe_live::Result<()> {
//! let port = Port::open("mesh0", Address::node(1), Carrier::UDP)?;
//! let node = make_node(port.caps().frame_max);
//! let config = Config::new(Pace::Rate(Bitrate(5_000_000)), key);
//! let mut live = Live::new(config, port, node)?;
//! let ending = live.run(|_node, _now, _statistics| ControlFlow::Continue(()))?;
//! println!("{ending:?}: {:?}", live.statistics());
//! # Ok(())
//! # }
//! ```
//!
//! **Architecture invariant:** nothing here knows a protocol, and every system call is made by `chappe-sys`.

mod confirm;
mod driver;
mod frame;
mod hello;
mod loss;
mod neighbours;
mod pace;
mod port;
mod queue;
mod seal;
mod statistics;

pub use chappe_sys::udp::Group;
pub use chappe_sys::{Error, Result, Signal};
pub use confirm::Retries;
pub use driver::{Config, Ending, Live};
pub use frame::{HEADER, TAG};
pub use hello::Hellos;
pub use loss::Loss;
pub use neighbours::Neighbour;
pub use pace::Pace;
pub use port::{Carrier, Port};
pub use seal::GroupKey;
pub use statistics::Statistics;
