//! The server of sense-and-send: counts what each mote delivers, by TCP or by CoAP.

use core::net::{IpAddr, Ipv6Addr};

use chappe_core::Instant;

use super::bulk::octet;
use super::sense::POSITION;
use super::{Application, Datagram, Outgoing};
use crate::coap::{self, Server};
use crate::tcp::{Congestion, Flow, Socket};

/// What one mote has delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Octets of payload, each counted once.
    pub octets: u64,
    /// Of those received by TCP, the octets that were not the expected ones (the test octets of [`Sense`](super::Sense) and
    /// [`Bulk`](super::Bulk)).
    pub wrong: u64,
    /// CoAP messages, duplicates not counted.
    pub messages: u32,
    /// When octets last arrived.
    pub last: Instant,
}

/// Reads all sockets and answers CoAP posts; tallies up to `PEERS` motes by address.
#[derive(Clone, Debug)]
pub struct Collect<const PEERS: usize> {
    peers: [Option<(Ipv6Addr, Tally)>; PEERS],
    server: Server<PEERS>,
    answers: [Option<Answer>; PEERS],
    /// The connections of motes that open one after the other, if they do.
    connections: Option<[Option<Connection>; PEERS]>,
}

/// A connection that begins with the position of its octets.
#[derive(Clone, Copy, Debug)]
struct Connection {
    flow: Flow,
    /// How much of the position came, and its value so far; then the position of the next octet.
    told: usize,
    at: u64,
}

/// An answer to a post: header, token and Block1 option.
#[derive(Clone, Copy, Debug)]
struct Answer {
    to: (Ipv6Addr, u16),
    len: usize,
    message: [u8; 32],
}

impl<const PEERS: usize> Default for Collect<PEERS> {
    fn default() -> Self {
        Collect {
            peers: [None; PEERS],
            server: Server::default(),
            answers: [None; PEERS],
            connections: None,
        }
    }
}

impl<const PEERS: usize> Collect<PEERS> {
    /// For motes whose connections begin with a position ([`Sense::reopening`](super::Sense::reopening)): octets that arrive twice count
    /// once. Octets that were left out count as wrong. A mote has one connection at a time.
    pub fn with_positions() -> Self {
        Collect {
            connections: Some([None; PEERS]),
            ..Self::default()
        }
    }

    /// Takes the octets of a connection that begins with a position.
    fn take(&mut self, now: Instant, mote: Ipv6Addr, flow: Flow, octets: impl Iterator<Item = u8>) {
        let known = |place: &Option<(Ipv6Addr, Tally)>| place.is_some_and(|(peer, _)| peer == mote);
        if self.tally_mut(mote).is_none() {
            return;
        }
        let place = self.peers.iter().position(known);
        let (Some(place), Some(connections)) = (place, &mut self.connections) else {
            return;
        };
        let (Some(slot), Some(Some((_, tally)))) =
            (connections.get_mut(place), self.peers.get_mut(place))
        else {
            return;
        };
        let fresh = Connection {
            flow,
            told: 0,
            at: 0,
        };
        let connection = slot.get_or_insert(fresh);
        if connection.flow != flow {
            *connection = fresh;
        }
        for arrived in octets {
            if connection.told < POSITION {
                connection.told += 1;
                connection.at = connection.at << 8 | u64::from(arrived);
                continue;
            }
            tally.wrong += u64::from(arrived != octet(connection.at));
            tally.wrong += connection.at.saturating_sub(tally.octets);
            connection.at = connection.at.saturating_add(1);
            tally.octets = tally.octets.max(connection.at);
        }
        tally.last = now;
    }

    /// What a mote has delivered so far; zeros for an unknown one.
    pub fn tally(&self, mote: Ipv6Addr) -> Tally {
        let found = self.peers.iter().flatten().find(|(peer, _)| *peer == mote);
        found.map_or_else(Tally::default, |(_, tally)| *tally)
    }

    /// The tally of a mote, which may be new. `None` if there is no room for one more.
    fn tally_mut(&mut self, mote: Ipv6Addr) -> Option<&mut Tally> {
        let known = |place: &Option<(Ipv6Addr, Tally)>| place.is_some_and(|(peer, _)| peer == mote);
        let place = match self.peers.iter().position(known) {
            Some(place) => place,
            None => self.peers.iter().position(Option::is_none)?,
        };
        let place = self.peers.get_mut(place)?;
        Some(&mut place.get_or_insert((mote, Tally::default())).1)
    }
}

impl<'a, C: Congestion, const PEERS: usize> Application<'a, C> for Collect<PEERS> {
    fn serve(&mut self, now: Instant, sockets: &mut [Socket<'a, C>]) {
        for socket in sockets {
            let (front, back) = socket.readable();
            let read = front.len() + back.len();
            if read > 0
                && self.connections.is_some()
                && let IpAddr::V6(mote) = socket.flow().remote.address()
            {
                let octets = front.iter().chain(back).copied();
                self.take(now, mote, socket.flow(), octets);
            } else if read > 0
                && let IpAddr::V6(mote) = socket.flow().remote.address()
                && let Some(tally) = self.tally_mut(mote)
            {
                let arrived = front.iter().chain(back).zip(tally.octets..);
                let wrong = arrived.filter(|(arrived, at)| **arrived != octet(*at));
                tally.wrong += wrong.count() as u64;
                tally.octets += read as u64;
                tally.last = now;
            }
            socket.consume(read);
            if socket.at_end() {
                socket.close(now);
            }
        }
    }

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        if datagram.port != coap::PORT {
            return;
        }
        let mut message = [0; 32];
        let (to, payload) = (datagram.from, datagram.payload);
        let (received, len) = self.server.handle(to, payload, &mut message);
        if let Some(received) = received
            && let Some(tally) = self.tally_mut(to.0)
        {
            tally.octets += received.payload.len() as u64;
            tally.messages = tally.messages.saturating_add(1);
            tally.last = now;
        }
        // With all places taken the answer is lost, and the client retransmits.
        if let Some(len) = len
            && let Some(place) = self.answers.iter_mut().find(|place| place.is_none())
        {
            *place = Some(Answer { to, len, message });
        }
    }

    fn poll_datagram(&mut self, _: Instant, payload: &mut [u8]) -> Option<Outgoing> {
        let answer = self.answers.iter_mut().find_map(Option::take)?;
        let message = answer.message.get(..answer.len)?;
        payload.get_mut(..answer.len)?.copy_from_slice(message);
        Some(Outgoing {
            to: answer.to,
            port: coap::PORT,
            len: answer.len,
        })
    }
}
