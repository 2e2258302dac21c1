//! The state of one object at one node: which neighbours it serves, with which batch, and what it reports.

use alloc::sync::Arc;
use alloc::vec::Vec;

use chappe_core::{Duration, Instant, Stream};

use crate::improved::config::Settings;
use crate::improved::header::{Done, Gone, ObjectId, Plan};
use crate::improved::neighbours::Neighbours;
use crate::improved::shelf::Shelf;
use crate::links::{Links, Paths};
use crate::set::NodeSet;

mod access;
mod done;
mod flow;
mod gone;
mod hearing;
mod recent;
mod serving;
pub(in crate::improved) mod slots;
mod telling;
mod timing;

use access::Access;
use recent::Recent;
use slots::Slots;

/// The node's role for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Source,
    Receiver,
    Relay,
}

/// One object at one node.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub me: u16,
    pub source: u16,
    pub role: Role,
    pub id: ObjectId,
    pub plan: Plan,
    /// Receivers known to be complete.
    pub complete: NodeSet,
    /// What receivers have of the segments of a long object.
    done: Done,
    pub shelf: Shelf,
    payload: usize,
    links: Arc<Links>,
    settings: Settings,
    /// Shortest ETX paths from the source over all nodes.
    usual: Arc<Paths>,
    /// Those in use: the usual ones, or over the members that are left when some have failed.
    paths: Arc<Paths>,
    /// Members that have failed, as far as this node knows.
    gone: Gone,
    /// Those of which this node has said so, and which it has not heard since.
    accused: NodeSet,
    neighbours: Neighbours,
    recent: Recent,
    /// Nodes that ask for packets although they are not members.
    guests: NodeSet,
    customers: Vec<Customer>,
    /// The complete receivers that nodes nearer to the source have named; this node repeats its report until they name all.
    confirmed: NodeSet,
    /// Complete receivers that ask again for packets, for a node behind them.
    agents: NodeSet,
    /// Receivers that deny being complete, to the application: what others say of that does not count.
    disputed: NodeSet,
    /// Of the source: those it serves itself that were not heard under its latest plan yet.
    unaware: NodeSet,
    /// One more than the highest batch that this node has sent or taken in.
    front: u32,
    /// Of a receiver that came late: how far frames that it lacks and has no place for are ahead of those that it has one for.
    strays: Option<u32>,
    offer: Option<Offer>,
    /// When this node stops yielding to a neighbour with a larger urge.
    yields_until: Option<Instant>,
    /// When this node takes over neighbours that it leaves to others now.
    leaves_until: Option<Instant>,
    since: Instant,
    spoke: Instant,
    report_at: Option<Instant>,
    due: bool,
    /// The last frame had no room for all states.
    untold: bool,
    repeat: Duration,
    doubt_at: Option<Instant>,
    heard_any: Instant,
    /// The neighbour whose stamp the last frame echoed.
    echoed: u16,
    /// This node's turns, if members send in turns.
    slots: Option<Slots>,
    /// When this node tries to send, once members that sent in turns contend.
    access: Access,
    /// Since when they do.
    contends_from: Instant,
}

/// A neighbour that may lack something.
#[derive(Clone, Debug)]
struct Customer {
    node: u16,
    /// The delivery ratio of the link to it.
    chance: f32,
    /// What an innovative reception there adds to a frame's worth: `chance`, but at least `worth_min` for a node that
    /// only this one reaches on the tree, so that it is always served.
    weight: f32,
    /// Farther from the source than this node.
    behind: bool,
    /// Members, and the source, that reach it about as well as this node, or better.
    rivals: Vec<Rival>,
}

/// Another node that may serve a neighbour.
#[derive(Clone, Copy, Debug)]
struct Rival {
    node: u16,
    /// It reaches the neighbour better by the factor `Settings::better`.
    better: bool,
}

/// The batch to send next, and the innovative receptions that a frame of it promises.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Offer {
    batch: u32,
    worth: f32,
}

impl Group {
    #[allow(
        clippy::too_many_arguments,
        reason = "a constructor: every argument becomes one field"
    )]
    pub fn new(
        me: u16,
        source: u16,
        role: Role,
        id: ObjectId,
        plan: Plan,
        shelf: Shelf,
        payload: usize,
        links: Arc<Links>,
        paths: Arc<Paths>,
        settings: Settings,
        now: Instant,
    ) -> Group {
        let mut group = Group {
            me,
            source,
            role,
            id,
            plan,
            complete: NodeSet::EMPTY,
            done: Done::default(),
            shelf,
            payload,
            neighbours: Neighbours::new(
                links.nodes(),
                settings.window,
                settings.timed.then_some(settings.lag),
            ),
            recent: Recent::default(),
            links,
            settings,
            usual: paths.clone(),
            paths,
            gone: Gone::default(),
            accused: NodeSet::EMPTY,
            guests: NodeSet::EMPTY,
            customers: Vec::new(),
            confirmed: NodeSet::EMPTY,
            agents: NodeSet::EMPTY,
            disputed: NodeSet::EMPTY,
            unaware: NodeSet::EMPTY,
            front: 0,
            strays: None,
            offer: None,
            yields_until: None,
            leaves_until: None,
            since: now,
            spoke: now,
            report_at: None,
            due: false,
            untold: false,
            repeat: settings.repeat_min,
            doubt_at: None,
            heard_any: now,
            echoed: 0,
            slots: None,
            access: Access::default(),
            contends_from: now,
        };
        group.recruit();
        group
    }

    fn distance(&self, node: u16) -> f64 {
        self.paths.cost(node)
    }

    /// Whether packets go from this node to another one: by the turns, or by distance from the source.
    fn is_behind(&self, node: u16) -> bool {
        let slots = self.slots.as_ref().filter(|_| self.in_turns());
        let turns = slots.and_then(|slots| slots.feeds(node));
        turns.unwrap_or(self.distance(node) > self.distance(self.me))
    }

    fn is_nearer(&self, node: u16) -> bool {
        node == self.source || self.distance(node) < self.distance(self.me)
    }

    /// Whether this node takes part: the source, a member, or a receiver that the plan does not list.
    pub fn takes_part(&self) -> bool {
        self.role != Role::Relay || self.plan.members.contains(self.me)
    }

    /// Rebuilds the list of neighbours that may lack packets.
    fn recruit(&mut self) {
        // Complete receivers need nothing, unless they ask again for a node behind them. For members that have failed no place waits.
        let mut served = self
            .plan
            .members
            .union(&self.guests)
            .without(&self.complete.without(&self.agents))
            .without(&self.gone.nodes);
        served.remove(self.me);
        served.remove(self.source);
        let servers = self.plan.members.without(&self.gone.nodes);
        self.customers.clear();
        for node in served.iter() {
            let chance = self.links.ratio(self.me, node);
            // A bad link still serves a node whose shortest path runs over this one.
            let only = chance > 0.0 && self.paths.next(node) == Some(self.me);
            if chance < self.settings.link_min && !only {
                continue;
            }
            let better = self.settings.better;
            // The source is a rival too, although plans do not list it as a member.
            let others = servers.iter().filter(|&server| server != self.source);
            let others = others.chain([self.source]);
            let rivals = others.filter(|&server| server != self.me && server != node);
            let rivals = rivals.filter_map(|server| {
                let theirs = self.links.ratio(server, node);
                (theirs * better > chance).then_some(Rival {
                    node: server,
                    better: theirs > chance * better,
                })
            });
            self.customers.push(Customer {
                node,
                chance: chance as f32,
                weight: match only {
                    true => (chance as f32).max(self.settings.worth_min),
                    false => chance as f32,
                },
                behind: self.is_behind(node),
                rivals: rivals.collect(),
            });
        }
    }

    /// Whether this node can make packets of every batch: the source, and a receiver that has the object.
    pub(super) fn is_origin(&self) -> bool {
        self.role == Role::Source || self.shelf.makes_all()
    }

    /// Whether nothing was heard of the group for `after`, so that another group may take its place.
    pub fn lapsed(&self, now: Instant, after: Duration) -> bool {
        now.saturating_since(self.heard_any) >= after
    }

    /// Whether this node adopts the plans of `from`: only those of nodes nearer to the source.
    pub fn leads(&self, from: u16) -> bool {
        self.role != Role::Source && self.is_nearer(from)
    }
}

/// Timers: reports, yielding, taking over from others, doubt.
impl Group {
    /// The next deadline and its reason.
    pub fn deadline(&self) -> Option<(Instant, &'static str)> {
        let report = self.report_at.filter(|_| !self.due).map(|at| (at, REPORT));
        let gate = self.yields_until.map(|at| (at, YIELD));
        let turn = self.leaves_until.map(|at| (at, TURN));
        let doubt = self.doubt_at.map(|at| (at, DOUBT));
        let slot = self.slots.as_ref().and_then(Slots::deadline);
        let slot = slot.filter(|_| self.in_turns() && !self.plan.closed);
        let slot = slot.map(|at| (at, SLOT));
        let access = self.access.deadline().filter(|_| self.contends());
        let access = access.map(|at| (at, ACCESS));
        [report, gate, turn, doubt, slot, access]
            .into_iter()
            .flatten()
            .min_by_key(|(at, _)| *at)
    }

    pub fn handle_timeout(&mut self, now: Instant, random: &mut Stream) -> Option<&'static str> {
        let (at, why) = self.deadline()?;
        if at > now {
            return None;
        }
        if self.report_at.is_some_and(|at| at <= now) {
            self.due = true;
        }
        if self.doubt_at.is_some_and(|at| at <= now) {
            self.doubt(now, random);
        }
        self.advance_slots(now);
        self.evaluate(now);
        self.advance_access(now);
        Some(why)
    }

    /// Falls back to the last report of each neighbour that has been silent for its patience, and sets the next deadline. The first time all its
    /// batches are doubted. If it stays silent one batch is each time: a member that has failed would otherwise get the whole window again and
    /// again, which fills the channel at 2 Mbit/s for as long as the others need it.
    fn doubt(&mut self, now: Instant, random: &mut Stream) {
        self.doubt_at = None;
        // No timer may keep a finished network awake.
        if self.plan.closed || self.customers.is_empty() {
            return;
        }
        self.look_for_gone(now, random);
        // Members in turns hear each other seldom, and frames in their own slots take no air from others.
        let turns = self.in_turns();
        let mut next = now + self.settings.doubt_max;
        for place in 0..self.customers.len() {
            let Some(node) = self.customers.get(place).map(|customer| customer.node) else {
                continue;
            };
            let (least, most) = (self.settings.doubt_min, self.settings.doubt_max);
            let Some(neighbour) = self.neighbours.get_mut(node) else {
                continue;
            };
            let due = neighbour.doubt_at <= now;
            let patience = neighbour.patience.max(least);
            if due {
                neighbour.doubt_at = now + patience;
                neighbour.patience = (patience * 2).min(most);
            }
            next = next.min(neighbour.doubt_at);
            match due {
                true if patience == least || turns => self.neighbours.doubt(node),
                true => self.neighbours.doubt_one(node),
                false => {}
            }
        }
        self.doubt_at = Some(next);
    }
}

const REPORT: &str = "report";
const YIELD: &str = "a neighbour goes first";
const TURN: &str = "no other node serves a neighbour";
const SLOT: &str = "a turn begins or ends";
const ACCESS: &str = "a try to send begins or ends";
const DOUBT: &str = "a neighbour is silent";
