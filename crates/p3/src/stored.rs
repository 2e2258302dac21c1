//! What a destination has of an object: the packets in its store, and which they are.

use crate::object::Store;
use crate::plan::Plan;
use crate::window::Window;

/// The store and the packets that lie in it.
#[derive(Clone, Debug)]
pub(crate) struct Stored<S> {
    pub store: S,
    pub have: Window,
    /// Packets in the store, those of an earlier part of the transfer included.
    pub packets: u32,
}

impl<S: Store> Stored<S> {
    pub fn new(store: S) -> Stored<S> {
        Stored {
            store,
            have: Window::new(0),
            packets: 0,
        }
    }

    /// Stores a packet; false if the store has no room for it.
    pub fn put(&mut self, plan: &Plan, packet: u32, payload: &[u8]) -> bool {
        let offset = packet.checked_mul(plan.payload() as u32);
        let stored = offset.is_some_and(|offset| self.store.write(offset, payload));
        if stored {
            self.have.set(packet, true);
            self.packets = self.packets.saturating_add(1);
        }
        stored
    }

    /// Forgets a packet, which is then missing again.
    pub fn drop(&mut self, packet: u32) {
        if self.have.contains(packet) {
            self.have.set(packet, false);
            self.packets = self.packets.saturating_sub(1);
        }
    }

    /// Reads a packet that is stored; false if the store cannot.
    pub fn read(&self, plan: &Plan, packet: u32, payload: &mut [u8]) -> bool {
        let offset = packet.checked_mul(plan.payload() as u32);
        offset.is_some_and(|offset| self.store.read(offset, payload))
    }

    /// The packets before `end` that are not stored.
    pub fn missing(&self, end: u32) -> impl Iterator<Item = u32> + '_ {
        (self.have.base()..end).filter(|packet| !self.have.contains(*packet))
    }
}
