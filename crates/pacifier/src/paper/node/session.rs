//! Support for long-lived applications: links that change, receivers that come and go, objects larger than memory,
//! batches that the application checks before they are acknowledged, and transfers that continue after a restart.

use alloc::sync::Arc;
use alloc::vec::Vec;

use chappe_core::Instant;

use super::{Group, Node};
use crate::links::Links;
use crate::object::{Batches, Object};
use crate::paper::header::{Ack, AckId};
use crate::paper::receiver::{Keep, Receiver};
use crate::set::NodeSet;
use crate::transfer::{ExpectError, OfferError, Offered};

/// The source's side of a transfer.
impl Node {
    pub fn offer_read(
        &mut self,
        object: Arc<dyn Object>,
        serial: u8,
        receivers: &[u16],
    ) -> Result<Offered, OfferError> {
        let turn = self.source.as_ref().map_or(0, |former| former.position().1);
        let object = Batches::read(object, self.config.common.k, self.config.common.payload);
        self.begin_offer((serial, turn), object, receivers)
    }

    pub fn withdraw(&mut self) {
        self.source = None;
    }

    pub fn serve(&mut self, receivers: &[u16]) -> Offered {
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

    pub fn held_by(&mut self, receiver: u16, batch: u32) -> bool {
        let known =
            |source: &mut crate::paper::source::Source| source.known(AckId { receiver, batch });
        self.source.as_mut().is_some_and(known)
    }

    pub fn lost_by(&mut self, receiver: u16) {
        if let Some(source) = &mut self.source {
            source.forget(receiver);
        }
    }

    pub fn acknowledged_by(&self, receiver: u16) -> u32 {
        let source = self.source.as_ref();
        source.map_or(0, |source| source.acked_by(receiver))
    }
}

/// The receiver's side of a transfer.
impl Node {
    pub fn expect_checked(
        &mut self,
        source: u16,
        serial: u8,
        len: usize,
        partial_max: usize,
        held: impl Fn(u32) -> bool,
    ) -> Result<(), ExpectError> {
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

    pub fn decoded(&mut self, source: u16, into: &mut Vec<u8>) -> Option<u32> {
        self.receiver_of(source)?.decoded(into)
    }

    pub fn accept(&mut self, now: Instant, source: u16, batch: u32) {
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

    pub fn reject(&mut self, source: u16, batch: u32) {
        if let Some(receiver) = self.receiver_of(source) {
            receiver.reject(batch);
        }
    }

    pub fn forget_group(&mut self, source: u16, receiver: bool) {
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

/// Links and routes, in every role.
impl Node {
    pub fn relink(&mut self, links: Arc<Links>) -> bool {
        if !links.has(self.me) {
            return false;
        }
        // Routes follow from the links; each is computed again when it is next needed.
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

    pub fn receivers(&self) -> NodeSet {
        let source = self.source.as_ref();
        source.map_or(NodeSet::EMPTY, |source| source.receivers())
    }
}
