//! A link on any MAC: the recovery without the slots.
//!
//! It sends broadcasts, which the MAC does not acknowledge. The link repairs its own losses; a MAC that repeats frames and
//! waits for each acknowledgement would only add delay.

use chappe_core::{Address, Class, Classes, Instant, LinkEvent, LinkNode, LinkSend, Mode, Wake};

use crate::link::{Link, Opportunity};

/// One end of a link on a MAC or a card.
#[derive(Clone, Debug)]
pub struct Node {
    /// The link, to offer packets to and take packets from.
    pub link: Link,
    peer: Address,
    mode: Option<Mode>,
    /// Whether a frame was due at the last event: [`LinkNode::pending`] gets no time.
    ready: bool,
}

impl Node {
    /// Makes the node of a link to `peer`. `mode` overrides the MAC's choice of rate.
    pub fn new(link: Link, peer: Address, mode: Option<Mode>) -> Node {
        Node {
            link,
            peer,
            mode,
            ready: false,
        }
    }

    /// Handles the timers that expired while a frame waited for the MAC, which hides them: the MAC may be busy for longer than
    /// a timer runs.
    fn catch_up(&mut self, now: Instant) {
        if Wake::due(self.link.poll_timeout(), now) {
            self.link.handle_timeout(now);
        }
    }
}

impl LinkNode for Node {
    fn handle_link(&mut self, now: Instant, event: LinkEvent<'_>) {
        if let LinkEvent::Received(arrival) = event
            && arrival.from == self.peer
        {
            // The link counts malformed frames.
            let _ = self.link.handle(now, arrival.sdu);
        }
        self.catch_up(now);
        self.ready = self.link.wants(now);
    }

    fn pending(&self) -> Classes {
        Classes::NONE.with_if(Class::Data, self.ready || self.link.waiting() > 0)
    }

    fn poll_link(&mut self, now: Instant, allowed: Classes, sdu: &mut [u8]) -> Option<LinkSend> {
        if !allowed.contains(Class::Data) {
            return None;
        }
        self.catch_up(now);
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
        // A frame that is due already waits for the MAC, not for a timer.
        let wake = self.link.poll_timeout();
        wake.filter(|_| !self.ready)
    }
}
