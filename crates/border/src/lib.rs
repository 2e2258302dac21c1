//! A 6LoWPAN border router in front of a low-power network that is simulated in real time: the kernel's own `curl`,
//! `ping`, `iperf3` and CoAP clients talk to motes that run this project's TCP.
//!
//! ```text
//!   curl, ping -6, iperf3, aiocoap        programs of this host
//!   kernel: TCP, UDP, IPv6
//!   lln0 (TUN, MTU 1280)                  [`Border`], the loop
//!   Gateway                               a router: hops, errors, marks
//!   6LoWPAN | 802.15.4 CSMA-CA            the border's radio
//!   ~~~ simulated air, as late as the clock says ~~~
//!   motes: relays, and a host each with HTTP, CoAP, iperf3
//! ```
//!
//! | type | what |
//! |---|---|
//! | [`Network`] | who hears whom, the tree of next hops, parameters: from it come the nodes |
//! | [`Station`] | a node: the border router or a mote |
//! | [`Gateway`] | the border router's IP side |
//! | [`Border`] | TUN device and loop |
//! | [`Status`] | what it did: for people and as JSON |
//!
//! **Architecture invariant:** [`Gateway`] and [`Station`] do no I/O; the device is touched in `daemon` only.

#![forbid(unsafe_code)]

mod daemon;
mod gateway;
mod network;
mod station;
mod status;

pub use daemon::{Border, Ending, LATENESS_LIMIT};
pub use gateway::{Gateway, GatewayCounters, MTU};
pub use network::Network;
pub use station::{NODES_MAX, SOCKETS, Station};
pub use status::{Late, NodeStatus, Status};
