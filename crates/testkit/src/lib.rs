//! Tools that the tests, examples and benchmarks of several crates share.
//!
//! ```
//! use chappe_core::{Address, Class, Classes, Instant, LinkNode};
//! use chappe_testkit::{Saturated, SplitMix64};
//!
//! // A station that always has a frame of 100 octets for node 3.
//! let mut station = Saturated::towards(Address::node(3), 100);
//! let mut sdu = [0; 1500];
//! let sent = station.poll_link(Instant::ZERO, Classes::ALL, &mut sdu).expect("a backlog");
//! assert_eq!((sent.to, sent.len, sent.class), (Address::node(3), 100, Class::Data));
//!
//! // Random octets that are the same on every machine.
//! assert_eq!(SplitMix64(7).bytes(100), SplitMix64(7).bytes(100));
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`allocation`] | an allocator that counts |
//! | [`processor`] | processor time of the calling thread |
//! | [`random`] | SplitMix64 |
//! | [`saturated`] | a link node with an infinite backlog |
//! | [`script`] | the files of a folder of packet scripts |
//! | [`words`] | what an example was called with |
//!
//! Only development dependencies point here, so the modules may use the host's files and allocator, which the protocol
//! crates may not.

pub mod allocation;
pub mod processor;
pub mod random;
pub mod saturated;
pub mod script;
mod skip;
pub mod words;

pub use random::SplitMix64;
pub use saturated::{Backlog, Saturated};
pub use skip::{SKIPPED_FILE, skip};
pub use words::Words;
