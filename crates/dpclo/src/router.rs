//! A node of the mesh: its state, and the interface to the application.

use alloc::vec::Vec;

use chappe_core::{
    Address, Caps, Class, Classes, DropReason, Instant, Layer, LinkEvent, LinkNode, LinkSend,
    Stream, TraceEvent, TraceRing, Wake,
};

use crate::airtime::Airtime;
use crate::baseline::dclo::Rounds;
use crate::baseline::fusion::CongestionBits;
use crate::config::{ConfigError, RateLaw, Scheme, Settings};
use crate::counters::Counters;
use crate::header::{self, Backlog};
use crate::links::Links;
use crate::rate::Rate;
use crate::routes::{Routes, Way};
use crate::seen::{Flows, Seen};
use crate::store::{List, Packet, Store};

mod costs;
mod receive;
mod report;
mod request;
mod schedule;
mod send;
mod timers;

use report::Reporter;
use request::Waiting;
use schedule::Choice;
use timers::Timers;

/// Packets that the link may hold at the same time. A MAC holds two for each class, one being sent and one not reported yet; a
/// link that repeats frames itself (`chappe mesh`) holds a window of them.
const IN_FLIGHT_MAX: usize = 32;

/// A node: source, relay and destination.
///
/// It sits on a MAC that overhears. The application offers packets with [`Router::offer`] and takes received ones with
/// [`Router::poll_delivery`]. After either, drive the node as after any input ([`LinkNode::handle_timeout`] with the
/// present time).
#[derive(Clone, Debug)]
pub struct Router {
    me: u16,
    epoch: u8,
    settings: Settings,
    random: Stream,
    links: Links,
    routes: Routes,
    /// One per destination, at the destination's place.
    queues: Vec<Queue>,
    /// Places of the destinations whose queue is not empty.
    active: Vec<u16>,
    store: Store,
    seen: Seen,
    flows: Flows,
    pins: Vec<Pin>,
    /// Packets for the application that it has not taken yet.
    inbox: List,
    /// Packets that arrived here out of order and wait for those before them.
    held: List,
    sources: Vec<Source>,
    /// The flows that begin at this node.
    own_flows: Vec<OwnFlow>,
    in_flight: [Option<InFlight>; IN_FLIGHT_MAX],
    tokens: u32,
    order: u64,
    timers: Timers,
    probe_number: u16,
    probe_ready: bool,
    /// This node's DSDV sequence number.
    seq: u16,
    update_ready: bool,
    updated_at: Option<Instant>,
    /// How many updates more tell of this node's own number, which packets of others wait for.
    own_again: u8,
    /// Requests for sequence numbers that wait for the link.
    requests: Vec<Waiting>,
    /// Whether one of them must leave now.
    request_ready: bool,
    /// When this node last wrote a frame, or a part of one.
    wrote_at: Option<Instant>,
    /// Counts own requests: repetitions go to other neighbours.
    asked: u8,
    /// The application's offer was refused; the rate allows the next packet at this instant.
    refused_until: Option<Instant>,
    /// The congestion bits of the neighbours (Fusion).
    bits: CongestionBits,
    /// The rounds of DCLO; `None` under other schemes.
    rounds: Option<Rounds>,
    reporter: Reporter,
    /// Airtime and prices; `None` under other rate laws.
    airtime: Option<Airtime>,
    /// The packet that would be sent now, computed after each event.
    choice: Option<Choice>,
    counters: Counters,
    trace: TraceRing,
}

/// The queue for one destination.
#[derive(Clone, Copy, Debug, Default)]
struct Queue {
    list: List,
    /// Packets that the link holds.
    in_flight: u16,
    /// Packets that were pushed out and still count in the length (BCP's floating queue).
    floating: u16,
    /// The exponentially smoothed length.
    smooth: f64,
    /// The length that was advertised at the beginning of the round (DCLO).
    round_backlog: Backlog,
    /// The length that was broadcast last, in a probe or a report.
    reported: Backlog,
}

/// A packet that the link holds.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    token: u32,
    /// Its place in the store; `None` for an empty packet.
    packet: Option<u16>,
    destination: u16,
    neighbour: u8,
    node: u16,
    /// Octets of the frame.
    octets: u16,
}

/// This node as a source for one destination.
#[derive(Clone, Copy, Debug)]
struct Source {
    /// The number of the destination.
    node: u16,
    rate: Rate,
    used: Instant,
}

/// A flow of this node.
#[derive(Clone, Copy, Debug)]
struct OwnFlow {
    flow: u16,
    /// The number of the next packet.
    next: u32,
    used: Instant,
}

/// The next hop of a flow.
#[derive(Clone, Copy, Debug)]
struct Pin {
    source: u16,
    flow: u16,
    neighbour: u8,
    used: Instant,
}

/// Why a packet was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The source's rate does not allow a packet yet. The node's deadlines include the instant when it does.
    Rate {
        /// When the rate allows the next packet.
        until: Instant,
    },
    /// The queue for this destination or the packet store is full.
    Full,
    /// The payload is longer than a packet allows.
    TooLong {
        /// The largest payload in octets.
        most: u16,
    },
    /// There is no room for another destination, flow or source.
    NoRoom,
    /// This node is the destination.
    Own,
}

/// A packet that arrived at its destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The node that offered it.
    pub source: u16,
    /// The number that the source gave to the flow.
    pub flow: u16,
    /// The packet's number within the flow, from 0.
    pub number: u32,
    /// How often it was forwarded.
    pub hops: u8,
    /// Octets written to the buffer.
    pub len: usize,
}

impl Router {
    /// Node `me` of a mesh on a link with the abilities `caps`. `epoch` must differ from that before a restart (count
    /// starts, for instance). The node draws its random numbers from `random`.
    pub fn new(
        settings: Settings,
        me: u16,
        epoch: u8,
        caps: &Caps,
        now: Instant,
        random: Stream,
    ) -> Result<Router, ConfigError> {
        settings.check(caps)?;
        let mut settings = settings;
        if !caps.overhears {
            // Both rely on hearing a neighbour forward: without that, packets sent to it would count as waiting there
            // until its next probe.
            (settings.extras.count_sent, settings.extras.credits) = (false, 0);
        }
        if !caps.hastens {
            // Where the class is a mere order of those who wait, it is for what is urgent.
            settings.priorities.hasty = None;
        }
        let room = settings.room;
        let places = usize::from(room.destinations);
        let mut queues = Vec::with_capacity(places);
        queues.resize(places, Queue::default());
        let mut router = Router {
            me,
            epoch,
            settings,
            random,
            links: Links::new(settings.probes, room.neighbours),
            routes: Routes::new(
                me,
                settings.routing,
                settings.next_hops.feasible_only,
                room.destinations,
                room.neighbours,
            ),
            queues,
            active: Vec::with_capacity(places),
            store: Store::new(room.packets, room.payload),
            seen: Seen::new(room.seen),
            flows: Flows::new(room.flows),
            pins: Vec::with_capacity(usize::from(room.flows)),
            inbox: List::default(),
            held: List::default(),
            sources: Vec::with_capacity(usize::from(room.sources)),
            own_flows: Vec::with_capacity(usize::from(room.flows)),
            in_flight: [None; IN_FLIGHT_MAX],
            tokens: 0,
            order: 0,
            timers: Timers::default(),
            probe_number: 0,
            probe_ready: false,
            seq: 0,
            update_ready: false,
            updated_at: None,
            own_again: 0,
            requests: Vec::with_capacity(request::ALL_MAX),
            request_ready: false,
            wrote_at: None,
            asked: u8::MAX,
            refused_until: None,
            bits: CongestionBits::new(room.neighbours, settings.queues.backlog_life),
            rounds: None,
            reporter: Reporter::new(&settings.extras, caps),
            airtime: match settings.rate {
                RateLaw::Airtime(law) => Some(Airtime::new(law, room.destinations, now)),
                _ => None,
            },
            choice: None,
            counters: Counters::default(),
            trace: TraceRing::default(),
        };
        if let Scheme::Dclo(law) = settings.scheme {
            router.rounds = Some(Rounds::new(law, me, room.neighbours, now));
            // Packets that neighbours hold for this node count in the price of the link, too.
            router.destination(now, me);
        }
        router.start_timers(now);
        Ok(router)
    }

    /// The number of this node.
    pub fn number(&self) -> u16 {
        self.me
    }

    /// Turns trace events on or off. They are off initially.
    pub fn trace(&mut self, on: bool) {
        self.trace.on(on);
    }

    /// Counters since the node was created.
    pub fn counters(&self) -> Counters {
        let mut counters = self.counters;
        counters.losses.no_destination += self.routes.refused;
        counters
    }

    /// Offers a packet of one of this node's flows. A flow has one destination. The mesh may lose and reorder packets.
    pub fn offer(
        &mut self,
        now: Instant,
        destination: u16,
        flow: u16,
        payload: &[u8],
    ) -> Result<(), Refused> {
        self.offer_as(now, destination, flow, payload, false)
    }

    /// Like [`offer`](Self::offer), for a packet that goes before those offered otherwise, at every node and whatever their
    /// prices. For flows that send little: the rate still counts these packets, and allows a few in advance.
    pub fn offer_first(
        &mut self,
        now: Instant,
        destination: u16,
        flow: u16,
        payload: &[u8],
    ) -> Result<(), Refused> {
        self.offer_as(now, destination, flow, payload, true)
    }

    fn offer_as(
        &mut self,
        now: Instant,
        destination: u16,
        flow: u16,
        payload: &[u8],
        first: bool,
    ) -> Result<(), Refused> {
        let most = self.settings.room.payload;
        if destination == self.me {
            return Err(Refused::Own);
        }
        if payload.len() > usize::from(most) {
            return Err(Refused::TooLong { most });
        }
        let place = self.destination(now, destination).ok_or(Refused::NoRoom)?;
        let (source, number) = self.source(now, destination, flow).ok_or(Refused::NoRoom)?;
        let full = self.is_full(place) || self.store.room() == 0;
        let Some(entry) = self.sources.get_mut(source) else {
            return Err(Refused::NoRoom);
        };
        entry.used = now;
        // A packet refused by a full queue takes a token too: the rate law counts it as growth of the queue.
        let token = match first {
            true => entry.rate.take_ahead(now),
            false => entry.rate.take(now),
        };
        if let Err(until) = token {
            self.counters.refused_rate += 1;
            self.refused_until = Some(self.refused_until.map_or(until, |before| before.min(until)));
            return Err(Refused::Rate { until });
        }
        if full && !first {
            entry.rate.on_refused();
            self.counters.refused_full += 1;
            return Err(Refused::Full);
        }
        let packet = Packet {
            source: self.me,
            destination,
            flow,
            number: self.own_flows.get(number).map_or(0, |flow| flow.next),
            epoch: self.epoch,
            hop_limit: self.settings.routing.hop_limit,
            first,
            came: now,
            ..Packet::default()
        };
        if !self.enqueue(now, place, packet, payload) {
            return Err(Refused::Full);
        }
        if let Some(flow) = self.own_flows.get_mut(number) {
            (flow.next, flow.used) = (flow.next.wrapping_add(1), now);
        }
        self.counters.accepted += 1;
        Ok(())
    }

    /// Takes the next packet that arrived. A buffer that is too short truncates it.
    pub fn poll_delivery(&mut self, buffer: &mut [u8]) -> Option<Delivery> {
        let mut inbox = self.inbox;
        let place = self.store.pop_first(&mut inbox)?;
        self.inbox = inbox;
        let packet = *self.store.packet(place)?;
        let payload = self.store.payload(place);
        let len = payload.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..len), payload.get(..len)) {
            to.copy_from_slice(from);
        }
        self.store.release(place);
        Some(Delivery {
            source: packet.source,
            flow: packet.flow,
            number: packet.number,
            hops: self
                .settings
                .routing
                .hop_limit
                .saturating_sub(packet.hop_limit),
            len,
        })
    }

    /// The number of packets that wait here for a destination.
    pub fn queue(&self, destination: u16) -> u16 {
        let place = self.routes.find(destination);
        let queue = place.and_then(|place| self.queues.get(usize::from(place)));
        queue.map_or(0, |queue| queue.list.len())
    }

    /// The length of the queue for each destination that this node has heard of, itself excepted.
    pub fn queues(&self) -> impl Iterator<Item = (u16, u16)> + '_ {
        let known = self.routes.known().filter(|known| known.0 != self.me);
        known.map(|(node, place)| {
            let queue = self.queues.get(usize::from(place));
            (node, queue.map_or(0, |queue| queue.list.len()))
        })
    }

    /// Whether a packet waits here for any destination, without those that the link holds.
    pub fn has_queued(&self) -> bool {
        !self.active.is_empty()
    }

    /// The number of destinations that this node has heard of, itself included.
    pub fn destination_count(&self) -> usize {
        self.routes.count()
    }

    /// The rate at which this node may send to each destination that it has offered something to, in packets a second.
    pub fn rates(&self) -> impl Iterator<Item = (u16, f64)> + '_ {
        let sources = self.sources.iter();
        sources.map(|source| (source.node, source.rate.packets_per_second()))
    }

    /// The packets that wait here for any destination, without those that the link holds, and the octets of their payloads.
    pub fn queued(&self) -> (usize, usize) {
        let lists = self.queues.iter().map(|queue| &queue.list);
        let places = lists.flat_map(|list| self.store.places(list));
        places.fold((0, 0), |(count, octets), place| {
            (count + 1, octets + self.store.payload(place).len())
        })
    }

    /// The number of packets that wait here for any destination or that the link holds.
    pub fn waiting(&self) -> u64 {
        let waits = |queue: &Queue| u64::from(queue.list.len()) + u64::from(queue.in_flight);
        self.queues.iter().map(waits).sum()
    }

    /// The number of packets that arrived and were not taken yet, or wait for others before them.
    pub fn undelivered(&self) -> u16 {
        self.inbox.len().saturating_add(self.held.len())
    }

    /// The ETX of the link to a neighbour, if the link is usable.
    pub fn etx(&self, neighbour: u16) -> Option<f64> {
        self.links.etx(self.links.find(neighbour)?)
    }

    /// The distance to a destination in ETX, if it is reachable.
    pub fn distance(&self, destination: u16) -> Option<f64> {
        let metric = self.routes.get(self.routes.find(destination)?)?.metric();
        metric.exists().then(|| metric.etx())
    }

    /// The cost of a packet from here to a destination, in seconds of airtime at its prices, if there is a route.
    pub fn cost(&self, now: Instant, destination: u16) -> Option<f64> {
        self.cost_to(now, self.routes.find(destination)?)
    }

    /// The share of the channel that this node uses and its price of airtime; `None` under other rate laws.
    pub fn airtime(&self) -> Option<(f64, f64)> {
        let own = self.airtime.as_ref()?.own();
        Some((own.airtime(), own.price()))
    }

    /// The neighbours, with the ETX of links that are usable.
    pub fn neighbours(&self) -> impl Iterator<Item = (u16, Option<f64>)> + '_ {
        self.links
            .iter()
            .map(|(place, link)| (link.node, self.links.etx(place)))
    }

    /// The number of destinations that this node has heard of, reachable or not, with itself.
    pub fn known(&self) -> usize {
        self.routes.count()
    }

    /// The destinations that this node has heard of, reachable or not, itself excepted.
    pub fn destinations(&self) -> impl Iterator<Item = u16> + '_ {
        let known = self
            .routes
            .places()
            .filter_map(|place| self.routes.get(place));
        known
            .map(|known| known.node)
            .filter(|&node| node != self.me)
    }

    /// What every neighbour with a usable link advertises for a destination: for `why` a path is as it is.
    pub fn advertised(&self, destination: u16) -> impl Iterator<Item = Way> + '_ {
        let place = self.routes.find(destination);
        self.links.usable().filter_map(move |(neighbour, link)| {
            let way = self.routes.way(place?, neighbour, link)?;
            let node = self.links.get(neighbour)?.node;
            Some(Way { node, ..way })
        })
    }

    /// A neighbour has gone, as far as the application knows: its link and its routes are forgotten until probes come again.
    pub fn lose(&mut self, now: Instant, neighbour: u16) {
        let Some(place) = self.links.find(neighbour) else {
            return;
        };
        self.links.remove(place);
        self.routes.forget(place);
        self.pins.retain(|pin| pin.neighbour != place);
        self.rank_all(now);
        self.ask(now);
        self.choice = self.choose(now);
    }

    /// A neighbour is heard and acknowledges nothing, as far as the application knows: packets take other ways for some seconds, each
    /// time twice as long.
    pub fn bar(&mut self, now: Instant, neighbour: u16) {
        let Some(place) = self.links.find(neighbour) else {
            return;
        };
        self.links.bar(now, place);
        self.pins.retain(|pin| pin.neighbour != place);
        self.rank_all(now);
        self.ask(now);
        self.choice = self.choose(now);
    }

    /// What went to a destination by a neighbour did not arrive, as far as the application knows: packets for it take other ways for
    /// a minute, and then for two, if there are any.
    pub fn shun(&mut self, now: Instant, destination: u16, neighbour: u16) {
        let places = (self.routes.find(destination), self.links.find(neighbour));
        let (Some(destination), Some(place)) = places else {
            return;
        };
        self.routes.shun(now, destination, place, &self.links);
        self.pins.retain(|pin| pin.neighbour != place);
        self.ask(now);
        self.choice = self.choose(now);
    }

    /// The next hops in use for a destination, best route first.
    pub fn next_hops(&self, destination: u16) -> impl Iterator<Item = u16> + '_ {
        let place = self.routes.find(destination);
        let known = place.and_then(|place| self.routes.get(place));
        let hops = known.map_or(&[][..], |destination| destination.in_use());
        hops.iter()
            .filter_map(|hop| self.links.get(hop.place))
            .map(|link| link.node)
    }

    /// The rate at which this node may send to a destination, packets a second, once it has offered something.
    pub fn rate(&self, destination: u16) -> Option<f64> {
        let source = self
            .sources
            .iter()
            .find(|source| source.node == destination);
        source.map(|source| source.rate.packets_per_second())
    }

    /// Whether [`offer`](Self::offer) would not refuse a packet for a destination as [`Refused::Full`].
    pub fn has_room(&self, destination: u16) -> bool {
        let place = self.routes.find(destination);
        self.store.room() > 0 && place.is_none_or(|place| !self.is_full(place))
    }

    /// The place of a destination, which is entered if new.
    fn destination(&mut self, now: Instant, node: u16) -> Option<u16> {
        let queues = &self.queues;
        let spare = |place: u16| queues.get(usize::from(place)).is_none_or(Queue::is_idle);
        let place = self.routes.enter(now, node, spare)?;
        self.routes.rank(now, place, &self.links);
        Some(place)
    }

    /// The places of a source and a flow in their tables. Both are entered if new.
    fn source(&mut self, now: Instant, node: u16, flow: u16) -> Option<(usize, usize)> {
        let number = self.own_flow(now, flow)?;
        if let Some(known) = self.sources.iter().position(|source| source.node == node) {
            return Some((known, number));
        }
        let fresh = Source {
            node,
            rate: Rate::new(self.settings.rate, now),
            used: now,
        };
        if self.sources.len() < usize::from(self.settings.room.sources) {
            self.sources.push(fresh);
            return Some((self.sources.len() - 1, number));
        }
        // Replaces the least recently used one.
        let oldest = self.sources.iter().enumerate();
        let (place, _) = oldest.min_by_key(|(_, source)| source.used)?;
        *self.sources.get_mut(place)? = fresh;
        Some((place, number))
    }

    /// The place of an own flow, which is entered if new. A full table loses the least recently used flow; the new one then
    /// numbers its packets from where no flow has been, since its flow number may have been used before.
    fn own_flow(&mut self, now: Instant, flow: u16) -> Option<usize> {
        if let Some(known) = self.own_flows.iter().position(|known| known.flow == flow) {
            return Some(known);
        }
        let mut fresh = OwnFlow {
            flow,
            next: 0,
            used: now,
        };
        if self.own_flows.len() < usize::from(self.settings.room.flows) {
            self.own_flows.push(fresh);
            return Some(self.own_flows.len() - 1);
        }
        fresh.next = self.own_flows.iter().map(|known| known.next).max()?;
        let silent = self.own_flows.iter().enumerate();
        let (place, _) = silent.min_by_key(|(_, known)| known.used)?;
        *self.own_flows.get_mut(place)? = fresh;
        Some(place)
    }

    /// Whether the queue for a destination is full.
    fn is_full(&self, place: u16) -> bool {
        let limit = self.settings.queues.limit;
        match self.settings.scheme {
            Scheme::Dpclo | Scheme::Dclo(_) => {
                let queue = self.queues.get(usize::from(place));
                queue.is_none_or(|queue| queue.list.len() >= limit)
            }
            Scheme::ShortestPath | Scheme::Fusion(_) => self.waiting_here() >= u64::from(limit),
        }
    }

    /// How many more packets for a destination this node can take, as advertised: at most [`header::ROOM_MAX`].
    fn room(&self, place: u16) -> u8 {
        let queues = &self.settings.queues;
        let most = queues.limit.saturating_add(queues.reserve);
        let waiting = match self.settings.scheme {
            Scheme::Dpclo | Scheme::Dclo(_) => {
                let queue = self.queues.get(usize::from(place));
                queue.map_or(u64::from(most), |queue| u64::from(queue.list.len()))
            }
            Scheme::ShortestPath | Scheme::Fusion(_) => self.waiting_here(),
        };
        let room = u64::from(most).saturating_sub(waiting);
        room.min(u64::from(header::ROOM_MAX)) as u8
    }

    fn waiting_here(&self) -> u64 {
        let queue = |&place: &u16| self.queues.get(usize::from(place));
        let waiting = self.active.iter().filter_map(queue);
        waiting.map(|queue| u64::from(queue.list.len())).sum()
    }

    /// Whether this node is congested (Fusion).
    fn is_congested(&self) -> bool {
        let Scheme::Fusion(fusion) = self.settings.scheme else {
            return false;
        };
        let limit = f64::from(self.settings.queues.limit);
        limit - (self.waiting_here() as f64) < fusion.free_min * limit
    }

    fn drop_frame(&mut self, why: DropReason) {
        self.counters.drops.count(why);
        let layer = Layer::Link;
        self.trace.push(TraceEvent::Dropped { layer, why });
    }
}

impl Queue {
    fn is_idle(&self) -> bool {
        self.list.is_empty() && self.in_flight == 0 && self.floating == 0
    }

    fn has_something(&self) -> bool {
        !self.list.is_empty() || self.floating > 0
    }

    /// The length in packets, floating ones included.
    fn len(&self) -> f64 {
        f64::from(self.list.len()) + f64::from(self.floating)
    }
}

impl LinkNode for Router {
    fn handle_link(&mut self, now: Instant, event: LinkEvent<'_>) {
        match event {
            LinkEvent::Received(arrival) => self.on_frame(now, arrival),
            LinkEvent::Sent { token, outcome } => self.on_sent(now, token, outcome),
        }
        self.choice = self.choose(now);
    }

    fn pending(&self) -> Classes {
        // Drivers read this after every event, so the choice was computed when the event was handled.
        let data = self.choice.map(|choice| choice.class);
        let rounds = self.rounds.as_ref();
        let pairing = rounds.is_some_and(|rounds| rounds.advertise || rounds.has_message());
        let asks = self.request_ready;
        let control =
            self.probe_ready || self.update_ready || asks || pairing || self.reporter.is_due();
        let classes = Classes::NONE.with_if(Class::Control, control);
        data.map_or(classes, |class| classes.with(class))
    }

    fn poll_link(&mut self, now: Instant, allowed: Classes, sdu: &mut [u8]) -> Option<LinkSend> {
        let control = match allowed.contains(Class::Control) {
            true => self.send_control(now, sdu),
            false => None,
        };
        let send = control.or_else(|| self.send_data(now, allowed, sdu));
        self.choice = self.choose(now);
        let send = send?;
        self.wrote_at = Some(now);
        self.trace.push(TraceEvent::Sent {
            layer: Layer::Link,
            to: send.to,
            bytes: send.len as u32,
        });
        Some(send)
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.meet_deadlines(now);
        self.choice = self.choose(now);
    }

    fn poll_timeout(&self) -> Option<Wake> {
        self.next_deadline()
    }

    fn poll_trace(&mut self) -> Option<TraceEvent> {
        self.trace.pop()
    }
}

/// The link address of a neighbour.
fn address(node: u16) -> Address {
    Address::node(node)
}
