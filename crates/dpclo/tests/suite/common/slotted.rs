//! A node of a ZMAC+ network: first it finds its time slot by DRAND, over the air, then it does what it is for.

use chappe_core::{Address, Classes, Instant, LinkEvent, LinkNode, LinkSend, Stream, Wake};
use chappe_mac::zmac::drand::{Drand, Timing};

/// DRAND until a moment, another node from then on. Neither understands the other's frames, and they never speak at once.
#[derive(Clone, Debug)]
pub struct Slotted<N> {
    /// `None`: the MAC needs no time slots.
    pub drand: Option<Drand>,
    pub inner: N,
    /// When the inner node begins.
    pub start: Instant,
    begun: bool,
}

impl<N> Slotted<N> {
    /// A node over a MAC that needs no time slots.
    pub fn without(inner: N) -> Slotted<N> {
        Slotted {
            drand: None,
            inner,
            start: Instant::ZERO,
            begun: true,
        }
    }

    /// Time slots until `start`, then the inner node.
    pub fn new(address: Address, random: Stream, inner: N, start: Instant) -> Slotted<N> {
        // Four times a second is much for 108 nodes of which half hear each other: once a second.
        let timing = Timing {
            period: chappe_core::Duration::from_secs(1),
            discovery: chappe_core::Duration::from_secs(5),
            ..Timing::default()
        };
        Slotted {
            drand: Some(Drand::new(address, random, timing, Instant::ZERO)),
            inner,
            start,
            begun: false,
        }
    }

    fn seeks(&mut self) -> Option<&mut Drand> {
        self.drand.as_mut().filter(|_| !self.begun)
    }
}

impl<N: LinkNode> LinkNode for Slotted<N> {
    fn handle_link(&mut self, now: Instant, event: LinkEvent<'_>) {
        match self.seeks() {
            Some(drand) => drand.handle_link(now, event),
            None => self.inner.handle_link(now, event),
        }
    }

    fn pending(&self) -> Classes {
        match &self.drand {
            Some(drand) if !self.begun => drand.pending(),
            _ => self.inner.pending(),
        }
    }

    fn poll_link(&mut self, now: Instant, allowed: Classes, sdu: &mut [u8]) -> Option<LinkSend> {
        match self.seeks() {
            Some(drand) => drand.poll_link(now, allowed, sdu),
            None => self.inner.poll_link(now, allowed, sdu),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.begun |= now >= self.start;
        match self.seeks() {
            Some(drand) => drand.handle_timeout(now),
            None => self.inner.handle_timeout(now),
        }
    }

    fn poll_timeout(&self) -> Option<Wake> {
        let start = Wake {
            at: self.start,
            why: "the time slots stand",
        };
        match &self.drand {
            Some(drand) if !self.begun => Wake::earlier(drand.poll_timeout(), Some(start)),
            _ => self.inner.poll_timeout(),
        }
    }
}
