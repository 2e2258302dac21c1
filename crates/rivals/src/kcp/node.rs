//! KCP on a MAC or a card: a stream to one peer.

use chappe_core::{Address, Class, Classes, Instant, LinkEvent, LinkNode, LinkSend, Wake};

use super::Kcp;

/// One end of a conversation as a link node. It sends broadcasts, which the MAC neither acknowledges nor repeats, since KCP
/// repairs its own losses.
#[derive(Clone, Debug)]
pub struct KcpNode {
    /// The end, to write to and read from.
    pub kcp: Kcp,
    peer: Address,
}

impl KcpNode {
    /// Makes the node of an end whose peer has this address.
    pub fn new(kcp: Kcp, peer: Address) -> KcpNode {
        KcpNode { kcp, peer }
    }
}

impl LinkNode for KcpNode {
    fn handle_link(&mut self, now: Instant, event: LinkEvent<'_>) {
        if let LinkEvent::Received(arrival) = event
            && arrival.from == self.peer
        {
            self.kcp.handle(now, arrival.sdu);
        }
    }

    fn pending(&self) -> Classes {
        Classes::NONE.with_if(Class::Data, self.kcp.has_datagram())
    }

    fn poll_link(&mut self, _: Instant, allowed: Classes, sdu: &mut [u8]) -> Option<LinkSend> {
        if !allowed.contains(Class::Data) {
            return None;
        }
        Some(LinkSend {
            to: Address::BROADCAST,
            len: self.kcp.poll(sdu)?,
            class: Class::Data,
            mode: None,
            token: 0,
        })
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.kcp.handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Wake> {
        self.kcp.poll_timeout()
    }
}
