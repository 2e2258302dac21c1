//! IPv6 over 802.15.4: compression, fragments, forwarding, and a host on top.
//!
//! An [`Interface`] is a [`LinkNode`](chappe_core::LinkNode) that carries a [`HostNode`](chappe_core::HostNode). It
//! compresses the host's packets (RFC 6282) and sends those that do not fit a frame as fragments (RFC 4944), each after the
//! link has confirmed the one before. Packets for other nodes are forwarded fragment by fragment (RFC 8930): a relay keeps a
//! few octets for each datagram and never reassembles it.
//!
//! ```text
//!            host                         Here: reassembled, delivered
//!             | poll_packet                ^
//!   outgoing  v                            |
//!   [datagram] -- fragments --> poll_link  +-- handle_link --+
//!   [frame] [frame] [frame] ------^                          |
//!      ^  relay queue, RED with ECN                          | Via: entry, new tag
//!      +-----------------------------------------------------+
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `interface` `input` `output` | the node; incoming frames; outgoing frames |
//! | `outgoing` `in_flight` | a datagram that is being sent; frames whose outcome is unknown |
//! | `reassembly` | datagrams that are being reassembled |
//! | `headers` | the contexts of flows whose TCP headers are compressed |
//! | `forwarding` `red` | datagrams that are forwarded; when to mark or drop them |
//! | `routes` `mesh` | next hops; shortest paths between routers |
//! | `config` `losses` | parameters; why something was lost |
//!
//! **Architecture invariants:** all memory is in the value, its size fixed by five numbers; an incoming frame costs
//! bounded work; every loss is counted under exactly one reason ([`Lost`]).

mod config;
mod forwarding;
mod headers;
mod in_flight;
mod input;
mod interface;
mod losses;
pub mod mesh;
mod outgoing;
mod output;
mod reassembly;
pub mod red;
mod routes;

pub use config::Config;
pub use headers::{Headers, TcpHeaders};
pub use interface::{Counters, Interface};
pub use losses::{Losses, Lost};
pub use routes::{Leaf, Route, Routes, Table, node_of};
