//! A node of the network: one of the paper's protocols or the improved variant, behind one interface.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use chappe_core::{Classes, Instant, LinkEvent, LinkNode, LinkSend, Stream, TraceEvent, Wake};

use crate::common::ConfigError;
use crate::config::Config;
use crate::counters::Counters;
use crate::links::Links;
use crate::object::Object;
use crate::set::NodeSet;
use crate::transfer::{ExpectError, OfferError, Offered, Progress};
use crate::{improved, paper};

/// One node, in all its roles: source, relay and receiver.
#[derive(Clone, Debug)]
pub enum Node {
    /// Runs Pacifier, TREE+RL, TREE or MORE.
    Paper(Box<paper::Node>),
    /// Runs the improved variant.
    Improved(Box<improved::Node>),
}

use Node::{Improved, Paper};

impl Node {
    /// Node `me` of the network that `links` describes. `random` draws coding vectors; give each node its own.
    pub fn new(
        config: Config,
        me: u16,
        links: Arc<Links>,
        random: Stream,
    ) -> Result<Node, ConfigError> {
        Ok(match config {
            Config::Paper(config) => Paper(Box::new(paper::Node::new(config, me, links, random)?)),
            Config::Improved(config) => {
                Improved(Box::new(improved::Node::new(config, me, links, random)?))
            }
        })
    }

    /// The node's number in the network.
    pub fn number(&self) -> u16 {
        match self {
            Paper(node) => node.number(),
            Improved(node) => node.number(),
        }
    }

    /// What the node has done so far.
    pub fn counters(&self) -> &Counters {
        match self {
            Paper(node) => node.counters(),
            Improved(node) => node.counters(),
        }
    }

    /// Sends in these turns in the next transfer of `source`, where the variant can.
    pub fn take_turns(&mut self, source: u16, turns: Arc<improved::turns::Turns>) {
        if let Improved(node) = self {
            node.take_turns(source, turns);
        }
    }

    /// Turns trace events on or off; they are off at first.
    pub fn trace(&mut self, on: bool) {
        match self {
            Paper(node) => node.trace(on),
            Improved(node) => node.trace(on),
        }
    }

    /// Replaces the delivery ratios, also with those of a larger network. A source plans anew with
    /// [`serve`](Self::serve). False, and nothing changes, if the new network does not have this node.
    pub fn relink(&mut self, links: Arc<Links>) -> bool {
        match self {
            Paper(node) => node.relink(links),
            Improved(node) => node.relink(links),
        }
    }

    /// The next hop towards `source` by the present links: the one that the paper's ACKs take.
    pub fn route(&mut self, source: u16) -> Option<u16> {
        match self {
            Paper(node) => node.next_hop(source),
            Improved(node) => node.next_hop(source),
        }
    }

    /// Forgets the group of `source`: what is relayed for it and, with `receiver`, what is received. For a source that
    /// was restarted and counts its turns anew, or one that has left.
    pub fn forget_group(&mut self, source: u16, receiver: bool) {
        match self {
            Paper(node) => node.forget_group(source, receiver),
            Improved(node) => node.forget_group(source, receiver),
        }
    }
}

/// The source's side of a transfer.
impl Node {
    /// Makes this node the source of `object` for `receivers`, from now on.
    pub fn offer(&mut self, object: Arc<[u8]>, receivers: &[u16]) -> Result<Offered, OfferError> {
        match self {
            Paper(node) => node.offer(object, receivers),
            Improved(node) => node.offer(object, receivers),
        }
    }

    /// As [`offer`](Node::offer), for an object that is read batch by batch. `serial` names the transfer in frames:
    /// the same after a restart, another one for another object.
    pub fn offer_read(
        &mut self,
        object: Arc<dyn Object>,
        serial: u8,
        receivers: &[u16],
    ) -> Result<Offered, OfferError> {
        match self {
            Paper(node) => node.offer_read(object, serial, receivers),
            Improved(node) => node.offer_read(object, serial, receivers),
        }
    }

    /// Ends the transfer that this node is the source of, finished or not.
    pub fn withdraw(&mut self) {
        match self {
            Paper(node) => node.withdraw(),
            Improved(node) => node.withdraw(),
        }
    }

    /// Serves these receivers from now on, over the present links: some may be new, others gone. What was
    /// acknowledged still counts. Does nothing without an offer.
    pub fn serve(&mut self, receivers: &[u16]) -> Offered {
        match self {
            Paper(node) => node.serve(receivers),
            Improved(node) => node.serve(receivers),
        }
    }

    /// Notes that `receiver` has `batch` of the object on offer, which the application knows by another way than an
    /// ACK. Returns whether that is new. The improved variant ignores it: receivers report their ranks in every frame.
    pub fn held_by(&mut self, receiver: u16, batch: u32) -> bool {
        match self {
            Paper(node) => node.held_by(receiver, batch),
            Improved(_) => false,
        }
    }

    /// Notes that `receiver` has lost what it had acknowledged.
    pub fn lost_by(&mut self, receiver: u16) {
        match self {
            Paper(node) => node.lost_by(receiver),
            Improved(node) => node.start_over(),
        }
    }

    /// Batches of the object on offer that `receiver` has acknowledged.
    pub fn acknowledged_by(&self, receiver: u16) -> u32 {
        match self {
            Paper(node) => node.acknowledged_by(receiver),
            Improved(node) => node.acknowledged_by(receiver),
        }
    }

    /// Whether every receiver that can be reached has acknowledged the whole object. True without an offer.
    pub fn source_done(&self) -> bool {
        match self {
            Paper(node) => node.source_done(),
            Improved(node) => node.source_done(),
        }
    }

    /// Forwarding nodes of the source's present plan, the source not counted; 0 if this node is no source.
    pub fn forwarders(&self) -> usize {
        match self {
            Paper(node) => node.forwarders(),
            Improved(node) => node.forwarders(),
        }
    }

    /// The receivers that the source serves at present.
    pub fn receivers(&self) -> NodeSet {
        match self {
            Paper(node) => node.receivers(),
            Improved(node) => node.receivers(),
        }
    }
}

/// The receiver's side of a transfer.
impl Node {
    /// Makes this node a receiver of the next object of `source`, which has `object_len` octets.
    ///
    /// How a receiver learns the length is not part of the protocol (the paper's receivers know it).
    pub fn expect(&mut self, source: u16, object_len: usize) -> Result<(), ExpectError> {
        match self {
            Paper(node) => node.expect(source, object_len),
            Improved(node) => node.expect(source, object_len),
        }
    }

    /// Makes this node a receiver of transfer `serial` of `source`, an object of `len` octets, without keeping it
    /// in memory: [`decoded`](Self::decoded) hands out each batch, and [`accept`](Self::accept) acknowledges it.
    /// `held` says which batches the application has already. At most `partial_max` batches are in memory at a
    /// time; frames of others are dropped until one of them is accepted.
    pub fn expect_checked(
        &mut self,
        source: u16,
        serial: u8,
        len: usize,
        partial_max: usize,
        held: impl Fn(u32) -> bool,
    ) -> Result<(), ExpectError> {
        match self {
            Paper(node) => node.expect_checked(source, serial, len, partial_max, held),
            Improved(node) => node.expect_checked(source, serial, len, partial_max, held),
        }
    }

    /// How much of the object of the latest [`expect`](Self::expect) has been decoded.
    pub fn received(&self) -> Progress {
        match self {
            Paper(node) => node.received(),
            Improved(node) => node.received(),
        }
    }

    /// The batches of the latest [`expect`](Self::expect) that have begun and are not decoded: their numbers and how many
    /// independent packets of them are here.
    pub fn ranks(&self, mut each: impl FnMut(u32, usize)) {
        match self {
            Paper(node) => node.ranks(&mut each),
            Improved(node) => node.ranks(&mut each),
        }
    }

    /// The object of the latest [`expect`](Self::expect), once it is complete. The application checks whether it is
    /// the right one: a digest is not part of the protocol.
    pub fn object(&self) -> Option<&[u8]> {
        match self {
            Paper(node) => node.object(),
            Improved(node) => node.object(),
        }
    }

    /// Writes the next decoded batch of `source` to `into`, without its padding, and returns its number. The batch
    /// waits for [`accept`](Self::accept) or [`reject`](Self::reject).
    pub fn decoded(&mut self, source: u16, into: &mut Vec<u8>) -> Option<u32> {
        match self {
            Paper(node) => node.decoded(source, into),
            Improved(node) => node.decoded(source, into),
        }
    }

    /// Acknowledges a batch that the application has checked and kept.
    pub fn accept(&mut self, now: Instant, source: u16, batch: u32) {
        match self {
            Paper(node) => node.accept(now, source, batch),
            Improved(node) => node.accept(now, source, batch),
        }
    }

    /// Discards a batch that failed the application's check and collects it anew. All its packets go, since no node
    /// can tell which one was wrong.
    pub fn reject(&mut self, source: u16, batch: u32) {
        match self {
            Paper(node) => node.reject(source, batch),
            Improved(node) => node.reject(source, batch),
        }
    }
}

/// What nodes of this network may say falsely, if the application knows better.
impl Node {
    /// As [`reject`](Self::reject), but the batch is not collected again: the application gets it by another way, and then
    /// [accepts](Self::accept) or rejects it. The batch need not have been decoded. False if that is not possible, as always in the
    /// paper's variants: then the batch was rejected.
    pub fn set_aside(&mut self, source: u16, batch: u32) -> bool {
        match self {
            Paper(node) => {
                node.reject(source, batch);
                false
            }
            Improved(node) => {
                let aside = node.set_aside(source, batch);
                if !aside {
                    node.reject(source, batch);
                }
                aside
            }
        }
    }

    /// Whether the transfer of `source` has begun for this node. Not known in the paper's variants: never.
    pub fn takes_part(&self, source: u16) -> bool {
        match self {
            Paper(_) => false,
            Improved(node) => node.takes_part(source),
        }
    }

    /// Whether this node takes `receiver` for complete in the transfer of `source` because others say so. Never in the paper's
    /// variants, whose ACKs a receiver makes itself.
    pub fn counts_complete(&self, source: u16, receiver: u16) -> bool {
        match self {
            Paper(_) => false,
            Improved(node) => node.counts_complete(source, receiver),
        }
    }

    /// Takes `receiver` for incomplete: the application has it from the receiver itself. From then on only the application says when
    /// the receiver needs nothing more, by [`serve`](Self::serve). A source starts over, because others may not serve it either.
    pub fn dispute(&mut self, source: u16, receiver: u16) {
        if let Improved(node) = self {
            node.dispute(source, receiver);
        }
    }
}

impl LinkNode for Node {
    fn handle_link(&mut self, now: Instant, event: LinkEvent<'_>) {
        match self {
            Paper(node) => node.handle_link(now, event),
            Improved(node) => node.handle_link(now, event),
        }
    }

    fn pending(&self) -> Classes {
        match self {
            Paper(node) => node.pending(),
            Improved(node) => node.pending(),
        }
    }

    fn poll_link(&mut self, now: Instant, allowed: Classes, sdu: &mut [u8]) -> Option<LinkSend> {
        match self {
            Paper(node) => node.poll_link(now, allowed, sdu),
            Improved(node) => node.poll_link(now, allowed, sdu),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match self {
            Paper(node) => node.handle_timeout(now),
            Improved(node) => node.handle_timeout(now),
        }
    }

    fn poll_timeout(&self) -> Option<Wake> {
        match self {
            Paper(node) => node.poll_timeout(),
            Improved(node) => node.poll_timeout(),
        }
    }

    fn poll_trace(&mut self) -> Option<TraceEvent> {
        match self {
            Paper(node) => node.poll_trace(),
            Improved(node) => node.poll_trace(),
        }
    }
}
