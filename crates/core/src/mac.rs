//! How a MAC and the node above it make one radio node.

use crate::{Instant, LinkNode, RadioEvent, RadioNode, RadioRequest, TraceEvent, Wake};

/// Channel access. A MAC calls the link node above it directly: layers inside a node are fields and plain
/// calls, and the compiler sees through them.
///
/// Each method gets that link node. [`OverMac`] promises to call [`link_changed`](Self::link_changed) whenever the link
/// node may have changed its mind about [`LinkNode::pending`].
pub trait Mac {
    /// Something happened on the air.
    fn handle_radio<L: LinkNode>(&mut self, now: Instant, event: RadioEvent<'_>, link: &mut L);

    /// What the MAC wants of the radio next. This is where a frame is taken from `link`, at the last moment.
    fn poll_radio<L: LinkNode>(
        &mut self,
        now: Instant,
        psdu: &mut [u8],
        link: &mut L,
    ) -> Option<RadioRequest>;

    /// The MAC's own deadline may have come.
    fn handle_timeout<L: LinkNode>(&mut self, now: Instant, link: &mut L);

    /// The MAC's own next deadline.
    fn poll_timeout(&self) -> Option<Wake>;

    /// [`LinkNode::pending`] of the node above may have changed.
    fn link_changed<L: LinkNode>(&mut self, now: Instant, link: &L);

    /// What the MAC recorded about itself since the last call.
    fn poll_trace(&mut self) -> Option<TraceEvent> {
        None
    }
}

/// A radio node made of a MAC and what sits on it.
#[derive(Clone, Debug)]
pub struct OverMac<M, L> {
    /// Channel access.
    pub mac: M,
    /// The node above. After changing it from outside (offering it data, for instance), call
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
        self.mac.link_changed(now, &self.link);
    }

    fn poll_radio(&mut self, now: Instant, psdu: &mut [u8]) -> Option<RadioRequest> {
        self.mac.poll_radio(now, psdu, &mut self.link)
    }

    fn handle_timeout(&mut self, now: Instant) {
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
