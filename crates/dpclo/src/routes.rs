//! Routes: every neighbour's route to every destination, and the best next hops.
//!
//! DSDV keeps only the best route. Here every neighbour's is kept, since packets may take the K best ones. A route is valid
//! while its destination's sequence number advances: after `lost_after` periods without a new one it is dead, until a newer
//! number arrives. A neighbour whose next hop is this node has no route for it ("poisoned reverse").
//!
//! The best next hop is *feasible* ([`Distance`]): the neighbour's route is newer or shorter than everything that this node
//! has advertised. Best next hops therefore never form a loop, whatever updates are lost (RFC 8966, 2.4). With
//! `feasible_only` this holds for all next hops. A node whose neighbours have unfeasible routes only is *starved*; it
//! requests a newer sequence number.

use alloc::vec::Vec;
use core::ops::Range;

use chappe_core::{Duration, Instant};

use crate::config::{NEXT_HOPS_MAX, Routing};
use crate::distance::{Distance, newer};
use crate::header::{Backlog, Cost, Metric, ROOM_MAX, Route};
use crate::links::Links;
use crate::shunned::{Places, Shunned};

/// All known destinations. A destination keeps its place as long as it is known.
#[derive(Clone, Debug)]
pub(crate) struct Routes {
    me: u16,
    routing: Routing,
    /// Whether next hops after the best one must be feasible, too.
    feasible_only: bool,
    destinations: Vec<Option<Destination>>,
    /// Node and place, in the order of nodes.
    index: Vec<(u16, u16)>,
    /// Each neighbour's route: row by row of destinations, one cell for each neighbour's place. Ranking reads whole rows, so what it
    /// does not need lies elsewhere.
    told: Vec<Told>,
    /// Each neighbour's queue, likewise.
    queues: Vec<QueueCell>,
    neighbours: usize,
    /// Places of starved destinations.
    starved: Vec<u16>,
    shunned: Shunned,
    /// Destinations for which there was no place.
    pub refused: u64,
}

/// A destination and its next hops.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Destination {
    pub node: u16,
    /// The newest sequence number received, and when.
    newest: u16,
    newest_at: Instant,
    /// No newer number came for too long.
    dead: bool,
    hops: [Hop; NEXT_HOPS_MAX],
    found: u8,
    /// The least distance that this node has advertised.
    advertised: Distance,
    /// The sequence number that a neighbour requested by this node, until it arrives.
    awaited: Option<u16>,
    /// The last request for a sequence number that left this node, when, and whether it was idle.
    requested: Option<(u16, Instant, bool)>,
    /// Whether packets wait for that number.
    pub hurries: bool,
    /// When a packet for it last left this node.
    pub used: Option<Instant>,
    /// K: how many of them may be used.
    pub k: u8,
    /// Must be in the next update.
    pub changed: bool,
    /// In how many updates after that one it must be, too.
    pub again: u8,
    /// While nothing that the ranking depends on has changed: the version of the links, and until when all routes are fresh.
    ranked: Option<(u32, Instant)>,
}

/// What a neighbour advertises for a destination.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Way {
    /// The number of the neighbour.
    pub node: u16,
    /// The distance to the destination by this neighbour, in ETX; `None` if it has withdrawn its route.
    pub distance: Option<f64>,
    /// Whether a route by this neighbour cannot lead back here (RFC 8966, 2.4).
    pub feasible: bool,
    /// Packets that wait at this neighbour for the destination, as it told last.
    pub backlog: f64,
}

/// A next hop towards a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hop {
    /// The place of the neighbour.
    pub place: u8,
    /// The metric from here to the destination, by this neighbour.
    pub cost: Metric,
    /// The metric that the neighbour advertised.
    pub rest: Metric,
    /// The sequence number that the neighbour advertised.
    seq: u16,
}

/// A route as a neighbour told it last.
#[derive(Clone, Copy, Debug)]
struct Told {
    heard: Instant,
    seq: u16,
    metric: Metric,
}

/// A queue as a neighbour told it last.
#[derive(Clone, Copy, Debug)]
struct QueueCell {
    backlog: Backlog,
    /// The room that it advertised, in packets, less the packets that it has received since.
    room: u8,
    /// The cost of its path to the destination.
    price: Cost,
    backlog_at: Instant,
}

/// The effect of an entry of a neighbour's update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RouteChange {
    /// Nothing that must be advertised.
    None,
    /// A newer sequence number: advertising it can wait a little.
    Newer,
    /// The destination became reachable or unreachable.
    Reach,
    /// The entry is for this node itself, with this sequence number.
    Own(u16),
}

const NO_HOP: Hop = Hop {
    place: 0,
    cost: Metric::NONE,
    rest: Metric::NONE,
    seq: 0,
};

const NOTHING: Told = Told {
    heard: Instant::ZERO,
    seq: 0,
    metric: Metric::NONE,
};

const BLANK: QueueCell = QueueCell {
    backlog: Backlog(0),
    room: ROOM_MAX,
    price: Cost::NONE,
    backlog_at: Instant::ZERO,
};

impl Routes {
    pub fn new(
        me: u16,
        routing: Routing,
        feasible_only: bool,
        destinations: u16,
        neighbours: u8,
    ) -> Routes {
        let (count, neighbours) = (usize::from(destinations), usize::from(neighbours));
        let (mut places, mut told) = (Vec::with_capacity(count), Vec::new());
        let mut queues = Vec::new();
        places.resize(count, None);
        told.resize(count * neighbours, NOTHING);
        queues.resize(count * neighbours, BLANK);
        Routes {
            me,
            routing,
            feasible_only,
            destinations: places,
            index: Vec::with_capacity(count),
            told,
            queues,
            neighbours,
            starved: Vec::with_capacity(count),
            shunned: Shunned::default(),
            refused: 0,
        }
    }

    /// The place of a known destination.
    pub fn find(&self, node: u16) -> Option<u16> {
        let at = self.index.binary_search_by_key(&node, |&(node, _)| node);
        self.index.get(at.ok()?).map(|&(_, place)| place)
    }

    /// All destinations with their places, by number.
    pub fn known(&self) -> impl Iterator<Item = (u16, u16)> + '_ {
        self.index.iter().copied()
    }

    /// The place of a destination, which is entered if new: at a free place, or at that of an unreachable destination that
    /// is `spare`.
    pub fn enter(&mut self, now: Instant, node: u16, spare: impl Fn(u16) -> bool) -> Option<u16> {
        if let Some(place) = self.find(node) {
            return Some(place);
        }
        let free = self.destinations.iter().position(Option::is_none);
        let out_of_reach = |(place, slot): (usize, &Option<Destination>)| {
            let lost = slot.is_some_and(|destination| destination.found == 0);
            (lost && spare(place as u16)).then_some(place)
        };
        let spare = || self.destinations.iter().enumerate().find_map(out_of_reach);
        let Some(place) = free.or_else(spare) else {
            self.refused = self.refused.saturating_add(1);
            return None;
        };
        self.index.retain(|&(_, other)| usize::from(other) != place);
        let at = self.index.partition_point(|&(other, _)| other < node);
        self.index.insert(at, (node, place as u16));
        *self.destinations.get_mut(place)? = Some(Destination::new(now, node));
        let row = self.row(place as u16);
        if let Some(told) = self.told.get_mut(row.clone()) {
            told.fill(NOTHING);
        }
        if let Some(queues) = self.queues.get_mut(row) {
            queues.fill(BLANK);
        }
        Some(place as u16)
    }

    pub fn get(&self, place: u16) -> Option<&Destination> {
        self.destinations.get(usize::from(place))?.as_ref()
    }

    pub fn get_mut(&mut self, place: u16) -> Option<&mut Destination> {
        self.destinations.get_mut(usize::from(place))?.as_mut()
    }

    /// Places of all destinations, in the order of their nodes.
    pub fn places(&self) -> impl Iterator<Item = u16> + '_ {
        self.index.iter().map(|&(_, place)| place)
    }

    /// Full updates are that far apart from now on.
    pub fn set_period(&mut self, period: Duration) {
        self.routing.period = period;
    }

    /// The number of known destinations.
    pub fn count(&self) -> usize {
        self.index.len()
    }

    /// The n-th place in the order of [`Routes::places`].
    pub fn place_at(&self, at: usize) -> Option<u16> {
        self.index.get(at).map(|&(_, place)| place)
    }

    /// The n-th destination in the order of [`Routes::places`].
    pub fn at_mut(&mut self, at: usize) -> Option<&mut Destination> {
        let &(_, place) = self.index.get(at)?;
        self.get_mut(place)
    }

    //= dpclo IV-E: DSDV with ETX as the metric
    /// Handles an entry of a neighbour's update.
    pub fn on_route(
        &mut self,
        now: Instant,
        neighbour: u8,
        route: Route,
        links: &Links,
        spare: impl Fn(u16) -> bool,
    ) -> RouteChange {
        if route.destination == self.me {
            return RouteChange::Own(route.seq);
        }
        // An unreachable destination that is not known needs no place.
        if !route.metric.exists() && self.find(route.destination).is_none() {
            return RouteChange::None;
        }
        let Some(place) = self.enter(now, route.destination, spare) else {
            return RouteChange::None;
        };
        // Poisoned reverse: the neighbour's route leads through this node.
        let metric = match route.via == self.me {
            true => Metric::NONE,
            false => route.metric,
        };
        let new = Told {
            heard: now,
            seq: route.seq,
            metric,
        };
        let ranked = match self.matters(now, place, neighbour, new, links) {
            true => None,
            false => self.get(place).and_then(|known| known.ranked),
        };
        self.tell(place, neighbour, |told| *told = new);
        if let Some(destination) = self.get_mut(place) {
            destination.ranked = ranked;
        }
        // A neighbour without a route is no evidence that the destination lives.
        let newer = route.metric.exists()
            && self
                .get_mut(place)
                .is_some_and(|destination| destination.on_sequence(now, route.seq));
        let reach = self.rank(now, place, links);
        // The number may have been heard before, by a neighbour whose route is no use or not the best. It is news as soon as this node's
        // own route has it.
        let own_news = || {
            let owes = |known: &Destination| known.has_awaited() || known.has_news_of(neighbour);
            self.routing.renews && self.get(place).is_some_and(owes)
        };
        match (reach, newer || own_news()) {
            (true, _) => RouteChange::Reach,
            (_, true) => RouteChange::Newer,
            _ => RouteChange::None,
        }
    }

    /// Ranks the next hops of a destination anew, if anything changed that they depend on. True if it became reachable or
    /// unreachable. Next hops that are shunned for it are used if no other neighbour has a route, first those that were shunned first. If
    /// others have unfeasible ones, it is starved, and asks for a newer number.
    pub fn rank(&mut self, now: Instant, place: u16, links: &Links) -> bool {
        let Some(destination) = self.get(place) else {
            return false;
        };
        if let Some((version, fresh_until)) = destination.ranked
            && version == links.version()
            && now <= fresh_until
        {
            return false;
        }
        let node = destination.node;
        let shunned = |most: usize| -> Places {
            let shunned = self.shunned.of(now, node).take(most);
            shunned.map(|(neighbour, _)| neighbour).collect()
        };
        let mut still = self.shunned.of(now, node).count();
        let mut ranking = self.ranking(now, (place, destination), links, shunned(still));
        while still > 0 && ranking.found == 0 && !ranking.starved {
            still -= 1;
            ranking = self.ranking(now, (place, destination), links, shunned(still));
        }
        // The one that is shunned no longer first is last.
        if let Some((_, until)) = self.shunned.of(now, node).last() {
            ranking.fresh_until = ranking.fresh_until.min(until);
        }
        let starved = ranking.starved && ranking.found == 0;
        let Some(destination) = self.get_mut(place) else {
            return false;
        };
        let changed = (destination.found == 0) != (ranking.found == 0);
        (destination.hops, destination.found) = (ranking.hops, ranking.found);
        destination.ranked = Some((links.version(), ranking.fresh_until));
        self.note_starved(place, starved);
        changed
    }

    /// Next hops to a destination by a neighbour are not used for a while, if there are others.
    pub fn shun(&mut self, now: Instant, place: u16, neighbour: u8, links: &Links) {
        let Some(destination) = self.get_mut(place) else {
            return;
        };
        destination.ranked = None;
        let node = destination.node;
        let gone = self.shunned.add(now, node, neighbour);
        if let Some(other) = gone.and_then(|node| self.find(node))
            && let Some(other) = self.get_mut(other)
        {
            other.ranked = None;
        }
        self.rank(now, place, links);
    }

    fn ranking(
        &self,
        now: Instant,
        (place, destination): (u16, &Destination),
        links: &Links,
        shunned: Places,
    ) -> Ranking {
        let mut ranking = Ranking {
            hops: [NO_HOP; NEXT_HOPS_MAX],
            found: 0,
            starved: false,
            fresh_until: Instant::MAX,
        };
        if destination.dead {
            return ranking;
        }
        let life = self.routing.period * u64::from(self.routing.lost_after);
        let oldest = now.saturating_before(life);
        // A destination's sequence number grows by 2 a period, so this is the same life in numbers: it rejects a neighbour that
        // repeats an old route in new updates.
        let behind_max = 2 * u16::from(self.routing.lost_after);
        let row = self.told.get(self.row(place)).unwrap_or_default();
        let (mut kept, mut best) = (Kept::default(), u32::MAX);
        for (neighbour, link) in links.usable() {
            let Some(told) = row.get(usize::from(neighbour)) else {
                continue;
            };
            let cost = told.metric.behind(link);
            let behind = destination.newest.wrapping_sub(told.seq);
            let is_shunned = shunned.contains(neighbour);
            if !cost.exists() || told.heard < oldest || behind > behind_max || is_shunned {
                continue;
            }
            ranking.fresh_until = ranking.fresh_until.min(told.heard + life);
            let key = u32::from(cost.0) << 8 | u32::from(neighbour);
            let feasible = told.distance().is_better_than(destination.advertised);
            ranking.starved |= !feasible;
            if feasible {
                best = best.min(key);
            }
            if feasible || !self.feasible_only {
                kept.insert(key);
            }
        }
        // Without a feasible next hop, whatever is left may lead back to this node.
        if best != u32::MAX {
            kept.bring_first(best);
            for (hop, &key) in ranking.hops.iter_mut().zip(kept.keys()) {
                let told = row.get(key as usize & 0xff).copied().unwrap_or(NOTHING);
                *hop = Hop {
                    place: key as u8,
                    cost: Metric((key >> 8) as u16),
                    rest: told.metric,
                    seq: told.seq,
                };
            }
            ranking.found = kept.found;
        }
        ranking
    }

    /// Whether a neighbour's new route may change the ranking, which holds otherwise. Most do not: they lead back here as before, or
    /// are worse than all that are kept.
    fn matters(&self, now: Instant, place: u16, neighbour: u8, new: Told, links: &Links) -> bool {
        let (Some(known), Some(old)) = (self.get(place), self.told(place, neighbour)) else {
            return true;
        };
        let Some((version, fresh_until)) = known.ranked else {
            return true;
        };
        if version != links.version() || now > fresh_until {
            return true;
        }
        if !old.metric.exists() && !new.metric.exists() {
            return false;
        }
        let kept = known.hops();
        let cost = links.metric(neighbour).behind(new.metric);
        let last = kept.iter().map(|hop| (hop.cost, hop.place)).max();
        let worse = last.is_some_and(|last| (cost, neighbour) > last);
        kept.len() < NEXT_HOPS_MAX || !worse || kept.iter().any(|hop| hop.place == neighbour)
    }

    fn note_starved(&mut self, place: u16, starved: bool) {
        match self.starved.iter().position(|&known| known == place) {
            None if starved => self.starved.push(place),
            Some(at) if !starved => {
                self.starved.swap_remove(at);
            }
            _ => {}
        }
    }

    /// Places of the destinations to which only unfeasible routes are known.
    pub fn starved(&self) -> &[u16] {
        &self.starved
    }

    /// The sequence number to ask for, if packets wait for a destination or were sent to it lately and its number is about to become too old,
    /// or no next hop is left.
    pub fn renewal(&self, now: Instant, place: u16, waits: bool) -> Option<u16> {
        let known = self.get(place)?;
        let (period, lost_after) = (self.routing.period, u64::from(self.routing.lost_after));
        let lately = |used| now.saturating_since(used) < period * lost_after;
        let busy = waits || known.used.is_some_and(lately);
        let old = now.saturating_since(known.newest_at) > period * lost_after.saturating_sub(1);
        (busy && (old || known.found == 0)).then(|| known.newest.wrapping_add(2))
    }

    /// Declares a destination dead if its sequence number has not advanced. True if it became unreachable.
    pub fn expire(&mut self, now: Instant, place: u16, links: &Links) -> bool {
        let life = self.routing.period * u64::from(self.routing.lost_after);
        let Some(destination) = self.get_mut(place) else {
            return false;
        };
        if now.saturating_since(destination.newest_at) > life && !destination.dead {
            (destination.dead, destination.ranked) = (true, None);
        }
        self.rank(now, place, links)
    }

    /// Forgets all information of a neighbour that has gone.
    pub fn forget(&mut self, neighbour: u8) {
        self.shunned.forget(neighbour);
        for place in 0..self.destinations.len() as u16 {
            self.tell(place, neighbour, |told| *told = NOTHING);
            if let Some(cell) = self.cell_mut(place, neighbour) {
                *cell = BLANK;
            }
        }
    }

    /// Records the advertised length of a neighbour's queue.
    pub fn set_backlog(&mut self, now: Instant, place: u16, neighbour: u8, backlog: Backlog) {
        if let Some(cell) = self.cell_mut(place, neighbour) {
            (cell.backlog, cell.backlog_at) = (backlog, now);
        }
    }

    /// The queue length that a neighbour advertised since `oldest`; zero if it did not.
    pub fn backlog(&self, oldest: Instant, place: u16, neighbour: u8) -> Backlog {
        match self.cell(place, neighbour) {
            Some(cell) if cell.backlog_at >= oldest => cell.backlog,
            _ => Backlog(0),
        }
    }

    /// Records a neighbour's advertised room, in packets.
    pub fn set_room(&mut self, place: u16, neighbour: u8, room: u8) {
        if let Some(cell) = self.cell_mut(place, neighbour) {
            cell.room = room;
        }
    }

    /// The room that a neighbour advertised since `oldest`, in packets; [`ROOM_MAX`] if it did not.
    pub fn room(&self, oldest: Instant, place: u16, neighbour: u8) -> u8 {
        match self.cell(place, neighbour) {
            Some(cell) if cell.backlog_at >= oldest => cell.room,
            _ => ROOM_MAX,
        }
    }

    /// Records the cost that a neighbour advertised with its queue.
    pub fn set_cost(&mut self, place: u16, neighbour: u8, cost: Cost) {
        if let Some(cell) = self.cell_mut(place, neighbour) {
            cell.price = cost;
        }
    }

    /// The cost that a neighbour advertised since `oldest`, if it did.
    pub fn cost(&self, oldest: Instant, place: u16, neighbour: u8) -> Option<f64> {
        let cell = self.cell(place, neighbour)?;
        cell.price.get().filter(|_| cell.backlog_at >= oldest)
    }

    /// Adds to a neighbour's queue a packet that it received but has not advertised yet.
    pub fn assume(&mut self, now: Instant, place: u16, neighbour: u8, more: Backlog) {
        if let Some(cell) = self.cell_mut(place, neighbour) {
            cell.backlog = Backlog(cell.backlog.0.saturating_add(more.0));
            cell.backlog_at = now;
        }
    }

    /// Takes one packet off a neighbour's room, likewise.
    pub fn take_room(&mut self, place: u16, neighbour: u8) {
        if let Some(cell) = self.cell_mut(place, neighbour) {
            cell.room = cell.room.saturating_sub(1);
        }
    }

    /// The entry of a destination in this node's update: the route over the best next hop, with the sequence number that came
    /// with it.
    pub fn entry(&self, place: u16, links: &Links) -> Option<Route> {
        let destination = self.get(place)?;
        let best = destination.hops().first();
        let via = best
            .and_then(|hop| links.get(hop.place))
            .map(|link| link.node);
        Some(Route {
            destination: destination.node,
            seq: best.map_or(destination.advertised.seq, |hop| hop.seq),
            metric: best.map_or(Metric::NONE, |hop| hop.cost),
            via: via.unwrap_or(self.me),
        })
    }

    /// The entry of a destination was sent. Next hops that are not feasible any more are lost.
    pub fn on_advertised(&mut self, now: Instant, place: u16, links: &Links) {
        if let Some(destination) = self.get_mut(place)
            && let Some(best) = destination.hops().first().copied()
        {
            if destination.advertised.advertise(best.seq, best.cost) {
                destination.ranked = None;
            }
            if destination.awaited.is_some_and(|seq| !newer(seq, best.seq)) {
                (destination.awaited, destination.hurries) = (None, false);
            }
            self.rank(now, place, links);
        }
    }

    /// The neighbour at `place` with the `n`-th best route of any kind, feasible or not, to ask for a newer one. `n` wraps
    /// around.
    pub fn nth_route(&self, place: u16, n: u8, links: &Links, except: Option<u8>) -> Option<u8> {
        let mut kept = Kept::default();
        for (neighbour, link) in links.usable().filter(|&(place, _)| Some(place) != except) {
            let Some(told) = self.told(place, neighbour) else {
                continue;
            };
            let cost = told.metric.behind(link);
            if cost.exists() {
                kept.insert(u32::from(cost.0) << 8 | u32::from(neighbour));
            }
        }
        let at = n.checked_rem(kept.found)?;
        kept.keys().get(usize::from(at)).map(|&key| key as u8)
    }

    /// What the neighbour at a place advertises for a destination; `None` if it never did.
    pub fn way(&self, place: u16, neighbour: u8, link: Metric) -> Option<Way> {
        let told = self.told(place, neighbour)?;
        if told.heard == Instant::ZERO {
            return None;
        }
        let cost = told.metric.behind(link);
        let cell = self.cell(place, neighbour)?;
        let advertised = self.get(place)?.advertised;
        Some(Way {
            node: 0,
            distance: cost.exists().then(|| cost.etx()),
            feasible: told.distance().is_better_than(advertised),
            backlog: cell.backlog.packets(),
        })
    }

    /// A neighbour sent a packet for a destination to this node: its own route leads here, so it cannot be a next hop,
    /// whatever it advertises. True if it was one.
    pub fn on_returned(&mut self, now: Instant, place: u16, neighbour: u8, links: &Links) -> bool {
        let used = self.get(place).is_some_and(|destination| {
            let mut hops = destination.hops().iter();
            hops.any(|hop| hop.place == neighbour)
        });
        if used {
            self.tell(place, neighbour, |told| told.metric = Metric::NONE);
            self.rank(now, place, links);
        }
        used
    }

    /// Where the cells of a destination are.
    fn row(&self, place: u16) -> Range<usize> {
        let start = usize::from(place) * self.neighbours;
        start..start + self.neighbours
    }

    fn told(&self, place: u16, neighbour: u8) -> Option<&Told> {
        self.told.get(self.row(place))?.get(usize::from(neighbour))
    }

    /// Changes a neighbour's route, so that the next hops are ranked anew.
    fn tell(&mut self, place: u16, neighbour: u8, change: impl FnOnce(&mut Told)) {
        let row = self.row(place);
        let row = self.told.get_mut(row).unwrap_or_default();
        if let Some(told) = row.get_mut(usize::from(neighbour)) {
            change(told);
        }
        if let Some(destination) = self.get_mut(place) {
            destination.ranked = None;
        }
    }

    fn cell(&self, place: u16, neighbour: u8) -> Option<&QueueCell> {
        let row = self.queues.get(self.row(place))?;
        row.get(usize::from(neighbour))
    }

    fn cell_mut(&mut self, place: u16, neighbour: u8) -> Option<&mut QueueCell> {
        let row = self.row(place);
        self.queues.get_mut(row)?.get_mut(usize::from(neighbour))
    }
}

impl Told {
    /// The distance that the neighbour advertised.
    fn distance(&self) -> Distance {
        Distance {
            seq: self.seq,
            metric: self.metric,
        }
    }
}

impl Destination {
    fn new(now: Instant, node: u16) -> Destination {
        Destination {
            node,
            newest: 0,
            newest_at: now,
            // Until its first sequence number arrives.
            dead: true,
            hops: [NO_HOP; NEXT_HOPS_MAX],
            found: 0,
            advertised: Distance::NONE,
            awaited: None,
            requested: None,
            hurries: false,
            used: None,
            k: 1,
            changed: false,
            again: 0,
            ranked: None,
        }
    }

    /// Handles a sequence number. True if it is newer.
    fn on_sequence(&mut self, now: Instant, seq: u16) -> bool {
        let first = self.dead && self.newest == 0;
        if !first && !newer(seq, self.newest) {
            return false;
        }
        (self.newest, self.newest_at, self.dead) = (seq, now, false);
        self.ranked = None;
        true
    }

    /// All next hops, best first.
    pub fn hops(&self) -> &[Hop] {
        self.hops.get(..usize::from(self.found)).unwrap_or_default()
    }

    /// The next hops in use: the first K.
    pub fn in_use(&self) -> &[Hop] {
        let hops = self.hops();
        hops.get(..usize::from(self.k)).unwrap_or(hops)
    }

    /// The sequence number that a starved node requests: one that follows all that it has advertised.
    pub fn wanted(&self) -> u16 {
        self.advertised.seq.wrapping_add(2)
    }

    /// Records that a request leaves this node. False if the same one left less than `gap` before; an idle one does not stand for one
    /// that is not.
    pub fn on_request(&mut self, now: Instant, (seq, idle): (u16, bool), gap: Duration) -> bool {
        let repeated = self.requested.is_some_and(|(known, at, was_idle)| {
            !newer(seq, known) && now.saturating_since(at) < gap && (idle || !was_idle)
        });
        if !repeated {
            self.requested = Some((seq, now, idle));
        }
        !repeated
    }

    /// A neighbour waits for this sequence number: the route that brings it is advertised at once.
    pub fn await_number(&mut self, seq: u16, hurries: bool) {
        if self.awaited.is_none_or(|known| newer(seq, known)) {
            self.awaited = Some(seq);
        }
        self.hurries |= hurries;
    }

    /// Whether the best route has a sequence number that a neighbour waits for.
    pub fn has_awaited(&self) -> bool {
        let best = self.hops().first();
        match (self.awaited, best) {
            (Some(seq), Some(best)) => !newer(seq, best.seq),
            _ => false,
        }
    }

    /// Whether the best route is this neighbour's, with a newer sequence number than this node has advertised.
    fn has_news_of(&self, neighbour: u8) -> bool {
        let best = self.hops().first();
        best.is_some_and(|best| best.place == neighbour && newer(best.seq, self.advertised.seq))
    }

    /// Whether there is a route with this sequence number or a newer one.
    pub fn reaches(&self, seq: u16) -> bool {
        let best = self.hops().first();
        best.is_some_and(|best| !newer(seq, best.seq))
    }

    /// The metric of the best route.
    pub fn metric(&self) -> Metric {
        self.hops().first().map_or(Metric::NONE, |hop| hop.cost)
    }
}

/// The next hops of a destination, ranked.
struct Ranking {
    hops: [Hop; NEXT_HOPS_MAX],
    found: u8,
    /// Whether any route is not feasible.
    starved: bool,
    /// When the first of the routes that were taken becomes too old, or the first next hop is shunned no longer.
    fresh_until: Instant,
}

/// The least keys, in order. A key is the cost of a next hop, and in its last octet the place of the neighbour: of equal costs the
/// lower place is first.
#[derive(Default)]
struct Kept {
    keys: [u32; NEXT_HOPS_MAX],
    found: u8,
}

impl Kept {
    fn keys(&self) -> &[u32] {
        self.keys.get(..usize::from(self.found)).unwrap_or_default()
    }

    /// Keeps a key; the largest is dropped if there are too many.
    fn insert(&mut self, key: u32) {
        let last = usize::from(self.found).min(NEXT_HOPS_MAX - 1);
        let full = usize::from(self.found) == NEXT_HOPS_MAX;
        match self.keys.get_mut(last) {
            Some(largest) if !full || *largest > key => *largest = key,
            _ => return,
        }
        self.found = last as u8 + 1;
        for at in (1..=last).rev() {
            match self.keys.get_mut(at - 1..=at) {
                Some([before, here]) if *before > *here => core::mem::swap(before, here),
                _ => return,
            }
        }
    }

    /// Moves a key to the front, or puts it there in place of the last one.
    fn bring_first(&mut self, key: u32) {
        let at = self.keys().iter().take_while(|&&kept| kept != key).count();
        let before = self.keys.get_mut(..=at.min(NEXT_HOPS_MAX - 1));
        if let Some(before) = before {
            before.rotate_right(1);
            if let Some(first) = before.first_mut() {
                *first = key;
            }
        }
        self.found = self.found.max(at as u8 + 1).min(NEXT_HOPS_MAX as u8);
    }
}

#[cfg(test)]
mod tests;
