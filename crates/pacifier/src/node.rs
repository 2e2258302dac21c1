//! A node of the network with all its roles.
//!
//! Every node passes ACKs on. It becomes a source by [`Node::offer`], a receiver by [`Node::expect`], and a relay
//! by finding itself in the list of forwarding nodes of a frame.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use chappe_core::{
    Address, Arrival, Class, Classes, Drop, Instant, Layer, LinkEvent, LinkNode, LinkSend, Outcome,
    Stream, TraceEvent, TraceRing, Wake,
};

use crate::NodeSet;
use crate::acks::{Acks, Added};
use crate::chappe::peer::Peer;
use crate::config::{Config, ConfigError, Variant};
use crate::counters::Counters;
use crate::header::{self, Ack, AckId, Data, Frame};
use crate::links::Links;
use crate::object::Batches;
use crate::plan::Planner;
use crate::receiver::{Keep, Receiver, Taken};
use crate::relay::{Freshness, Relay};
use crate::source::{Acked, Source};
use crate::transfer::{ExpectError, OfferError, Offered, Progress};

mod session;

/// One node of a network that runs Pacifier, TREE+RL, TREE or MORE.
#[derive(Clone, Debug)]
pub struct Node {
    me: u16,
    config: Config,
    links: Arc<Links>,
    random: Stream,
    source: Option<Source>,
    /// The last ACK received as a source.
    source_last_ack: Option<AckId>,
    groups: Vec<Group>,
    /// Whose turn it is to send data: 0 the source, then the groups.
    turn: usize,
    acks: Acks,
    /// The next hop towards each source, computed when first needed.
    routes: Vec<Option<Option<u16>>>,
    tokens: u32,
    counters: Counters,
    trace: TraceRing,
    /// The source of the latest [`Node::expect`].
    expected: Option<u16>,
    /// All of the above is done by this instead, if the variant is [`Variant::Chappe`].
    peer: Option<Box<Peer>>,
}

/// What a node does for the group of one source.
#[derive(Clone, Debug)]
struct Group {
    source: u16,
    relay: Option<Relay>,
    receiver: Option<Receiver>,
    fresh: Freshness,
    //= pacifier V-B.2: nodes remember the last ACK of each multicast group
    last_ack: Option<AckId>,
}

/// What a token was given to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Relay = 0,
    Source = 1,
    Ack = 2,
}

impl Node {
    /// Node `me` of the network that `links` describes. `random` makes coding vectors; give each node its own.
    pub fn new(
        config: Config,
        me: u16,
        links: Arc<Links>,
        random: Stream,
    ) -> Result<Node, ConfigError> {
        config.check()?;
        if !links.has(me) {
            return Err(ConfigError::UnknownNode {
                node: me,
                nodes: links.nodes(),
            });
        }
        let peer = (config.variant == Variant::Chappe)
            .then(|| Box::new(Peer::new(config.clone(), me, links.clone(), random)));
        Ok(Node {
            peer,
            me,
            acks: Acks::new(&config),
            routes: vec![None; links.nodes()],
            groups: Vec::with_capacity(config.groups_max),
            config,
            links,
            random,
            source: None,
            source_last_ack: None,
            turn: 0,
            tokens: 0,
            counters: Counters::default(),
            trace: TraceRing::default(),
            expected: None,
        })
    }

    /// Makes this node the source of `object` for `receivers`, from now on.
    pub fn offer(&mut self, object: Arc<[u8]>, receivers: &[u16]) -> Result<Offered, OfferError> {
        if let Some(peer) = &mut self.peer {
            return peer.offer(object, receivers);
        }
        let position = match &self.source {
            Some(former) => (former.position().0.wrapping_add(1), former.position().1),
            // A number by lot: relays may still hold packets of a transfer before this node was restarted.
            None => (self.random.next_u64() as u8, 0),
        };
        let object = Batches::new(object, self.config.k, self.config.payload);
        self.begin_offer(position, object, receivers)
    }

    fn begin_offer(
        &mut self,
        position: (u8, u16),
        object: Batches,
        receivers: &[u16],
    ) -> Result<Offered, OfferError> {
        if self.source.as_ref().is_some_and(|source| !source.is_done()) {
            return Err(OfferError::Busy);
        }
        let wrong = receivers
            .iter()
            .find(|&&node| node == self.me || !self.links.has(node));
        if let Some(&receiver) = wrong {
            return Err(OfferError::Receiver(receiver));
        }
        let (all, reached, planner) = self.reach(receivers);
        // Plans for fewer receivers are never longer: a part of the tree, some of the belts.
        let plan = planner.plan(&reached);
        let needed = self.config.frame_len(plan.forwarder_count()) + plan.destinations.len();
        let frame_max = self.config.frame_max;
        if needed > frame_max || plan.forwarder_count() > 255 || plan.destinations.len() > 255 {
            return Err(OfferError::Header { needed, frame_max });
        }
        let offered = Offered {
            unreachable: all.without(&reached).iter().collect(),
            cut_off: planner.cut_off(),
            forwarders: plan.forwarder_count(),
        };
        let source = Source::new(&self.config, self.me, position, object, reached, planner)
            .ok_or(OfferError::TooLarge)?;
        self.counters.turns += u64::from(!source.is_done());
        self.source = Some(source);
        self.source_last_ack = None;
        Ok(offered)
    }

    /// `receivers` as a set, those of them that paths lead to and back from, and a planner for these.
    fn reach(&self, receivers: &[u16]) -> (NodeSet, NodeSet, Planner) {
        let (there, back) = (self.links.etx_paths(self.me), self.links.ack_paths(self.me));
        let all: NodeSet = receivers.iter().copied().collect();
        let reached: NodeSet = all
            .iter()
            .filter(|&node| there.reaches(node) && back.reaches(node))
            .collect();
        let planner = Planner::new(self.links.clone(), self.config.variant, self.me, reached);
        (all, reached, planner)
    }

    /// Makes this node a receiver of the next object of `source`, which has `object_len` octets.
    ///
    /// How a receiver learns the length is not part of the protocol (the paper's receivers know it).
    pub fn expect(&mut self, source: u16, object_len: usize) -> Result<(), ExpectError> {
        if let Some(peer) = &mut self.peer {
            return peer.expect(source, object_len);
        }
        if source == self.me || !self.links.has(source) {
            return Err(ExpectError::Source(source));
        }
        let former = self
            .group(source)
            .and_then(|group| group.receiver.as_ref()?.serial());
        let receiver = Receiver::new(&self.config, object_len, former, Keep::Memory)
            .ok_or(ExpectError::TooLarge)?;
        self.collect(source, receiver);
        Ok(())
    }

    /// Collects the object of `source` from now on.
    fn collect(&mut self, source: u16, receiver: Receiver) {
        match self.groups.iter_mut().find(|group| group.source == source) {
            Some(group) => group.receiver = Some(receiver),
            None => self.groups.push(Group {
                receiver: Some(receiver),
                ..Group::new(source)
            }),
        }
        self.expected = Some(source);
    }

    /// How far the object of the latest [`expect`](Self::expect) is.
    pub fn received(&self) -> Progress {
        if let Some(peer) = &self.peer {
            return peer.received();
        }
        self.receiver().map_or_else(Progress::default, |receiver| {
            let (batches_done, batches) = receiver.batches();
            let (bytes, complete_at) = (receiver.octets(), receiver.complete_at());
            Progress {
                batches_done,
                batches,
                bytes,
                complete_at,
            }
        })
    }

    /// The object of the latest [`expect`](Self::expect), once it is complete. Whether it is the right one is
    /// for the application to check: a digest is not part of the protocol.
    pub fn object(&self) -> Option<&[u8]> {
        if let Some(peer) = &self.peer {
            return peer.object();
        }
        self.receiver()?.object()
    }

    /// Whether every receiver that can be reached has acknowledged the whole object. True without an offer.
    pub fn source_done(&self) -> bool {
        if let Some(peer) = &self.peer {
            return peer.source_done();
        }
        self.source.as_ref().is_none_or(Source::is_done)
    }

    /// Forwarding nodes of the source's present plan, the source not counted; 0 if this node is none.
    pub fn forwarders(&self) -> usize {
        if let Some(peer) = &self.peer {
            return peer.forwarders();
        }
        self.source.as_ref().map_or(0, Source::forwarder_count)
    }

    /// The node's number.
    pub fn number(&self) -> u16 {
        self.me
    }

    /// What the node has done so far.
    pub fn counters(&self) -> &Counters {
        if let Some(peer) = &self.peer {
            return peer.counters();
        }
        &self.counters
    }

    /// Turns trace events on or off; they are off at first.
    pub fn trace(&mut self, on: bool) {
        if let Some(peer) = &mut self.peer {
            return peer.trace(on);
        }
        self.trace.on(on);
    }

    fn receiver(&self) -> Option<&Receiver> {
        self.group(self.expected?)?.receiver.as_ref()
    }

    fn group(&self, source: u16) -> Option<&Group> {
        self.groups.iter().find(|group| group.source == source)
    }

    fn drop_frame(&mut self, why: Drop) {
        self.counters.drops.count(why);
        self.trace.push(TraceEvent::Dropped {
            layer: Layer::Link,
            why,
        });
    }

    /// A token for the link: what it was given to in the low two bits.
    fn token(kind: Kind, number: u32) -> u32 {
        number << 2 | kind as u32
    }
}

/// Frames in.
impl Node {
    fn on_frame(&mut self, now: Instant, arrival: Arrival<'_>) {
        let Some(from) = arrival
            .from
            .node_number()
            .filter(|&from| self.links.has(from))
        else {
            return self.drop_frame(Drop::NotForUs);
        };
        match header::parse(arrival.sdu) {
            Ok(Frame::Data(data)) => self.on_data(now, from, &data),
            Ok(Frame::Ack(ack)) if arrival.to == Address::node(self.me) => self.on_ack(ack),
            Ok(Frame::Ack(_) | Frame::Probe(_)) => self.drop_frame(Drop::NotForUs),
            Err(_) => self.drop_frame(Drop::Malformed),
        }
    }

    fn on_data(&mut self, now: Instant, from: u16, data: &Data<'_>) {
        let source = data.source();
        let sound = self.links.has(source)
            && data.vector().len() <= self.config.k
            && data.payload().len() == self.config.payload;
        if !sound {
            return self.drop_frame(Drop::Malformed);
        }
        self.acks
            .overheard(source, data.object(), from, data.last_ack());
        if source == self.me {
            return self.on_echo(from, data);
        }
        let Some(place) = self.group_for(now, data) else {
            return;
        };
        let Some(group) = self.groups.get_mut(place) else {
            return;
        };
        let forgetful = group.fresh.lapsed(now, self.config.forget);
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
            return self.drop_frame(Drop::Stale);
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
            self.drop_frame(Drop::NotInnovative);
        }
        self.on_taken(source, data, taken);
    }

    /// A frame of the node's own group, sent by one of its relays.
    fn on_echo(&mut self, from: u16, data: &Data<'_>) {
        let Some(source) = &mut self.source else {
            return self.drop_frame(Drop::Stale);
        };
        if source.position().0 != data.object() {
            return self.drop_frame(Drop::Stale);
        }
        if source.overheard(from) {
            self.counters.children_heard += 1;
            self.trace.push(TraceEvent::Timer {
                why: "child overheard",
            });
        }
    }

    /// The place of the frame's group, made if this node is to relay for it.
    fn group_for(&mut self, now: Instant, data: &Data<'_>) -> Option<usize> {
        let (source, me) = (data.source(), self.me);
        let called = header::find_forwarder(data.forwarders(), me).is_some();
        let place = self.groups.iter().position(|group| group.source == source);
        let place = match place {
            Some(place) => place,
            None if !called => {
                self.drop_frame(Drop::NotForUs);
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

    /// A place for a new group: a free one, or that of a group which only relays and has gone silent.
    fn room_for_group(&mut self, now: Instant, source: u16) -> Option<usize> {
        if self.groups.len() < self.config.groups_max {
            self.groups.push(Group::new(source));
            return Some(self.groups.len() - 1);
        }
        let forget = self.config.forget;
        let silent = |group: &Group| group.receiver.is_none() && group.fresh.lapsed(now, forget);
        let Some(place) = self.groups.iter().position(silent) else {
            self.drop_frame(Drop::QueueFull);
            return None;
        };
        *self.groups.get_mut(place)? = Group::new(source);
        Some(place)
    }

    /// What the receiver made of a frame.
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
            return self.drop_frame(Drop::Malformed);
        }
        let group = self
            .groups
            .iter_mut()
            .find(|group| group.source == ack.source);
        if let Some(group) = group {
            // Also for one that is known: the hop before asks because it has not overheard this yet.
            group.last_ack = Some(ack.id);
        }
        self.pass_on(ack);
    }

    fn on_ack_arrived(&mut self, ack: Ack) {
        let Some(source) = &mut self.source else {
            return self.drop_frame(Drop::Stale);
        };
        let (turn, acked) = (source.position().1, source.on_ack(ack.object, ack.id));
        if acked == Acked::Foreign {
            return self.drop_frame(Drop::Stale);
        }
        self.source_last_ack = Some(ack.id);
        if acked == Acked::Known {
            return self.drop_frame(Drop::Duplicate);
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
    fn pass_on(&mut self, ack: Ack) {
        let Some(next_hop) = self.next_hop(ack.source) else {
            // Nowhere to send it: only a frame that was made up, or a network that has changed, asks for that.
            return self.drop_frame(Drop::RetryLimit);
        };
        match self.acks.add(ack, next_hop) {
            Added::Queued => {}
            Added::Known => self.drop_frame(Drop::Duplicate),
            Added::Displaced => self.drop_frame(Drop::QueueFull),
        }
    }

    fn next_hop(&mut self, source: u16) -> Option<u16> {
        let route = self.routes.get_mut(usize::from(source))?;
        *route.get_or_insert_with(|| self.links.ack_paths(source).next(self.me))
    }
}

/// Frames out.
impl Node {
    fn send_ack(&mut self, sdu: &mut [u8]) -> Option<LinkSend> {
        let out = self.acks.next()?;
        let len = out.ack.emit(sdu)?;
        let counters = &mut self.counters;
        let counter = match out.again {
            true => &mut counters.ack_resends,
            false if out.ack.id.receiver == self.me => &mut counters.acks_sent,
            false => &mut counters.acks_forwarded,
        };
        *counter += 1;
        //= pacifier V-B.2: ACKs are unicast at the MAC layer and prioritised over data
        Some(LinkSend {
            to: Address::node(out.next_hop),
            len,
            class: Class::Control,
            mode: None,
            token: Node::token(Kind::Ack, out.number),
        })
    }

    /// The next data frame: the source and the groups take turns.
    fn send_data(&mut self, now: Instant, sdu: &mut [u8]) -> Option<LinkSend> {
        let parties = self.groups.len() + 1;
        for _ in 0..parties {
            let party = self.turn % parties;
            self.turn = (party + 1) % parties;
            let sent = match party.checked_sub(1) {
                None => self.send_as_source(now, sdu),
                Some(place) => self.send_as_relay(place, sdu),
            };
            let Some((kind, len)) = sent else { continue };
            self.counters.data_sent += 1;
            return Some(LinkSend {
                to: Address::BROADCAST,
                len,
                class: Class::Data,
                mode: Some(self.config.mode),
                token: Node::token(kind, self.tokens),
            });
        }
        None
    }

    fn send_as_source(&mut self, now: Instant, sdu: &mut [u8]) -> Option<(Kind, usize)> {
        let source = self.source.as_mut().filter(|source| source.ready())?;
        self.tokens = self.tokens.wrapping_add(1);
        let token = Node::token(Kind::Source, self.tokens);
        let turn = source.position().1;
        let len = source.write(now, token, sdu, &mut self.random, self.source_last_ack)?;
        self.counters.source_sent += 1;
        if source.position().1 != turn {
            self.counters.turns += 1;
            let (machine, from, to) = ("source", "batch", "spent");
            self.trace.push(TraceEvent::State { machine, from, to });
        }
        Some((Kind::Source, len))
    }

    fn send_as_relay(&mut self, place: usize, sdu: &mut [u8]) -> Option<(Kind, usize)> {
        let group = self.groups.get_mut(place)?;
        let relay = group.relay.as_mut().filter(|relay| relay.ready())?;
        let len = relay.write(sdu, &mut self.random, group.last_ack)?;
        self.counters.relay_sent += 1;
        Some((Kind::Relay, len))
    }

    fn data_waiting(&self) -> bool {
        let relay_ready = |group: &Group| group.relay.as_ref().is_some_and(Relay::ready);
        self.source.as_ref().is_some_and(Source::ready) || self.groups.iter().any(relay_ready)
    }
}

impl LinkNode for Node {
    fn handle_link(&mut self, now: Instant, event: LinkEvent<'_>) {
        if let Some(peer) = &mut self.peer {
            return peer.handle_link(now, event);
        }
        match event {
            LinkEvent::Received(arrival) => self.on_frame(now, arrival),
            LinkEvent::Sent { token, outcome } if token & 3 == Kind::Ack as u32 => {
                let failed = matches!(outcome, Outcome::Failed { .. });
                self.counters.ack_failures += u64::from(failed);
                self.acks.sent(now, token >> 2, outcome);
            }
            LinkEvent::Sent { token, .. } => {
                if let Some(source) = &mut self.source {
                    source.sent(now, token);
                }
            }
        }
    }

    fn pending(&self) -> Classes {
        if let Some(peer) = &self.peer {
            return peer.pending();
        }
        Classes::NONE
            .with_if(Class::Control, self.acks.waiting())
            .with_if(Class::Data, self.data_waiting())
    }

    fn poll_link(&mut self, now: Instant, allowed: Classes, sdu: &mut [u8]) -> Option<LinkSend> {
        if let Some(peer) = &mut self.peer {
            return peer.poll_link(now, allowed, sdu);
        }
        let control = allowed.contains(Class::Control) && self.acks.waiting();
        let send = match control {
            true => self.send_ack(sdu),
            false if allowed.contains(Class::Data) => self.send_data(now, sdu),
            false => None,
        }?;
        let (layer, bytes) = (Layer::Link, send.len as u32);
        self.trace.push(TraceEvent::Sent {
            layer,
            to: send.to,
            bytes,
        });
        Some(send)
    }

    fn handle_timeout(&mut self, now: Instant) {
        if let Some(peer) = &mut self.peer {
            return peer.handle_timeout(now);
        }
        if self
            .source
            .as_mut()
            .is_some_and(|source| source.handle_timeout(now))
        {
            self.counters.pace_timeouts += 1;
            self.trace.push(TraceEvent::Timer { why: NO_CHILD });
        }
        if self.acks.handle_timeout(now) {
            self.trace.push(TraceEvent::Timer { why: NO_PROOF });
        }
    }

    fn poll_timeout(&self) -> Option<Wake> {
        if let Some(peer) = &self.peer {
            return peer.poll_timeout();
        }
        let pace = self.source.as_ref().and_then(Source::deadline);
        let pace = pace.map(|at| Wake { at, why: NO_CHILD });
        let acks = self.acks.deadline().map(|at| Wake { at, why: NO_PROOF });
        Wake::earlier(pace, acks)
    }

    fn poll_trace(&mut self) -> Option<TraceEvent> {
        if let Some(peer) = &mut self.peer {
            return peer.poll_trace();
        }
        self.trace.pop()
    }
}

const NO_CHILD: &str = "no child overheard";
const NO_PROOF: &str = "ACK not confirmed";

impl Group {
    fn new(source: u16) -> Group {
        Group {
            source,
            relay: None,
            receiver: None,
            fresh: Freshness::default(),
            last_ack: None,
        }
    }
}
