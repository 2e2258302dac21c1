//! A node that runs the improved variant, in all its roles.

use alloc::sync::Arc;
use alloc::vec::Vec;

use chappe_core::{
    Address, Arrival, Class, Classes, DropReason, Instant, Layer, LinkEvent, LinkNode, LinkSend,
    Stream, TraceEvent, TraceRing, Wake,
};

use crate::common::ConfigError;
use crate::counters::Counters;
use crate::improved::config::Config;
use crate::improved::group::slots::Slots;
use crate::improved::group::{Group, Role};
use crate::improved::header::{self, Coded, Head, ObjectId, Plan};
use crate::improved::report::STATES_MAX;
use crate::improved::shelf::{Gain, Shelf};
use crate::improved::turns::Turns;
use crate::layout::Layout;
use crate::links::Links;
use crate::set::NodeSet;
use crate::transfer::Progress;

mod session;

/// A node that runs the improved variant.
#[derive(Clone, Debug)]
pub struct Node {
    me: u16,
    config: Config,
    links: Arc<Links>,
    random: Stream,
    groups: Vec<Group>,
    expected: Vec<Expected>,
    /// The receivers of the object on offer.
    receivers: NodeSet,
    forwarders: usize,
    turn: usize,
    tokens: u32,
    counters: Counters,
    trace: TraceRing,
    /// The source of the latest expectation.
    latest: Option<u16>,
    /// The turns of a source's transfer, if the application gave any.
    turns: Option<(u16, Arc<Turns>)>,
    /// The latest time that the driver passed in, for calls of the application without one.
    now: Instant,
}

/// An object that this node is to receive.
#[derive(Clone, Debug)]
struct Expected {
    source: u16,
    layout: Layout,
    /// Its tag, if the application names transfers by serials.
    tag: Option<u32>,
    /// If the application keeps the batches: which it has already, and how many may be here.
    elsewhere: Option<(Vec<bool>, u32)>,
    /// The transfer before, whose late frames are not part of this one.
    former: Option<(u32, u8)>,
    progress: Progress,
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
            groups: Vec::with_capacity(config.common.groups_max),
            config,
            links,
            random,
            expected: Vec::new(),
            receivers: NodeSet::EMPTY,
            forwarders: 0,
            turn: 0,
            tokens: 0,
            counters: Counters::default(),
            trace: TraceRing::default(),
            latest: None,
            turns: None,
            now: Instant::ZERO,
        })
    }

    pub fn number(&self) -> u16 {
        self.me
    }

    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Sends in these turns in the next transfer of `source`.
    pub fn take_turns(&mut self, source: u16, turns: Arc<Turns>) {
        self.turns = Some((source, turns));
    }

    pub fn trace(&mut self, on: bool) {
        self.trace.on(on);
    }

    fn group_of(&self, source: u16) -> Option<&Group> {
        self.groups.iter().find(|group| group.source == source)
    }

    fn group_of_mut(&mut self, source: u16) -> Option<&mut Group> {
        self.groups.iter_mut().find(|group| group.source == source)
    }

    fn drop_frame(&mut self, why: DropReason) {
        self.counters.drops.count(why);
        let layer = Layer::Link;
        self.trace.push(TraceEvent::Dropped { layer, why });
    }
}

/// Handling of received frames.
impl Node {
    fn on_frame(&mut self, now: Instant, arrival: Arrival<'_>) {
        let from = arrival.from.node_number();
        let Some(from) = from.filter(|&from| self.links.has(from) && from != self.me) else {
            return self.drop_frame(DropReason::NotForUs);
        };
        let Ok(mut frame) = header::parse(arrival.sdu) else {
            return self.drop_frame(DropReason::Malformed);
        };
        // All nodes of a network share k and payload: frames with others do not fit the stores.
        let sound = self.links.has(frame.head.source)
            && usize::from(frame.head.object.k) == self.config.common.k
            && frame
                .data
                .is_none_or(|data| data.payload.len() == self.config.common.payload);
        if !sound {
            return self.drop_frame(DropReason::Malformed);
        }
        // The sets may name nodes that do not exist; nothing below checks them again.
        let nodes: NodeSet = (0..self.links.nodes() as u16).collect();
        let head = &mut frame.head;
        head.plan.members = head.plan.members.common(&nodes);
        head.complete = head.complete.common(&nodes);
        if let Some(done) = &mut head.done {
            done.next = done.next.common(&nodes);
        }
        let place = self.group_for(now, from, &frame.head);
        if let Some(place) = place {
            if let Some(group) = self.groups.get_mut(place) {
                group.follow_clock(now, from, frame.head.slot, arrival.sdu.len());
            }
            self.on_group_frame(now, place, from, &frame.head, frame.data.as_ref());
        }
    }

    fn on_group_frame(
        &mut self,
        now: Instant,
        place: usize,
        from: u16,
        head: &Head<'_>,
        data: Option<&Coded<'_>>,
    ) {
        let Some(group) = self.groups.get_mut(place) else {
            return;
        };
        let gain = group.on_frame(now, from, head, data, &mut self.random);
        group.begin(now);
        let (role, source) = (group.role, group.source);
        self.check_done(now);
        let (Some(data), Some(gain)) = (data, gain) else {
            return;
        };
        self.counters.data_heard += 1;
        if gain == Gain::Nothing {
            self.counters.non_innovative += 1;
            return self.drop_frame(DropReason::NotInnovative);
        }
        let counters = &mut self.counters;
        counters.innovative += 1;
        match role {
            Role::Receiver => counters.receiver_innovative += 1,
            Role::Relay | Role::Source => counters.relay_innovative += 1,
        }
        let (layer, from) = (Layer::Link, Address::node(from));
        let bytes = data.payload.len() as u32;
        self.trace.push(TraceEvent::Received { layer, from, bytes });
        if gain == Gain::Whole {
            while let Some(batch) = self.next_solved(place, data.batch) {
                self.on_batch(now, source, batch);
            }
        }
        if gain == Gain::Decoded
            && let Some(batch) = head.object.own(data.batch)
        {
            self.on_batch(now, source, batch);
        }
    }

    fn next_solved(&mut self, place: usize, of: u32) -> Option<u32> {
        self.groups.get_mut(place)?.shelf.next_solved(of)
    }

    /// Closes the transfer when every receiver is complete.
    fn check_done(&mut self, now: Instant) {
        let (me, receivers) = (self.me, self.receivers);
        let group = self
            .groups
            .iter_mut()
            .find(|group| group.source == me && !group.plan.closed);
        let Some(group) = group else { return };
        group.advance_done(now, &receivers, &mut self.random);
        if receivers.without(&group.complete).is_empty() {
            group.close(now, &mut self.random);
            let (machine, from, to) = ("source", "sending", "done");
            self.trace.push(TraceEvent::State { machine, from, to });
        }
    }

    /// Counts a batch that is complete and accepted.
    fn on_batch(&mut self, now: Instant, source: u16, batch: u32) {
        let expected = self
            .expected
            .iter_mut()
            .find(|expected| expected.source == source);
        let Some(expected) = expected else { return };
        let octets = expected.layout.octets(batch);
        let progress = &mut expected.progress;
        progress.batches_done = progress.batches_done.saturating_add(1);
        progress.bytes = progress.bytes.saturating_add(octets);
        if progress.batches_done == progress.batches {
            progress.complete_at = Some(now);
        }
        self.counters.batches_decoded += 1;
        let (flow, bytes) = (batch, octets as u32);
        self.trace.push(TraceEvent::Delivered { flow, bytes });
    }

    /// The index of the frame's group, which is made if this node takes part in it.
    fn group_for(&mut self, now: Instant, from: u16, head: &Head<'_>) -> Option<usize> {
        let known = |group: &Group| group.source == head.source;
        let Some(place) = self.groups.iter().position(known) else {
            if head.source == self.me {
                self.drop_frame(DropReason::Stale);
                return None;
            }
            if !head.told {
                // Only a frame with the sets says whether this node takes part.
                self.drop_frame(DropReason::NotForUs);
                return None;
            }
            return self.new_group(now, head);
        };
        let group = self.groups.get(place)?;
        let same = group.id == head.object;
        let follows = group.leads(from) || group.lapsed(now, self.config.common.forget);
        // A frame of another epoch counts only from nearer to the source, or after a long silence: others may be behind.
        if same && (follows || group.plan.epoch == head.plan.epoch) {
            return Some(place);
        }
        // Another object: only a relay follows the source to it by itself; a receiver's application has to expect it.
        if same || !follows || group.role != Role::Relay || !head.told {
            self.drop_frame(DropReason::Stale);
            return None;
        }
        self.groups.remove(place);
        self.new_group(now, head)
    }

    fn new_group(&mut self, now: Instant, head: &Head<'_>) -> Option<usize> {
        let id = head.object;
        let (role, shelf) = if let Some(expected) = self.expected_as(head) {
            let shelf = match &expected.elsewhere {
                None => Shelf::copy(id, &expected.layout),
                Some((held, places)) => {
                    Shelf::checked(id, self.config.common.payload, *places, held)
                }
            };
            (Role::Receiver, shelf)
        } else if head.plan.members.contains(self.me) && !head.plan.closed {
            let window = self.config.settings.window;
            let mut shelf = Shelf::relay(id, self.config.common.payload, window);
            // A latecomer begins where its neighbours are.
            shelf.move_to(
                Some(head.report.base())
                    .filter(|&base| base < id.all())
                    .unwrap_or(0),
            );
            (Role::Relay, shelf)
        } else {
            self.drop_frame(DropReason::NotForUs);
            return None;
        };
        // Only relaying is limited: the application chose the groups that this node receives.
        if role == Role::Relay && self.groups.len() >= self.config.common.groups_max {
            let forget = self.config.common.forget;
            let silent = |group: &Group| group.role == Role::Relay && group.lapsed(now, forget);
            let Some(place) = self.groups.iter().position(silent) else {
                self.drop_frame(DropReason::QueueFull);
                return None;
            };
            self.groups.remove(place);
        }
        let mut group = self.group(now, head.source, role, id, head.plan, shelf);
        // Others may believe that this node still holds the packets it held before a restart.
        group.tell(now, &mut self.random);
        self.groups.push(group);
        Some(self.groups.len() - 1)
    }

    /// The expected object that a frame belongs to, if any.
    fn expected_as(&self, head: &Head<'_>) -> Option<&Expected> {
        let id = &head.object;
        let meets = |expected: &&Expected| {
            let last = id.batches.saturating_sub(1);
            expected.source == head.source
                && expected.layout.batches() == Some(id.batches)
                && expected.layout.packets(last) == usize::from(id.last)
                && !(id.outer && expected.elsewhere.is_some())
                && expected.tag.is_none_or(|tag| tag == id.tag)
                && expected.former != Some((id.tag, head.plan.epoch))
        };
        self.expected.iter().find(meets)
    }

    fn group(
        &self,
        now: Instant,
        source: u16,
        role: Role,
        id: ObjectId,
        plan: Plan,
        shelf: Shelf,
    ) -> Group {
        let links = self.links.clone();
        let paths = Arc::new(links.etx_paths(source));
        let (payload, settings) = (self.config.common.payload, self.config.settings);
        let mut group = Group::new(
            self.me, source, role, id, plan, shelf, payload, links, paths, settings, now,
        );
        if let Some((of, turns)) = &self.turns
            && *of == source
        {
            let common = &self.config.common;
            let nodes = self.links.nodes();
            let times = if settings.timed { header::TIMES } else { 0 };
            let done = match id.is_cut() {
                true => header::done(nodes),
                false => 0,
            };
            let head = times + done;
            let frame = self.config.frame_in_slot(nodes, &id);
            let report = head + header::overhead(nodes, STATES_MAX, 0);
            let lengths = (frame, report, common.link_overhead);
            let slots = Slots::new(
                turns.clone(),
                self.me,
                &id,
                settings.window,
                common.mode,
                lengths,
            );
            group.take_turns(slots, now);
        }
        group
    }
}

/// Choice of the next frame.
impl Node {
    /// Writes a frame of one group. Data frames carry the report, so they go first.
    fn send(
        &mut self,
        now: Instant,
        place: usize,
        allowed: Classes,
        sdu: &mut [u8],
    ) -> Option<(usize, Class)> {
        let group = self.groups.get_mut(place)?;
        let role = group.role;
        let told_first = allowed.contains(Class::Control) && group.report_first();
        if allowed.contains(Class::Data) && group.ready() && !told_first {
            let len = group.write_data(now, sdu, &mut self.random)?;
            self.counters.data_sent += 1;
            match role {
                Role::Source => self.counters.source_sent += 1,
                Role::Receiver | Role::Relay => self.counters.relay_sent += 1,
            }
            return Some((len, Class::Data));
        }
        if group.report_due() && group.report_late(now) {
            group.postpone_report(now, &mut self.random);
            return None;
        }
        if allowed.contains(Class::Control) && group.report_due() {
            let len = group.write_report(now, sdu, &mut self.random)?;
            self.counters.reports_sent += 1;
            return Some((len, Class::Control));
        }
        None
    }
}

impl LinkNode for Node {
    fn handle_link(&mut self, now: Instant, event: LinkEvent<'_>) {
        self.now = now;
        if let LinkEvent::Received(arrival) = event {
            self.on_frame(now, arrival);
        }
    }

    fn pending(&self) -> Classes {
        let data = self.groups.iter().any(Group::ready);
        let control = self.groups.iter().any(Group::report_due);
        Classes::NONE
            .with_if(Class::Control, control)
            .with_if(Class::Data, data)
    }

    fn poll_link(&mut self, now: Instant, allowed: Classes, sdu: &mut [u8]) -> Option<LinkSend> {
        self.now = now;
        let count = self.groups.len();
        for step in 0..count {
            let place = (self.turn + step) % count;
            let Some((len, class)) = self.send(now, place, allowed, sdu) else {
                continue;
            };
            self.turn = place + 1;
            self.tokens = self.tokens.wrapping_add(1);
            let (layer, to, bytes) = (Layer::Link, Address::BROADCAST, len as u32);
            self.trace.push(TraceEvent::Sent { layer, to, bytes });
            return Some(LinkSend {
                to,
                len,
                class,
                mode: Some(self.config.common.mode),
                token: self.tokens,
            });
        }
        None
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
        for group in &mut self.groups {
            if let Some(why) = group.handle_timeout(now, &mut self.random) {
                self.trace.push(TraceEvent::Timer { why });
            }
        }
    }

    fn poll_timeout(&self) -> Option<Wake> {
        let deadlines = self.groups.iter().filter_map(Group::deadline);
        let next = deadlines.min_by_key(|(at, _)| *at);
        next.map(|(at, why)| Wake { at, why })
    }

    fn poll_trace(&mut self) -> Option<TraceEvent> {
        self.trace.pop()
    }
}
