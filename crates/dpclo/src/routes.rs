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

use chappe_core::{Duration, Instant};

use crate::config::{NEXT_HOPS_MAX, Routing};
use crate::distance::{Distance, newer};
use crate::header::{Backlog, Cost, Metric, ROOM_MAX, Route};
use crate::links::Links;
use crate::shunned::Shunned;

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
    /// Each neighbour's information: row by row of destinations, one cell for each neighbour's place.
    cells: Vec<Cell>,
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
    /// K: how many of them may be used.
    pub k: u8,
    /// Must be in the next update.
    pub changed: bool,
    /// Must be in the one after it, too.
    pub again: bool,
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

#[derive(Clone, Copy, Debug)]
struct Cell {
    seq: u16,
    metric: Metric,
    heard: Instant,
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

const BLANK: Cell = Cell {
    seq: 0,
    metric: Metric::NONE,
    heard: Instant::ZERO,
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
        let (mut places, mut cells) = (Vec::with_capacity(count), Vec::new());
        places.resize(count, None);
        cells.resize(count * neighbours, BLANK);
        Routes {
            me,
            routing,
            feasible_only,
            destinations: places,
            index: Vec::with_capacity(count),
            cells,
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
        self.row_mut(place as u16)
            .iter_mut()
            .for_each(|cell| *cell = BLANK);
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
        if let Some(cell) = self.cell_mut(place, neighbour) {
            (cell.seq, cell.metric, cell.heard) = (route.seq, metric, now);
        }
        // A neighbour without a route is no evidence that the destination lives.
        let newer = route.metric.exists()
            && self
                .get_mut(place)
                .is_some_and(|destination| destination.on_sequence(now, route.seq));
        match (self.rank(now, place, links), newer) {
            (true, _) => RouteChange::Reach,
            (_, true) => RouteChange::Newer,
            _ => RouteChange::None,
        }
    }

    /// Ranks the next hops of a destination anew. True if it became reachable or unreachable. Next hops that are shunned for it are
    /// used if no other neighbour has a route. If others have unfeasible ones, it is starved, and asks for a newer number.
    pub fn rank(&mut self, now: Instant, place: u16, links: &Links) -> bool {
        let Some(&Destination { node, found, .. }) = self.get(place) else {
            return false;
        };
        let shunned = self.shunned.of(now, node);
        let changed = self.rank_without(now, place, links, &shunned);
        let none = self.get(place).is_some_and(|known| known.found == 0);
        if shunned.is_empty() || !none || self.starved.contains(&place) {
            return changed;
        }
        self.rank_without(now, place, links, &[]);
        self.get(place)
            .is_some_and(|known| (known.found == 0) != (found == 0))
    }

    /// Next hops to a destination by a neighbour are not used for a while, if there are others.
    pub fn shun(&mut self, now: Instant, place: u16, neighbour: u8, links: &Links) {
        if let Some(node) = self.get(place).map(|known| known.node) {
            self.shunned.add(now, node, neighbour);
            self.rank(now, place, links);
        }
    }

    fn rank_without(&mut self, now: Instant, place: u16, links: &Links, shunned: &[u8]) -> bool {
        let Some(&destination) = self.get(place) else {
            return false;
        };
        let life = self.routing.period * u64::from(self.routing.lost_after);
        let (mut hops, mut found) = ([NO_HOP; NEXT_HOPS_MAX], 0u8);
        let (mut best, mut starved) = (NO_HOP, false);
        let row = self.row(place);
        for (neighbour, link) in links.usable() {
            let Some(cell) = row.get(usize::from(neighbour)) else {
                continue;
            };
            let behind = destination.newest.wrapping_sub(cell.seq);
            // A destination's sequence number grows by 2 a period, so the second test is the same life in numbers: it rejects
            // a neighbour that repeats an old route in new updates.
            let fresh = now.saturating_since(cell.heard) <= life
                && behind <= 2 * u16::from(self.routing.lost_after);
            let cost = cell.metric.behind(link);
            if destination.dead || !fresh || !cost.exists() || shunned.contains(&neighbour) {
                continue;
            }
            let hop = Hop {
                place: neighbour,
                cost,
                rest: cell.metric,
                seq: cell.seq,
            };
            let feasible = hop.distance().is_better_than(destination.advertised);
            starved |= !feasible;
            if feasible && hop.cost < best.cost {
                best = hop;
            }
            if feasible || !self.feasible_only {
                insert(&mut hops, &mut found, hop);
            }
        }
        match best.cost.exists() {
            // The best feasible next hop is first: its route is the one that this node advertises.
            true => {
                let kept = hops.iter().take(usize::from(found));
                let at = kept.take_while(|hop| hop.place != best.place).count();
                let before = hops.get_mut(..=at.min(NEXT_HOPS_MAX - 1));
                if let Some(first) = before.and_then(|before| {
                    before.rotate_right(1);
                    before.first_mut()
                }) {
                    *first = best;
                }
                found = found.max(at as u8 + 1).min(NEXT_HOPS_MAX as u8);
            }
            // Whatever is left may lead back to this node.
            false => found = 0,
        }
        let Some(destination) = self.get_mut(place) else {
            return false;
        };
        let changed = (destination.found == 0) != (found == 0);
        (destination.hops, destination.found) = (hops, found);
        self.note_starved(place, starved && found == 0);
        changed
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

    /// Declares a destination dead if its sequence number has not advanced. True if it became unreachable.
    pub fn expire(&mut self, now: Instant, place: u16, links: &Links) -> bool {
        let life = self.routing.period * u64::from(self.routing.lost_after);
        let Some(destination) = self.get_mut(place) else {
            return false;
        };
        if now.saturating_since(destination.newest_at) > life {
            destination.dead = true;
        }
        self.rank(now, place, links)
    }

    /// Forgets all information of a neighbour that has gone.
    pub fn forget(&mut self, neighbour: u8) {
        self.shunned.forget(neighbour);
        let rows = self.cells.chunks_exact_mut(self.neighbours.max(1));
        rows.filter_map(|row| row.get_mut(usize::from(neighbour)))
            .for_each(|cell| *cell = BLANK);
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
            destination.advertised.advertise(best.seq, best.cost);
            if destination.awaited.is_some_and(|seq| !newer(seq, best.seq)) {
                destination.awaited = None;
            }
            self.rank(now, place, links);
        }
    }

    /// The neighbour at `place` with the `n`-th best route of any kind, feasible or not, to ask for a newer one. `n` wraps
    /// around.
    pub fn nth_route(&self, place: u16, n: u8, links: &Links, except: Option<u8>) -> Option<u8> {
        let (mut hops, mut found) = ([NO_HOP; NEXT_HOPS_MAX], 0u8);
        for (neighbour, link) in links.usable().filter(|&(place, _)| Some(place) != except) {
            let Some(cell) = self.cell(place, neighbour) else {
                continue;
            };
            let cost = cell.metric.behind(link);
            if cost.exists() {
                let hop = Hop {
                    place: neighbour,
                    cost,
                    rest: cell.metric,
                    seq: cell.seq,
                };
                insert(&mut hops, &mut found, hop);
            }
        }
        let at = n.checked_rem(found)?;
        hops.get(usize::from(at)).map(|hop| hop.place)
    }

    /// What the neighbour at a place advertises for a destination; `None` if it never did.
    pub fn way(&self, place: u16, neighbour: u8, link: Metric) -> Option<Way> {
        let cell = self.cell(place, neighbour)?;
        if cell.heard == Instant::ZERO {
            return None;
        }
        let cost = cell.metric.behind(link);
        let hop = Hop {
            place: neighbour,
            cost,
            rest: cell.metric,
            seq: cell.seq,
        };
        let advertised = self.get(place)?.advertised;
        Some(Way {
            node: 0,
            distance: cost.exists().then(|| cost.etx()),
            feasible: hop.distance().is_better_than(advertised),
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
            if let Some(cell) = self.cell_mut(place, neighbour) {
                cell.metric = Metric::NONE;
            }
            self.rank(now, place, links);
        }
        used
    }

    fn row_mut(&mut self, place: u16) -> &mut [Cell] {
        let start = usize::from(place) * self.neighbours;
        let row = self.cells.get_mut(start..start + self.neighbours);
        row.unwrap_or_default()
    }

    fn row(&self, place: u16) -> &[Cell] {
        let start = usize::from(place) * self.neighbours;
        let row = self.cells.get(start..start + self.neighbours);
        row.unwrap_or_default()
    }

    fn cell(&self, place: u16, neighbour: u8) -> Option<&Cell> {
        self.row(place).get(usize::from(neighbour))
    }

    fn cell_mut(&mut self, place: u16, neighbour: u8) -> Option<&mut Cell> {
        self.row_mut(place).get_mut(usize::from(neighbour))
    }
}

impl Hop {
    /// The distance that the neighbour advertised.
    fn distance(&self) -> Distance {
        Distance {
            seq: self.seq,
            metric: self.rest,
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
            k: 1,
            changed: false,
            again: false,
        }
    }

    /// Handles a sequence number. True if it is newer.
    fn on_sequence(&mut self, now: Instant, seq: u16) -> bool {
        let first = self.dead && self.newest == 0;
        if !first && !newer(seq, self.newest) {
            return false;
        }
        (self.newest, self.newest_at, self.dead) = (seq, now, false);
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
    pub fn await_number(&mut self, seq: u16) {
        if self.awaited.is_none_or(|known| newer(seq, known)) {
            self.awaited = Some(seq);
        }
    }

    /// Whether the best route has a sequence number that a neighbour waits for.
    pub fn has_awaited(&self) -> bool {
        let best = self.hops().first();
        match (self.awaited, best) {
            (Some(seq), Some(best)) => !newer(seq, best.seq),
            _ => false,
        }
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

/// Inserts a hop in order of cost, after those of equal cost; the worst is dropped. Callers go through places in ascending order, so
/// hops of equal cost are in the order of places.
fn insert(hops: &mut [Hop; NEXT_HOPS_MAX], found: &mut u8, hop: Hop) {
    let last = usize::from(*found).min(NEXT_HOPS_MAX - 1);
    let full = usize::from(*found) == NEXT_HOPS_MAX;
    match hops.get_mut(last) {
        Some(worst) if !full || worst.cost > hop.cost => *worst = hop,
        _ => return,
    }
    *found = last as u8 + 1;
    for at in (1..=last).rev() {
        match hops.get_mut(at - 1..=at) {
            Some([before, here]) if before.cost > here.cost => core::mem::swap(before, here),
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests;
