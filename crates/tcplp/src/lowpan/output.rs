//! Outgoing frames, the relay's and the host's. Each neighbour has one unconfirmed frame at a time, or two if it sleeps, so
//! that the first can announce the second.

use chappe_core::{
    Address, Class, Classes, Duration, HostNode, Instant, Layer, LinkSend, Outcome, TraceEvent,
};
use chappe_wire::ipv6;
use chappe_wire::sixlowpan::Ends;
use chappe_wire::sixlowpan::iphc::{Known, Reach};

use super::in_flight::What;
use super::{Config, Headers, Interface, Lost, Route, Routes, node_of};

impl<
    H: HostNode,
    R: Routes,
    const OUT: usize,
    const IN: usize,
    const FRAMES: usize,
    const MTU: usize,
    C: Headers,
> Interface<H, R, OUT, IN, FRAMES, MTU, C>
{
    /// Takes packets from the host while there is a place for them.
    pub(super) fn pump(&mut self, now: Instant) {
        while let Some(place) = self.outgoing.iter().position(|own| own.is_free()) {
            let Some(own) = self.outgoing.get_mut(place) else {
                return;
            };
            let Some(len) = self.host.poll_packet(now, own.room()) else {
                return;
            };
            self.begin(place, len);
        }
    }

    fn begin(&mut self, place: usize, len: usize) {
        let tag = self.next_tag();
        let Some(own) = self.outgoing.get_mut(place) else {
            return;
        };
        let whole = own.room().get(..len);
        let header = whole.and_then(|packet| ipv6::Header::parse(packet).ok());
        let Some(header) = header.filter(|header| usize::from(header.payload_len) + 40 == len)
        else {
            return self.lose(Lost::Malformed);
        };
        let next = match header.destination.is_multicast() {
            true => Some(Address::BROADCAST),
            false => match self.routes.route(header.destination) {
                Route::Via(next) => Some(next),
                Route::Here | Route::Nowhere => None,
            },
        };
        let Some(next) = next else {
            return self.lose(Lost::NoRoute);
        };
        let reach = reach(
            header.destination.is_multicast(),
            node_of(header.destination),
            next,
        );
        if let Some(own) = self.outgoing.get_mut(place) {
            own.begin(len, next, reach, tag);
            own.number = self.counters.packets_sent;
        }
        self.counters.packets_sent = self.counters.packets_sent.wrapping_add(1);
    }

    pub(super) fn next_tag(&mut self) -> u16 {
        self.tag = self.tag.wrapping_add(1);
        self.tag
    }

    pub(super) fn known(&self, from: Address, to: Address) -> Known<'static> {
        Known {
            contexts: self.config.contexts,
            ends: Ends {
                source: Config::interface_id(from),
                destination: Config::interface_id(to),
            },
        }
    }

    /// Whether a neighbour may be sent another frame now.
    fn may(&self, next: Address) -> bool {
        let limit = if self.routes.is_sleepy(next) { 2 } else { 1 };
        self.in_flight.to(next) < limit
    }

    //= tcplp 7.1: hidden terminals: a paced source avoids collisions with its own frames
    /// The host's datagram to send next: the oldest one that may be sent, so that the fragments of two datagrams to one
    /// neighbour never mix.
    fn ready_own(&self) -> Option<usize> {
        let newest = self.counters.packets_sent;
        self.outgoing
            .iter()
            .enumerate()
            .filter(|(_, own)| !own.is_free() && own.has_more() && self.may(own.next))
            .filter(|(_, own)| own.reach == Reach::Link || self.resting.is_none())
            .filter(|(place, _)| self.in_flight.has_own_place(*place))
            .max_by_key(|(_, own)| newest.wrapping_sub(own.number))
            .map(|(place, _)| place)
    }

    pub(super) fn waiting(&self) -> Classes {
        let relay =
            || self.in_flight.has_relay_place() && self.forwarding.any(|next| self.may(next));
        let some = self.ready_own().is_some() || relay();
        Classes::NONE.with_if(Class::Data, some)
    }

    pub(super) fn next_frame(
        &mut self,
        now: Instant,
        allowed: Classes,
        sdu: &mut [u8],
    ) -> Option<LinkSend> {
        if !allowed.contains(Class::Data) {
            return None;
        }
        // Alternates between relayed and own frames while there are both, so that neither starves.
        let sent = match self.relayed {
            true => match self.send_own(now, sdu) {
                Some(own) => Some(own),
                None => self.send_relayed(now, sdu),
            },
            false => match self.send_relayed(now, sdu) {
                Some(relayed) => Some(relayed),
                None => self.send_own(now, sdu),
            },
        };
        if let Some(send) = &sent {
            self.trace.push(TraceEvent::Sent {
                layer: Layer::Link,
                to: send.to,
                bytes: send.len as u32,
            });
        }
        sent
    }

    fn send_relayed(&mut self, now: Instant, sdu: &mut [u8]) -> Option<LinkSend> {
        if !self.in_flight.has_relay_place() {
            return None;
        }
        // As in `may`, while the queue is borrowed mutably.
        let limit = |next| if self.routes.is_sleepy(next) { 2 } else { 1 };
        let in_flight = &self.in_flight;
        let frame = self
            .forwarding
            .take(|next| in_flight.to(next) < limit(next))?;
        if self.forwarding.len() == 0 {
            self.red.emptied(now);
        }
        let len = frame.sdu().len();
        sdu.get_mut(..len)?.copy_from_slice(frame.sdu());
        self.relayed = true;
        self.counters.frames_forwarded = self.counters.frames_forwarded.wrapping_add(1);
        Some(self.launch(frame.next, len, What::Relayed(frame.tag)))
    }

    fn send_own(&mut self, now: Instant, sdu: &mut [u8]) -> Option<LinkSend> {
        while let Some(place) = self.ready_own() {
            let next = self.outgoing.get(place)?.next;
            let known = self.known(self.config.address, next);
            let frame_max = self.config.frame_max;
            let own = self.outgoing.get_mut(place)?;
            match own.frame(&known, frame_max, &mut self.headers, sdu) {
                Ok(len) => {
                    own.out = own.out.saturating_add(1);
                    self.relayed = false;
                    self.counters.frames_sent = self.counters.frames_sent.wrapping_add(1);
                    return Some(self.launch(next, len, What::Own(place as u8)));
                }
                Err(_) => {
                    own.clear();
                    self.in_flight.disown(What::Own(place as u8));
                    self.lose(Lost::TooBig);
                    self.pump(now);
                }
            }
        }
        None
    }

    fn launch(&mut self, to: Address, len: usize, what: What) -> LinkSend {
        LinkSend {
            to,
            len,
            class: Class::Data,
            mode: None,
            token: self.in_flight.launch(to, what),
        }
    }

    /// The link reports the outcome of a frame.
    pub(super) fn on_outcome(&mut self, now: Instant, token: u32, outcome: Outcome) {
        let Some(what) = self.in_flight.land(token) else {
            return;
        };
        let failed = matches!(outcome, Outcome::Failed { .. });
        match what {
            What::Own(place) => {
                let Some(own) = self.outgoing.get_mut(usize::from(place)) else {
                    return;
                };
                own.out = own.out.saturating_sub(1);
                if own.reach == Reach::Path && self.config.pace > Duration::ZERO {
                    self.resting = Some(now + self.config.pace);
                }
                if failed {
                    // Without this fragment the rest is useless.
                    own.clear();
                    self.in_flight.disown(what);
                    self.lose(Lost::LinkFailed);
                } else if !own.has_more() && own.out == 0 {
                    own.clear();
                }
            }
            What::Relayed(Some(tag)) if failed => {
                self.forwarding.abandon(tag);
                self.in_flight.disown(what);
                self.lose(Lost::LinkFailed);
            }
            What::Relayed(_) if failed => self.lose(Lost::LinkFailed),
            What::Relayed(_) => {}
        }
    }
}

/// Whether headers may be compressed by this hop's link-layer addresses, or must stay valid along the path. The former if
/// the destination is the next hop.
pub(super) fn reach(multicast: bool, destination: Option<Address>, next: Address) -> Reach {
    match multicast || destination == Some(next) {
        true => Reach::Link,
        false => Reach::Path,
    }
}
