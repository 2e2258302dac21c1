//! What a long-lived application needs beyond one transfer over one measurement: links that change, receivers
//! that come and go, objects larger than memory, batches that are checked before they are acknowledged, and
//! transfers that go on after a restart.

use alloc::sync::Arc;
use alloc::vec::Vec;

use chappe_core::Instant;

use super::{Group, Node};
use crate::NodeSet;
use crate::header::{Ack, AckId};
use crate::links::Links;
use crate::object::{Batches, Object};
use crate::receiver::{Keep, Receiver};
use crate::transfer::{ExpectError, OfferError, Offered};

/// As a source.
impl Node {
    /// As [`offer`](Node::offer), for an object that is read batch by batch. `serial` names the transfer in frames:
    /// the same after a restart, another one for another object.
    pub fn offer_read(
        &mut self,
        object: Arc<dyn Object>,
        serial: u8,
        receivers: &[u16],
    ) -> Result<Offered, OfferError> {
        if let Some(peer) = &mut self.peer {
            return peer.offer_read(object, serial, receivers);
        }
        let turn = self.source.as_ref().map_or(0, |former| former.position().1);
        let object = Batches::read(object, self.config.k, self.config.payload);
        self.begin_offer((serial, turn), object, receivers)
    }

    /// Ends the transfer that this node is the source of, finished or not.
    pub fn withdraw(&mut self) {
        if let Some(peer) = &mut self.peer {
            return peer.withdraw();
        }
        self.source = None;
    }

    /// Serves these receivers from now on, over the present links: some may be new, others gone. What was
    /// acknowledged still counts. Nothing happens without an offer.
    pub fn serve(&mut self, receivers: &[u16]) -> Offered {
        if let Some(peer) = &mut self.peer {
            return peer.serve(receivers);
        }
        let (all, reached, planner) = self.reach(receivers);
        let cut_off = planner.cut_off();
        if let Some(source) = &mut self.source {
            source.serve(reached, planner);
        }
        Offered {
            unreachable: all.without(&reached).iter().collect(),
            cut_off,
            forwarders: self.forwarders(),
        }
    }

    /// The application knows that `receiver` has `batch` of the object on offer: it said so by another way than an
    /// ACK. Whether that is new.
    pub fn held_by(&mut self, receiver: u16, batch: u32) -> bool {
        let known = |source: &mut crate::source::Source| source.known(AckId { receiver, batch });
        self.source.as_mut().is_some_and(known)
    }

    /// `receiver` has lost what it had acknowledged.
    pub fn lost_by(&mut self, receiver: u16) {
        if let Some(peer) = &mut self.peer {
            return peer.lost_by(receiver);
        }
        if let Some(source) = &mut self.source {
            source.forget(receiver);
        }
    }

    /// Batches of the object on offer that `receiver` has acknowledged.
    pub fn acknowledged_by(&self, receiver: u16) -> u32 {
        if let Some(peer) = &self.peer {
            return peer.acknowledged_by(receiver);
        }
        let source = self.source.as_ref();
        source.map_or(0, |source| source.acked_by(receiver))
    }
}

/// As a receiver.
impl Node {
    /// Makes this node a receiver of transfer `serial` of `source`, an object of `len` octets, without keeping it
    /// in memory: each batch is handed out by [`decoded`](Self::decoded), and acknowledged by
    /// [`accept`](Self::accept). `held` says which batches the application has already. At most `partial_max`
    /// batches are in memory at a time; frames of others are dropped until one of them is accepted.
    pub fn expect_checked(
        &mut self,
        source: u16,
        serial: u8,
        len: usize,
        partial_max: usize,
        held: impl Fn(u32) -> bool,
    ) -> Result<(), ExpectError> {
        if let Some(peer) = &mut self.peer {
            return peer.expect_checked(source, serial, len, partial_max, held);
        }
        if source == self.me || !self.links.has(source) {
            return Err(ExpectError::Source(source));
        }
        let keep = Keep::Checked { partial_max };
        let mut receiver =
            Receiver::new(&self.config, len, None, keep).ok_or(ExpectError::TooLarge)?;
        receiver.resume(serial, held);
        self.collect(source, receiver);
        Ok(())
    }

    /// The next decoded batch of `source`, written to `into` without what it was filled up with. It waits for
    /// [`accept`](Self::accept) or [`reject`](Self::reject).
    pub fn decoded(&mut self, source: u16, into: &mut Vec<u8>) -> Option<u32> {
        if let Some(peer) = &mut self.peer {
            return peer.decoded(source, into);
        }
        self.receiver_of(source)?.decoded(into)
    }

    /// The batch is right and kept: acknowledge it.
    pub fn accept(&mut self, now: Instant, source: u16, batch: u32) {
        if let Some(peer) = &mut self.peer {
            return peer.accept(now, source, batch);
        }
        let Some(receiver) = self.receiver_of(source) else {
            return;
        };
        let (true, Some(object)) = (receiver.accept(now, batch), receiver.serial()) else {
            return;
        };
        self.counters.batches_decoded += 1;
        let receiver = self.me;
        self.pass_on(Ack {
            source,
            object,
            id: AckId { receiver, batch },
            repeat: 0,
        });
    }

    /// The batch is wrong, since one of its packets was: collect it anew. All its packets are thrown away, as nobody
    /// can tell which one it was.
    pub fn reject(&mut self, source: u16, batch: u32) {
        if let Some(peer) = &mut self.peer {
            return peer.reject(source, batch);
        }
        if let Some(receiver) = self.receiver_of(source) {
            receiver.reject(batch);
        }
    }

    /// Forgets all about the group of `source`: what is relayed for it and, with `receiver`, what is received. For a
    /// source that was restarted and counts its turns anew, or one that has left.
    pub fn forget_group(&mut self, source: u16, receiver: bool) {
        if let Some(peer) = &mut self.peer {
            return peer.forget_group(source, receiver);
        }
        let Some(group) = self.groups.iter_mut().find(|group| group.source == source) else {
            return;
        };
        let kept = group.receiver.take().filter(|_| !receiver);
        *group = Group::new(source);
        group.receiver = kept;
        if group.receiver.is_none() {
            self.groups.retain(|group| group.source != source);
        }
    }

    fn receiver_of(&mut self, source: u16) -> Option<&mut Receiver> {
        let group = self.groups.iter_mut().find(|group| group.source == source);
        group?.receiver.as_mut()
    }
}

/// As any node.
impl Node {
    /// Other delivery ratios hold from now on, also for more nodes than before. A source plans anew with
    /// [`serve`](Self::serve). False, and nothing changes, if this node is not among them.
    pub fn relink(&mut self, links: Arc<Links>) -> bool {
        if !links.has(self.me) {
            return false;
        }
        if let Some(peer) = &mut self.peer {
            peer.relink(links.clone());
        }
        self.routes.clear();
        self.routes.resize(links.nodes(), None);
        for relay in self
            .groups
            .iter_mut()
            .filter_map(|group| group.relay.as_mut())
        {
            relay.relink(links.clone());
        }
        self.links = links;
        true
    }

    /// The next hop of this node's ACKs to `source`, by the present links.
    pub fn route(&mut self, source: u16) -> Option<u16> {
        self.next_hop(source)
    }

    /// The receivers that the source serves at present.
    pub fn receivers(&self) -> NodeSet {
        if let Some(peer) = &self.peer {
            return peer.receivers();
        }
        let source = self.source.as_ref();
        source.map_or(NodeSet::EMPTY, |source| source.receivers())
    }
}
