//! The contract of a node that sends and receives IP packets.

use crate::{Expect, Instant, TraceEvent, Wake};

/// Sends and receives IP packets: our TCP and UDP traffic in the simulator, the kernel behind a TUN device
/// elsewhere. The same driver's rule as for the other contracts holds.
pub trait HostNode {
    /// A packet for this host. Outside data: parse it, never trust it.
    fn handle_packet(&mut self, now: Instant, packet: &[u8]);

    /// Writes the next packet to send to the front of `packet` and returns its length.
    fn poll_packet(&mut self, now: Instant, packet: &mut [u8]) -> Option<usize>;

    /// The deadline of [`poll_timeout`](Self::poll_timeout) has come, or not: calling early changes nothing.
    fn handle_timeout(&mut self, now: Instant);

    /// When the host must be woken next, and why.
    fn poll_timeout(&self) -> Option<Wake>;

    /// What the host expects soon; see [`Expect`].
    fn expects(&self) -> Expect {
        Expect::Nothing
    }

    /// What the host recorded about itself since the last call; `None` when there is no more.
    fn poll_trace(&mut self) -> Option<TraceEvent> {
        None
    }
}
