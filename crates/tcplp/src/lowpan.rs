//! IPv6 over 802.15.4: compression, fragments, forwarding, and a host on top.
//!
//! An [`Interface`] is a [`LinkNode`](chappe_core::LinkNode) that carries a [`HostNode`](chappe_core::HostNode). Packets
//! of the host are compressed (RFC 6282) and, if they do not fit a frame, sent as fragments (RFC 4944), one after the
//! other has been confirmed. Packets for others pass through as they come, fragment by fragment (RFC 8930): a relay
//! keeps a few octets for each datagram and never puts it together.
//!
//! ```text
//!            host                         Here: put together, handed up
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
//! | `interface` `input` `output` | the node; frames that come; frames that go |
//! | `outgoing` `reassembly` | a datagram that is sent; datagrams that are put together |
//! | `headers` | what is remembered of flows whose TCP headers are compressed |
//! | `forwarding` `red` | datagrams that pass through; when to mark or drop them |
//! | `routes` `mesh` | whom to hand a packet; shortest paths between routers |
//! | `config` `losses` | parameters; why something was lost |
//!
//! **Architecture invariants:** all memory is in the value, its size fixed by five numbers; a frame from outside costs
//! bounded work; whatever is lost is counted under one reason ([`Lost`]).

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
