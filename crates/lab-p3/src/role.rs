//! The nodes of a simulated P³ network: source, relays and gateway.

use std::sync::Arc;

use chappe_core::{Instant, RadioEvent, RadioNode, RadioRequest, TraceEvent, Wake};
use chappe_p3::{Destination, Object, Relay, Source, Store};

/// One node in the simulator.
#[derive(Clone, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "nodes are boxed one by one, and most are relays"
)]
pub enum Role {
    /// The node that has the object.
    Source(Source<Held>),
    /// A node that repeats the frames it receives.
    Relay(Relay),
    /// The gateway, which fetches the object.
    Destination(Destination<Memory>),
}

/// The object at its source, in memory.
#[derive(Clone, Debug)]
pub struct Held(pub Arc<[u8]>);

impl Object for Held {
    fn len(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }

    fn read(&self, offset: u32, to: &mut [u8]) {
        (&*self.0).read(offset, to);
    }
}

/// The object at its destination, in memory.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    octets: Vec<u8>,
    whole: bool,
}

/// The largest object. A wrong packet number beyond it is refused, so that it cannot exhaust the memory.
const OCTETS_MAX: usize = u32::MAX as usize;

impl Memory {
    /// The object, if it is complete.
    pub fn object(&self) -> Option<&[u8]> {
        self.whole.then_some(&*self.octets)
    }
}

impl Store for Memory {
    fn write(&mut self, offset: u32, octets: &[u8]) -> bool {
        let (from, to) = (offset as usize, offset as usize + octets.len());
        if to > OCTETS_MAX {
            return false;
        }
        if self.octets.len() < to {
            self.octets.resize(to, 0);
        }
        self.octets[from..to].copy_from_slice(octets);
        true
    }

    fn finish(&mut self, len: u32) {
        self.octets.truncate(len as usize);
        self.whole = self.octets.len() == len as usize;
    }
}

/// Calls the same method of whichever node it is.
macro_rules! each {
    ($role:expr, $node:ident => $call:expr) => {
        match $role {
            Role::Source($node) => $call,
            Role::Relay($node) => $call,
            Role::Destination($node) => $call,
        }
    };
}

impl RadioNode for Role {
    fn handle_radio(&mut self, now: Instant, event: RadioEvent<'_>) {
        each!(self, node => node.handle_radio(now, event));
    }

    fn poll_radio(&mut self, now: Instant, psdu: &mut [u8]) -> Option<RadioRequest> {
        each!(self, node => node.poll_radio(now, psdu))
    }

    fn handle_timeout(&mut self, now: Instant) {
        each!(self, node => node.handle_timeout(now));
    }

    fn poll_timeout(&self) -> Option<Wake> {
        each!(self, node => node.poll_timeout())
    }

    fn poll_trace(&mut self) -> Option<TraceEvent> {
        each!(self, node => node.poll_trace())
    }
}
