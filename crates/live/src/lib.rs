//! Medium 3: a link node on a real network interface.
//!
//! <div class="warning">
//!
//! **No frame is authenticated or encrypted here.** Whoever reaches the interface can send frames in any node's name:
//! spoil what is transferred, confirm what nobody received, learn what is sent. Use it on networks of your own, for
//! measurements. No command of `chappe` offers this medium before frames are sealed.
//!
//! </div>
//!
//! The network card is the MAC. [`Live`] holds a [`LinkNode`](chappe_core::LinkNode), asks it for a frame when pace and
//! socket can take one, and hands it what arrives. One thread, one wait for socket, deadline and signals.
//!
//! - **Broadcasts** are UDP datagrams to the network (or a multicast group), or packets of an EtherType of their
//!   own. They are reported as `Outcome::Unconfirmed` when the kernel has taken them, which is earlier than when they
//!   are on the air; so [`Port::caps`] says `confirms_broadcast: false`.
//! - **Unicasts** go to where the neighbour was heard last, or to everybody if it never was. UDP confirms nothing and
//!   the card does not tell, so the neighbour's driver answers each with a confirmation of [`HEADER`] octets, and a
//!   frame without one is sent again ([`Retries`]). `Outcome::Acknowledged` therefore means that the neighbour's
//!   driver had the frame and gave it to its node once; `Failed` means that no confirmation came, and the node may
//!   have had it all the same.
//! - **Pace** ([`Pace`]) stands for the card's push-back, which a UDP socket does not have.
//! - **Classes** become priorities: traffic class, SO_PRIORITY, and so 802.11's access category.
//!
//! ```no_run
//! use std::ops::ControlFlow;
//! use chappe_core::{Address, Bitrate, LinkNode};
//! use chappe_live::{Carrier, Config, Live, Pace, Port};
//!
//! # fn example(make_node: fn(usize) -> Box<dyn LinkNode>) -> chappe_live::Result<()> {
//! let port = Port::open("mesh0", Address::node(1), Carrier::UDP)?;
//! let node = make_node(port.caps().frame_max);
//! let mut live = Live::new(Config::new(Pace::Rate(Bitrate(5_000_000))), port, node)?;
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
mod loss;
mod neighbours;
mod pace;
mod port;
mod queue;
mod statistics;

pub use chappe_sys::udp::Group;
pub use chappe_sys::{Error, Result, Signal};
pub use confirm::Retries;
pub use driver::{Config, Ending, Live};
pub use frame::HEADER;
pub use loss::Loss;
pub use pace::Pace;
pub use port::{Carrier, Port};
pub use statistics::Statistics;
