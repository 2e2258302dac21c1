//! The contract of a node that sends and receives IP packets.

use crate::{Expect, Instant, TraceEvent, Wake};

/// Sends and receives IP packets: our TCP and UDP traffic in the simulator, the kernel behind a TUN device elsewhere.
/// The rule for drivers is the same as for the other contracts.
pub trait HostNode {
    /// A packet for this host. Outside data: parse it, never trust it.
    fn handle_packet(&mut self, now: Instant, packet: &[u8]);

    /// Writes the next packet to send to the front of `packet` and returns its length.
    fn poll_packet(&mut self, now: Instant, packet: &mut [u8]) -> Option<usize>;

    /// Handles the deadline of [`poll_timeout`](Self::poll_timeout), if it has come; calling early changes nothing.
    fn handle_timeout(&mut self, now: Instant);

    /// The next deadline, and the reason for it.
    fn poll_timeout(&self) -> Option<Wake>;

    /// What the host expects soon; see [`Expect`].
    fn expects(&self) -> Expect {
        Expect::Nothing
    }

    /// The next trace event of the host; `None` when there is no more.
    fn poll_trace(&mut self) -> Option<TraceEvent> {
        None
    }
}
