//! A node of the mesh: what it knows, and what the application sees of it.

use alloc::vec::Vec;

use chappe_core::{
    Address, Caps, Class, Classes, DropReason, Instant, Layer, LinkEvent, LinkNode, LinkSend,
    Stream, TraceEvent, TraceRing, Wake,
};

use crate::baseline::dclo::Rounds;
use crate::baseline::fusion::Bits;
use crate::config::{ConfigError, Scheme, Settings};
use crate::counters::Counters;
use crate::header::{self, Backlog};
use crate::links::Links;
use crate::rate::Rate;
use crate::routes::Routes;
use crate::seen::{Flows, Seen};
use crate::store::{List, Packet, Store};

mod receive;
mod report;
mod schedule;
mod send;
mod timers;

use report::Reporter;
use schedule::Choice;
use timers::Timers;

/// Packets that the link may have at the same time: one for each class, and one more each that it has not spoken of yet.
const FLIGHTS: usize = 8;

/// A node: source, relay and destination.
///
/// Sits on a MAC that hears frames to others. The application offers packets with [`Router::offer`] and takes those that
/// arrived with [`Router::poll_delivery`]; after either, drive the node as after any input ([`LinkNode::handle_timeout`]
/// with the present time).
#[derive(Clone, Debug)]
pub struct Router {
    me: u16,
    epoch: u8,
    settings: Settings,
    random: Stream,
    links: Links,
    routes: Routes,
    /// By the place of the destination.
    queues: Vec<Queue>,
    /// Places of the destinations that have something to send.
    active: Vec<u16>,
    store: Store,
    seen: Seen,
    flows: Flows,
    pins: Vec<Pin>,
    /// Delivered, not yet taken.
    inbox: List,
    /// At the destination, waiting for packets before them.
    held: List,
    sources: Vec<Source>,
    /// Own flows.
    numbers: Vec<Numbered>,
    flights: [Option<Flight>; FLIGHTS],
    tokens: u32,
    order: u64,
    timers: Timers,
    probe_number: u16,
    probe_ready: bool,
    /// The own sequence number.
    seq: u16,
    update_ready: bool,
    updated_at: Option<Instant>,
    /// An offer was refused until then.
    hungry: Option<Instant>,
    /// Fusion's congestion bits of the neighbours.
    bits: Bits,
    /// DCLO's rounds.
    rounds: Option<Rounds>,
    reporter: Reporter,
    /// What would be sent now, as of the last event.
    choice: Option<Choice>,
    counters: Counters,
    trace: TraceRing,
}

/// What waits for one destination.
#[derive(Clone, Copy, Debug, Default)]
struct Queue {
    list: List,
    /// Packets that the link has.
    flying: u16,
    /// Packets that were pushed out and still count (BCP's floating queue).
    floating: u16,
    /// The smoothed length.
    smooth: f64,
    /// The length that was told at the begin of the round (DCLO).
    told: Backlog,
    /// The length that all neighbours were told last, by a probe or a report.
    reported: Backlog,
}

/// A packet that the link has.
#[derive(Clone, Copy, Debug)]
struct Flight {
    token: u32,
    /// Its place in the store; `None` for an empty packet.
    packet: Option<u16>,
    destination: u16,
    neighbour: u8,
    node: u16,
}

/// This node as a source for one destination.
#[derive(Clone, Copy, Debug)]
struct Source {
    /// The destination's node.
    node: u16,
    rate: Rate,
    used: Instant,
}

/// A flow of this node.
#[derive(Clone, Copy, Debug)]
struct Numbered {
    flow: u16,
    /// The next packet's number.
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
    /// The rate allows the next one at this instant; the node's deadlines include it.
    Rate {
        /// When.
        until: Instant,
    },
    /// The queue for this destination is full, or the store.
    Full,
    /// Longer than a packet can be.
    TooLong {
        /// The most octets possible.
        most: u16,
    },
    /// There is no room for another destination, flow or source.
    NoRoom,
    /// This node is the destination.
    Own,
}

/// A packet that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The node that made it.
    pub source: u16,
    /// The source's name for the conversation.
    pub flow: u16,
    /// Counts the packets of the flow.
    pub number: u32,
    /// How often it was forwarded on its way.
    pub hops: u8,
    /// Octets written to the buffer.
    pub len: usize,
}

impl Router {
    /// Node `me` of a mesh, whose links can do what `caps` says. `epoch` differs from that of the node's last life (count
    /// starts, for instance); `random` is the node's own.
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
            // What a neighbour got would count until its next probe, and nobody would hear it send that on.
            (settings.extras.count_sent, settings.extras.credits) = (false, 0);
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
                settings.next_hops.downhill,
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
            numbers: Vec::with_capacity(usize::from(room.flows)),
            flights: [None; FLIGHTS],
            tokens: 0,
            order: 0,
            timers: Timers::default(),
            probe_number: 0,
            probe_ready: false,
            seq: 0,
            update_ready: false,
            updated_at: None,
            hungry: None,
            bits: Bits::new(room.neighbours, settings.queues.told_for),
            rounds: None,
            reporter: Reporter::new(&settings.extras, caps),
            choice: None,
            counters: Counters::default(),
            trace: TraceRing::default(),
        };
        if let Scheme::Dclo(law) = settings.scheme {
            router.rounds = Some(Rounds::new(law, me, room.neighbours, now));
            // What neighbours have for this node counts in the price of the link, too.
            router.destination(now, me);
        }
        router.start_timers(now);
        Ok(router)
    }

    /// The node's number.
    pub fn number(&self) -> u16 {
        self.me
    }

    /// Turns the recording of trace events on or off.
    pub fn trace(&mut self, on: bool) {
        self.trace.on(on);
    }

    /// What the node has done so far.
    pub fn counters(&self) -> Counters {
        let mut counters = self.counters;
        counters.losses.no_destination += self.routes.refused;
        counters
    }

    /// Offers a packet of one of this node's flows, which all go to one destination each. Order and losses are the flow's own
    /// business.
    pub fn offer(
        &mut self,
        now: Instant,
        destination: u16,
        flow: u16,
        payload: &[u8],
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
        // A full queue takes the token too: the law counts what it could not send.
        if let Err(until) = entry.rate.take(now) {
            self.counters.refused_rate += 1;
            self.hungry = Some(self.hungry.map_or(until, |before| before.min(until)));
            return Err(Refused::Rate { until });
        }
        if full {
            entry.rate.on_refused();
            self.counters.refused_full += 1;
            return Err(Refused::Full);
        }
        let packet = Packet {
            source: self.me,
            destination,
            flow,
            number: self.numbers.get(number).map_or(0, |flow| flow.next),
            epoch: self.epoch,
            hop_limit: self.settings.routing.hop_limit,
            came: now,
            ..Packet::default()
        };
        if !self.enqueue(now, place, packet, payload) {
            return Err(Refused::Full);
        }
        if let Some(flow) = self.numbers.get_mut(number) {
            (flow.next, flow.used) = (flow.next.wrapping_add(1), now);
        }
        self.counters.accepted += 1;
        Ok(())
    }

    /// Takes a packet that arrived, in the order in which it may be handed out. A buffer that is too short cuts it.
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

    /// Packets that wait for a destination here.
    pub fn queue(&self, destination: u16) -> u16 {
        let place = self.routes.find(destination);
        let queue = place.and_then(|place| self.queues.get(usize::from(place)));
        queue.map_or(0, |queue| queue.list.len())
    }

    /// Packets that wait here for any destination or that the link has.
    pub fn waiting(&self) -> u64 {
        let waits = |queue: &Queue| u64::from(queue.list.len()) + u64::from(queue.flying);
        self.queues.iter().map(waits).sum()
    }

    /// Packets that arrived and have not been taken, or wait for others before them.
    pub fn undelivered(&self) -> u16 {
        self.inbox.len().saturating_add(self.held.len())
    }

    /// ETX to a neighbour, if the link can be used.
    pub fn etx(&self, neighbour: u16) -> Option<f64> {
        self.links.etx(self.links.find(neighbour)?)
    }

    /// How far a destination is, in ETX, if it can be reached.
    pub fn distance(&self, destination: u16) -> Option<f64> {
        let metric = self.routes.get(self.routes.find(destination)?)?.metric();
        metric.exists().then(|| metric.etx())
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

    /// The place of a destination, known or new.
    fn destination(&mut self, now: Instant, node: u16) -> Option<u16> {
        let queues = &self.queues;
        let spare = |place: u16| queues.get(usize::from(place)).is_none_or(Queue::is_idle);
        let place = self.routes.enter(now, node, spare)?;
        self.routes.rank(now, place, &self.links);
        Some(place)
    }

    /// The places of source and flow among the own ones, known or new.
    fn source(&mut self, now: Instant, node: u16, flow: u16) -> Option<(usize, usize)> {
        let number = self.numbered(now, flow)?;
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
        // The one that has been silent longest makes room.
        let oldest = self.sources.iter().enumerate();
        let (place, _) = oldest.min_by_key(|(_, source)| source.used)?;
        *self.sources.get_mut(place)? = fresh;
        Some((place, number))
    }

    /// The place of a flow among the own ones. Without room the one that has been silent longest goes; the new one then counts
    /// from where no flow has been, as its name may be one that was used before.
    fn numbered(&mut self, now: Instant, flow: u16) -> Option<usize> {
        if let Some(known) = self.numbers.iter().position(|known| known.flow == flow) {
            return Some(known);
        }
        let mut fresh = Numbered {
            flow,
            next: 0,
            used: now,
        };
        if self.numbers.len() < usize::from(self.settings.room.flows) {
            self.numbers.push(fresh);
            return Some(self.numbers.len() - 1);
        }
        fresh.next = self.numbers.iter().map(|known| known.next).max()?;
        let silent = self.numbers.iter().enumerate();
        let (place, _) = silent.min_by_key(|(_, known)| known.used)?;
        *self.numbers.get_mut(place)? = fresh;
        Some(place)
    }

    /// Whether nothing more may wait for a destination.
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

    /// How many packets more a neighbour may send for a destination, as far as a packet can tell.
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

    /// Whether hardly any room is left (Fusion).
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
        self.list.is_empty() && self.flying == 0 && self.floating == 0
    }

    fn has_something(&self) -> bool {
        !self.list.is_empty() || self.floating > 0
    }

    /// Packets that count as waiting.
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
        let data = self.choice.map(|choice| choice.class);
        let rounds = self.rounds.as_ref();
        let pairing = rounds.is_some_and(|rounds| rounds.tell || rounds.has_message());
        let control = self.probe_ready || self.update_ready || pairing || self.reporter.is_due();
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

/// A neighbour's link address.
fn address(node: u16) -> Address {
    Address::node(node)
}
