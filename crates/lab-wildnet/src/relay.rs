//! Queues between the two radios of a mast, which hand received packets to each other.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// The most packets that wait between the two radios of a mast. Further ones are dropped. A tenth of Linux's usual 1000 (`txqueuelen`).
const HANDOVER_MAX: usize = 100;

/// The queue from one radio of a mast to the other.
#[derive(Debug, Default)]
pub struct HandoverQueue {
    packets: VecDeque<Vec<u8>>,
    /// Whether packets arrived since the last [`take_fresh`](Self::take_fresh).
    fresh: bool,
}

impl HandoverQueue {
    /// Drops all waiting packets, as a crash of the mast does.
    pub fn clear(&mut self) {
        self.packets.clear();
    }

    /// Whether packets arrived since the last call.
    pub fn take_fresh(&mut self) -> bool {
        std::mem::take(&mut self.fresh)
    }
}

/// One radio's ends of the two queues of its mast.
#[derive(Clone, Debug, Default)]
pub struct Relay {
    /// Packets that this radio is to send.
    pub incoming: Rc<RefCell<HandoverQueue>>,
    /// Packets that it received, for the other radio.
    pub outgoing: Rc<RefCell<HandoverQueue>>,
}

impl Relay {
    /// Hands a received packet to the other radio.
    pub fn put(&self, packet: &[u8]) {
        let mut outgoing = self.outgoing.borrow_mut();
        if outgoing.packets.len() < HANDOVER_MAX {
            outgoing.packets.push_back(packet.to_vec());
            outgoing.fresh = true;
        }
    }

    /// Takes the next packet that this radio is to send, and returns its length.
    pub fn next(&self, packet: &mut [u8]) -> Option<usize> {
        let next = self.incoming.borrow_mut().packets.pop_front()?;
        packet.get_mut(..next.len())?.copy_from_slice(&next);
        Some(next.len())
    }
}
