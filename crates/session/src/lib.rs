//! Sessions between hosts that know each other's public keys: who may talk, and what no other host can read or repeat.
//!
//! The handshake is that of the Noise protocol framework, pattern IKpsk2, as in WireGuard. This crate adds what a protocol over
//! datagrams needs besides: retries, replay protection, cookies against floods, renewal without a lost frame. It reads no clock
//! and does no I/O.
//!
//! Two hosts, from their keys to a frame:
//!
//! ```
//! use chappe_core::Instant;
//! use chappe_session::{Gate, HEAD, OVERHEAD, Protocol, Secret, Sessions, Stamp, Verdict};
//!
//! let protocol = Protocol { name: "an example", version: 1 };
//! // A real program draws keys and seeds from the operating system.
//! let mut hill = Gate::new(protocol, Secret::new([1; 32]), [3; 32]);
//! let mut town = Gate::new(protocol, Secret::new([2; 32]), [4; 32]);
//! let mut to_town = Sessions::<&str>::new(&hill, *town.public(), None, 0, [5; 32]);
//! let mut to_hill = Sessions::<&str>::new(&town, *hill.public(), None, 0, [6; 32]);
//! let (now, wall) = (Instant::ZERO, Stamp::at(std::time::Duration::from_secs(1_800_000_000)));
//! let (mut datagram, mut reply) = ([0; 256], [0; 256]);
//!
//! // The hill calls. The town's gate opens the call, and says by which key it was made.
//! let len = to_town.call(now, wall, b"hello", &mut datagram).unwrap();
//! let Verdict::Initiation(call) = town.judge(now, b"10.0.0.1:9", &datagram[..len], &mut reply) else { panic!() };
//! assert_eq!(call.public, *hill.public());
//! to_hill.take(now, "10.0.0.1:9", call, b"welcome", false).unwrap();
//!
//! // The town answers, and the hill has a session.
//! let (len, to) = to_hill.next_answer(&mut datagram).unwrap();
//! assert_eq!(to, "10.0.0.1:9");
//! assert!(matches!(hill.judge(now, b"10.0.0.2:9", &datagram[..len], &mut reply), Verdict::Sessions(0)));
//! let begun = to_town.take_answer(now, &datagram[..len]).unwrap();
//! assert_eq!(begun.said.octets(), b"welcome");
//!
//! // A frame: its number, then what is sealed. The first one proves the session to the town.
//! datagram[HEAD..HEAD + 9].copy_from_slice(b"\0\0\0\x01smoke");
//! let len = to_town.seal(now, &mut datagram, 9).unwrap();
//! assert_eq!(len, 9 + OVERHEAD);
//! let opened = to_hill.open(now, &mut datagram[..len]).unwrap();
//! assert_eq!(opened.begun.unwrap().said.octets(), b"hello");
//! assert_eq!(&datagram[HEAD + 4..HEAD + opened.len], b"smoke");
//! ```
//!
//! | part | what it does |
//! |---|---|
//! | [`Secret`], [`Public`], [`Psk`] | the keys |
//! | [`Gate`] | one for each host: drops strangers for the price of a hash, opens calls, gives cookies |
//! | [`Sessions`] | one for each peer: calls, answers, sealed frames |
//! | [`Stamp`] | the caller's time, by which repeated calls are recognised |
//! | [`Reason`] | why a datagram was dropped |
//! | [`Cipher`] | the cipher of frames, for those with keys of another origin |
//! | [`Drawer`] | unpredictable numbers |
//! | [`Primitives`] | the cryptography of a handshake with another pattern, for the crate `snow` |
//!
//! **Architecture invariant:** a datagram that is not authentic changes no state but the count of handshakes opened in a second.

#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

extern crate alloc;

mod cipher;
mod gate;
mod keys;
mod message;
mod noise;
mod random;
mod replay;
mod session;
mod sessions;
mod stamp;

pub use cipher::Cipher;
pub use gate::{Gate, Initiation, Verdict};
pub use keys::{Psk, Public, Secret};
pub use message::{HANDSHAKE_MAX, HEAD, OVERHEAD, Protocol, Reason, SAID_MAX, addressed};
pub use noise::{NOISE, Primitives};
pub use random::Drawer;
pub use replay::REPLAY;
pub use session::Said;
pub use sessions::{Begun, Limits, Opened, Sessions};
pub use stamp::Stamp;

/// Random low bits of an index; the bits above are the peer's place.
const INDEX_BITS: u32 = 11;
/// Largest number of peers of one host. A frame addresses a session by 24 bits.
pub const PLACES: u32 = 1 << (24 - INDEX_BITS);

/// The place of the sessions that an index belongs to.
pub fn place_of(index: u32) -> u32 {
    index >> INDEX_BITS
}
