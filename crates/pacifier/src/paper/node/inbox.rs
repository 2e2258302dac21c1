//! Frames in: data of the node's groups, its own data echoed by relays, and ACKs.

use chappe_core::{Address, Arrival, DropReason, Instant, Layer, TraceEvent};

use super::{Group, Node};
use crate::paper::acks::Added;
use crate::paper::header::{self, Ack, AckId, Data, Frame};
use crate::paper::receiver::Taken;
use crate::paper::relay::Relay;
use crate::paper::source::Acked;

impl Node {
    /// Handles a frame of a neighbour.
    pub(super) fn on_frame(&mut self, now: Instant, arrival: Arrival<'_>) {
        let Some(from) = arrival
            .from
            .node_number()
            .filter(|&from| self.links.has(from))
        else {
            return self.drop_frame(DropReason::NotForUs);
        };
        match header::parse(arrival.sdu) {
            Ok(Frame::Data(data)) => self.on_data(now, from, &data),
            Ok(Frame::Ack(ack)) if arrival.to == Address::node(self.me) => self.on_ack(ack),
            Ok(Frame::Ack(_) | Frame::Probe(_)) => self.drop_frame(DropReason::NotForUs),
            Err(_) => self.drop_frame(DropReason::Malformed),
        }
    }

    fn on_data(&mut self, now: Instant, from: u16, data: &Data<'_>) {
        let source = data.source();
        let sound = self.links.has(source)
            && data.vector().len() <= self.config.common.k
            && data.payload().len() == self.config.common.payload;
        if !sound {
            return self.drop_frame(DropReason::Malformed);
        }
        // Before anything else: every data frame of the group counts towards M or N, useful or not.
        self.acks
            .overheard(source, data.object(), from, data.last_ack());
        if source == self.me {
            return self.on_echo(now, from, data);
        }
        let Some(place) = self.group_for(now, data) else {
            return;
        };
        let Some(group) = self.groups.get_mut(place) else {
            return;
        };
        let forgetful = group.fresh.lapsed(now, self.config.common.forget);
        let taken = group
            .receiver
            .as_mut()
            .map(|receiver| receiver.on_data(now, data));
        let heard = group
            .relay
            .as_mut()
            .map(|relay| relay.on_data(from, data, forgetful));
        let relay_stale = heard.is_none_or(|heard| heard.stale);
        if !relay_stale {
            group.fresh.renew(now);
        }
        let receiver_gained = matches!(
            taken,
            Some(Taken::Innovative | Taken::Decoded { .. } | Taken::Full)
        );
        let relay_gained = heard.is_some_and(|heard| heard.innovative);
        let counters = &mut self.counters;
        counters.receiver_innovative += u64::from(receiver_gained);
        counters.relay_innovative += u64::from(relay_gained);
        counters.upstream_heard += u64::from(heard.is_some_and(|heard| heard.upstream));
        counters.flushes += u64::from(heard.is_some_and(|heard| heard.flushed));
        if relay_stale && matches!(taken, None | Some(Taken::Foreign)) {
            return self.drop_frame(DropReason::Stale);
        }
        counters.data_heard += 1;
        if receiver_gained || relay_gained {
            counters.innovative += 1;
            let bytes = data.payload().len() as u32;
            let from = Address::node(from);
            self.trace.push(TraceEvent::Received {
                layer: Layer::Link,
                from,
                bytes,
            });
        } else {
            counters.non_innovative += 1;
            self.drop_frame(DropReason::NotInnovative);
        }
        self.on_taken(source, data, taken);
    }

    /// Handles a frame of the node's own group, sent by one of its relays.
    fn on_echo(&mut self, now: Instant, from: u16, data: &Data<'_>) {
        let Some(source) = &mut self.source else {
            return self.drop_frame(DropReason::Stale);
        };
        if source.position().0 != data.object() {
            return self.drop_frame(DropReason::Stale);
        }
        if source.overheard(now, from) {
            self.counters.children_heard += 1;
            self.trace.push(TraceEvent::Timer {
                why: "child overheard",
            });
        }
    }

    /// The index of the frame's group, which is made if this node is to relay for it.
    fn group_for(&mut self, now: Instant, data: &Data<'_>) -> Option<usize> {
        let (source, me) = (data.source(), self.me);
        let called = header::find_forwarder(data.forwarders(), me).is_some();
        let place = self.groups.iter().position(|group| group.source == source);
        let place = match place {
            Some(place) => place,
            None if !called => {
                self.drop_frame(DropReason::NotForUs);
                return None;
            }
            None => self.room_for_group(now, source)?,
        };
        let group = self.groups.get_mut(place)?;
        if called && group.relay.is_none() {
            group.relay = Some(Relay::new(me, source, self.links.clone(), &self.config));
        }
        Some(place)
    }

    /// An index for a new group: a free one, or that of a group which only relays and has been silent for `forget`.
    fn room_for_group(&mut self, now: Instant, source: u16) -> Option<usize> {
        if self.groups.len() < self.config.common.groups_max {
            self.groups.push(Group::new(source));
            return Some(self.groups.len() - 1);
        }
        let forget = self.config.common.forget;
        let silent = |group: &Group| group.receiver.is_none() && group.fresh.lapsed(now, forget);
        let Some(place) = self.groups.iter().position(silent) else {
            self.drop_frame(DropReason::QueueFull);
            return None;
        };
        *self.groups.get_mut(place)? = Group::new(source);
        Some(place)
    }

    /// Acts on what the receiver did with a frame.
    fn on_taken(&mut self, source: u16, data: &Data<'_>, taken: Option<Taken>) {
        let repeat = match taken {
            Some(Taken::Decoded { octets }) => {
                self.counters.batches_decoded += 1;
                let (flow, bytes) = (data.batch(), octets as u32);
                self.trace.push(TraceEvent::Delivered { flow, bytes });
                0
            }
            Some(Taken::AckAgain { repeat }) => {
                self.counters.ack_repeats += 1;
                repeat
            }
            _ => return,
        };
        //= pacifier III-A.1: a receiver that decodes a batch sends an ACK back to the source
        let id = AckId {
            receiver: self.me,
            batch: data.batch(),
        };
        self.pass_on(Ack {
            source,
            object: data.object(),
            id,
            repeat,
        });
    }

    fn on_ack(&mut self, ack: Ack) {
        if ack.source == self.me {
            return self.on_ack_arrived(ack);
        }
        if !self.links.has(ack.source) || !self.links.has(ack.id.receiver) {
            return self.drop_frame(DropReason::Malformed);
        }
        let group = self
            .groups
            .iter_mut()
            .find(|group| group.source == ack.source);
        if let Some(group) = group {
            // Also for a known ACK: the hop before resends it because it has not overheard this confirmation yet.
            group.last_ack = Some(ack.id);
        }
        self.pass_on(ack);
    }

    fn on_ack_arrived(&mut self, ack: Ack) {
        let Some(source) = &mut self.source else {
            return self.drop_frame(DropReason::Stale);
        };
        let (turn, acked) = (source.position().1, source.on_ack(ack.object, ack.id));
        if acked == Acked::Foreign {
            return self.drop_frame(DropReason::Stale);
        }
        self.source_last_ack = Some(ack.id);
        if acked == Acked::Known {
            return self.drop_frame(DropReason::Duplicate);
        }
        self.counters.acks_received += 1;
        if source.is_done() {
            let (machine, from, to) = ("source", "sending", "done");
            self.trace.push(TraceEvent::State { machine, from, to });
        } else if source.position().1 != turn {
            self.counters.turns += 1;
            let (machine, from, to) = ("source", "batch", "acknowledged");
            self.trace.push(TraceEvent::State { machine, from, to });
        }
    }

    //= pacifier V-B.2: ACKs go to the source over the shortest ETX path
    pub(super) fn pass_on(&mut self, ack: Ack) {
        let Some(next_hop) = self.next_hop(ack.source) else {
            // No route: the frame is forged, or the network has changed.
            return self.drop_frame(DropReason::RetryLimit);
        };
        match self.acks.add(ack, next_hop) {
            Added::Queued => {}
            Added::Known => self.drop_frame(DropReason::Duplicate),
            Added::Displaced => self.drop_frame(DropReason::QueueFull),
        }
    }

    /// The next hop of this node's ACKs to `source`.
    pub fn next_hop(&mut self, source: u16) -> Option<u16> {
        let route = self.routes.get_mut(usize::from(source))?;
        *route.get_or_insert_with(|| self.links.ack_paths(source).next(self.me))
    }
}
