//! The contract of a MAC, and how a MAC and the link node above it make one radio node.

use crate::{Instant, LinkNode, RadioEvent, RadioNode, RadioRequest, TraceEvent, Wake};

/// Channel access. Each method receives the link node above, which the MAC calls directly: layers inside a node are
/// fields and plain calls, and the compiler can inline them.
///
/// [`OverMac`] calls [`link_changed`](Self::link_changed) whenever [`LinkNode::pending`] may have changed.
pub trait Mac {
    /// Handles an event of the radio.
    fn handle_radio<L: LinkNode>(&mut self, now: Instant, event: RadioEvent<'_>, link: &mut L);

    /// The next request to the radio. Here the MAC takes a frame from `link`, at the last moment.
    fn poll_radio<L: LinkNode>(
        &mut self,
        now: Instant,
        psdu: &mut [u8],
        link: &mut L,
    ) -> Option<RadioRequest>;

    /// Handles the MAC's own deadline, if it has come; calling early changes nothing.
    fn handle_timeout<L: LinkNode>(&mut self, now: Instant, link: &mut L);

    /// The MAC's own next deadline, without the link node's.
    fn poll_timeout(&self) -> Option<Wake>;

    /// [`LinkNode::pending`] of the node above may have changed.
    fn link_changed<L: LinkNode>(&mut self, now: Instant, link: &L);

    /// The next trace event of the MAC; `None` when there is no more.
    fn poll_trace(&mut self) -> Option<TraceEvent> {
        None
    }
}

/// A radio node made of a MAC and the link node above it.
#[derive(Clone, Debug)]
pub struct OverMac<M, L> {
    /// The MAC, below the link node.
    pub mac: M,
    /// The link node, above. After changing it from outside (offering it data, for instance), call
    /// [`RadioNode::handle_timeout`] with the present time and drain as after any input.
    pub link: L,
}

impl<M: Mac, L: LinkNode> OverMac<M, L> {
    /// Puts `link` on `mac`.
    pub fn new(mac: M, link: L) -> OverMac<M, L> {
        OverMac { mac, link }
    }
}

impl<M: Mac, L: LinkNode> RadioNode for OverMac<M, L> {
    fn handle_radio(&mut self, now: Instant, event: RadioEvent<'_>) {
        self.mac.handle_radio(now, event, &mut self.link);
        // Whatever the event was, the link node may have something to send after it, and the MAC does not ask by itself.
        self.mac.link_changed(now, &self.link);
    }

    fn poll_radio(&mut self, now: Instant, psdu: &mut [u8]) -> Option<RadioRequest> {
        self.mac.poll_radio(now, psdu, &mut self.link)
    }

    fn handle_timeout(&mut self, now: Instant) {
        // The link node first: what it decides now, the MAC can act on in the same call.
        if Wake::due(self.link.poll_timeout(), now) {
            self.link.handle_timeout(now);
        }
        if Wake::due(self.mac.poll_timeout(), now) {
            self.mac.handle_timeout(now, &mut self.link);
        }
        self.mac.link_changed(now, &self.link);
    }

    fn poll_timeout(&self) -> Option<Wake> {
        Wake::earlier(self.mac.poll_timeout(), self.link.poll_timeout())
    }

    fn poll_trace(&mut self) -> Option<TraceEvent> {
        self.mac.poll_trace().or_else(|| self.link.poll_trace())
    }
}
