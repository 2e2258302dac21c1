//! The stack under test, and the calls of its application.

use chappe_core::Instant;

/// A call that a script makes as the stack's application. One script has one connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// Listen for connections on [`LOCAL_PORT`](crate::LOCAL_PORT).
    Listen,
    /// Connect from [`LOCAL_PORT`](crate::LOCAL_PORT) to [`REMOTE_PORT`](crate::REMOTE_PORT) of the script's host.
    Connect,
    /// Accept the connection that the peer has opened.
    Accept,
    /// Write these octets to the connection.
    Write(Vec<u8>),
    /// Read at most this many octets.
    Read(usize),
    /// Close the sending direction, as `shutdown(SHUT_WR)` does.
    Shutdown,
    /// Close both directions, as `close` does.
    Close,
    /// Abort the connection with a RST.
    Abort,
}

/// The result of a [`Call`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The call succeeded, and has no other result.
    Done,
    /// The stack took this many octets of a write.
    Written(usize),
    /// The octets that a read returned; empty at the end of the stream.
    Read(Vec<u8>),
}

/// A TCP stack under test: one host, [`LOCAL`](crate::LOCAL), whose peer [`REMOTE`](crate::REMOTE) is the script.
///
/// Errors are sentences for the reader of the outcome.
pub trait Stack {
    /// Sets a parameter, before anything else happens.
    fn configure(&mut self, key: &str, value: &str) -> Result<(), String>;
    /// Makes a call of the application.
    fn call(&mut self, now: Instant, call: &Call) -> Result<Answer, String>;
    /// Takes an IPv6 packet that has arrived.
    fn handle_packet(&mut self, now: Instant, packet: &[u8]);
    /// Writes the next IPv6 packet to send to the front of `packet` and returns its length; `None` if there is none.
    fn poll_packet(&mut self, now: Instant, packet: &mut [u8]) -> Option<usize>;
    /// Handles the deadline of [`poll_timeout`](Self::poll_timeout), and must move or clear it.
    fn handle_timeout(&mut self, now: Instant);
    /// The next deadline; `None` if the stack waits for packets and calls only.
    fn poll_timeout(&self) -> Option<Instant>;
    /// A value of the connection by name, as text, for `expect`; `None` if the stack has no such value.
    fn observe(&self, key: &str) -> Option<String>;
}
