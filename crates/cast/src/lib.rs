//! Files to many hosts over lossy networks of several hops: the library of `chappe cast`.
//!
//! A *group* is a set of hosts that have one key. Each runs a *member*: a sender, a receiver or a relay. Members find
//! each other, measure their links, and pass on what they know of each other; the sender signs a *ticket*, which names a
//! *manifest* by its digest, which has the digest of every batch; then Pacifier carries the batches.
//!
//! | module | holds |
//! |---|---|
//! | [`key`] | keys and their files |
//! | [`manifest`] | tickets and manifests: what a sender promises |
//! | [`disk`] | files that are sent; files that are being received |
//! | [`roster`] | who is there, and what each says of itself |
//! | [`fetch`] | how a manifest travels |
//! | [`member`] | all of it as one link node |
//! | [`session`] | a member on an interface; [`send`], [`receive`], [`relay`] |
//! | [`event`] | what is told meanwhile |
//!
//! **Who is trusted with what.** The link (`chappe-live`) keeps strangers out: it drops what was not sealed with the
//! group's key. Members are trusted to pass frames on, and not to lie about who they are. They are *not* trusted with
//! what is installed: that is what the owner of the signing key has signed. A member who pollutes batches costs time,
//! since wrong batches are thrown away and collected anew, but no wrong octet gets a file's name.
//!
//! **Architecture invariant:** [`member`] and what it is made of read no clock and do no I/O, like every node; files are
//! touched in [`disk`] and [`key`] only.

pub mod disk;
mod error;
pub mod event;
pub mod fetch;
mod frame;
pub mod key;
pub mod manifest;
pub mod member;
mod reason;
mod receiver;
pub mod roster;
#[cfg(test)]
mod scratch;
mod sender;
pub mod session;

pub use chappe_live::{Carrier, Group, GroupKey, Loss};
pub use error::{Error, Kind, Result};
pub use manifest::Protocol;
pub use reason::Reason;
pub use receiver::{Receiving, receive, relay};
pub use sender::{Sending, headers, send};
pub use session::{Channel, Ending, Options, Watch};
