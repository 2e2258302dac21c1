//! A node of a ZMAC+ network: first it finds its time slot by DRAND, over the air, then it routes.

use chappe_core::{Address, Classes, Instant, LinkEvent, LinkNode, LinkSend, Stream, Wake};
use chappe_mac::zmac::drand::{Drand, Timing};

use super::loaded::Loaded;

/// DRAND until a moment, a router from then on. Neither understands the other's frames, and they never speak at once.
#[derive(Clone, Debug)]
pub struct Slotted {
    /// `None`: the MAC needs no time slots.
    pub drand: Option<Drand>,
    pub loaded: Loaded,
    /// When the router begins.
    pub start: Instant,
    routes: bool,
}

impl Slotted {
    /// A router over a MAC that needs no time slots.
    pub fn without(loaded: Loaded) -> Slotted {
        Slotted {
            drand: None,
            loaded,
            start: Instant::ZERO,
            routes: true,
        }
    }

    /// Time slots until `start`, then the router.
    pub fn new(address: Address, random: Stream, loaded: Loaded, start: Instant) -> Slotted {
        // Four times a second is much for 108 nodes of which half hear each other: once a second.
        let timing = Timing {
            period: chappe_core::Duration::from_secs(1),
            discovery: chappe_core::Duration::from_secs(5),
            ..Timing::default()
        };
        Slotted {
            drand: Some(Drand::new(address, random, timing, Instant::ZERO)),
            loaded,
            start,
            routes: false,
        }
    }

    fn seeks(&mut self) -> Option<&mut Drand> {
        self.drand.as_mut().filter(|_| !self.routes)
    }
}

impl LinkNode for Slotted {
    fn handle_link(&mut self, now: Instant, event: LinkEvent<'_>) {
        match self.seeks() {
            Some(drand) => drand.handle_link(now, event),
            None => self.loaded.handle_link(now, event),
        }
    }

    fn pending(&self) -> Classes {
        match &self.drand {
            Some(drand) if !self.routes => drand.pending(),
            _ => self.loaded.pending(),
        }
    }

    fn poll_link(&mut self, now: Instant, allowed: Classes, sdu: &mut [u8]) -> Option<LinkSend> {
        match self.seeks() {
            Some(drand) => drand.poll_link(now, allowed, sdu),
            None => self.loaded.poll_link(now, allowed, sdu),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.routes |= now >= self.start;
        match self.seeks() {
            Some(drand) => drand.handle_timeout(now),
            None => self.loaded.handle_timeout(now),
        }
    }

    fn poll_timeout(&self) -> Option<Wake> {
        let start = Wake {
            at: self.start,
            why: "routing begins",
        };
        match &self.drand {
            Some(drand) if !self.routes => Wake::earlier(drand.poll_timeout(), Some(start)),
            _ => self.loaded.poll_timeout(),
        }
    }
}
