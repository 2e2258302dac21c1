//! Datagrams on their way from the kernel to the peers, and their packets on to the host.

use std::net::IpAddr;

use chappe_core::{Duration, Instant};
use chappe_session::{HANDSHAKE_MAX, Initiation, Verdict};
use chappe_sys::tun::Joined;
use chappe_sys::{Endpoint, Received};

use super::Tunnel;
use super::host::Host;
use crate::classify::facts;
use crate::introduction;
use crate::peer::{Peer, of_place};

impl Tunnel {
    /// Reads the datagrams that wait at a socket, and passes each to its peer.
    pub(super) fn take_datagrams(
        &mut self,
        socket: usize,
        received: &mut Received,
        packet: &mut [u8],
    ) -> chappe_sys::Result<()> {
        if !self.read(socket, received)? {
            return Ok(());
        }
        let now = self.clock.now();
        let mut reply = [0; HANDSHAKE_MAX];
        let mut told = Vec::new();
        for heard in received.iter_aged() {
            let Some((from, octets, age)) = heard else {
                self.unmatched.datagrams += 1;
                continue;
            };
            match self.addressee((now, socket), from, octets, &mut reply) {
                None => {}
                Some((number, Some(call))) => self.take_call(now, number, from, call),
                Some((number, None)) => {
                    let age = Duration::from_nanos(age.as_nanos() as u64);
                    let when = (now, now.saturating_before(age));
                    if self.take_sealed(when, (number, from), octets, packet)? {
                        told.push(number);
                    }
                }
            }
        }
        for number in told {
            introduction::act(self, now, number, self.introduces);
        }
        Ok(())
    }

    /// Reads what waits at a socket. Returns whether it could. An error is that of an interface that has gone.
    fn read(&mut self, socket: usize, received: &mut Received) -> chappe_sys::Result<bool> {
        let Some(own) = self.sockets.get(socket) else {
            return Ok(false);
        };
        match own.receive(received) {
            Ok(_) => Ok(true),
            Err(error) if error.is_gone() => match self.sockets.close(socket, &self.events) {
                true => Ok(false),
                false => Err(error),
            },
            // An ICMP error for an earlier datagram, or the interface is down at present.
            Err(_) => Ok(false),
        }
    }

    /// The place of the peer that a datagram is for, and its call if it is one. What is for no peer is answered or counted.
    fn addressee(
        &mut self,
        (now, socket): (Instant, usize),
        from: Endpoint,
        octets: &[u8],
        reply: &mut [u8],
    ) -> Option<(usize, Option<Initiation>)> {
        let (source, len) = crate::carrier::source(from);
        let source = source.get(..len).unwrap_or_default();
        match self.gate.judge(now, source, octets, reply) {
            Verdict::Sessions(place) => return Some((of_place(place as usize).0, None)),
            Verdict::Initiation(call) => match self.keys.get(&call.public) {
                Some(&number) => return Some((number, Some(call))),
                None => {
                    self.unmatched.datagrams += 1;
                    self.unmatched.unknown_key += 1;
                    self.hints.unknown_caller(now, from, call.public);
                }
            },
            Verdict::Reply(len) => {
                self.unmatched.held_off += 1;
                let outbox = self.sockets.outbox(socket);
                if !outbox.is_full() {
                    let room = outbox.room().iter_mut();
                    room.zip(reply).take(len).for_each(|(to, from)| *to = *from);
                    outbox.add(len, from, false);
                }
            }
            Verdict::Dropped(reason) => self.unmatched.count(reason),
        }
        None
    }

    /// Passes a call to the peer at a place.
    fn take_call(&mut self, now: Instant, number: usize, from: Endpoint, call: Initiation) {
        let Some(Some(place)) = self.places.get_mut(number) else {
            self.unmatched.datagrams += 1;
            return;
        };
        place.peer.take_call(now, &self.gate, from, call);
        self.turns.touch(number);
    }

    /// Passes any other datagram to the peer at a place, and the packets that it completes to the host. Returns whether the peer has said
    /// something about others in it.
    fn take_sealed(
        &mut self,
        (now, arrived): (Instant, Instant),
        (number, from): (usize, Endpoint),
        octets: &[u8],
        packet: &mut [u8],
    ) -> chappe_sys::Result<bool> {
        let Some(Some(place)) = self.places.get_mut(number) else {
            self.unmatched.datagrams += 1;
            return Ok(false);
        };
        let peer = &mut place.peer;
        let Some(copy) = packet.get_mut(..octets.len()) else {
            return Ok(false);
        };
        copy.copy_from_slice(octets);
        if !peer.take_datagram((now, arrived), from, copy) {
            return Ok(false);
        }
        let said = peer.has_said();
        self.turns.touch(number);
        while let Some((len, joined)) = peer.deliver_joined(packet) {
            let packet = packet.get(..len).unwrap_or_default();
            let to = (&mut self.host, now, number);
            if let Some(foreign) = hand_up(to, peer, packet, joined)? {
                self.hints.foreign(now, &peer.config().name, foreign);
            }
        }
        Ok(said)
    }
}

/// Passes a packet from the peer at a place to the host if its source is in the peer's networks. Returns the source otherwise.
fn hand_up(
    (host, now, place): (&mut Host, Instant, usize),
    peer: &mut Peer,
    packet: &[u8],
    joined: Option<Joined>,
) -> chappe_sys::Result<Option<IpAddr>> {
    let source = facts(packet).map(|facts| facts.source);
    let networks = &peer.config().networks;
    let allowed = source.is_some_and(|source| networks.iter().any(|net| net.has(source)));
    if !allowed {
        peer.counters_mut().foreign += 1;
        return Ok(source);
    }
    if host.take(now, place, packet, joined)? {
        peer.counters_mut().octets_delivered += packet.len() as u64;
    } else {
        peer.counters_mut().host_full += 1;
    }
    Ok(None)
}
