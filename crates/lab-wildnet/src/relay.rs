//! Queues between the radios of a mast, which hand received packets to each other.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use crate::ipv4;

/// The most packets that wait for one radio of a mast. Further ones are dropped. A tenth of Linux's usual 1000 (`txqueuelen`).
const HANDOVER_MAX: usize = 100;

/// The queue of packets that other radios of the mast received for one.
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

/// A queue that radios of one mast share.
pub type SharedQueue = Rc<RefCell<HandoverQueue>>;

/// One radio's ends of the queues of its mast.
#[derive(Clone, Debug, Default)]
pub struct Relay {
    /// Packets that this radio is to send.
    pub incoming: SharedQueue,
    /// The queues of the other radios.
    pub exits: Vec<Exit>,
}

/// Another radio of the mast.
#[derive(Clone, Debug, Default)]
pub struct Exit {
    /// Packets that it is to send.
    pub queue: SharedQueue,
    /// The numbers of the hosts to which it leads.
    pub hosts: Vec<u16>,
}

impl Relay {
    /// Hands a received packet to the radio that leads to its destination; to the other one if there is only one. Drops packets for
    /// hosts to which none leads.
    pub fn put(&self, packet: &[u8]) {
        let exit = match &self.exits[..] {
            [only] => Some(only),
            several => {
                let to = ipv4::destination(packet);
                let leads = |exit: &&Exit| to.is_some_and(|to| exit.hosts.contains(&to));
                several.iter().find(leads)
            }
        };
        let Some(exit) = exit else { return };
        let mut queue = exit.queue.borrow_mut();
        if queue.packets.len() < HANDOVER_MAX {
            queue.packets.push_back(packet.to_vec());
            queue.fresh = true;
        }
    }

    /// Takes the next packet that this radio is to send, and returns its length.
    pub fn next(&self, packet: &mut [u8]) -> Option<usize> {
        let next = self.incoming.borrow_mut().packets.pop_front()?;
        packet.get_mut(..next.len())?.copy_from_slice(&next);
        Some(next.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The least of an IPv4 packet to a host.
    fn packet(number: u16) -> Vec<u8> {
        let mut packet = vec![0; 20];
        packet[0] = 0x45;
        packet[18..].copy_from_slice(&number.to_be_bytes());
        packet
    }

    #[test]
    fn packets_leave_by_the_radio_that_leads_to_their_host() {
        let exit = |hosts: &[u16]| Exit {
            hosts: hosts.to_vec(),
            ..Exit::default()
        };
        let relay = Relay {
            exits: vec![exit(&[3]), exit(&[5, 300])],
            ..Relay::default()
        };
        for number in [300, 3, 5, 7] {
            relay.put(&packet(number));
        }
        relay.put(&[1, 2, 3]);
        let waiting = |place: usize| relay.exits[place].queue.borrow().packets.len();
        assert_eq!([waiting(0), waiting(1)], [1, 2]);
        // Where there is no choice, packets need no address.
        let two = Relay {
            exits: vec![exit(&[])],
            ..Relay::default()
        };
        two.put(&[1, 2, 3]);
        assert!(two.exits[0].queue.borrow_mut().take_fresh());
    }
}
