//! A packet-script runner. It plays a script of packets, calls and times to a TCP stack on a virtual clock, and reports
//! where the stack departs from it. The crate's README is the manual of the language.
//!
//! ```
//! use chappe_core::Instant;
//! use chappe_packet_script::{Answer, Call, Stack, run};
//!
//! /// A stack that accepts every call and never sends.
//! struct Mute;
//!
//! impl Stack for Mute {
//!     fn configure(&mut self, _key: &str, _value: &str) -> Result<(), String> {
//!         Ok(())
//!     }
//!     fn call(&mut self, _now: Instant, _call: &Call) -> Result<Answer, String> {
//!         Ok(Answer::Done)
//!     }
//!     fn handle_packet(&mut self, _now: Instant, _packet: &[u8]) {}
//!     fn poll_packet(&mut self, _now: Instant, _packet: &mut [u8]) -> Option<usize> {
//!         None
//!     }
//!     fn handle_timeout(&mut self, _now: Instant) {}
//!     fn poll_timeout(&self) -> Option<Instant> {
//!         None
//!     }
//!     fn observe(&self, _key: &str) -> Option<String> {
//!         None
//!     }
//! }
//!
//! let no_includes = |_: &str| None;
//! assert_eq!(run("listen\n+5 quiet", &mut Mute, &no_includes), Ok(()));
//!
//! // A SYN must be answered.
//! let script = "listen\n< S 0:0(0) <mss 1000>\n> S. 0:0(0) ack 1";
//! let why = run(script, &mut Mute, &no_includes).unwrap_err();
//! assert!(why.starts_with("line 3"), "{why}");
//! ```
//!
//! Any user-space stack that the caller drives can be tested: it implements [`Stack`]. `tests/smoltcp.rs` does so for
//! smoltcp.
//!
//! | module | holds |
//! |---|---|
//! | `stack` | the interface of a stack under test |
//! | `parse` | the language: text to lines |
//! | `packetdrill` | packetdrill's language, read into the same lines |
//! | `packet` | a packet as a line describes it: built, compared, printed |
//! | `run` | the player: lines and the stack's deadlines on one clock |
//!
//! **Architecture invariant:** this crate neither waits nor reads a clock, so the same script and stack always give the
//! same outcome.

mod packet;
mod packetdrill;
mod parse;
mod run;
mod stack;

pub use packet::{LOCAL, LOCAL_PORT, REMOTE, REMOTE_PORT};
pub use packetdrill::Shortfall;
pub use parse::span;
pub use run::{run, run_packetdrill};
pub use stack::{Answer, Call, Stack};
