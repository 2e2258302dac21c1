//! CoAP (RFC 7252) with blockwise transfer (RFC 7959): a client that posts and gets, and a server for both.
//!
//! ```text
//! client                                     server
//!   CON POST /r  block1 0, more, 512  ------->  first block
//!   <-------  ACK 2.31 Continue  block1 0
//!   CON POST /r  block1 1, last, 300  ------->  the rest
//!   <-------  ACK 2.04 Changed   block1 1
//! ```
//!
//! A [`Client`] has one exchange at a time (NSTART is 1). A [`Timeout`] decides when it retransmits a confirmable message:
//! [`Standard`] as in RFC 7252, or [`Cocoa`]. Non-confirmable messages are sent once, without waiting: the unreliable
//! baseline of the paper (8.2.4).
//!
//! [`Observation`] is the client of a resource that tells its changes (RFC 7641), [`Observers`] the server's list of those who asked for
//! them.
//!
//! Not supported: separate responses but by [`Observation`], proxies, multicast, DTLS.

mod client;
mod cocoa;
mod message;
mod observation;
mod observe;
mod server;
mod timeout;

pub use client::{Client, Config, Outcome};
pub use cocoa::Cocoa;
pub use message::{Block, Code, Kind, Malformed, Message, Token, Writer, option};
pub use observation::{Notification, Observation};
pub use observe::Observers;
pub use server::{Received, Server, content};
pub use timeout::{Standard, Timeout};

/// CoAP's port (RFC 7252, 12.8).
pub const PORT: u16 = 5683;
