//! Datagrams that wait to be sent: a queue that drops what does not fit, as the queue of a network interface does.

use crate::store::Store;

/// A queue of a fixed length.
#[derive(Clone, Debug)]
pub(crate) struct Frames {
    store: Store,
    places: usize,
    first: usize,
    len: usize,
    /// Datagrams dropped because the queue was full.
    pub dropped: u64,
    /// Datagrams accepted, and their octets.
    pub taken: u64,
    pub octets: u64,
}

impl Frames {
    /// For `places` datagrams of up to `longest` octets.
    pub fn new(places: usize, longest: usize) -> Frames {
        Frames {
            store: Store::new(places, longest),
            places,
            first: 0,
            len: 0,
            dropped: 0,
            taken: 0,
            octets: 0,
        }
    }

    /// Whether no datagram waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Queues a datagram made of `parts`, or drops it.
    pub fn push(&mut self, parts: &[&[u8]]) {
        let place = (self.first + self.len) % self.places.max(1);
        if self.len < self.places && self.store.put(place, parts) {
            self.len += 1;
            self.taken += 1;
            self.octets += self.store.get(place).len() as u64;
        } else {
            self.dropped += 1;
        }
    }

    /// Removes the first datagram and writes it to the front of `octets`; `None` if there is none, or no room for it.
    pub fn pop(&mut self, octets: &mut [u8]) -> Option<usize> {
        if self.len == 0 {
            return None;
        }
        let frame = self.store.get(self.first);
        let len = frame.len();
        let to = octets.get_mut(..len)?;
        to.copy_from_slice(frame);
        self.first = (self.first + 1) % self.places.max(1);
        self.len -= 1;
        Some(len)
    }
}
