//! What stands behind a radio through which several hosts communicate, or hosts and other masts: a router.

use chappe_core::{HostNode, Instant, Wake};

use super::Traffic;
use crate::ipv4;
use crate::relay::Relay;

/// Hosts at a mast, and the other radios of the mast, behind one radio.
pub struct Junction<'a> {
    /// Hosts with their numbers, each TCP or TCP behind a Snoop agent.
    pub hosts: Vec<(u16, Traffic<'a>)>,
    /// The queues of the mast's other radios.
    relay: Relay,
    /// Who is asked first for the next packet: a host, or the other radios behind the last one.
    turn: usize,
}

impl<'a> Junction<'a> {
    /// Hosts and the mast's other radios, which take turns.
    pub fn new(hosts: Vec<(u16, Traffic<'a>)>, relay: Relay) -> Junction<'a> {
        Junction {
            hosts,
            relay,
            turn: 0,
        }
    }

    /// The same after the mast restarted.
    pub fn restarted(self) -> Junction<'a> {
        let hosts = self.hosts.into_iter();
        let hosts = hosts.map(|(number, host)| (number, host.restarted()));
        Junction {
            hosts: hosts.collect(),
            ..self
        }
    }
}

impl HostNode for Junction<'_> {
    fn handle_packet(&mut self, now: Instant, packet: &[u8]) {
        let to = ipv4::destination(packet);
        match self
            .hosts
            .iter_mut()
            .find(|(number, _)| Some(*number) == to)
        {
            Some((_, host)) => host.handle_packet(now, packet),
            None => self.relay.put(packet),
        }
    }

    fn poll_packet(&mut self, now: Instant, packet: &mut [u8]) -> Option<usize> {
        let all = self.hosts.len() + 1;
        (0..all).find_map(|_| {
            let place = self.turn;
            // The next packet is another's, so that no host keeps the radio to itself.
            self.turn = (self.turn + 1) % all;
            match self.hosts.get_mut(place) {
                Some((_, host)) => host.poll_packet(now, packet),
                None => self.relay.next(packet),
            }
        })
    }

    fn handle_timeout(&mut self, now: Instant) {
        for (_, host) in &mut self.hosts {
            if Wake::due(host.poll_timeout(), now) {
                host.handle_timeout(now);
            }
        }
    }

    fn poll_timeout(&self) -> Option<Wake> {
        let timeouts = self.hosts.iter().map(|(_, host)| host.poll_timeout());
        timeouts.fold(None, Wake::earlier)
    }
}
