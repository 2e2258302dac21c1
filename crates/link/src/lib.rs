//! A link between hosts that hides the losses of what lies between.
//!
//! Each host has a TUN device. What its kernel sends through it goes to the peer in sealed frames over UDP or Ethernet,
//! and losses on the way are repaired by [`chappe_wildnet::Link`]: repeated, or covered by repairs, whichever meets the
//! promise of the packet's class at least cost. Kernel TCP runs through it unmodified and sees delay instead of loss.
//!
//! | part | what it does |
//! |---|---|
//! | [`Tunnel`] | the process: TUN device, socket, peers, one event loop |
//! | [`Peer`] | one peer: sessions, recovery, pace; no I/O |
//! | [`Key`] | what two hosts share; everything on the wire is sealed with keys made from it |
//! | [`classify`] | class, flow and addresses of a packet |
//! | [`Judgement`] | whether the 802.11 card that frames leave through waits long enough for the distance |
//! | [`Status`] | how each peer does, as text, JSON or Prometheus metrics |
//!
//! **Architecture invariant:** a datagram that is not authentic changes nothing but a counter.

#![forbid(unsafe_code)]

mod carrier;
pub mod classify;
mod coverage;
mod hints;
mod pace;
mod packing;
mod peer;
mod session;
mod status;
mod tunnel;

pub use carrier::Carrier;
pub use coverage::{Egress, Judgement, Verdict};
pub use peer::{BULK, Goodput, PEERS_MAX, Peer, PeerConfig, PeerCounters, State};
pub use session::{Key, VERSION};
pub use status::Status;
pub use tunnel::{Ending, Tunnel, TunnelConfig};
