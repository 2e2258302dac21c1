//! The traffic of a peer: host packets into frames and out of them, and the decision what leaves next.

use chappe_core::{Duration, Instant};
use chappe_wildnet::{Delivery, Link, Opportunity, Order, SERVICES, Service};

use super::Peer;
use crate::packing::{CONTAINER_MAX, Container, Limit};
use crate::path_mtu::TAIL;
use chappe_sys::tun::Joined;

/// The default service of all classes but the urgent one.
pub const BULK: Service = Service::BULK;

/// The class of what must not wait ([`crate::classify`]).
const URGENT: usize = 0;

/// Transmissions of a body from which on its size may be why it does not arrive.
const STUCK: u8 = 6;

/// Loss ratio from which on some packet nearly always needs more than one repeat.
const LOSSY: f64 = 0.1;

/// Whether a class delivers every packet in the order of its flow. Only then may headers be compressed.
fn is_sure(service: &Service) -> bool {
    service.order != Order::None && service.retries.is_none() && !service.drop_late
}

/// Credit for repairs that are sent when nothing else is due. They recover most losses before a report names them, so a
/// flow that does not fill the link (or waits for its oldest packet) is hardly delayed. Each body earns its share of as many
/// repairs as replace what is lost of all that is in flight, in most cases ([`DEVIATIONS`]). So a good channel is not filled
/// with repairs, and the start of a flow on a long path does not wait a round trip for each loss.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spare {
    credit: f64,
    bodies: u64,
}

/// Least of what a body earns, by the mean of the losses: what a long window needs beyond it, since it waits for its oldest body.
const MARGIN: f64 = 1.3;
/// Standard deviations by which what is lost may exceed its mean: more are lost once in 44 times (normal distribution).
const DEVIATIONS: f64 = 2.0;
/// Upper limit of the credit in repairs: one burst.
const SAVED: f64 = 6.0;

/// Repairs for each of `count` bodies in flight, on a channel that loses this share of all frames, repairs included.
fn spare_share(loss: f64, count: f64) -> f64 {
    let lost = loss + DEVIATIONS * (loss * (1.0 - loss) / count.max(1.0)).sqrt();
    (lost.max(MARGIN * loss) / (1.0 - loss)).min(1.0)
}

impl Spare {
    fn earn(&mut self, link: &Link, body: usize) {
        let (counters, report) = (link.counters(), link.report());
        let bodies = counters.bodies + counters.repeats;
        let new = bodies.saturating_sub(self.bodies) as f64;
        if new == 0.0 {
            return;
        }
        // Before a loss is counted there may be one (Laplace's rule of succession).
        let frames = (report.totals.received + report.totals.lost) as f64;
        let loss = report.channel.loss.max(1.0 / (frames + 2.0)).min(0.9);
        let count = report.in_flight as f64 / body.max(1) as f64;
        self.credit = (self.credit + new * spare_share(loss, count)).min(SAVED);
        self.bodies = bodies;
    }

    fn has(self) -> bool {
        self.credit >= 1.0
    }

    fn spend(&mut self) {
        self.credit -= 1.0;
    }
}

/// The goodput of the latest second.
#[derive(Clone, Copy, Debug, Default)]
pub struct Goodput {
    /// Host packets sent to the peer, in bit/s.
    pub out: f64,
    /// Packets from the peer delivered to the host, in bit/s.
    pub back: f64,
    since: Instant,
    octets: (u64, u64),
}

/// Packets from and to the host.
impl Peer {
    /// The goodput of the latest second.
    pub fn goodput(&self) -> Goodput {
        self.goodput
    }

    /// Updates the goodput once a second.
    pub fn measure(&mut self, now: Instant) {
        let span = now.saturating_since(self.goodput.since).as_secs_f64();
        if span < 1.0 {
            return;
        }
        let octets = (self.queues.left, self.counters.octets_delivered);
        let rate = |new: u64, old: u64| (new - old) as f64 * 8.0 / span;
        let expired = self.link.counters().expired;
        if expired > self.expired.0 {
            self.expired = (expired, Some((now, expired - self.expired.0)));
        }
        self.goodput = Goodput {
            out: rate(octets.0, self.goodput.octets.0),
            back: rate(octets.1, self.goodput.octets.1),
            since: now,
            octets,
        };
    }

    /// Whether a class would take a packet without dropping another.
    pub fn has_room(&self, service: usize) -> bool {
        self.queues.has_room(service, self.queue_limit(service))
    }

    /// Queues a packet of the host. Returns false if it is empty or too long. `service` is the class, `flow` its hash.
    pub fn offer(&mut self, now: Instant, service: usize, flow: u8, packet: &[u8]) -> bool {
        self.offer_joined(now, (service, flow), packet, None)
    }

    /// Like [`offer`](Self::offer), for a packet that may hold coalesced segments.
    pub fn offer_joined(
        &mut self,
        now: Instant,
        (service, flow): (usize, u8),
        packet: &[u8],
        joined: Option<Joined>,
    ) -> bool {
        let most = match joined {
            Some(_) => self.joined_max(),
            None => self.packet_max(),
        };
        let fits = !packet.is_empty() && packet.len() <= most && service < SERVICES;
        if !fits {
            self.counters.not_taken += 1;
            return false;
        }
        self.busy_at = now;
        let limit = self.queue_limit(service);
        self.queues.put(
            now,
            (service, (flow & 0x3f).into()),
            (packet, joined),
            limit,
        );
        self.counters.queue_dropped = self.queues.dropped;
        true
    }

    /// Writes the next packet for the host to the front of `packet`, and returns its length.
    pub fn deliver(&mut self, packet: &mut [u8]) -> Option<usize> {
        self.deliver_joined(packet).map(|(len, _)| len)
    }

    /// Like [`deliver`](Self::deliver), for packets that may hold coalesced segments: up to 65,535 octets.
    pub fn deliver_joined(&mut self, packet: &mut [u8]) -> Option<(usize, Option<Joined>)> {
        loop {
            let next = self.unpacker.next(packet);
            self.counters.unreadable = self.unpacker.unreadable + self.unpacker.in_pieces;
            if next.is_some() {
                return next;
            }
            let Delivery { len, flow, .. } = self.link.deliver(&mut self.container)?;
            let container = self.container.get(..len).unwrap_or_default();
            self.unpacker.open(flow, container);
        }
    }

    /// Packets of the host that wait to be sent.
    pub fn waiting(&self) -> usize {
        self.queues.packets() + self.link.report().queued
    }

    /// The queue limit of a class. Losses delay packets up to the class's deadline, or on a long path for its rounds. Meanwhile
    /// more packets must be queued, or the link runs dry, since senders have a limited window. A flow learns of a packet that is dropped
    /// here after as long: with less room eight flows lost a tenth of their segments, most of them for one overshoot.
    ///
    /// On a long path it holds a round trip: a flow of TCP needs that much to halve its window without the path running dry
    /// (Villamizar and Song, "High performance TCP in ANSNET", 1994), and its start overshoots by about as much.
    fn queue_limit(&self, service: usize) -> Limit {
        let promise = self.config.services.get(service);
        let report = self.link.report();
        let held_up = (report.channel.loss / LOSSY).min(1.0);
        let least = report.rtt.map_or(Duration::ZERO, |(_, least)| least);
        let queue = self.config.queue.max(least).as_secs_f64();
        let recovery = promise.and_then(|promise| {
            let rounds = least * u64::from(promise.rounds);
            promise.deadline.map(|deadline| deadline.max(rounds))
        });
        let span = queue + held_up * recovery.map_or(0.0, Duration::as_secs_f64);
        Limit {
            octets: (self.rate().0 as f64 / 8.0 * span) as usize,
            span: Duration::from_secs_f64(span),
        }
    }

    /// Forgets parts and short headers: the peer has restarted and no longer has what they refer to.
    pub(super) fn forget_packets(&mut self) {
        self.packer.forget();
        self.unpacker.forget();
        self.queues.forget_parts();
    }
}

/// Frames to the network.
impl Peer {
    pub(super) fn is_full(&self, path: usize) -> bool {
        let report = self.link.report_of(path);
        let least = report.rtt.map(|(_, least)| least);
        let pace = &self.paths[path].pace;
        pace.is_full(
            report.in_flight,
            self.config.datagram_max,
            least,
            &report.incoming,
        )
    }

    /// When the next new packet may leave on a path. Small packets wait for a report that is due, to share its frame.
    pub(super) fn new_at(&self, now: Instant, path: usize) -> Option<Instant> {
        if self.link.report().queued > 0 {
            let taken = self.takes(now, path, SERVICES - 1);
            return self.link.next_packet_at().filter(|_| taken);
        }
        if !self.link.can_open() {
            return None;
        }
        let ride = self.link.report_at_of(path);
        let ready = |class: usize| self.queues.ready_at(class, ride);
        let classes = (0..SERVICES).filter(|&class| ready(class).is_some());
        let taken = classes.filter(|&class| self.takes(now, path, class));
        taken.filter_map(ready).min()
    }

    /// Whether idle airtime of a path may be used for a repair of bodies in flight.
    pub(super) fn fills(&self, now: Instant, path: usize) -> bool {
        let wanted = self.spare.has() && self.link.has_open() && !self.is_full(path);
        wanted && self.may_carry(now, path) && self.first_path(now) == path
    }

    /// The smallest size of a container in octets, whatever report shares its frame.
    pub(super) fn container_least(&self) -> usize {
        (self.container_most() / 2).min(CONTAINER_MAX)
    }

    /// The largest size of a container in octets, given what all paths carry.
    fn container_most(&self) -> usize {
        let narrower = self.config.datagram_max - self.datagram_max();
        self.container.len().saturating_sub(narrower)
    }

    /// Sends a probe of the path's MTU, or an answer to one, if it is due.
    fn probe_path(&mut self, now: Instant, path: usize, datagram: &mut [u8]) -> Option<usize> {
        let report = self.link.report_of(path);
        // Reports that do not come, or a body that does not arrive however often it is sent. Bodies are common to all paths: one
        // that carries none yet has no part in it.
        let carries = self.paths[path].sized || !self.is_bonded();
        let stuck = report.oldest_transmissions >= STUCK && carries;
        let path_mtu = &mut self.paths[path].path_mtu;
        path_mtu.doubt(now, report.pto_count, stuck);
        if path_mtu.due_at().is_none_or(|at| at > now) {
            return None;
        }
        let lost = 1.0 - (1.0 - report.channel.loss) * (1.0 - report.incoming.loss);
        let round_trip = report.rtt.map_or(Duration::from_millis(333), |rtt| rtt.0);
        let before = path_mtu.limit();
        let next = path_mtu.next(now, round_trip, lost);
        if self.paths[path].path_mtu.limit() < before {
            self.shrink(path);
        }
        let (tail, size) = next?;
        let space = datagram.get_mut(chappe_session::HEAD..self.config.datagram_max)?;
        let note = self.link.bare_note(now, space)?;
        space
            .get_mut(note..note + TAIL)?
            .copy_from_slice(&tail.octets());
        let whole = size
            .saturating_sub(chappe_session::OVERHEAD)
            .max(note + TAIL);
        space.get_mut(note + TAIL..whole)?.fill(0);
        Some(whole)
    }

    /// A path has become narrower.
    fn shrink(&mut self, path: usize) {
        let own = &mut self.paths[path];
        let frame = own.path_mtu.limit();
        if self.link.paths() > 1 {
            // The others carry what is too long for it, and it waits until no such body is open.
            own.drain = Some(self.link.open_bodies().1);
            return;
        }
        self.link
            .shrink(frame.saturating_sub(chappe_session::OVERHEAD));
        // What was given up may hold parts, and headers that later ones refer to.
        self.packer.forget();
        self.queues.forget_parts();
    }

    /// Gives the link its next container, if the link has none and could send it now.
    fn feed(&mut self, now: Instant, path: usize, again: bool) {
        if !self.link.can_open() {
            return;
        }
        // What is repeated goes first, and a container that the link has. Only a more urgent class does not wait for them.
        let busy = self.link.report().queued > 0 || again && self.link.repeats();
        let classes = match busy {
            true => self.link.most_urgent(again),
            false => SERVICES,
        };
        let ride = self.link.report_at();
        for class in 0..classes {
            let ready = |class: usize| self.queues.ready_at(class, ride);
            let is_ready = |class: usize| ready(class).is_some_and(|at| at <= now);
            // An urgent packet does not wait for a report while a frame of another class leaves, behind which it would wait again.
            let hurries = class == URGENT && (busy || (URGENT + 1..SERVICES).any(is_ready));
            let leaves = is_ready(class) || hurries && ready(class).is_some();
            if !leaves {
                continue;
            }
            if !self.takes(now, path, class) {
                continue;
            }
            let sure = self.config.services.get(class).is_some_and(is_sure);
            // Leaves room for a report that is due, which then needs no separate frame.
            let most = self.container_most();
            let most = most.saturating_sub(self.link.report_len());
            let room = most.max(self.container_least()).min(CONTAINER_MAX);
            let mut container = Container::new(self.container.get_mut(..room).unwrap_or_default());
            let filled = self
                .queues
                .fill(class, &mut self.packer, sure, &mut container);
            let len = container.len();
            let Some((flow, since)) = filled else {
                continue;
            };
            let packet = self.container.get(..len).unwrap_or_default();
            // The deadline counts from when the oldest packet was queued.
            self.link.offer(since, class, flow as u8, packet);
            return;
        }
    }

    /// What a path may send now.
    fn chance(&mut self, now: Instant, path: usize) -> Opportunity {
        let full = self.is_full(path);
        let again = self.repeats_on(now, path);
        if full {
            self.paths[path].pace.hold();
        } else {
            self.feed(now, path, again);
        }
        // What was offered to the link is still there if the path has sent something else.
        let new = self.takes(now, path, SERVICES - 1) || self.new_at(now, path).is_some();
        Opportunity {
            fits: if full { 0 } else { usize::MAX },
            last: self.queues.packets() == 0,
            again,
            new,
            ..Opportunity::ALWAYS
        }
    }

    pub(super) fn frame(
        &mut self,
        now: Instant,
        path: usize,
        datagram: &mut [u8],
    ) -> Option<usize> {
        self.link.select(path);
        self.link.handle_timeout(now);
        let own = &self.paths[path];
        if !own.sessions.is_up(now) || now < own.pace.free_at() {
            return None;
        }
        let chance = match self.may_carry(now, path) {
            true => self.chance(now, path),
            // Reports only.
            false => Opportunity {
                fits: 0,
                ..Opportunity::ALWAYS
            },
        };
        if let Some(len) = self.probe_path(now, path, datagram) {
            return self.seal(now, path, datagram, len);
        }
        if let Some(len) = self.say_on(now, path, datagram) {
            return self.seal(now, path, datagram, len);
        }
        let limit = self.paths[path].path_mtu.limit();
        let space = datagram.get_mut(chappe_session::HEAD..limit)?;
        let space_len = space.len() + chappe_session::HEAD - chappe_session::OVERHEAD;
        let space = space.get_mut(..space_len)?;
        let mut len = self.link.poll(now, chance, space);
        self.spare.earn(&self.link, self.config.datagram_max);
        if len.is_none() && self.fills(now, path) {
            let fill = Opportunity {
                fill: true,
                ..chance
            };
            len = self.link.poll(now, fill, space);
            self.spare.spend();
        }
        let proves = (self.paths[path].prove_at).is_some_and(|prove| prove.0 <= now);
        let kept = self.paths[path].sent_at + self.keepalive(now, path);
        if len.is_none() && (proves || now >= kept) {
            len = self.link.note(now, None, space);
        }
        self.seal(now, path, datagram, len?)
    }

    fn seal(
        &mut self,
        now: Instant,
        path: usize,
        datagram: &mut [u8],
        framed: usize,
    ) -> Option<usize> {
        let own = &mut self.paths[path];
        let len = own.sessions.seal(now, datagram, framed)?;
        let whole = len + own.config.below;
        own.prove_at = own.prove_at.map(|(_, pause)| (now + pause, pause + pause));
        own.sent_at = now;
        own.octets_sent += whole as u64;
        own.pace.spend(now, whole, framed);
        self.asked(now, path);
        self.counters.datagrams_sent += 1;
        self.counters.octets_sent += whole as u64;
        Some(len)
    }
}
