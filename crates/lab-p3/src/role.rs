//! The nodes of a simulated P³ network: source, relays and gateway.

use std::sync::{Arc, Mutex, PoisonError};

use chappe_core::{Instant, RadioEvent, RadioNode, RadioRequest, TraceEvent, Wake};
use chappe_p3::{Destination, Gateway, Memory as Kept, Object, Relay, Source, Store};

use super::replan::Replan;

/// One node in the simulator.
#[derive(Clone, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "nodes are boxed one by one, and most are relays"
)]
pub enum Role {
    /// The node that has the object.
    Source(Source<Held>, Option<Flash>),
    /// A node that repeats the frames it receives.
    Relay(Relay),
    /// The destination of the paper's protocols, which tries once.
    Destination(Destination<Memory>),
    /// The improved variant's gateway, which plans and tries again.
    Gateway(Gateway<Memory, Replan>, Option<Flash>),
}

/// What the ends of a transfer keep over a restart. Only scenarios with restarts have one.
pub type Flash = Arc<Mutex<Page>>;

/// The contents of [`Flash`].
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The source's last session.
    pub session: u32,
    /// The gateway's state, as of its last packet.
    pub gateway: Option<Kept>,
    /// The packets that the gateway has stored.
    pub octets: Vec<u8>,
}

/// Looks into a page. A thread that panicked while it wrote has ended the run already.
pub fn page(flash: &Flash) -> std::sync::MutexGuard<'_, Page> {
    flash.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Role {
    /// The destination inside, if the node is one.
    pub fn destination(&self) -> Option<&Destination<Memory>> {
        match self {
            Role::Destination(node) => Some(node),
            Role::Gateway(node, _) => Some(node.destination()),
            Role::Source(..) | Role::Relay(_) => None,
        }
    }

    /// Writes to flash what a restart needs.
    fn keep(&self) {
        match self {
            Role::Source(node, Some(flash)) => page(flash).session = node.session(),
            Role::Gateway(node, Some(flash)) if !node.is_idle() => {
                page(flash).gateway = Some(node.memory());
            }
            _ => {}
        }
    }
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
    flash: Option<Flash>,
}

/// The largest object. A wrong packet number beyond it is refused, so that it cannot exhaust the memory.
const OCTETS_MAX: usize = u32::MAX as usize;

impl Memory {
    /// A store that begins with what lies in flash.
    pub fn kept(flash: Option<Flash>) -> Memory {
        Memory {
            octets: flash
                .as_ref()
                .map_or_else(Vec::new, |flash| page(flash).octets.clone()),
            whole: false,
            flash,
        }
    }

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
        if let Some(flash) = &self.flash {
            let stored = &mut page(flash).octets;
            let len = stored.len().max(to);
            stored.resize(len, 0);
            stored[from..to].copy_from_slice(octets);
        }
        true
    }

    fn read(&self, offset: u32, to: &mut [u8]) -> bool {
        let from = self.octets.get(offset as usize..offset as usize + to.len());
        from.map(|from| to.copy_from_slice(from)).is_some()
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
            Role::Source($node, _) => $call,
            Role::Relay($node) => $call,
            Role::Destination($node) => $call,
            Role::Gateway($node, _) => $call,
        }
    };
}

impl RadioNode for Role {
    fn handle_radio(&mut self, now: Instant, event: RadioEvent<'_>) {
        each!(self, node => node.handle_radio(now, event));
        self.keep();
    }

    fn poll_radio(&mut self, now: Instant, psdu: &mut [u8]) -> Option<RadioRequest> {
        each!(self, node => node.poll_radio(now, psdu))
    }

    fn handle_timeout(&mut self, now: Instant) {
        each!(self, node => node.handle_timeout(now));
        self.keep();
    }

    fn poll_timeout(&self) -> Option<Wake> {
        each!(self, node => node.poll_timeout())
    }

    fn poll_trace(&mut self) -> Option<TraceEvent> {
        each!(self, node => node.poll_trace())
    }
}
