//! A node that runs one of the paper's protocols, in all its roles.
//!
//! Every node forwards ACKs. It becomes a source by `offer`, a receiver by `expect`, and a relay by finding itself in
//! the list of forwarding nodes of a frame. [`Node`](crate::Node) documents its methods.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use chappe_core::{
    Class, Classes, DropReason, Instant, Layer, LinkEvent, LinkNode, LinkSend, Outcome, Stream,
    TraceEvent, TraceRing, Wake,
};

use crate::common::ConfigError;
use crate::counters::Counters;
use crate::links::Links;
use crate::object::Batches;
use crate::paper::acks::Acks;
use crate::paper::config::Config;
use crate::paper::header::AckId;
use crate::paper::plan::Planner;
use crate::paper::receiver::{Keep, Receiver};
use crate::paper::relay::{Freshness, Relay};
use crate::paper::source::Source;
use crate::set::NodeSet;
use crate::transfer::{ExpectError, OfferError, Offered, Progress};

mod inbox;
mod outbox;
mod session;

/// A node that runs Pacifier, TREE+RL, TREE or MORE.
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
    /// The role that sends data next: 0 the source, then the groups.
    turn: usize,
    acks: Acks,
    /// The next hop towards each source, computed when first needed.
    routes: Vec<Option<Option<u16>>>,
    tokens: u32,
    counters: Counters,
    trace: TraceRing,
    /// The source of the latest [`Node::expect`].
    expected: Option<u16>,
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

/// The kind of frame that a token belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Relay = 0,
    Source = 1,
    Ack = 2,
}

impl Node {
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
        Ok(Node {
            me,
            acks: Acks::new(&config),
            routes: vec![None; links.nodes()],
            groups: Vec::with_capacity(config.common.groups_max),
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

    pub fn offer(&mut self, object: Arc<[u8]>, receivers: &[u16]) -> Result<Offered, OfferError> {
        let position = match &self.source {
            Some(former) => (former.position().0.wrapping_add(1), former.position().1),
            // A random number: relays may still hold packets of a transfer from before this node was restarted.
            None => (self.random.next_u64() as u8, 0),
        };
        let object = Batches::new(object, self.config.common.k, self.config.common.payload);
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
        // Checked once: plans for fewer receivers are never longer, since they have a part of the tree or some of the belts.
        let plan = planner.plan(&reached);
        // One octet counts each of the two lists.
        let needed = self.config.frame_len(plan.forwarder_count()) + plan.destinations.len();
        let frame_max = self.config.common.frame_max;
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

    pub fn expect(&mut self, source: u16, object_len: usize) -> Result<(), ExpectError> {
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

    /// Starts to collect the object of `source`.
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

    pub fn received(&self) -> Progress {
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

    pub fn object(&self) -> Option<&[u8]> {
        self.receiver()?.object()
    }

    pub fn source_done(&self) -> bool {
        self.source.as_ref().is_none_or(Source::is_done)
    }

    pub fn forwarders(&self) -> usize {
        self.source.as_ref().map_or(0, Source::forwarder_count)
    }

    pub fn number(&self) -> u16 {
        self.me
    }

    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    pub fn trace(&mut self, on: bool) {
        self.trace.on(on);
    }

    pub fn ranks(&self, each: &mut dyn FnMut(u32, usize)) {
        if let Some(receiver) = self.receiver() {
            receiver.ranks(each);
        }
    }

    fn receiver(&self) -> Option<&Receiver> {
        self.group(self.expected?)?.receiver.as_ref()
    }

    fn group(&self, source: u16) -> Option<&Group> {
        self.groups.iter().find(|group| group.source == source)
    }

    fn drop_frame(&mut self, why: DropReason) {
        self.counters.drops.count(why);
        self.trace.push(TraceEvent::Dropped {
            layer: Layer::Link,
            why,
        });
    }

    /// A token for the link, with the kind of frame in the low two bits.
    fn token(kind: Kind, number: u32) -> u32 {
        number << 2 | kind as u32
    }
}

impl LinkNode for Node {
    fn handle_link(&mut self, now: Instant, event: LinkEvent<'_>) {
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
        Classes::NONE
            .with_if(Class::Control, self.acks.waiting())
            .with_if(Class::Data, self.data_waiting())
    }

    fn poll_link(&mut self, now: Instant, allowed: Classes, sdu: &mut [u8]) -> Option<LinkSend> {
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
        let pace = self.source.as_ref().and_then(Source::deadline);
        let pace = pace.map(|at| Wake { at, why: NO_CHILD });
        let acks = self.acks.deadline().map(|at| Wake { at, why: NO_PROOF });
        Wake::earlier(pace, acks)
    }

    fn poll_trace(&mut self) -> Option<TraceEvent> {
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
