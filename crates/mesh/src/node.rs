//! A node of the mesh without I/O: the host's packets above, the router in the middle, a link with recovery below.

mod link;
mod routed;

use std::net::IpAddr;

use chappe_core::{
    Address, Class, Classes, Duration, Instant, LinkEvent, LinkNode, LinkSend, Outcome, Purpose,
    Seed, Stream, TraceEvent, Wake,
};
use chappe_dpclo::{Counters, Refused, Router, Way};
use chappe_live::Membership;

use crate::air::Gate;
use crate::announce::Announcements;
use crate::frame::{AROUND, Burst, PART};
use crate::host::{Host, HostCounters};
use crate::pace::pace;
use crate::packet::{self, Facts, Net};
use crate::receipts::{RECEIPT, Receipts};
use crate::recovery::{Recovery, RecoveryCounters};
use crate::settings::{Hop, NodeConfig};
use crate::warnings::{Warning, Warnings};

/// Octets of the router's header and stamp around a packet.
const ROUTED: usize = chappe_dpclo::header::DATA + chappe_dpclo::header::STAMP;

/// Octets that full packets leave in a frame for a small one: a TCP segment that only acknowledges, with timestamps and a block of
/// SACK (20 + 20 + 12 + 12), and what is around it.
const RIDER: usize = 64 + ROUTED;

/// The longest packet that leaves room for a small one in a frame whose SDU has `frame_max` octets.
pub fn mtu_of(frame_max: usize) -> usize {
    mtu_most(frame_max).saturating_sub(PART + RIDER)
}

/// The longest packet that fits such a frame.
fn mtu_most(frame_max: usize) -> usize {
    frame_max.saturating_sub(AROUND + ROUTED)
}

/// How long a segment that only acknowledges waits for one that replaces it: three frames, since so long a neighbour waits for an
/// acknowledgement anyway. Where many contend, six: each such segment costs a turn at every hop. On a cable a wait of its own costs a
/// wake-up.
fn hold_of(config: &NodeConfig, few: bool) -> Duration {
    match (config.air.is_shared(), few) {
        (true, true) => config.air.exchange(config.mtu) * 3,
        (true, false) => config.air.exchange(config.mtu) * 6,
        (false, _) => Duration::ZERO,
    }
}

/// Octets of the longest packet that each path of IPv6 carries (RFC 8200, section 5). An interface with less has no IPv6.
const IPV6_LEAST: usize = 1280;

/// The MTU of a node: the asked one, or the longest that leaves room for a small packet, and enough for IPv6.
fn fitting_mtu(config: &NodeConfig, frame_max: usize) -> Result<usize, String> {
    let has_ipv6 = config.networks.iter().any(|net| net.address.is_ipv6());
    let least = if has_ipv6 { IPV6_LEAST } else { 0 };
    let mtu = match config.mtu {
        0 => mtu_of(frame_max).max(least),
        asked => asked,
    };
    let most = mtu_most(frame_max);
    if mtu > most {
        return Err(format!("an MTU of {mtu} does not fit: frames carry {most}"));
    }
    if mtu < least {
        return Err(format!(
            "an MTU of {mtu} is too short for a network of IPv6, which needs {least}"
        ));
    }
    Ok(mtu)
}

/// A node: the network's side is a [`LinkNode`], the host's side are [`offer`](Self::offer) and [`deliver`](Self::deliver).
#[derive(Debug)]
pub struct Node {
    config: NodeConfig,
    /// Octets for parts in a frame.
    room: usize,
    router: Router,
    recovery: Recovery,
    host: Host,
    announcements: Announcements,
    receipts: Receipts,
    warnings: Warnings,
    gate: Gate,
    /// The time of the last event.
    now: Instant,
    /// Whether the gate is open, as of the last event.
    open: bool,
    /// Whether frames with packets may leave, as of the last event.
    data_open: bool,
    /// The burst that leaves: frames still to be handed down, and packets in it that go on.
    burst: Burst,
    /// Whether the burst has small bodies only, since others hold the channel.
    express: bool,
    /// When an urgent packet on a long path was last sent or heard.
    urgent_at: Option<Instant>,
    /// Whether the host gave an urgent packet, which no later one replaces, since the last burst began.
    asked: bool,
    /// Octets of the longest frame of the burst.
    longest: usize,
    /// When this node answers.
    answer: Answer,
    /// By how much turns are put off after a burst, as shares.
    spreads: Stream,
    /// On a cable: when the burst that arrives is over.
    over: Instant,
    life: u8,
    /// How many destinations the router knew when this node last chose how often it tells of itself.
    known: usize,
    /// Acknowledgements, lost frames or announcements wait for the link.
    urgent: bool,
    /// The neighbours with a usable link at the last look.
    neighbours: Vec<u16>,
    /// The gateway in use: it stays while it is reachable and not much farther than another.
    gateway: Option<u16>,
    counters: NodeCounters,
}

/// Counters of packets and frames that are lost above or below the router, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeCounters {
    /// Packets of the host that are not IP.
    pub not_ip: u64,
    /// Packets of the host to this node, and those to groups, if the mesh does not carry them.
    pub not_unicast: u64,
    /// Packets of the host to an address behind no node that is known.
    pub unknown: u64,
    /// Packets of the host longer than the mesh carries.
    pub too_long: u64,
    /// Packets of the host whose destination had no room in the router.
    pub no_room: u64,
    /// Frames that are cut short or of another version, and packets of members that are not IP.
    pub malformed: u64,
    /// Announcements that were malformed, old, or too many.
    pub announcements: u64,
    /// Frames of all kinds sent.
    pub sent: u64,
    /// Octets of these frames.
    pub sent_octets: u64,
    /// Octets of frames that carry no packet: probes, updates, requests, announcements, acknowledgements.
    pub control_octets: u64,
    /// Frames that carry no packet.
    pub control_frames: u64,
    /// Packets given to the host.
    pub delivered: u64,
    /// Receipts that were taken.
    pub receipts: u64,
    /// Receipts that were forged or repeated, or of an unknown end.
    pub forged: u64,
    /// How often a next hop was left because too little arrived by it.
    pub shunned: u64,
    /// How often a next hop was left because another node warned of it.
    pub warned: u64,
    /// Warnings that were not followed: forged, repeated, too many, of others' ways by no neighbour, or of no next hop here.
    pub unheeded: u64,
}

/// When a node at the end of a path answers: right after a burst to it, since the nodes around its neighbour wait until then, and
/// those further away do not hear it.
#[derive(Clone, Copy, Debug, Default)]
struct Answer {
    /// When the burst is over, and until when the others wait.
    slot: (Instant, Instant),
    /// Until when another burst may come.
    until: Instant,
    /// The next change, as of the last event.
    due: Option<Instant>,
}

impl Answer {
    /// Whether small packets wait for the moment to answer.
    fn is_awaited(&self, now: Instant) -> bool {
        let (from, to) = self.slot;
        now < self.until && !(from <= now && now < to)
    }

    /// When small packets may leave, if not now.
    fn next(&self, now: Instant) -> Option<Instant> {
        self.is_awaited(now).then_some(match now < self.slot.0 {
            true => self.slot.0,
            false => self.until,
        })
    }
}

/// Where a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whither {
    /// To this node itself.
    Here,
    /// To a node of the mesh: its own address, or a network behind it.
    Node(u16),
    /// Nowhere: no node is known behind which the address lies.
    Unknown,
    /// To a group or to all: to every node, or nowhere ([`NodeConfig::groups`]).
    Group,
}

/// Why a path is as it is: the answer to `why`.
#[derive(Clone, Debug, PartialEq)]
pub struct Why {
    /// Where the address lies.
    pub whither: Whither,
    /// The next hops in use, the best first.
    pub next_hops: Vec<u16>,
    /// The distance in ETX.
    pub distance: Option<f64>,
    /// The price of a packet in seconds of airtime.
    pub cost: Option<f64>,
    /// The rate at which this host may send there, in packets a second, if it does.
    pub rate: Option<f64>,
    /// What each neighbour advertises.
    pub ways: Vec<Way>,
}

/// The flow of receipts at the router. They go first, and shorten no bursts.
const RECEIPTS: u16 = 0x8000;
/// When a queue of the router that was full is looked at again, if no frame has left meanwhile: about a frame at 11 Mbit/s.
const FULL: Duration = Duration::from_millis(2);
/// On a cable packets that a low rate allows in so long leave together, as Linux groups the segments of TCP (`sk_pacing_shift` of 10), since
/// each wake-up costs as much as several packets.
const TOGETHER: Duration = Duration::from_nanos(1_000_000_000 / 1024);
/// But at most so many: more in a queue raise its price (`AirtimeLaw::queue`). With 25 a connection without a limit fell from 880 to 350
/// Mbit/s on a cable of 1 Gbit/s, since the price rose and the rate fell.
const TOGETHER_MOST: f64 = 4.0;
/// Another gateway must be nearer by this many ETX before flows leave the one in use.
const NEARER: f64 = 2.0;

impl Node {
    /// A node that begins at `now`. `seed` must be unpredictable, and `seconds` the time of day. Fails if the configuration
    /// contradicts itself; the text says how.
    pub fn new(
        mut config: NodeConfig,
        frame_max: usize,
        now: Instant,
        seed: Seed,
        seconds: u32,
    ) -> Result<Node, String> {
        config.mtu = fitting_mtu(&config, frame_max)?;
        let number = config.number;
        let stream = |trial| -> Stream { seed.stream(Purpose::Trial(trial)) };
        let life = stream(0).below(256) as u8;
        let caps = config.caps(frame_max.saturating_sub(AROUND));
        let router = Router::new(config.router(), number, life, &caps, now, stream(1));
        Ok(Node {
            router: router.map_err(|error| error.to_string())?,
            recovery: Recovery::new(config.air.exchange(config.mtu), config.air.is_shared()),
            room: frame_max.saturating_sub(AROUND),
            host: Host::new(hold_of(&config, true)),
            announcements: Announcements::new(
                number,
                config.behind.clone(),
                seconds,
                now,
                stream(2),
            ),
            receipts: Receipts::new(number, seconds),
            warnings: Warnings::default(),
            gate: Gate::new(config.air),
            now,
            open: true,
            data_open: true,
            burst: Burst::default(),
            express: false,
            urgent_at: None,
            asked: false,
            longest: 0,
            answer: Answer::default(),
            spreads: stream(3),
            over: now,
            life,
            known: 1,
            urgent: false,
            neighbours: Vec::new(),
            gateway: None,
            counters: NodeCounters::default(),
            config,
        })
    }

    /// The longest packet of the host in octets.
    pub fn mtu(&self) -> usize {
        self.config.mtu
    }

    /// The configuration of this node.
    pub fn config(&self) -> &NodeConfig {
        &self.config
    }

    /// Takes over the list of members: from now on ends tell each other what arrives ([`crate::receipts`]).
    pub fn join(&mut self, membership: Membership) {
        self.receipts.join(membership);
        // Others count now.
        self.known = 0;
    }

    /// A packet of the host. What cannot be carried is dropped and counted.
    pub fn offer(&mut self, now: Instant, packet: &[u8]) {
        let Some(facts) = Facts::of(packet) else {
            self.counters.not_ip += 1;
            return;
        };
        if packet.len() > self.config.mtu {
            self.counters.too_long += 1;
            return;
        }
        match self.whither(now, facts.destination) {
            Whither::Node(node) => {
                self.host.offer(now, node, facts, packet);
                self.pump(now);
            }
            Whither::Group if self.config.groups => self.offer_to_all(now, facts, packet),
            Whither::Unknown => self.counters.unknown += 1,
            Whither::Here | Whither::Group => self.counters.not_unicast += 1,
        }
    }

    /// A packet of the host for every node that is reachable. Each copy waits, pays and is recovered as any packet to that node
    /// (head-end replication, as in RFC 8365, 11.1).
    fn offer_to_all(&mut self, now: Instant, facts: Facts, packet: &[u8]) {
        let router = &self.router;
        let reachable = |node: &u16| router.distance(*node).is_some();
        let nodes: Vec<u16> = router.destinations().filter(reachable).collect();
        if nodes.is_empty() {
            self.counters.unknown += 1;
        }
        for node in nodes {
            self.host.offer(now, node, facts, packet);
        }
        self.pump(now);
    }

    /// Writes the next packet for the host to `room`; its length, or `None` if there is none.
    pub fn deliver(&mut self, room: &mut [u8]) -> Option<usize> {
        loop {
            let delivery = self.router.poll_delivery(room)?;
            let taken = room.get(..delivery.len)?;
            if packet::is_ip(taken) {
                self.receipts.arrived(self.now, delivery.source);
                self.counters.delivered += 1;
                return Some(delivery.len);
            }
            if Warnings::is_warning(taken) {
                match self.follow(delivery.source, taken) {
                    true => self.counters.warned += 1,
                    false => self.counters.unheeded += 1,
                }
                continue;
            }
            if !Receipts::is_receipt(taken) {
                // A TUN device refuses it, which would end the process.
                self.counters.malformed += 1;
                continue;
            }
            match self.receipts.on_receipt(self.now, delivery.source, taken) {
                true => self.counters.receipts += 1,
                false => self.counters.forged += 1,
            }
        }
    }

    /// Where packets to an address go.
    pub fn whither(&mut self, now: Instant, address: IpAddr) -> Whither {
        let group = match address {
            IpAddr::V4(address) => address.is_multicast() || address.is_broadcast(),
            IpAddr::V6(address) => address.is_multicast(),
        };
        if group || (self.config.networks.iter()).any(|net| net.broadcast() == Some(address)) {
            return Whither::Group;
        }
        let mut numbers = (self.config.networks.iter()).filter_map(|net| net.number(address));
        if let Some(number) = numbers.next() {
            return match number == self.config.number {
                true => Whither::Here,
                false => Whither::Node(number),
            };
        }
        let mut best: Option<(u8, bool, f64, u16)> = None;
        for (node, prefix) in self.announcements.behind(now, address) {
            let Some(distance) = self.router.distance(node) else {
                continue;
            };
            let held = prefix == 0 && self.gateway == Some(node);
            let distance = if held { distance - NEARER } else { distance };
            // The longest prefix, then the nearest node.
            let better = best.is_none_or(|(longest, _, least, _)| {
                prefix > longest || prefix == longest && distance < least
            });
            if better {
                best = Some((prefix, prefix == 0, distance, node));
            }
        }
        match best {
            Some((_, default, _, node)) => {
                if default {
                    self.gateway = Some(node);
                }
                Whither::Node(node)
            }
            None => Whither::Unknown,
        }
    }

    /// Why packets to an address take the path that they take.
    pub fn why(&mut self, now: Instant, address: IpAddr) -> Why {
        let whither = self.whither(now, address);
        let Whither::Node(node) = whither else {
            return Why {
                whither,
                next_hops: Vec::new(),
                distance: None,
                cost: None,
                rate: None,
                ways: Vec::new(),
            };
        };
        let router = &self.router;
        Why {
            whither,
            next_hops: router.next_hops(node).collect(),
            distance: router.distance(node),
            cost: router.cost(now, node),
            rate: router.rate(node),
            ways: router.advertised(node).collect(),
        }
    }

    /// The router, to read its state.
    pub fn router(&self) -> &Router {
        &self.router
    }

    /// The host's queues, to read their state.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Recovery, to read its state.
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// What other nodes announce.
    pub fn announced(&self, now: Instant) -> impl Iterator<Item = (u16, &[Net])> {
        self.announcements.all(now)
    }

    /// The counters of node, router, host and recovery.
    pub fn counters(&self) -> (NodeCounters, Counters, HostCounters, RecoveryCounters) {
        (
            self.counters,
            self.router.counters(),
            self.host.counters(),
            self.recovery.counters(),
        )
    }

    /// Sets until when segments of the host that only acknowledge wait for later ones: on a cable for the end of the burst that they answer.
    fn hold_acks(&mut self, now: Instant) {
        let over = (self.over > now).then_some(self.over);
        self.host.hold_acks(self.answer.due.or(over));
    }

    /// The more members this node has heard of, the less often it tells of itself. Who invents others slows no mesh down.
    fn keep_pace(&mut self, now: Instant) {
        let known = self.router.known();
        if known != self.known {
            self.known = known;
            let others = self.router.destinations();
            let members = others.filter(|&node| self.receipts.is_member(node)).count();
            self.router
                .set_pace(now, pace(&self.config.air, 1 + members));
        }
    }

    /// Passes packets of the host to the router, as its rates allow.
    fn pump(&mut self, now: Instant) {
        self.hold_acks(now);
        let router = &mut self.router;
        loop {
            let Some(head) = self.host.head(now) else {
                return;
            };
            let ((node, flow), first) = (head.key, head.first);
            let asks = first && packet::pure_ack(head.packet).is_none();
            let key = head.key;
            // Packets that go first have a number of their own, since they may overtake others of their flow.
            let flow = flow & 0x7fff | if first { 0x8000 } else { 0 };
            let offered = match first {
                true => router.offer_first(now, node, flow, head.packet),
                false => router.offer(now, node, flow, head.packet),
            };
            match offered {
                Ok(()) => {
                    self.asked |= asks;
                    self.receipts.sent(now, node);
                    self.host.taken(now, key, first);
                }
                Err(Refused::Rate { until }) if first || self.config.air.is_shared() => {
                    self.host.block(node, until);
                }
                Err(Refused::Rate { until }) => {
                    let rate = router.rate(node).unwrap_or(f64::INFINITY);
                    let few = Duration::from_secs_f64(TOGETHER_MOST / rate.max(1.0));
                    self.host
                        .block_together(node, until.max(now + few.min(TOGETHER)));
                }
                // The next frame that leaves makes room; a look later anyway.
                Err(Refused::Full) => self.host.block_full(node, now + FULL),
                Err(_) => {
                    self.counters.no_room += 1;
                    self.host.refuse(key);
                }
            }
        }
    }

    /// After any event: outcomes to the router, new neighbours, packets of the host.
    fn settle(&mut self, now: Instant) {
        self.now = now;
        while let Some((token, outcome)) = self.recovery.poll_outcome() {
            self.router
                .handle_link(now, LinkEvent::Sent { token, outcome });
        }
        while let Some(node) = self.recovery.poll_gone() {
            self.router.lose(now, node);
        }
        while let Some(node) = self.recovery.poll_deaf() {
            self.router.bar(now, node);
        }
        self.answer.due = self.answer.next(now);
        self.pump(now);
        self.open = self.gate.open_at() <= now;
        if self.open {
            self.recovery.left(self.gate.open_at());
        }
        self.data_open = self.gate.data_at() <= now;
        self.urgent =
            self.recovery.has_lost() || self.recovery.owes(now) || self.announcements.is_due(now);
    }

    /// Leaves next hops by which too little arrives, and writes the receipts that are due.
    fn look_at_receipts(&mut self, now: Instant) {
        let router = &self.router;
        let hop = |end| router.next_hops(end).next();
        let Some(missing) = self.receipts.look(now, hop) else {
            return;
        };
        for (end, hop) in missing {
            self.router.shun(now, end, hop);
            self.counters.shunned += 1;
            let warning = Warning {
                destination: end,
                hop,
            };
            self.warnings.leave(now, warning, true);
        }
        self.warn(now);
        let mut receipt = [0; RECEIPT];
        while let Some(end) = self.receipts.write(&mut receipt) {
            if self.router.distance(end).is_none() {
                continue;
            }
            // If there is no room now, the next one says more.
            let _ = self.router.offer_first(now, end, RECEIPTS, &receipt);
        }
    }

    /// Warns of next hops that this node has left.
    fn warn(&mut self, now: Instant) {
        let hops = |end| self.router.next_hops(end).collect();
        for (to, warning) in self.warnings.due(now, self.config.number, hops) {
            if self.router.next_hops(to).any(|next| next == warning.hop) {
                // It would take the warning, too.
                self.router.shun(now, to, warning.hop);
            }
            if let Some(packet) = warning.write(&mut self.receipts, to) {
                // Without room, the ends find out by themselves.
                let _ = self.router.offer_first(now, to, RECEIPTS, &packet);
            }
        }
    }

    /// Leaves a next hop that another node warned of; false if it is none here. A destination is never left as a next hop to itself.
    fn follow(&mut self, from: u16, packet: &[u8]) -> bool {
        let now = self.now;
        let heard = (self.warnings).on_warning(now, &mut self.receipts, from, packet);
        let Some(warning @ Warning { destination, hop }) = heard else {
            return false;
        };
        let is_hop = self.router.next_hops(destination).any(|used| used == hop);
        let is_used = is_hop && hop != destination;
        let is_end = destination == from;
        if !is_used || !is_end && !self.neighbours.contains(&from) {
            return false;
        }
        self.router.shun(now, destination, hop);
        if is_end {
            self.warnings.leave(now, warning, false);
        }
        true
    }

    fn look_at_neighbours(&mut self, now: Instant) {
        // This runs at every wake-up, and neighbours seldom change.
        if usable(&self.router).eq(self.neighbours.iter().copied()) {
            return;
        }
        if usable(&self.router).any(|node| !self.neighbours.contains(&node)) {
            self.announcements.on_neighbour(now);
        }
        self.neighbours = usable(&self.router).collect();
        let few = self.has_few_neighbours();
        self.recovery.contend(few);
        self.host.hold_for(hold_of(&self.config, few));
    }
}

/// The neighbours with a usable link.
fn usable(router: &Router) -> impl Iterator<Item = u16> + '_ {
    let neighbours = router.neighbours();
    neighbours.filter_map(|(node, etx)| etx.map(|_| node))
}

impl LinkNode for Node {
    fn handle_link(&mut self, now: Instant, event: LinkEvent<'_>) {
        match event {
            LinkEvent::Received(arrival) => self.on_arrival(now, arrival),
            // Of broadcasts nothing is known. Unicasts are the router's own frames.
            LinkEvent::Sent { token, outcome } => {
                if self.config.hop == Hop::Unicast && outcome != Outcome::Unconfirmed {
                    self.router
                        .handle_link(now, LinkEvent::Sent { token, outcome });
                }
            }
        }
        self.settle(now);
    }

    fn pending(&self) -> Classes {
        if self.burst.rest > 0 {
            return Classes::ALL;
        }
        if !self.open {
            return Classes::NONE;
        }
        let routed = match self.data_open && self.recovery.has_room() {
            true => self.router.pending(),
            false => self
                .router
                .pending()
                .and(Classes::NONE.with(Class::Control).with(Class::Urgent)),
        };
        routed.with_if(Class::Control, self.urgent)
    }

    fn poll_link(&mut self, now: Instant, allowed: Classes, sdu: &mut [u8]) -> Option<LinkSend> {
        // The driver's buffer may be longer.
        let most = sdu.len().min(self.room + AROUND);
        let mut send = self.next_frame(now, allowed, sdu.get_mut(..most)?);
        if let Some(send) = send.as_mut().filter(|_| self.config.video) {
            send.class = send.class.max(Class::Urgent);
        }
        if let Some(send) = send {
            let router = &self.router;
            self.host.make_room(|node| router.has_room(node));
            self.gate.sent(now, send.len);
            self.counters.sent += 1;
            self.counters.sent_octets += send.len as u64;
        }
        self.settle(now);
        send
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.router.handle_timeout(now);
        self.keep_pace(now);
        self.recovery.on_time(now);
        self.look_at_neighbours(now);
        self.look_at_receipts(now);
        self.settle(now);
    }

    fn poll_timeout(&self) -> Option<Wake> {
        // What waits for the moment to answer has no deadline of its own.
        let answered = |at: Instant| self.answer.due.map_or(at, |due| at.max(due));
        let own = [
            (self.recovery.deadline().map(answered), "frame unanswered"),
            (self.recovery.hasty_deadline(), "urgent frame unanswered"),
            (self.announcements.deadline().map(answered), "announcement"),
            (self.answer.due, "the burst is over"),
            (self.host.deadline(), "rate allows a packet"),
            (self.receipts.deadline(), "receipts"),
            (
                Some(self.gate.open_at()).filter(|_| !self.open),
                "frame has left",
            ),
            (
                Some(self.gate.data_at()).filter(|_| !self.data_open),
                "others went on",
            ),
        ];
        // What waits for the gate has no deadline of its own.
        let own = own
            .into_iter()
            .filter_map(|(at, why)| Some(Wake { at: at?, why }));
        let gate = self.gate.open_at();
        let own = own.map(|wake| match self.open || wake.at > gate {
            true => wake,
            false => Wake { at: gate, ..wake },
        });
        own.map(Some)
            .fold(self.router.poll_timeout(), Wake::earlier)
    }

    fn poll_trace(&mut self) -> Option<TraceEvent> {
        self.router.poll_trace()
    }
}

/// The link address of a node.
fn address(node: u16) -> Address {
    Address::node(node)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::air::Air;
    use chappe_core::Bitrate;

    /// A segment that only acknowledges `number`, from the first node of a mesh to the second.
    fn ack(number: u8) -> Vec<u8> {
        let mut packet = vec![0; 40];
        (packet[0], packet[3], packet[9]) = (0x45, 40, 6);
        packet[12..20].copy_from_slice(&[10, 77, 0, 1, 10, 77, 0, 2]);
        (packet[31], packet[32], packet[33]) = (number, 0x50, 0x10);
        packet
    }

    /// Goal: on a cable an acknowledgement of the host leaves at once, but waits for the end of the burst that it answers.
    #[test]
    fn on_a_cable_answers_wait_for_the_burst_only() {
        let config = NodeConfig {
            number: 1,
            networks: vec![Net::parse("10.77.0.0/16").unwrap()],
            behind: Vec::new(),
            air: Air::wired(Bitrate(1_000_000_000)),
            hop: Hop::Broadcast,
            size: 2,
            mtu: 1300,
            groups: false,
            video: false,
        };
        let mut node = Node::new(config, 1470, Instant::ZERO, Seed(1), 0).unwrap();
        let at = |micros: u64| Instant::from_micros(1_000_000 + micros);
        let waits = |node: &Node| node.host.waiting() > 0;
        node.offer(at(0), &ack(1));
        assert!(!waits(&node));
        node.over = at(300);
        node.offer(at(100), &ack(2));
        node.offer(at(200), &ack(3));
        assert!(waits(&node) && node.host.counters().replaced == 1);
        assert_eq!(node.host.deadline(), Some(at(300)));
        node.pump(at(300));
        assert!(!waits(&node));
    }
}
