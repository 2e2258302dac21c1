//! A member of the group as a link node: records, manifests, and one Pacifier node for each sender that it hears of.
//!
//! Like every node, a member reads no clock and does no I/O. What it has decoded waits until the application has
//! compared and stored it ([`Member::decoded`], [`Member::accept`]); only then it is acknowledged.
//!
//! The state stands here; what is done with it, by part:
//!
//! | file | holds |
//! |---|---|
//! | `offer.rs` | as a sender: the own transfer, and what its receivers have |
//! | `joined.rs` | as a receiver: the transfers that it takes part in |
//! | `inbox.rs` `outbox.rs` | what it hears from the others, and what it tells them |
//! | `plan.rs` `config.rs` | links made of records, and Pacifier's nodes over them |

mod config;
mod inbox;
mod joined;
mod offer;
mod outbox;
mod plan;

use std::collections::BTreeMap;
use std::sync::Arc;

use chappe_core::{
    Bitrate, Class, Classes, Duration, Instant, LinkEvent, LinkNode, LinkSend, Stream, TraceEvent,
    Wake,
};
use chappe_live::Statistics;
use chappe_pacifier::{Counters, Links, Node, header};

pub use self::config::DATA_STATES;
use self::joined::Joined;
use self::offer::Offer;
use self::outbox::Outbox;
use crate::fetch::Fetch;
use crate::frame;
use crate::key::VerifyKey;
use crate::manifest::Ticket;
use crate::roster::{MEMBER_MAX, Roles, Roster, State};

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
    /// The delivery ratios that plans are made of.
    links: Option<Arc<Links>>,
    /// When links were last made of records, and whether records have changed since.
    linked: Instant,
    changed: bool,
    /// One from each sender, by its number; the own one among them.
    transfers: BTreeMap<u16, Transfer>,
    outbox: Outbox,
    news_at: Instant,
    /// News that is to be told soon, so many times.
    urgent: u32,
    counts: Counts,
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

/// The time between news when something is urgent, and between tries when something is not there yet.
const URGENT: Duration = Duration::from_millis(100);
/// Urgent news is told so many times, since frames get lost.
const URGENT_TIMES: u32 = 3;
/// Most transfers of others at a time.
const TRANSFERS_MAX: usize = 4;

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
            outbox: Outbox::default(),
            news_at: Instant::ZERO,
            urgent: URGENT_TIMES,
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
            self.announce_soon(now);
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
        let crowded = self.counts.crowded.saturating_add(self.outbox.crowded());
        Counts {
            crowded,
            ..self.counts
        }
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
            self.announce_soon(now);
        }
    }

    /// Says goodbye: the others need not wait for this member any more.
    pub fn leave(&mut self, now: Instant) {
        self.roster.own().roles.leaves = true;
        self.announce_soon(now);
    }

    /// Tells the own record soon, and a few times.
    fn announce_soon(&mut self, now: Instant) {
        self.roster.renew();
        self.urgent = URGENT_TIMES;
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
        let source = header::group_of(arrival.sdu);
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
        for transfer in self.transfers.values_mut() {
            if let Some(node) = &mut transfer.node {
                node.handle_timeout(now);
            }
        }
        self.send_news(now);
        self.exchange_manifests(now);
        self.send_holdings(now);
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
