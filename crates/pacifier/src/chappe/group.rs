//! What a node does for one object: whom it serves, with which batch, and what it tells.

use alloc::sync::Arc;
use alloc::vec::Vec;

use chappe_core::{Duration, Instant, Stream};

use crate::NodeSet;
use crate::chappe::header::{Coded, Head, HeadRepr, ObjectId, Plan};
use crate::chappe::neighbours::Neighbours;
use crate::chappe::report::{self, STATES_MAX, State};
use crate::chappe::settings::Settings;
use crate::chappe::shelf::{Gain, Shelf};
use crate::links::{Links, Paths};

/// What a node is to an object.
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
    /// Receivers that are known to have everything.
    pub complete: NodeSet,
    pub shelf: Shelf,
    payload: usize,
    links: Arc<Links>,
    settings: Settings,
    /// Shortest ETX paths from the source.
    paths: Arc<Paths>,
    neighbours: Neighbours,
    /// Who asks although it is not a member.
    guests: NodeSet,
    customers: Vec<Customer>,
    /// What nodes nearer to the source have heard of `complete`.
    confirmed: NodeSet,
    /// Complete receivers that ask for packets which they had, for somebody behind them.
    agents: NodeSet,
    /// One more than the highest batch that was seen here.
    front: u32,
    offer: Option<Offer>,
    /// Until when a neighbour with more to give goes first.
    yields_until: Option<Instant>,
    since: Instant,
    spoke: Instant,
    report_at: Option<Instant>,
    due: bool,
    /// The last frame had no room for all states.
    untold: bool,
    repeat: Duration,
    doubt_at: Option<Instant>,
    heard_any: Instant,
}

/// A neighbour that may lack something.
#[derive(Clone, Debug)]
struct Customer {
    node: u16,
    /// Probability that a frame of this node reaches it.
    chance: f32,
    /// What an innovative reception there counts: that, but for an only child always enough to be served.
    weight: f32,
    /// Farther from the source than this node.
    behind: bool,
    /// Members that reach it much better than this node.
    better: Vec<u16>,
}

/// The batch that is worth most on the air, and how many innovative receptions a frame of it promises.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Offer {
    batch: u32,
    worth: f32,
}

impl Group {
    #[allow(
        clippy::too_many_arguments,
        reason = "each is a fact of its own, given once"
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
            shelf,
            payload,
            neighbours: Neighbours::new(links.nodes(), settings.window),
            links,
            settings,
            paths,
            guests: NodeSet::EMPTY,
            customers: Vec::new(),
            confirmed: NodeSet::EMPTY,
            agents: NodeSet::EMPTY,
            front: 0,
            offer: None,
            yields_until: None,
            since: now,
            spoke: now,
            report_at: None,
            due: false,
            untold: false,
            repeat: settings.repeat_min,
            doubt_at: None,
            heard_any: now,
        };
        group.recruit();
        group
    }

    fn distance(&self, node: u16) -> f64 {
        self.paths.cost(node)
    }

    fn is_nearer(&self, node: u16) -> bool {
        node == self.source || self.distance(node) < self.distance(self.me)
    }

    /// Whether this node takes part: the source, a member, or a receiver that nobody planned for.
    pub fn takes_part(&self) -> bool {
        self.role != Role::Relay || self.plan.members.contains(self.me)
    }

    /// Lists anew who may lack something.
    fn recruit(&mut self) {
        let mut served = self
            .plan
            .members
            .union(&self.guests)
            .without(&self.complete.without(&self.agents));
        served.remove(self.me);
        served.remove(self.source);
        let servers = self.plan.members;
        self.customers.clear();
        for node in served.iter() {
            let chance = self.links.ratio(self.me, node);
            // A bad link is of use where there is no better one.
            let only = chance > 0.0 && self.paths.next(node) == Some(self.me);
            if chance < self.settings.link_min && !only {
                continue;
            }
            let better = servers.iter().chain([self.source]).filter(|&server| {
                server != self.me
                    && server != node
                    && self.links.ratio(server, node) > chance * self.settings.better
            });
            self.customers.push(Customer {
                node,
                chance: chance as f32,
                weight: match only {
                    true => (chance as f32).max(self.settings.worth_min),
                    false => chance as f32,
                },
                behind: self.distance(node) > self.distance(self.me),
                better: better.collect(),
            });
        }
    }

    /// Whether the group has been silent for so long that any other may take its place.
    pub fn lapsed(&self, now: Instant, after: Duration) -> bool {
        now.saturating_since(self.heard_any) >= after
    }

    /// Whether what this node says should be taken over from `from`.
    pub fn leads(&self, from: u16) -> bool {
        self.role != Role::Source && self.is_nearer(from)
    }
}

/// Frames in.
impl Group {
    /// Takes in a frame of the group, sent by `from`.
    pub fn on_frame(
        &mut self,
        now: Instant,
        from: u16,
        head: &Head<'_>,
        data: Option<&Coded<'_>>,
        random: &mut Stream,
    ) -> Option<Gain> {
        self.heard_any = now;
        self.on_plan(now, from, &head.plan, random);
        self.on_complete(now, from, &head.complete, random);
        self.on_words(now, from, head);
        if self.is_agent(now) && self.report_at.is_none() {
            self.speak_after(now, self.settings.report_interval, random);
        }
        let gain = data.map(|coded| self.on_data(now, from, coded, random));
        self.evaluate(now);
        gain
    }

    // plans spread away from the source
    fn on_plan(&mut self, now: Instant, from: u16, plan: &Plan, random: &mut Stream) {
        if *plan == self.plan {
            return;
        }
        if self.leads(from) {
            let anew = plan.epoch != self.plan.epoch;
            self.plan = *plan;
            if anew {
                self.complete = NodeSet::EMPTY;
                self.confirmed = NodeSet::EMPTY;
                self.agents = NodeSet::EMPTY;
                self.neighbours.forget();
                self.since = now;
            }
            self.recruit();
        }
        // Whoever follows an older plan should hear of this one; whoever gave it may pass it on.
        self.speak_within(now, self.settings.gossip, random);
    }

    fn on_complete(&mut self, now: Instant, from: u16, complete: &NodeSet, random: &mut Stream) {
        if self.is_nearer(from) {
            self.confirmed = self.confirmed.union(complete);
        }
        let mut all = self.complete.union(complete);
        if self.role == Role::Receiver && !self.shelf.is_whole() {
            // Somebody is wrong about this node.
            all.remove(self.me);
        }
        if all != self.complete {
            self.complete = all;
            self.recruit();
            self.repeat = self.settings.repeat_min;
            self.speak_within(now, self.settings.gossip, random);
        }
    }

    fn on_words(&mut self, now: Instant, from: u16, head: &Head<'_>) {
        self.neighbours.on_report(from, &head.report);
        let (yielding, patience) = (self.settings.yielding, self.settings.doubt_min);
        if let Some(neighbour) = self.neighbours.get_mut(from) {
            neighbour.heard = Some(now);
            neighbour.urge = head.urge;
            neighbour.urge_until = now + yielding;
            neighbour.patience = patience;
            neighbour.doubt_at = now + patience;
        }
        let asks = head.report.base() < self.id.batches && from != self.source;
        if asks && !self.plan.members.contains(from) && self.guests.insert(from) {
            self.recruit();
        }
        let changed = match asks && self.complete.contains(from) {
            true => self.agents.insert(from),
            false => self.agents.remove(from),
        };
        if changed {
            self.recruit();
        }
        self.follow_customers(now);
    }

    /// Whether this is a complete receiver that lacks packets for somebody behind it, since its application has taken
    /// them away.
    fn is_agent(&self, now: Instant) -> bool {
        self.role == Role::Receiver
            && self.complete.contains(self.me)
            && self.first_wanted(now).is_some()
    }

    /// The first batch of which more packets are of use here.
    fn first_wanted(&self, now: Instant) -> Option<u32> {
        let mut places = self.shelf.base()..self.id.batches.min(self.shelf.end());
        places.find(|&batch| self.wants(batch, now))
    }

    /// Places begin where those begin that this node works for; a receiver's never after what it lacks itself.
    fn follow_customers(&mut self, now: Instant) {
        if self.role == Role::Source {
            return;
        }
        let bases = self
            .customers
            .iter()
            .filter(|customer| customer.behind && self.is_alive(customer.node, now))
            .filter_map(|customer| self.neighbours.get(customer.node))
            .map(|neighbour| neighbour.base);
        let theirs = bases.min().filter(|&base| base < self.id.batches);
        let base = match (self.role, self.shelf.first_missing()) {
            (Role::Receiver, Some(own)) => {
                // Half of the places are for itself, however far behind others are.
                let least = own.saturating_sub(self.shelf.places() / 2);
                Some(theirs.unwrap_or(own).clamp(least, own))
            }
            _ => theirs,
        };
        if let Some(base) = base {
            self.shelf.move_to(base);
        }
    }

    fn on_data(&mut self, now: Instant, from: u16, coded: &Coded<'_>, random: &mut Stream) -> Gain {
        let batch = coded.batch;
        let sender_rank = match from == self.source {
            true => self.id.packets(batch),
            false => self.neighbours.said(from, batch, self.id.packets(batch)),
        };
        self.spread_guess(from, batch, sender_rank);
        if !self.wants(batch, now) {
            return Gain::Nothing;
        }
        self.front = self.front.max(batch.saturating_add(1));
        let gain = self.shelf.insert(coded);
        if gain != Gain::Nothing {
            self.check_whole(now, random);
            self.repeat = self.settings.repeat_min;
            self.speak_after(now, self.settings.report_interval, random);
        }
        gain
    }

    /// A receiver that has become complete says so.
    pub fn check_whole(&mut self, now: Instant, random: &mut Stream) {
        if self.role == Role::Receiver && self.shelf.is_whole() && self.complete.insert(self.me) {
            self.recruit();
            self.speak_within(now, self.settings.gossip, random);
        }
    }

    /// Others that may have received a frame of `from` know more now.
    fn spread_guess(&mut self, from: u16, batch: u32, rank: usize) {
        for customer in &self.customers {
            if customer.node != from {
                let chance = self.links.ratio(from, customer.node);
                self.neighbours
                    .count_on(customer.node, batch, chance as f32, rank as f32);
            }
        }
    }

    /// Whether a neighbour was heard lately. The worse its link, the longer that takes.
    fn is_alive(&self, node: u16, now: Instant) -> bool {
        let heard_one_in = 1.0 / self.links.ratio(node, self.me).max(0.01);
        let since = now.saturating_before(self.settings.absent.mul_f64(heard_one_in));
        let neighbour = self.neighbours.get(node);
        self.since >= since || neighbour.is_some_and(|neighbour| neighbour.heard_since(since))
    }

    /// Whether more packets of a batch are of use here.
    fn wants(&self, batch: u32, now: Instant) -> bool {
        if self.shelf.is_full(batch) || !self.shelf.has_place(batch) {
            return false;
        }
        match self.role {
            Role::Source => false,
            Role::Receiver => !self.shelf.is_settled(batch) || self.is_wanted_behind(batch, now),
            Role::Relay => self.is_wanted_behind(batch, now),
        }
    }

    fn is_wanted_behind(&self, batch: u32, now: Instant) -> bool {
        self.customers.iter().any(|customer| {
            customer.behind
                && self.neighbours.wants(customer.node, batch)
                && self.is_alive(customer.node, now)
        })
    }
}

/// Decisions.
impl Group {
    // the batch with the most expected innovation per frame
    fn evaluate(&mut self, now: Instant) {
        self.offer = None;
        self.yields_until = None;
        if self.plan.closed || !self.takes_part() {
            return;
        }
        let bases = || {
            let customers = self.customers.iter();
            let known = customers.filter_map(|customer| self.neighbours.get(customer.node));
            known.map(|neighbour| neighbour.base)
        };
        let Some(first) = bases().min() else {
            return;
        };
        // Beyond the front nobody has anything: one batch of the source stands for all. A source that was restarted
        // learns where the front is from its neighbours.
        let end = match self.role {
            Role::Source => {
                let theirs = bases().filter(|&base| base < self.id.batches).max();
                let front = self.front.max(theirs.unwrap_or(0));
                front.saturating_add(1).min(self.id.batches)
            }
            _ => self.front.min(self.shelf.end()),
        };
        let mut best = Offer {
            batch: 0,
            worth: 0.0,
        };
        for batch in first.max(self.shelf.base())..end {
            let worth = self.worth(batch);
            if worth > best.worth {
                best = Offer { batch, worth };
            }
        }
        if best.worth < self.settings.worth_min {
            return;
        }
        self.offer = Some(best);
        self.yield_to_rivals(now, best.worth);
    }

    /// Innovative receptions that a frame of the batch promises.
    fn worth(&self, batch: u32) -> f32 {
        let rank = self.shelf.rank(batch);
        if rank == 0 {
            return 0.0;
        }
        let (rank, full) = (rank as f32, self.id.packets(batch));
        let mut worth = 0.0;
        for customer in &self.customers {
            let guess = self.neighbours.guess(customer.node, batch);
            let lack = (rank - guess).clamp(0.0, 1.0);
            if lack <= 0.0 {
                continue;
            }
            let served = customer.better.iter().any(|&server| {
                server == self.source || self.neighbours.said(server, batch, full) as f32 > guess
            });
            worth += match served {
                true => lack * customer.weight * self.settings.charity,
                false => lack * customer.weight,
            };
        }
        worth
    }

    // whoever promises more goes first
    fn yield_to_rivals(&mut self, now: Instant, worth: f32) {
        let least = f32::from(urge(worth)) / self.settings.gate;
        for (_, rival) in self.neighbours.iter() {
            if rival.urge_until > now && f32::from(rival.urge) > least {
                self.yields_until = match self.yields_until {
                    Some(until) => Some(until.min(rival.urge_until)),
                    None => Some(rival.urge_until),
                };
            }
        }
    }

    /// Whether a data frame may go now.
    pub fn ready(&self) -> bool {
        self.offer.is_some() && self.yields_until.is_none()
    }

    /// Whether a report may go now.
    pub fn report_due(&self) -> bool {
        self.due
    }

    /// Whether a report goes before data: data had no room for all that this node should tell.
    pub fn report_first(&self) -> bool {
        self.due && self.untold
    }
}

/// Frames out.
impl Group {
    /// Writes a data frame; gives its length.
    pub fn write_data(
        &mut self,
        now: Instant,
        sdu: &mut [u8],
        random: &mut Stream,
    ) -> Option<usize> {
        let batch = self.offer?.batch;
        let rank = self.shelf.rank(batch) as f32;
        for customer in &self.customers {
            let chance = customer.chance;
            self.neighbours.count_on(customer.node, batch, chance, rank);
        }
        self.front = self.front.max(batch.saturating_add(1));
        self.evaluate(now);
        let mut states = [0; STATES_MAX];
        let most = self.settings.data_states.min(STATES_MAX);
        let (base, used) = self.states(now, states.get_mut(..most)?);
        let cut = report::is_cut(states.get(..used)?);
        let repr = self.head(base, states.get(..used)?);
        let len = repr.data_len(batch, self.payload);
        let open = repr.emit_data(batch, self.payload, sdu)?;
        if !self.shelf.write(batch, random, open.vector, open.payload) {
            // The application cannot read its object now: try again when something happens.
            self.offer = None;
            return None;
        }
        // Whoever sends data all the time has to tell the rest, too.
        let owed = self.report_at;
        self.untold = cut;
        self.spoken(now, random);
        if self.untold {
            self.speak_after(now, self.settings.report_interval, random);
            self.report_at = self.report_at.min(owed).or(self.report_at);
        }
        Some(len)
    }

    /// Writes a report frame; gives its length.
    pub fn write_report(
        &mut self,
        now: Instant,
        sdu: &mut [u8],
        random: &mut Stream,
    ) -> Option<usize> {
        let mut states = [0; STATES_MAX];
        let (base, used) = self.states(now, &mut states);
        let len = self.head(base, states.get(..used)?).emit_report(sdu)?;
        self.untold = false;
        self.spoken(now, random);
        Some(len)
    }

    fn head<'a>(&'a self, base: u32, states: &'a [u8]) -> HeadRepr<'a> {
        HeadRepr {
            source: self.source,
            object: self.id,
            plan: &self.plan,
            complete: &self.complete,
            urge: self.offer.map_or(0, |offer| urge(offer.worth)),
            nodes: self.links.nodes(),
            base,
            states,
        }
    }

    // each frame carries the sender's rank of the batches in flight
    fn states(&self, now: Instant, to: &mut [u8]) -> (u32, usize) {
        let end = self.id.batches;
        let wants_none = match self.role {
            Role::Source => true,
            Role::Receiver => false,
            Role::Relay => !self
                .customers
                .iter()
                .any(|customer| customer.behind && self.is_alive(customer.node, now)),
        };
        if wants_none {
            return (end, 0);
        }
        // A number of batches that a frame names is no limit: places are.
        let places_end = end.min(self.shelf.end());
        let base = self.first_wanted(now).unwrap_or(match self.role {
            Role::Receiver if self.shelf.is_whole() => end,
            // All places wait for the application: what comes after them is still missing.
            Role::Receiver => places_end,
            _ => self.front.max(self.shelf.base()),
        });
        // Others take what is not named for wanted, a window far. Where there is no room for it, or no need of it, this has
        // to be said: they would send it for ever, and with an urge that keeps those silent who have what is needed.
        let named = self.front.min(places_end).max(base);
        let ahead = named..base.saturating_add(self.settings.window).min(end);
        let unwanted = ahead.rev().find(|&batch| !self.wants(batch, now));
        let said = unwanted.map_or(named, |batch| batch.saturating_add(1));
        let states = (base..said).map(|batch| match self.wants(batch, now) {
            true => State::Rank(self.shelf.rank(batch) as u8),
            false => State::Satisfied,
        });
        (base, report::write(states, to))
    }

    fn spoken(&mut self, now: Instant, random: &mut Stream) {
        self.due = false;
        self.report_at = None;
        self.spoke = now;
        if self.plan.closed {
            return;
        }
        let owed = !self.complete.without(&self.confirmed).is_empty() && self.role != Role::Source;
        let asks = self.role == Role::Receiver && !self.complete.contains(self.me)
            || self.role == Role::Relay && self.takes_part()
            || self.is_agent(now);
        if owed || asks {
            self.speak_after(now, self.repeat, random);
            self.repeat = (self.repeat * 2).min(self.settings.repeat_max);
        }
    }

    /// A report so long after the last frame, give or take a quarter, unless one comes sooner anyway.
    fn speak_after(&mut self, now: Instant, after: Duration, random: &mut Stream) {
        let soon = now + self.settings.gossip.mul_f64(random.fraction());
        let at = self.spoke + after.mul_f64(0.75 + 0.5 * random.fraction());
        let at = at.max(soon);
        self.report_at = Some(self.report_at.map_or(at, |known| known.min(at)));
    }

    /// A report within a time from now.
    fn speak_within(&mut self, now: Instant, within: Duration, random: &mut Stream) {
        let at = now + within.mul_f64(random.fraction());
        self.report_at = Some(self.report_at.map_or(at, |known| known.min(at)));
    }

    /// Begins: the source's first look at its customers.
    pub fn begin(&mut self, now: Instant) {
        self.evaluate(now);
        if self.doubt_at.is_none() && !self.customers.is_empty() {
            self.doubt_at = Some(now + self.settings.doubt_min);
        }
    }

    /// The source serves others from now on.
    pub fn serve(&mut self, now: Instant, members: NodeSet, random: &mut Stream) {
        self.plan.number = self.plan.number.wrapping_add(1);
        self.plan.members = members;
        self.plan.closed = false;
        self.recruit();
        self.speak_within(now, self.settings.gossip, random);
        self.begin(now);
    }

    /// The source takes nothing for granted any more that was said of complete receivers.
    pub fn start_over(&mut self, now: Instant, random: &mut Stream) {
        self.plan.epoch = self.plan.epoch.wrapping_add(1);
        self.complete = NodeSet::EMPTY;
        self.agents = NodeSet::EMPTY;
        self.neighbours.forget();
        self.serve(now, self.plan.members, random);
    }

    /// Batches of which a node wants no more, as far as is known here.
    pub fn satisfied(&self, node: u16) -> u32 {
        match self.complete.contains(node) {
            true => self.id.batches,
            false => self
                .neighbours
                .get(node)
                .map_or(0, |neighbour| neighbour.base),
        }
    }

    /// Other delivery ratios and distances hold from now on.
    pub fn relink(&mut self, links: Arc<Links>, paths: Arc<Paths>) {
        self.neighbours.resize(links.nodes());
        (self.links, self.paths) = (links, paths);
        self.recruit();
    }

    /// A report is owed because something changed here.
    pub fn tell(&mut self, now: Instant, random: &mut Stream) {
        self.check_whole(now, random);
        self.follow_customers(now);
        self.speak_within(now, self.settings.gossip, random);
        self.evaluate(now);
    }

    /// The source's last word.
    pub fn close(&mut self, now: Instant, random: &mut Stream) {
        self.plan.closed = true;
        self.evaluate(now);
        self.speak_within(now, self.settings.gossip, random);
    }
}

/// Deadlines.
impl Group {
    /// The next deadline and its reason.
    pub fn deadline(&self) -> Option<(Instant, &'static str)> {
        let report = self.report_at.filter(|_| !self.due).map(|at| (at, REPORT));
        let gate = self.yields_until.map(|at| (at, YIELD));
        let doubt = self.doubt_at.map(|at| (at, DOUBT));
        [report, gate, doubt]
            .into_iter()
            .flatten()
            .min_by_key(|(at, _)| *at)
    }

    pub fn handle_timeout(&mut self, now: Instant) -> Option<&'static str> {
        let (at, why) = self.deadline()?;
        if at > now {
            return None;
        }
        if self.report_at.is_some_and(|at| at <= now) {
            self.due = true;
        }
        if self.doubt_at.is_some_and(|at| at <= now) {
            self.doubt(now);
        }
        self.evaluate(now);
        Some(why)
    }

    // silence is not knowledge
    fn doubt(&mut self, now: Instant) {
        self.doubt_at = None;
        if self.plan.closed || self.customers.is_empty() {
            return;
        }
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
            if due {
                let patience = neighbour.patience.max(least);
                neighbour.doubt_at = now + patience;
                neighbour.patience = (patience * 2).min(most);
            }
            next = next.min(neighbour.doubt_at);
            if due {
                self.neighbours.doubt(node);
            }
        }
        self.doubt_at = Some(next);
    }
}

const REPORT: &str = "report";
const YIELD: &str = "a neighbour goes first";
const DOUBT: &str = "a neighbour is silent";

/// A worth as it stands in a frame.
fn urge(worth: f32) -> u8 {
    (worth * 8.0).clamp(0.0, 255.0) as u8
}
