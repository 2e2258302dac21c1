//! A packet-script runner: plays a script of packets, calls and times to a TCP stack on a virtual clock, and says
//! where the stack departs from it. The crate's README is the manual of the language.
//!
//! Any user-space stack that can be driven by hand can be tested: it implements [`Stack`]. `tests/smoltcp.rs` does so
//! for smoltcp in a page.
//!
//! | file | holds |
//! |---|---|
//! | `parse` | the language: text to lines |
//! | `packet` | a packet as a line says it: built, compared, described |
//! | `run` | the player: lines and the stack's deadlines on one clock |
//!
//! **Architecture invariant:** nothing here waits or reads a clock; the same script and stack always give the same
//! outcome.

mod packet;
mod parse;
mod run;

pub use packet::{LOCAL, LOCAL_PORT, REMOTE, REMOTE_PORT};
pub use parse::span;
pub use run::run;

use chappe_core::Instant;

/// What a script asks the stack's application side to do. One script has one connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// Listen on [`LOCAL_PORT`].
    Listen,
    /// Connect from [`LOCAL_PORT`] to [`REMOTE_PORT`] of the script's host.
    Connect,
    /// Take the connection that was accepted.
    Accept,
    /// Write these octets.
    Write(Vec<u8>),
    /// Read at most this many.
    Read(usize),
    /// Close the sending direction.
    Shutdown,
    /// Close both.
    Close,
    /// Reset.
    Abort,
}

/// What a call gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It was done.
    Done,
    /// This many octets were taken.
    Written(usize),
    /// These octets were read.
    Read(Vec<u8>),
}

/// A TCP stack under test: one host, [`LOCAL`], whose peer [`REMOTE`] is the script.
///
/// Errors are sentences for whoever reads the outcome.
pub trait Stack {
    /// Sets a parameter, before anything else happens.
    fn configure(&mut self, key: &str, value: &str) -> Result<(), String>;
    /// A call of the application.
    fn call(&mut self, now: Instant, call: &Call) -> Result<Answer, String>;
    /// An IPv6 packet arrives.
    fn handle_packet(&mut self, now: Instant, packet: &[u8]);
    /// Writes the next IPv6 packet to send to the front of `packet`.
    fn poll_packet(&mut self, now: Instant, packet: &mut [u8]) -> Option<usize>;
    /// The deadline has come.
    fn handle_timeout(&mut self, now: Instant);
    /// When the stack must be woken.
    fn poll_timeout(&self) -> Option<Instant>;
    /// Something about the connection, by name, as text.
    fn observe(&self, key: &str) -> Option<String>;
}
