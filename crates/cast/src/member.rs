//! A member of the group as a link node: records, manifests, and one Pacifier node for each sender that it hears of.
//!
//! Like every node, a member reads no clock and does no I/O. What it has decoded waits until the application has
//! compared and stored it ([`Member::decoded`], [`Member::accept`]); only then it is acknowledged.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use chappe_core::{
    Address, Bitrate, Class, Classes, Duration, Instant, LinkEvent, LinkNode, LinkSend, Mode,
    Outcome, Rate, Stream, TraceEvent, Wake,
};
use chappe_live::Statistics;
use chappe_pacifier::chappe::Settings as Pace;
use chappe_pacifier::{Config, Counters, Links, Node, Object, Variant, header};

use crate::fetch::{Fetch, POLITENESS};
use crate::frame::{self, Frame, HOLDING_BITS, Holding};
use crate::key::VerifyKey;
use crate::manifest::{TICKET, Ticket, Way};
use crate::roster::{MEMBER_MAX, News, Record, Roles, Roster, State};

/// What a member is made of.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Its number, 0 to [`MEMBER_MAX`].
    pub node: u16,
    /// The host's name, shown to others.
    pub name: String,
    /// What it does besides relaying.
    pub roles: Roles,
    /// Whose tickets it believes; without it (relays), those of every member.
    pub verify: Option<VerifyKey>,
    /// Octets of the largest frame.
    pub frame_max: usize,
    /// Octets of memory for batches that are not complete.
    pub memory: usize,
    /// How fast frames leave.
    pub rate: Bitrate,
    /// Whether a frame takes airtime of the other members.
    pub shared: bool,
}

/// A member of the group.
pub struct Member {
    settings: Settings,
    random: Stream,
    roster: Roster,
    links: Option<Arc<Links>>,
    /// When links were last made of records, and whether records have changed since.
    linked: Instant,
    changed: bool,
    transfers: BTreeMap<u16, Transfer>,
    /// Control frames, and those of manifests.
    control: VecDeque<Outgoing>,
    news_at: Instant,
    /// News that is to be told soon, so many times.
    urgent: u32,
    turn: u16,
    /// What each token given to the link stands for, oldest first.
    tokens: VecDeque<(u32, u16, u32)>,
    token: u32,
    counts: Counts,
}

/// What a member has counted besides its links' and Pacifier's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Frames that made no sense, although a member has sent them.
    pub malformed: u64,
    /// Tickets that nobody we trust has signed.
    pub unsigned: u64,
    /// Control frames that found no room.
    pub crowded: u64,
}

/// One sender's transfer.
struct Transfer {
    ticket: Ticket,
    fetch: Fetch,
    node: Option<Node>,
    /// The life of its sender when we last looked.
    life: Option<u64>,
    /// As a receiver: what was there when it joined, until a node exists; then what is there.
    joined: Option<Joined>,
    /// As the sender.
    offer: Option<Offer>,
}

struct Joined {
    held: Vec<bool>,
    /// When to tell the sender next what is there.
    tell_at: Instant,
    partial_max: usize,
}

#[derive(Default)]
struct Offer {
    object: Option<Arc<dyn Object>>,
    begun: bool,
    receivers: BTreeMap<u16, Receiver>,
    served: Vec<u16>,
}

/// What the sender knows of a receiver.
struct Receiver {
    life: u64,
    held: Vec<bool>,
}

struct Outgoing {
    to: Address,
    octets: Vec<u8>,
}

/// The time between news when nothing is urgent, and when something is.
const NEWS: Duration = Duration::from_secs(1);
const URGENT: Duration = Duration::from_millis(100);
/// Urgent news is told so many times, since frames get lost.
const URGENT_TIMES: u32 = 3;
/// A receiver tells what it has this often.
const HOLDING: Duration = Duration::from_secs(2);
/// Links are made of records at most this often.
const RELINK: Duration = Duration::from_millis(500);
/// A change of a delivery ratio that is worth a new plan: two standard deviations of a share of 0.8 of 256 frames.
const CHANGE: f64 = 0.05;
/// Most frames that wait.
const CONTROL_MAX: usize = 256;
const TOKENS_MAX: usize = 512;
/// Most transfers of others at a time.
const TRANSFERS_MAX: usize = 4;
/// The token of our own frames, which nobody waits for.
const OURS: u32 = u32::MAX;

impl Member {
    /// A member that has heard of nobody.
    pub fn new(settings: Settings, random: Stream) -> Member {
        Member {
            roster: Roster::new(settings.node, &settings.name, settings.roles),
            settings,
            random,
            links: None,
            linked: Instant::ZERO,
            changed: true,
            transfers: BTreeMap::new(),
            control: VecDeque::new(),
            news_at: Instant::ZERO,
            urgent: URGENT_TIMES,
            turn: 0,
            tokens: VecDeque::new(),
            token: 0,
            counts: Counts::default(),
        }
    }

    /// Takes over what the link has measured. Call it often: before each turn of the node.
    pub fn observe(&mut self, now: Instant, statistics: &Statistics) {
        let own = self.roster.own();
        own.life = statistics.life;
        let heard = statistics.neighbours.iter().filter_map(|near| {
            let node = near.address.node_number()?;
            (node <= MEMBER_MAX).then_some((node, near.from))
        });
        let heard: Vec<(u16, f64)> = heard.collect();
        let who = |links: &[(u16, f64)]| links.iter().map(|link| link.0).collect::<Vec<_>>();
        if who(&own.links) != who(&heard) {
            self.hurry(now);
        }
        self.changed |= self.roster.own().links != heard;
        self.roster.own().links = heard;
        self.relink(now);
        self.watch_senders(now);
        self.serve(now);
    }

    /// The members.
    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    /// The delivery ratios that plans are made of.
    pub fn links(&self) -> Option<&Arc<Links>> {
        self.links.as_ref()
    }

    /// What was counted.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The transfers that are known, by sender.
    pub fn tickets(&self) -> impl Iterator<Item = &Ticket> + '_ {
        self.transfers.values().map(|transfer| &transfer.ticket)
    }

    /// The manifest of a sender's transfer, once it is complete.
    pub fn manifest(&self, source: u16) -> Option<&[u8]> {
        self.transfers.get(&source)?.fetch.octets()
    }

    /// What Pacifier has counted in a sender's transfer.
    pub fn counters(&self, source: u16) -> Option<&Counters> {
        Some(self.transfers.get(&source)?.node.as_ref()?.counters())
    }

    /// Says how far this member is with a transfer.
    pub fn report(&mut self, now: Instant, id: u64, state: State, batches: u32) {
        let own = self.roster.own();
        let known = own.transfers.iter_mut().find(|transfer| transfer.0 == id);
        let news = match known {
            Some(known) => {
                let news = known.1 != state;
                *known = (id, state, batches);
                news
            }
            None => {
                if own.transfers.len() >= TRANSFERS_MAX {
                    own.transfers.remove(0);
                }
                own.transfers.push((id, state, batches));
                true
            }
        };
        if news {
            self.hurry(now);
        }
    }

    /// Says goodbye: the others need not wait for this member any more.
    pub fn leave(&mut self, now: Instant) {
        self.roster.own().roles.leaves = true;
        self.hurry(now);
    }

    /// Tells the own record soon, and a few times.
    fn hurry(&mut self, now: Instant) {
        self.roster.renew();
        self.urgent = URGENT_TIMES;
        self.news_at = self.news_at.min(now);
    }
}

/// As a sender.
impl Member {
    /// Announces a transfer.
    pub fn announce(&mut self, now: Instant, ticket: Ticket, manifest: Vec<u8>) {
        let transfer = Transfer {
            ticket,
            fetch: Fetch::whole(now, ticket, manifest),
            node: None,
            life: None,
            joined: None,
            offer: Some(Offer::default()),
        };
        self.transfers.insert(self.settings.node, transfer);
        // Links that have settled while the files were read change no more.
        self.make_nodes();
        self.report(now, ticket.id(), State::Offering, 0);
    }

    /// Begins to send the data.
    pub fn begin(&mut self, now: Instant, object: Arc<dyn Object>) {
        let offer = self.own_offer();
        if let Some(offer) = offer {
            offer.object = Some(object);
        }
        self.serve(now);
    }

    /// Receivers that have asked for the transfer, and what the sender knows that each has.
    pub fn receivers(&self) -> Vec<(u16, u32)> {
        let Some(transfer) = self.transfers.get(&self.settings.node) else {
            return Vec::new();
        };
        let receivers = transfer
            .offer
            .iter()
            .flat_map(|offer| offer.receivers.keys());
        let acknowledged = |&receiver: &u16| {
            let node = transfer.node.as_ref();
            (
                receiver,
                node.map_or(0, |node| node.acknowledged_by(receiver)),
            )
        };
        receivers.map(acknowledged).collect()
    }

    /// Ends the own transfer.
    pub fn withdraw(&mut self, now: Instant) {
        self.transfers.remove(&self.settings.node);
        self.roster
            .own()
            .transfers
            .retain(|transfer| transfer.1 != State::Offering);
        self.hurry(now);
    }

    fn own_offer(&mut self) -> Option<&mut Offer> {
        self.transfers.get_mut(&self.settings.node)?.offer.as_mut()
    }

    /// Serves those who are there and lack something.
    fn serve(&mut self, now: Instant) {
        let me = self.settings.node;
        let Some(transfer) = self.transfers.get_mut(&me) else {
            return;
        };
        let (Some(offer), Some(node)) = (&mut transfer.offer, &mut transfer.node) else {
            return;
        };
        let id = transfer.ticket.id();
        let lacking = |receiver: &u16| {
            let record = self.roster.get(now, *receiver);
            let state = record.and_then(|record| record.transfer(id));
            state.is_some_and(|(state, _)| state == State::Receiving || state == State::Preparing)
        };
        let served: Vec<u16> = offer.receivers.keys().copied().filter(lacking).collect();
        if let (false, Some(object)) = (offer.begun, &offer.object) {
            let begun = node.offer_read(object.clone(), transfer.ticket.serial, &served);
            // With nobody within reach nothing is begun: those who come later would be added to nothing.
            offer.begun = begun.is_ok_and(|begun| begun.unreachable.len() < served.len());
            for (&receiver, known) in offer.receivers.iter().filter(|_| offer.begun) {
                let held = (0..).zip(&known.held).filter(|(_, held)| **held);
                for (batch, _) in held {
                    node.held_by(receiver, batch);
                }
            }
            offer.served = served;
        } else if offer.begun && offer.served != served {
            node.serve(&served);
            offer.served = served;
        }
    }

    /// A receiver says what it has.
    fn on_holding(&mut self, now: Instant, holding: &Holding<'_>) {
        let Some(transfer) = self.transfers.get_mut(&self.settings.node) else {
            return;
        };
        let (Some(offer), true) = (&mut transfer.offer, transfer.ticket.id() == holding.id) else {
            return;
        };
        if holding.receiver > MEMBER_MAX || holding.receiver == self.settings.node {
            return;
        }
        let batches = transfer.ticket.cut.batches() as usize;
        let fresh = || Receiver {
            life: holding.life,
            held: vec![false; batches],
        };
        let known = offer
            .receivers
            .entry(holding.receiver)
            .or_insert_with(fresh);
        let node = transfer.node.as_mut().filter(|_| offer.begun);
        if known.life != holding.life {
            *known = fresh();
            if let Some(node) = node {
                node.lost_by(holding.receiver);
            }
        }
        let mut node = transfer.node.as_mut().filter(|_| offer.begun);
        for batch in holding.batches() {
            let Some(held) = known.held.get_mut(batch as usize) else {
                break;
            };
            *held = true;
            if let Some(node) = &mut node {
                node.held_by(holding.receiver, batch);
            }
        }
        self.serve(now);
    }
}

/// As a receiver.
impl Member {
    /// Takes part in a sender's transfer, having these batches already.
    pub fn join(&mut self, now: Instant, source: u16, held: Vec<bool>) {
        let memory = self.settings.memory;
        let Some(transfer) = self.transfers.get_mut(&source) else {
            return;
        };
        let batch = transfer.ticket.cut.batch_len().max(1);
        // One fifth more than the sender has on the air at a time.
        let partial_max = (memory as u64 / batch * 6 / 5).max(8) as usize;
        let joined = Joined {
            held,
            tell_at: now,
            partial_max,
        };
        if let Some(node) = &mut transfer.node {
            joined.expect(node, &transfer.ticket);
        }
        transfer.joined = Some(joined);
    }

    /// The next decoded batch of a sender's transfer, written to `into`.
    pub fn decoded(&mut self, source: u16, into: &mut Vec<u8>) -> Option<u32> {
        self.transfers
            .get_mut(&source)?
            .node
            .as_mut()?
            .decoded(source, into)
    }

    /// The batch is right, and kept.
    pub fn accept(&mut self, now: Instant, source: u16, batch: u32) {
        let Some(transfer) = self.transfers.get_mut(&source) else {
            return;
        };
        let held = transfer.joined.as_mut();
        if let Some(held) = held.and_then(|joined| joined.held.get_mut(batch as usize)) {
            *held = true;
        }
        if let Some(node) = &mut transfer.node {
            node.accept(now, source, batch);
        }
    }

    /// The batch is wrong.
    pub fn reject(&mut self, source: u16, batch: u32) {
        let node = self
            .transfers
            .get_mut(&source)
            .and_then(|transfer| transfer.node.as_mut());
        if let Some(node) = node {
            node.reject(source, batch);
        }
    }

    /// Forgets a sender's transfer.
    pub fn forget(&mut self, source: u16) {
        self.transfers.remove(&source);
    }

    /// Tells each sender what is there, from time to time: it may have restarted, or missed something.
    fn tell_holdings(&mut self, now: Instant) {
        let me = self.settings.node;
        let life = self.roster.own().life;
        for (&source, transfer) in &mut self.transfers {
            let (Some(joined), Some(node)) = (&mut transfer.joined, &mut transfer.node) else {
                continue;
            };
            if joined.tell_at > now {
                continue;
            }
            let Some(hop) = node.route(source) else {
                joined.tell_at = now + URGENT;
                continue;
            };
            joined.tell_at = now + HOLDING;
            let chunks = joined.held.chunks(HOLDING_BITS * 8);
            for (first, chunk) in (0..).step_by(HOLDING_BITS * 8).zip(chunks) {
                let mut bits = vec![0u8; chunk.len().div_ceil(8)];
                for (place, _) in chunk.iter().enumerate().filter(|(_, held)| **held) {
                    bits[place / 8] |= 1 << (place % 8);
                }
                // The first one also says that this receiver is there.
                if first > 0 && bits.iter().all(|octet| *octet == 0) {
                    continue;
                }
                let holding = Holding {
                    id: transfer.ticket.id(),
                    receiver: me,
                    life,
                    first,
                    bits: &bits,
                };
                let to = Address::node(hop);
                let octets = holding.emit();
                self.control.push_back(Outgoing { to, octets });
            }
        }
    }
}

impl Joined {
    fn expect(&self, node: &mut Node, ticket: &Ticket) {
        let held = |batch: u32| self.held.get(batch as usize) == Some(&true);
        let len = ticket.cut.len as usize;
        // It fails only for the sender itself, which does not join.
        let _ = node.expect_checked(ticket.source, ticket.serial, len, self.partial_max, held);
    }
}

/// Frames in.
impl Member {
    fn on_control(&mut self, now: Instant, frame: Frame<'_>) {
        match frame {
            Frame::News { tickets, records } => {
                self.on_records(now, records);
                for ticket in tickets.chunks_exact(TICKET) {
                    self.on_ticket(now, ticket);
                }
            }
            Frame::Ask { id, first, bits } => {
                let wait = Duration::from_nanos(self.random.below(POLITENESS.nanos()));
                let me = self.settings.node;
                for (&source, transfer) in &mut self.transfers {
                    if transfer.ticket.id() == id {
                        let wait = if source == me {
                            Duration::ZERO
                        } else {
                            POLITENESS + wait
                        };
                        transfer.fetch.on_ask(now, first, bits, wait);
                    }
                }
            }
            Frame::Piece { id, piece, octets } => {
                for transfer in self.transfers.values_mut() {
                    if transfer.ticket.id() == id {
                        transfer.fetch.put(now, piece, octets);
                    }
                }
            }
            Frame::Holding(holding) => self.pass_on(now, holding),
        }
    }

    /// A holding goes on towards its sender.
    fn pass_on(&mut self, now: Instant, holding: Holding<'_>) {
        let found = self
            .transfers
            .iter_mut()
            .find(|(_, transfer)| transfer.ticket.id() == holding.id);
        let Some((&source, transfer)) = found else {
            return;
        };
        if source == self.settings.node {
            return self.on_holding(now, &holding);
        }
        let hop = transfer.node.as_mut().and_then(|node| node.route(source));
        // Its receiver repeats it: a loop while routes change ends by itself, as each hop takes a frame once.
        let Some(hop) = hop.filter(|&hop| hop != holding.receiver) else {
            return;
        };
        let octets = holding.emit();
        self.push(Address::node(hop), octets);
    }

    fn on_records(&mut self, now: Instant, mut records: &[u8]) {
        let mut news = News::None;
        while !records.is_empty() {
            let Some((record, age, rest)) = Record::read(records) else {
                self.counts.malformed += 1;
                break;
            };
            records = rest;
            match self.roster.learn(now, record, age) {
                News::Member => news = News::Member,
                News::Renewed => self.changed = true,
                News::None => {}
            }
        }
        if news == News::Member {
            self.changed = true;
            self.urgent = self.urgent.max(1);
            self.news_at = self
                .news_at
                .min(now + Duration::from_nanos(self.random.below(URGENT.nanos())));
        }
    }

    fn on_ticket(&mut self, now: Instant, octets: &[u8]) {
        let Some(ticket) = Ticket::decode(octets) else {
            self.counts.malformed += 1;
            return;
        };
        let source = ticket.source;
        if source > MEMBER_MAX || source == self.settings.node {
            return;
        }
        let known = self.transfers.get(&source);
        if known.is_some_and(|transfer| transfer.ticket == ticket) {
            return;
        }
        // A ticket of the past is signed as well: what its sender says now decides.
        let offers = self
            .roster
            .get(now, source)
            .and_then(|record| record.transfer(ticket.id()));
        if !matches!(offers, Some((State::Offering, _))) {
            return;
        }
        let trusted = |key: &VerifyKey| ticket.is_signed_by(key);
        if !self.settings.verify.as_ref().is_none_or(trusted) {
            self.counts.unsigned += 1;
            return;
        }
        if known.is_none() && self.transfers.len() > TRANSFERS_MAX {
            self.counts.crowded += 1;
            return;
        }
        let transfer = Transfer {
            fetch: Fetch::new(now, ticket),
            ticket,
            node: None,
            life: None,
            joined: None,
            offer: None,
        };
        self.transfers.insert(source, transfer);
        self.urgent = self.urgent.max(1);
        if self.settings.roles.receives {
            self.report(now, ticket.id(), State::Preparing, 0);
        }
        self.make_nodes();
    }
}

/// Links and senders.
impl Member {
    /// Makes links of the records, and new plans if something has changed that matters.
    fn relink(&mut self, now: Instant) {
        if !self.changed || (self.links.is_some() && now < self.linked + RELINK) {
            return;
        }
        (self.changed, self.linked) = (false, now);
        let Some(links) = self.roster.links(now) else {
            return;
        };
        if self.links.as_ref().is_some_and(|old| is_alike(old, &links)) {
            return;
        }
        let links = Arc::new(links);
        for transfer in self.transfers.values_mut() {
            if let Some(node) = &mut transfer.node {
                node.relink(links.clone());
            }
            if let Some(offer) = &mut transfer.offer {
                // Plan anew, also for the same receivers.
                offer.served.clear();
            }
        }
        self.links = Some(links);
        self.make_nodes();
    }

    /// A Pacifier node for each transfer whose sender is among the links.
    fn make_nodes(&mut self) {
        let Some(links) = &self.links else {
            return;
        };
        for (&source, transfer) in &mut self.transfers {
            let links = links.clone();
            if transfer.node.is_some() || !links.has(source) {
                continue;
            }
            let config = config(&self.settings, &transfer.ticket);
            let seed = chappe_core::Seed(self.random.next_u64());
            let random = seed.stream(chappe_core::Purpose::Node(self.settings.node.into()));
            // A ticket for larger frames than this link has: receivers say so, relays cannot help.
            if let Ok(mut node) = Node::new(config, self.settings.node, links.clone(), random) {
                if let Some(joined) = &transfer.joined {
                    joined.expect(&mut node, &transfer.ticket);
                }
                transfer.node = Some(node);
            }
        }
    }

    /// Notices senders that were restarted, or are gone.
    fn watch_senders(&mut self, now: Instant) {
        let me = self.settings.node;
        for (&source, transfer) in &mut self.transfers {
            let record = self.roster.get(now, source).filter(|_| source != me);
            let Some(life) = record.map(|record| record.life) else {
                continue;
            };
            if transfer.life.is_some_and(|known| known != life) {
                if let Some(node) = &mut transfer.node {
                    node.forget_group(source, false);
                }
                if let Some(joined) = &mut transfer.joined {
                    joined.tell_at = now;
                }
            }
            transfer.life = Some(life);
        }
        let idle = |source: &u16, transfer: &Transfer| {
            let offers = self
                .roster
                .get(now, *source)
                .and_then(|record| record.transfer(transfer.ticket.id()));
            *source == me || transfer.joined.is_some() || offers.is_some()
        };
        self.transfers
            .retain(|source, transfer| idle(source, transfer));
    }
}

/// Frames out.
impl Member {
    fn push(&mut self, to: Address, octets: Vec<u8>) {
        if self.control.len() >= CONTROL_MAX {
            self.counts.crowded += 1;
            return;
        }
        self.control.push_back(Outgoing { to, octets });
    }

    fn tell_news(&mut self, now: Instant) {
        if self.news_at > now {
            return;
        }
        self.roster.renew();
        let room = self.settings.frame_max;
        let mut octets = vec![0; room];
        let alive = |transfer: &&Transfer| {
            let id = transfer.ticket.id();
            let record = self.roster.get(now, transfer.ticket.source);
            let offers = record.and_then(|record| record.transfer(id));
            transfer.offer.is_some() || matches!(offers, Some((State::Offering, _)))
        };
        let tickets: Vec<[u8; TICKET]> = self
            .transfers
            .values()
            .filter(alive)
            .map(|transfer| transfer.ticket.encode())
            .take(TRANSFERS_MAX.min((room / 2).saturating_sub(2) / TICKET))
            .collect();
        (octets[0], octets[1]) = (frame::NEWS, tickets.len() as u8);
        let mut len = 2;
        for ticket in tickets {
            octets[len..len + TICKET].copy_from_slice(&ticket);
            len += TICKET;
        }
        len += self.roster.write(now, &mut octets[len..]);
        octets.truncate(len);
        self.push(Address::BROADCAST, octets);
        let wait = match self.urgent {
            0 => NEWS,
            _ => URGENT,
        };
        self.urgent = self.urgent.saturating_sub(1);
        let jitter = Duration::from_nanos(self.random.below(wait.nanos() / 2));
        self.news_at = now + wait * 3 / 4 + jitter;
    }

    /// Asks for manifests, and gives pieces of them.
    fn exchange_manifests(&mut self, now: Instant) {
        for transfer in self.transfers.values_mut() {
            let id = transfer.ticket.id();
            if transfer.fetch.ask_at().is_some_and(|at| at <= now) {
                let jitter = Duration::from_nanos(self.random.below(20_000_000));
                if let Some((first, bits)) = transfer.fetch.ask(now, jitter) {
                    let octets = frame::ask(id, first, &bits);
                    let to = Address::BROADCAST;
                    self.control.push_back(Outgoing { to, octets });
                }
            }
            while transfer.fetch.give_at().is_some_and(|at| at <= now) && self.control.len() < 8 {
                let Some((piece, octets)) = transfer.fetch.give() else {
                    break;
                };
                let octets = frame::piece(id, piece, octets);
                let to = Address::BROADCAST;
                self.control.push_back(Outgoing { to, octets });
            }
        }
    }

    /// The next frame of the Pacifier nodes, which take turns.
    fn poll_nodes(&mut self, now: Instant, allowed: Classes, sdu: &mut [u8]) -> Option<LinkSend> {
        let sources: Vec<u16> = self.transfers.keys().copied().collect();
        let after = sources.iter().filter(|&&source| source > self.turn);
        let order: Vec<u16> = after
            .chain(sources.iter().filter(|&&source| source <= self.turn))
            .copied()
            .collect();
        for source in order {
            let node = self
                .transfers
                .get_mut(&source)
                .and_then(|transfer| transfer.node.as_mut());
            let Some(node) = node else { continue };
            let Some(send) = node.poll_link(now, allowed, sdu) else {
                continue;
            };
            self.turn = source;
            self.token = self.token.wrapping_add(1) % OURS;
            if self.tokens.len() >= TOKENS_MAX {
                self.tokens.pop_front();
            }
            self.tokens.push_back((self.token, source, send.token));
            let token = self.token;
            return Some(LinkSend { token, ..send });
        }
        None
    }

    fn on_sent(&mut self, now: Instant, token: u32, outcome: Outcome) {
        let place = self.tokens.iter().position(|known| known.0 == token);
        let Some((_, source, token)) = place.and_then(|place| self.tokens.remove(place)) else {
            return;
        };
        let node = self
            .transfers
            .get_mut(&source)
            .and_then(|transfer| transfer.node.as_mut());
        if let Some(node) = node {
            node.handle_link(now, LinkEvent::Sent { token, outcome });
        }
    }

    fn nodes(&self) -> impl Iterator<Item = &Node> + '_ {
        self.transfers
            .values()
            .filter_map(|transfer| transfer.node.as_ref())
    }
}

impl LinkNode for Member {
    fn handle_link(&mut self, now: Instant, event: LinkEvent<'_>) {
        let arrival = match event {
            LinkEvent::Sent { token, outcome } => return self.on_sent(now, token, outcome),
            LinkEvent::Received(arrival) => arrival,
        };
        if let Some(frame) = frame::parse(arrival.sdu) {
            return self.on_control(now, frame);
        }
        let source = header::group_of(arrival.sdu);
        let transfer = source.and_then(|source| self.transfers.get_mut(&source));
        match transfer.and_then(|transfer| transfer.node.as_mut()) {
            Some(node) => node.handle_link(now, event),
            None => self.counts.malformed += u64::from(source.is_none()),
        }
    }

    fn pending(&self) -> Classes {
        let waits = |class| self.nodes().any(|node| node.pending().contains(class));
        let mut classes = Classes::NONE.with_if(Class::Control, !self.control.is_empty());
        for class in Class::BY_URGENCY {
            classes = classes.with_if(class, waits(class));
        }
        classes
    }

    fn poll_link(&mut self, now: Instant, allowed: Classes, sdu: &mut [u8]) -> Option<LinkSend> {
        if allowed.contains(Class::Control)
            && let Some(Outgoing { to, octets }) = self.control.pop_front()
        {
            sdu.get_mut(..octets.len())?.copy_from_slice(&octets);
            return Some(LinkSend {
                to,
                len: octets.len(),
                class: Class::Control,
                mode: None,
                token: OURS,
            });
        }
        self.poll_nodes(now, allowed, sdu)
    }

    fn handle_timeout(&mut self, now: Instant) {
        for transfer in self.transfers.values_mut() {
            if let Some(node) = &mut transfer.node {
                node.handle_timeout(now);
            }
        }
        self.tell_news(now);
        self.exchange_manifests(now);
        self.tell_holdings(now);
    }

    fn poll_timeout(&self) -> Option<Wake> {
        let why = "news of the group";
        let mut wake = Some(Wake {
            at: self.news_at,
            why,
        });
        for transfer in self.transfers.values() {
            let node = transfer.node.as_ref();
            wake = Wake::earlier(wake, node.and_then(LinkNode::poll_timeout));
            let give = transfer.fetch.give_at().filter(|_| self.control.len() < 8);
            let joined = transfer.joined.as_ref().filter(|_| node.is_some());
            let tell = joined.map(|joined| joined.tell_at);
            for at in [transfer.fetch.ask_at(), give, tell].into_iter().flatten() {
                let why = "manifests and holdings";
                wake = Wake::earlier(wake, Some(Wake { at, why }));
            }
        }
        wake
    }

    fn poll_trace(&mut self) -> Option<TraceEvent> {
        None
    }
}

/// Whether plans over two measurements would hardly differ.
fn is_alike(old: &Links, new: &Links) -> bool {
    let nodes = new.nodes() as u16;
    let pairs = (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, to)));
    let close = |(from, to)| {
        let (old, new) = (old.ratio(from, to), new.ratio(from, to));
        (old - new).abs() < CHANGE && (old > 0.0) == (new > 0.0)
    };
    old.nodes() == new.nodes() && pairs.into_iter().all(close)
}

/// Octets of states in a data frame: a dozen runs and ranks. Reports have the rest.
pub const DATA_STATES: usize = 12;

/// Pacifier's parameters for a transfer.
fn config(settings: &Settings, ticket: &Ticket) -> Config {
    let batch = ticket.cut.batch_len().max(1);
    let window = (settings.memory as u64 / batch).clamp(1, u64::from(u32::MAX)) as u32;
    let variant = match ticket.way {
        Way::Pacifier => Variant::Pacifier { knob: 1.0 },
        Way::Chappe => Variant::Chappe,
    };
    // The variant's times are made for 2 Mbit/s, where a frame of 1500 octets takes 6 ms and more; a quarter of them
    // leaves the scheduler of a busy machine some room.
    let frame = settings
        .rate
        .time_of(settings.frame_max as u64 * 8)
        .as_secs_f64();
    let usual = Pace::default();
    let quick = |time: Duration| time.mul_f64((frame / 6e-3).clamp(0.25, 4.0));
    let chappe = Pace {
        window: usual.window.min(window),
        nodes_max: ticket.nodes_max().into(),
        data_states: DATA_STATES,
        report_interval: quick(usual.report_interval),
        gossip: quick(usual.gossip),
        repeat_min: quick(usual.repeat_min),
        repeat_max: quick(usual.repeat_max),
        doubt_min: quick(usual.doubt_min),
        doubt_max: quick(usual.doubt_max),
        yielding: quick(usual.yielding),
        // Frames wait in routers, and for their turn of a busy machine's processes at both ends, for a time that changes: it is
        // measured. `tests/wired.rs` of the protocol's crate has what it costs to guess it. This is the first guess only.
        lag: Duration::from_millis(40),
        timed: true,
        // Where a frame takes nothing from others there is nothing to leave to those who promise more.
        gate: if settings.shared { usual.gate } else { 0.0 },
        ..usual
    };
    Config {
        chappe,
        k: usize::from(ticket.cut.k),
        payload: usize::from(ticket.cut.payload),
        frame_max: settings.frame_max,
        window,
        groups_max: 1,
        // No live link tells the airtime of a frame; this one is near that of common links.
        mode: Mode::long(Rate::Cck11),
        // A broadcast's children are heard within a few frames' time on such links.
        ack_retry_min: Duration::from_millis(100),
        ..Config::new(variant)
    }
}
