//! A link on somebody else's channel access: the recovery without the slots.
//!
//! Frames go out unconfirmed (as broadcasts), since the link repairs its own losses; a MAC that repeats frames and waits
//! for each would only add delay.

use chappe_core::{Address, Class, Classes, Instant, LinkEvent, LinkNode, LinkSend, Mode, Wake};

use crate::link::{Link, Opportunity};

/// One end of a link, on a MAC or on a card.
#[derive(Clone, Debug)]
pub struct Node {
    /// The link: offer packets to it, take packets from it.
    pub link: Link,
    peer: Address,
    mode: Option<Mode>,
    /// What was seen at the last event: [`LinkNode::pending`] has no clock.
    ready: bool,
}

impl Node {
    /// An end whose other one is `peer`; `mode`: how to send, if the MAC is not to choose.
    pub fn new(link: Link, peer: Address, mode: Option<Mode>) -> Node {
        Node {
            link,
            peer,
            mode,
            ready: false,
        }
    }
}

impl LinkNode for Node {
    fn handle_link(&mut self, now: Instant, event: LinkEvent<'_>) {
        if let LinkEvent::Received(arrival) = event
            && arrival.from == self.peer
        {
            // What is not a frame is counted there.
            let _ = self.link.handle(now, arrival.sdu);
        }
        self.ready = self.link.wants(now);
    }

    fn pending(&self) -> Classes {
        Classes::NONE.with_if(Class::Data, self.ready || self.link.waiting() > 0)
    }

    fn poll_link(&mut self, now: Instant, allowed: Classes, sdu: &mut [u8]) -> Option<LinkSend> {
        if !allowed.contains(Class::Data) {
            return None;
        }
        let len = self.link.poll(now, Opportunity::ALWAYS, sdu);
        self.ready = self.link.wants(now);
        Some(LinkSend {
            to: Address::BROADCAST,
            len: len?,
            class: Class::Data,
            mode: self.mode,
            token: 0,
        })
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.link.handle_timeout(now);
        self.ready = self.link.wants(now);
    }

    fn poll_timeout(&self) -> Option<Wake> {
        // An acknowledgement that is due already waits for the MAC, not for a clock.
        let wake = self.link.poll_timeout();
        wake.filter(|_| !self.ready)
    }
}
