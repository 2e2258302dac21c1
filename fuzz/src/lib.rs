//! Hostile input for every parser and for the TCP state machine.
//!
//! A target is a function that takes any octets and panics if the code under it breaks a promise: it panics itself,
//! it reads back something else than it wrote, it never comes to an end. The same functions serve two drivers:
//!
//! - `cargo test -p chappe-fuzz` feeds each a few thousand random and mutated inputs, the same ones each time;
//! - `cargo +nightly fuzz run tcp --features libfuzzer` searches for new ones, guided by coverage.
//!
//! | target | feeds |
//! |---|---|
//! | [`standards`] | 802.11, LLC, radiotap, 802.15.4, 6LoWPAN, IPv6, UDP, ICMPv6, TCP segments |
//! | [`protocols`] | the frames of Pacifier, P³ and DPCLO |
//! | [`scenario`] | scenario files |
//! | [`tcp`] | two TCP sockets under a sequence of calls, losses, repetitions and forgeries |

pub mod protocols;
pub mod scenario;
pub mod standards;
pub mod tcp;

/// A target: any octets go in.
pub type Feed = fn(&[u8]);

/// All of them, by name.
pub const TARGETS: [(&str, Feed); 4] = [
    ("standards", standards::feed),
    ("protocols", protocols::feed),
    ("scenario", scenario::feed),
    ("tcp", tcp::feed),
];
