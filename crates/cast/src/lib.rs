//! File distribution to many hosts over lossy multi-hop networks: the library of `chappe cast`.
//!
//! A *group* is a list of members, each with a key pair, that the group's owner signs. Each host runs a *member*: a sender, a
//! receiver or a relay. Members discover each other, measure their links, and spread records of all members, which each
//! member signs. The sender signs a *ticket*, which names a *manifest* by its digest. The manifest has the digest of every batch.
//! Pacifier then carries the batches. A receiver that has the files signs a *receipt*.
//!
//! Received batches are checked and stored before they are acknowledged. This is what sender and receiver do with a file,
//! without the network between them:
//!
//! ```
//! use chappe_cast::Protocol;
//! use chappe_cast::disk::{Incoming, Policy, Put, Sent};
//! use chappe_cast::key::SignKey;
//! use chappe_cast::manifest::{Manifest, Ticket, Validity};
//! use chappe_pacifier::Object;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = std::env::temp_dir().join(format!("chappe-cast-example-{}", std::process::id()));
//! # let _ = std::fs::remove_dir_all(&folder);
//! std::fs::create_dir_all(folder.join("received"))?;
//! std::fs::write(folder.join("image.bin"), [7; 5000])?;
//! let key = SignKey::new(&[7; 32]);
//!
//! // The sender cuts the files into batches of 4 packets of 1000 octets, and signs what it has cut.
//! let sent = Sent::open(&[folder.join("image.bin")], 4, 1000)?;
//! let manifest = sent.manifest().encode()?;
//! let validity = Validity { signed: 1_800_000_000_000, until: 0 };
//! let ticket = Ticket::sign(0, (Protocol::Improved, 8), sent.cut(), &manifest, validity, &key);
//!
//! // A receiver checks the signature, then stores only batches that match the manifest.
//! assert!(ticket.is_signed_by(&key.verify_key()) && ticket.names(&manifest));
//! let manifest = Manifest::decode(&manifest, &ticket.cut)?;
//! let policy = Policy { key: Some(key.verify_key()), ..Policy::default() };
//! let mut incoming = Incoming::open(&folder.join("received"), &ticket, manifest, &policy)?;
//! assert_eq!(incoming.put(0, b"a polluted batch")?, Put::Polluted);
//! for batch in 0..ticket.cut.batches() {
//!     let range = ticket.cut.range(batch);
//!     let mut octets = vec![0; (range.end - range.start) as usize];
//!     sent.read(range.start as usize, &mut octets);
//!     incoming.put(batch, &octets)?;
//! }
//! assert_eq!(incoming.finish()?.installed, [folder.join("received/image.bin")]);
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok(())
//! # }
//! ```
//!
//! [`send`], [`receive`] and [`relay`] do all of it on real interfaces.
//!
//! | module | holds |
//! |---|---|
//! | [`key`], [`group`] | keys and key files; the list of members |
//! | [`receipt`] | what a receiver signs when it has the files |
//! | [`fleet`] | stored receipts: who has which version |
//! | [`manifest`] | tickets and manifests: what a sender signs |
//! | [`disk`] | files being sent; files being received |
//! | [`roster`] | the members' records |
//! | [`fetch`] | the transfer of a manifest |
//! | [`member`] | a member as a link node |
//! | [`session`] | a member on an interface |
//! | [`event`] | progress events |
//! | [`rehearsal`] | what a sender would send, to whom |
//!
//! **Trust.** The link (`chappe-live`) drops frames of strangers. Members are trusted to forward frames and not to jam. They are
//! *not* trusted with file contents, nor with what other members say: a receiver installs only what a member that may send has
//! signed, and a sender counts only what a receiver has signed. A member that pollutes batches costs time, because receivers
//! discard wrong batches and get them from the sender in signed parts, but wrong octets never reach an installed file.
//!
//! **Architecture invariant:** [`member`] and its parts read no clock and do no I/O, like every node. Only [`disk`],
//! [`fleet`], [`group`] and [`key`] touch files.

mod damping;
pub mod disk;
mod error;
pub mod event;
pub mod fetch;
pub mod fleet;
mod frame;
pub mod group;
pub mod key;
pub mod manifest;
mod measuring;
#[cfg(test)]
mod meeting;
pub mod member;
mod pace;
mod reason;
pub mod receipt;
mod receiver;
pub mod rehearsal;
mod rolling;
pub mod roster;
#[cfg(test)]
mod scratch;
mod sender;
pub mod session;
mod then;
mod work;

pub use chappe_live::{Carrier, Group as Audience, Loss};
pub use error::{Error, Kind, Result};
pub use manifest::Protocol;
pub use member::headers;
pub use reason::{Reason, Withdrawal};
pub use receiver::{Receiving, receive, relay};
pub use rehearsal::rehearse;
pub use sender::{Sending, send};
pub use session::{Channel, Ending, Options, Watch};
pub use then::Then;
