//! The application's side of a node.

use alloc::sync::Arc;
use alloc::vec::Vec;

use chappe_core::Instant;

use super::{Expected, Node};
use crate::improved::group::{Group, Role};
use crate::improved::header::{ObjectId, Plan};
use crate::improved::shelf::Shelf;
use crate::layout::Layout;
use crate::links::Links;
use crate::object::{Batches, Object};
use crate::set::NodeSet;
use crate::transfer::{ExpectError, OfferError, Offered, Progress};
use crate::tree::Tree;

/// The source's side of a transfer.
impl Node {
    pub fn offer(&mut self, object: Arc<[u8]>, receivers: &[u16]) -> Result<Offered, OfferError> {
        let layout = self.layout(object.len());
        let tag = tag_of(object.iter().copied(), &layout);
        let object = Batches::new(object, self.config.common.k, self.config.common.payload);
        self.begin(tag, object, receivers)
    }

    pub fn offer_read(
        &mut self,
        object: Arc<dyn Object>,
        serial: u8,
        receivers: &[u16],
    ) -> Result<Offered, OfferError> {
        let tag = tag_of([serial], &self.layout(object.size()));
        let object = Batches::read(object, self.config.common.k, self.config.common.payload);
        self.begin(tag, object, receivers)
    }

    fn begin(
        &mut self,
        tag: u32,
        object: Batches,
        receivers: &[u16],
    ) -> Result<Offered, OfferError> {
        if !self.source_done() {
            return Err(OfferError::Busy);
        }
        let wrong = |node: &&u16| **node == self.me || !self.links.has(**node);
        if let Some(&receiver) = receivers.iter().find(wrong) {
            return Err(OfferError::Receiver(receiver));
        }
        let layout = *object.layout();
        let batches = layout.batches().ok_or(OfferError::TooLarge)?;
        let (reached, members, offered) = self.plan_for(receivers);
        // Read before `withdraw`: a new epoch makes members drop what they know of the former offer.
        let former = self.group_of(self.me).map(|group| group.plan.epoch);
        // A random number: others may still remember a transfer from before this node was restarted.
        let epoch = match former {
            Some(epoch) => epoch.wrapping_add(1),
            None => self.random.next_u64() as u8,
        };
        self.withdraw();
        if batches == 0 || reached.is_empty() {
            return Ok(offered);
        }
        (self.receivers, self.forwarders) = (reached, offered.forwarders);
        let id = ObjectId {
            tag,
            batches,
            k: self.config.common.k as u8,
            last: layout.packets(batches.saturating_sub(1)) as u8,
            outer: self.has_outer_code(&object),
        };
        let plan = Plan {
            epoch,
            number: 0,
            closed: false,
            contend: false,
            members,
        };
        let shelf = Shelf::source(id, self.config.common.payload, object);
        let mut group = self.group(self.now, self.me, Role::Source, id, plan, shelf);
        group.begin(self.now);
        self.groups.push(group);
        Ok(offered)
    }

    /// Whether batches of an outer code are among those of an object: in turns, if it is in memory.
    fn has_outer_code(&self, object: &Batches) -> bool {
        let in_turns = matches!(&self.turns, Some((of, _)) if *of == self.me);
        self.config.settings.outer && in_turns && object.parts().is_some()
    }

    /// The receivers that can be reached, the members for them, and what to report to the application.
    fn plan_for(&self, receivers: &[u16]) -> (NodeSet, NodeSet, Offered) {
        let (there, back) = (self.links.etx_paths(self.me), self.links.ack_paths(self.me));
        let all: NodeSet = receivers.iter().copied().collect();
        let reached: NodeSet = all
            .iter()
            .filter(|&node| there.reaches(node) && back.reaches(node))
            .collect();
        let tree = Tree::new(&there, reached.iter());
        let relays: NodeSet = tree
            .forwarders
            .iter()
            .map(|forwarder| forwarder.node)
            .collect();
        let relays = match &self.turns {
            Some((source, turns)) if *source == self.me => turns.senders(),
            _ => relays,
        };
        let mut members = reached.union(&relays);
        members.remove(self.me);
        let offered = Offered {
            unreachable: all.without(&reached).iter().collect(),
            cut_off: Vec::new(),
            forwarders: tree.forwarders.len().saturating_sub(1),
        };
        (reached, members, offered)
    }

    pub fn withdraw(&mut self) {
        let me = self.me;
        self.groups.retain(|group| group.source != me);
        self.receivers = NodeSet::EMPTY;
    }

    pub fn serve(&mut self, receivers: &[u16]) -> Offered {
        let (reached, members, offered) = self.plan_for(receivers);
        let (me, now) = (self.me, self.now);
        if let Some(group) = self.groups.iter_mut().find(|group| group.source == me) {
            (self.receivers, self.forwarders) = (reached, offered.forwarders);
            group.serve_others(now, members, &mut self.random);
        }
        self.check_done(now);
        offered
    }

    /// Starts over, since a receiver has lost what it was known to have: other nodes rely on its reports as well, and before it
    /// learnt what to expect it reported that it wanted nothing. That also holds for one that is not served now: it was
    /// complete in its former life, and would count as complete when it is served again.
    pub fn start_over(&mut self) {
        let (me, now) = (self.me, self.now);
        if let Some(group) = self.groups.iter_mut().find(|group| group.source == me) {
            group.start_over(now, &mut self.random);
        }
    }

    pub fn acknowledged_by(&self, receiver: u16) -> u32 {
        self.group_of(self.me)
            .map_or(0, |group| group.satisfied(receiver))
    }

    pub fn source_done(&self) -> bool {
        self.group_of(self.me)
            .is_none_or(|group| self.receivers.without(&group.complete).is_empty())
    }

    pub fn forwarders(&self) -> usize {
        self.forwarders
    }

    pub fn receivers(&self) -> NodeSet {
        self.receivers
    }
}

/// The receiver's side of a transfer.
impl Node {
    pub fn expect(&mut self, source: u16, len: usize) -> Result<(), ExpectError> {
        self.expect_as(source, len, None, None)
    }

    pub fn expect_checked(
        &mut self,
        source: u16,
        serial: u8,
        len: usize,
        partial_max: usize,
        held: impl Fn(u32) -> bool,
    ) -> Result<(), ExpectError> {
        let layout = self.layout(len);
        let batches = layout.batches().ok_or(ExpectError::TooLarge)?;
        let held: Vec<bool> = (0..batches).map(held).collect();
        let places = u32::try_from(partial_max).unwrap_or(u32::MAX);
        let places = places.clamp(1, self.config.settings.window);
        let tag = tag_of([serial], &layout);
        self.expect_as(source, len, Some(tag), Some((held, places)))
    }

    fn expect_as(
        &mut self,
        source: u16,
        len: usize,
        tag: Option<u32>,
        elsewhere: Option<(Vec<bool>, u32)>,
    ) -> Result<(), ExpectError> {
        if source == self.me || !self.links.has(source) {
            return Err(ExpectError::Source(source));
        }
        let layout = self.layout(len);
        let batches = layout.batches().ok_or(ExpectError::TooLarge)?;
        let place = self.groups.iter().position(|group| group.source == source);
        let former = place.map(|place| self.groups.remove(place));
        // A transfer with a serial may continue; one without is a new one.
        let former = former.filter(|group| tag.is_none() && group.role == Role::Receiver);
        let mut progress = Progress {
            batches,
            ..Progress::default()
        };
        for batch in elsewhere.iter().flat_map(|(held, _)| (0u32..).zip(held)) {
            if let (batch, true) = batch {
                progress.batches_done += 1;
                progress.bytes = progress.bytes.saturating_add(layout.octets(batch));
            }
        }
        progress.complete_at = (progress.batches_done == batches).then_some(self.now);
        self.expected.retain(|expected| expected.source != source);
        self.expected.push(Expected {
            source,
            layout,
            tag,
            elsewhere,
            former: former.map(|group| (group.id.tag, group.plan.epoch)),
            progress,
        });
        self.latest = Some(source);
        Ok(())
    }

    pub fn received(&self) -> Progress {
        let latest = self.latest_expected();
        latest.map(|expected| expected.progress).unwrap_or_default()
    }

    pub fn ranks(&self, each: &mut dyn FnMut(u32, usize)) {
        let group = self
            .latest_expected()
            .and_then(|expected| self.group_of(expected.source));
        if let Some(group) = group {
            group.shelf.ranks(each);
        }
    }

    fn latest_expected(&self) -> Option<&Expected> {
        let latest = self.latest?;
        self.expected
            .iter()
            .find(|expected| expected.source == latest)
    }

    pub fn object(&self) -> Option<&[u8]> {
        let expected = self.latest_expected()?;
        expected.progress.complete_at?;
        if expected.layout.len == 0 {
            return Some(&[]);
        }
        let group = self.group_of(expected.source)?;
        group.shelf.octets()?.get(..expected.layout.len)
    }

    pub fn decoded(&mut self, source: u16, into: &mut Vec<u8>) -> Option<u32> {
        let expected = self
            .expected
            .iter()
            .find(|expected| expected.source == source)?;
        let layout = expected.layout;
        let batch = self.group_of_mut(source)?.shelf.hand_out(into)?;
        into.truncate(layout.octets(batch));
        Some(batch)
    }

    pub fn accept(&mut self, now: Instant, source: u16, batch: u32) {
        self.now = now;
        let group = self.groups.iter_mut().find(|group| group.source == source);
        let Some(group) = group else { return };
        if !group.shelf.accept(batch) {
            return;
        }
        group.tell(now, &mut self.random);
        self.on_batch(now, source, batch);
        // The next group of this transfer needs to know it too.
        let expected = self
            .expected
            .iter_mut()
            .find(|expected| expected.source == source);
        let held = expected.and_then(|expected| expected.elsewhere.as_mut());
        if let Some(place) = held.and_then(|(held, _)| held.get_mut(batch as usize)) {
            *place = true;
        }
    }

    pub fn reject(&mut self, source: u16, batch: u32) {
        if let Some(group) = self.group_of_mut(source) {
            group.shelf.reject(batch);
        }
    }

    pub fn set_aside(&mut self, source: u16, batch: u32) -> bool {
        let group = self.group_of_mut(source);
        group.is_some_and(|group| group.shelf.set_aside(batch))
    }

    pub fn takes_part(&self, source: u16) -> bool {
        self.group_of(source).is_some_and(Group::takes_part)
    }

    pub fn counts_complete(&self, source: u16, receiver: u16) -> bool {
        let group = self.group_of(source);
        group.is_some_and(|group| group.complete.contains(receiver))
    }

    pub fn dispute(&mut self, source: u16, receiver: u16) {
        let now = self.now;
        if let Some(group) = self.groups.iter_mut().find(|group| group.source == source) {
            group.dispute(now, receiver, &mut self.random);
        }
    }

    pub fn forget_group(&mut self, source: u16, receiver: bool) {
        self.groups
            .retain(|group| group.source != source || group.role == Role::Source);
        if receiver {
            self.expected.retain(|expected| expected.source != source);
        }
    }
}

/// Links and routes, in every role.
impl Node {
    pub fn relink(&mut self, links: Arc<Links>) -> bool {
        if !links.has(self.me) {
            return false;
        }
        for group in &mut self.groups {
            let paths = Arc::new(links.etx_paths(group.source));
            Group::relink(group, links.clone(), paths);
        }
        self.links = links;
        true
    }

    pub fn next_hop(&self, source: u16) -> Option<u16> {
        let known = self.links.has(source);
        known.then(|| self.links.ack_paths(source).next(self.me))?
    }

    fn layout(&self, len: usize) -> Layout {
        Layout {
            len,
            k: self.config.common.k,
            payload: self.config.common.payload,
        }
    }
}

/// A checksum of an object's name (its octets, or the serial) and of its cut: FNV-1a (Fowler, Noll, Vo; RFC 9923).
fn tag_of(name: impl IntoIterator<Item = u8>, layout: &Layout) -> u32 {
    let cut = [layout.len as u64, layout.k as u64, layout.payload as u64];
    let cut = cut.into_iter().flat_map(u64::to_be_bytes);
    name.into_iter()
        .chain(cut)
        .fold(0x811c_9dc5, |hash: u32, octet| {
            (hash ^ u32::from(octet)).wrapping_mul(0x0100_0193)
        })
}
