//! A member of the group as a link node: records, manifests, and one Pacifier node for each sender.
//!
//! Like every node, a member reads no clock and does no I/O. A decoded batch waits until the application has checked and
//! stored it ([`Member::decoded`], [`Member::accept`]). Only then is it acknowledged.
//!
//! This file has the state. The methods are in the files of its parts:
//!
//! | file | holds |
//! |---|---|
//! | `offer.rs` | the sender's side: its transfer and the batches of its receivers |
//! | `joined.rs` | the receiver's side: the transfers that it takes part in |
//! | `mending.rs` `parts.rs` | polluted batches, which receivers get from the sender in signed parts |
//! | `inbox.rs` `outbox.rs` | received and sent control frames |
//! | `plan.rs` `config.rs` | the links from the records, and Pacifier's nodes over them |

mod config;
mod inbox;
mod joined;
mod mending;
mod offer;
mod outbox;
mod parts;
mod plan;

use std::sync::Arc;

use chappe_core::{
    Bitrate, Class, Classes, Duration, Instant, LinkEvent, LinkNode, LinkSend, Stream, TraceEvent,
    Wake,
};
use chappe_live::Statistics;
use chappe_pacifier::frame::group_of;
use chappe_pacifier::{Counters, Links, Node};
use litemap::LiteMap;

pub use self::config::{DATA_STATES, eights, headers};
use self::joined::Joined;
use self::offer::Offer;
use self::outbox::Outbox;
use crate::damping::Damping;
use crate::fetch::Fetch;
use crate::frame;
use crate::group::Seat;
use crate::manifest::Ticket;
use crate::receipt::Receipt;
use crate::roster::{LIFETIME, MEMBER_MAX, Roles, Roster, State};

/// The configuration of a member.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The member's number and key, and the list of members. It decides whose tickets are accepted.
    pub seat: Seat,
    /// The roles in addition to relaying.
    pub roles: Roles,
    /// The largest SDU of the link in octets.
    pub frame_max: usize,
    /// Memory for incomplete batches in octets.
    pub memory: usize,
    /// The pace of outgoing frames.
    pub rate: Bitrate,
    /// Whether members share airtime.
    pub shared: bool,
}

/// The protocol state of a member.
pub struct Member {
    settings: Settings,
    /// This member's number in the list of members.
    node: u16,
    random: Stream,
    roster: Roster,
    /// The delivery ratios that plans are based on.
    links: Option<Arc<Links>>,
    /// When the links were last computed, and whether records have changed since.
    linked: Instant,
    changed: bool,
    /// The transfer of each sender, by the sender's number, including this member.
    transfers: LiteMap<u16, Transfer>,
    outbox: Outbox,
    news_at: Instant,
    /// How many times news are still to be sent at the short interval.
    urgent: u32,
    /// How often changed neighbours are announced at once.
    damping: Damping,
    counts: Counts,
}

/// The transfer of one sender.
struct Transfer {
    ticket: Ticket,
    fetch: Fetch,
    node: Option<Node>,
    /// The life of the sender at the last check.
    life: Option<u64>,
    /// The receiver's side, once this member has joined.
    joined: Option<Joined>,
    /// The sender's side, if this member is the sender.
    offer: Option<Offer>,
    /// This member's receipt, when it is sent next, and how often it was.
    receipt: Option<(Receipt, Instant, u32)>,
    /// When this member learnt that the sender has taken the offer back.
    withdrawn: Option<Instant>,
    /// Receivers that others call complete and that deny it: the numbers of their records when this was first seen.
    denials: LiteMap<u16, u32>,
}

impl Transfer {
    /// Whether the sender has taken the offer back, and members still pass that on.
    fn is_withdrawn(&self, now: Instant) -> bool {
        self.withdrawn
            .is_some_and(|since| now.saturating_since(since) < LIFETIME)
    }

    /// The next hop towards `to`; `None` if no way is known, or if it leads back to `from`.
    fn hop(&mut self, to: u16, from: u16) -> Option<u16> {
        let hop = self.node.as_mut()?.route(to)?;
        (hop != from).then_some(hop)
    }
}

/// Counters of a member, in addition to those of the link and of Pacifier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Malformed frames of members.
    pub malformed: u64,
    /// Tickets without a valid signature of their sender.
    pub unsigned: u64,
    /// Tickets of members that may not send.
    pub unauthorised: u64,
    /// Records, reports of batches and receipts that their members have not signed.
    pub forged: u64,
    /// Control frames and tickets dropped because a queue or table was full.
    pub crowded: u64,
    /// Of these, tickets of a sender beyond those that this member takes part in at a time.
    pub refused: u64,
    /// News of members that run another version.
    pub foreign: u64,
    /// Claims that a receiver is complete which the receiver's own records denied.
    pub disputed: u64,
    /// Parts of polluted batches that have arrived.
    pub mended: u64,
    /// Attempts to relay a transfer whose frames are too long for this member's link.
    pub unrelayed: u64,
}

/// The short interval between news, for urgent ones.
const URGENT: Duration = Duration::from_millis(100);
/// How many times urgent news are sent, since frames get lost.
const URGENT_TIMES: u32 = 3;
/// Largest number of other members' transfers at a time.
pub const TRANSFERS_MAX: usize = 4;

impl Member {
    /// A member that knows no other member yet.
    pub fn new(settings: Settings, random: Stream) -> Member {
        Member {
            roster: Roster::new(settings.seat.clone(), settings.roles, settings.frame_max),
            node: settings.seat.node,
            settings,
            random,
            links: None,
            linked: Instant::ZERO,
            changed: true,
            transfers: LiteMap::new(),
            outbox: Outbox::default(),
            news_at: Instant::ZERO,
            urgent: URGENT_TIMES,
            damping: Damping::default(),
            counts: Counts::default(),
        }
    }

    /// Takes over the link measurements. Call it before each turn of the node.
    pub fn observe(&mut self, now: Instant, statistics: &Statistics) {
        let own = self.roster.own();
        own.life = statistics.life;
        let heard = statistics.neighbours.iter().filter_map(|near| {
            let node = near.address.node_number()?;
            (node <= MEMBER_MAX).then_some((node, near.from))
        });
        let heard: Vec<(u16, f64)> = heard.collect();
        let who = |links: &[(u16, f64)]| links.iter().map(|link| link.0).collect::<Vec<_>>();
        if who(&own.links) != who(&heard) && self.damping.allows(now) {
            self.announce_soon(now);
        }
        for near in &statistics.neighbours {
            if let Some(node) = near.address.node_number() {
                self.roster.hear(node, near.life, near.heard);
            }
        }
        self.changed |= self.roster.own().links != heard;
        self.roster.own().links = heard;
        self.relink(now);
        self.watch_senders(now);
        self.check_claims(now);
        self.serve(now);
    }

    /// The largest SDU that passes between all members, in octets: new frames are made for it.
    pub fn frame_max(&self, now: Instant) -> usize {
        self.roster.frame_max(now).min(self.settings.frame_max)
    }

    /// The records of all members.
    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    /// The delivery ratios that plans are based on; `None` before the first records.
    pub fn links(&self) -> Option<&Arc<Links>> {
        self.links.as_ref()
    }

    /// The counters since the start.
    pub fn counts(&self) -> Counts {
        let crowded = self.counts.crowded.saturating_add(self.outbox.crowded());
        Counts {
            crowded,
            forged: self.counts.forged.saturating_add(self.roster.forged()),
            ..self.counts
        }
    }

    /// Takes over a newer list of members. Transfers of senders that it does not allow end.
    pub fn join_group(&mut self, now: Instant, seat: Seat) {
        self.roster.join(seat.clone());
        let group = &seat.group.members;
        let may = |source: &u16| {
            *source == seat.node || group.get(source).is_some_and(|entry| entry.sends)
        };
        self.transfers.retain(|source, _| may(source));
        self.settings.seat = seat;
        self.changed = true;
        self.announce_soon(now);
    }

    /// The tickets of all known transfers.
    pub fn tickets(&self) -> impl Iterator<Item = &Ticket> + '_ {
        self.transfers.values().map(|transfer| &transfer.ticket)
    }

    /// The manifest of a sender's transfer, once it is complete.
    pub fn manifest(&self, source: u16) -> Option<&[u8]> {
        self.transfers.get(&source)?.fetch.octets()
    }

    /// Pacifier's counters of a sender's transfer.
    pub fn counters(&self, source: u16) -> Option<&Counters> {
        Some(self.transfers.get(&source)?.node.as_ref()?.counters())
    }

    /// Sets this member's state in a transfer, and announces it if it has changed.
    pub fn report(&mut self, now: Instant, id: u64, state: State, batches: u32) {
        let offered = |id: u64| self.transfers.values().any(|one| one.ticket.id() == id);
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
                    // A sender that is still there may not have heard of its own yet.
                    let past = own.transfers.iter().position(|told| !offered(told.0));
                    own.transfers.remove(past.unwrap_or(0));
                }
                own.transfers.push((id, state, batches));
                true
            }
        };
        if news {
            self.announce_soon(now);
        }
    }

    /// What this member says of a transfer; `None` if it says nothing, because it knows none or has forgotten it.
    pub fn state(&mut self, id: u64) -> Option<State> {
        self.roster.own().transfer(id).map(|(state, _)| state)
    }

    /// Announces that this member leaves, so that the others do not wait for it.
    pub fn leave(&mut self, now: Instant) {
        self.roster.own().roles.leaves = true;
        self.announce_soon(now);
    }

    /// Sends this member's record soon, and repeats it a few times.
    fn announce_soon(&mut self, now: Instant) {
        self.roster.renew();
        self.urgent = self.urgent.max(URGENT_TIMES);
        self.news_at = self.news_at.min(now);
    }

    /// The Pacifier node of a sender's transfer.
    fn node_of(&mut self, source: u16) -> Option<&mut Node> {
        self.transfers.get_mut(&source)?.node.as_mut()
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
        let source = group_of(arrival.sdu);
        match source.and_then(|source| self.node_of(source)) {
            Some(node) => node.handle_link(now, event),
            None => self.counts.malformed += u64::from(source.is_none()),
        }
    }

    fn pending(&self) -> Classes {
        let waits = |class| self.nodes().any(|node| node.pending().contains(class));
        let mut classes = Classes::NONE.with_if(Class::Control, !self.outbox.is_empty());
        for class in Class::BY_URGENCY {
            classes = classes.with_if(class, waits(class));
        }
        classes
    }

    fn poll_link(&mut self, now: Instant, allowed: Classes, sdu: &mut [u8]) -> Option<LinkSend> {
        if allowed.contains(Class::Control)
            && let Some(send) = self.outbox.pop(sdu)
        {
            return Some(send);
        }
        self.poll_nodes(now, allowed, sdu)
    }

    fn handle_timeout(&mut self, now: Instant) {
        for (_, transfer) in &mut self.transfers {
            if let Some(node) = &mut transfer.node {
                node.handle_timeout(now);
            }
        }
        self.send_news(now);
        self.exchange_manifests(now);
        self.send_holdings(now);
        self.send_wants(now);
        self.send_parts();
        self.send_receipts(now);
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
            let give = transfer.fetch.give_at();
            let give = give.filter(|_| self.outbox.takes_pieces());
            let joined = transfer.joined.as_ref().filter(|_| node.is_some());
            let tell = joined.map(|joined| joined.tell_at);
            let want = joined.and_then(Joined::want_at);
            let parts = transfer.offer.as_ref().and_then(Offer::part_at);
            let parts = parts.filter(|_| self.outbox.takes_pieces());
            let receipt = transfer.receipt.as_ref().filter(|_| node.is_some());
            let receipt = receipt.map(|receipt| receipt.1);
            for at in [transfer.fetch.ask_at(), give, tell, want, parts, receipt]
                .into_iter()
                .flatten()
            {
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
