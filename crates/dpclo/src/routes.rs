//! Routes: every neighbour's route to every destination, and the best next hops.
//!
//! DSDV keeps only the best route. Here every neighbour's is kept, since packets may take the K best ones. A route is valid
//! while its destination's sequence number advances: after `lost_after` periods without a new one it is dead, until a newer
//! number arrives. A neighbour whose next hop is this node has no route for it ("poisoned reverse"). Longer loops are
//! possible while updates spread; the hop limit ends them.

use alloc::vec::Vec;

use chappe_core::Instant;

use crate::config::{NEXT_HOPS_MAX, Routing};
use crate::header::{Backlog, Metric, ROOM_MAX, Route};
use crate::links::Links;

/// All known destinations. A destination keeps its place as long as it is known.
#[derive(Clone, Debug)]
pub(crate) struct Routes {
    me: u16,
    routing: Routing,
    downhill: bool,
    destinations: Vec<Option<Destination>>,
    /// Node and place, in the order of nodes.
    index: Vec<(u16, u16)>,
    /// Each neighbour's information: row by row of destinations, one cell for each neighbour's place.
    cells: Vec<Cell>,
    neighbours: usize,
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
    /// K: how many of them may be used.
    pub k: u8,
    /// Must be in the next update.
    pub changed: bool,
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
}

#[derive(Clone, Copy, Debug)]
struct Cell {
    seq: u16,
    metric: Metric,
    heard: Instant,
    backlog: Backlog,
    /// The room that it advertised, in packets, less the packets that it has received since.
    room: u8,
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
};

const BLANK: Cell = Cell {
    seq: 0,
    metric: Metric::NONE,
    heard: Instant::ZERO,
    backlog: Backlog(0),
    room: ROOM_MAX,
    backlog_at: Instant::ZERO,
};

impl Routes {
    pub fn new(
        me: u16,
        routing: Routing,
        downhill: bool,
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
            downhill,
            destinations: places,
            index: Vec::with_capacity(count),
            cells,
            neighbours,
            refused: 0,
        }
    }

    /// The place of a known destination.
    pub fn find(&self, node: u16) -> Option<u16> {
        let at = self.index.binary_search_by_key(&node, |&(node, _)| node);
        self.index.get(at.ok()?).map(|&(_, place)| place)
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

    /// Ranks the next hops of a destination anew. True if it became reachable or unreachable.
    pub fn rank(&mut self, now: Instant, place: u16, links: &Links) -> bool {
        let Some(&destination) = self.get(place) else {
            return false;
        };
        let life = self.routing.period * u64::from(self.routing.lost_after);
        let (mut hops, mut found) = ([NO_HOP; NEXT_HOPS_MAX], 0u8);
        for (neighbour, link) in links.usable() {
            let Some(cell) = self.cell(place, neighbour) else {
                continue;
            };
            let behind = destination.newest.wrapping_sub(cell.seq);
            // A destination's sequence number grows by 2 a period, so the second test is the same life in numbers: it rejects
            // a neighbour that repeats an old route in new updates.
            let fresh = now.saturating_since(cell.heard) <= life
                && behind <= 2 * u16::from(self.routing.lost_after);
            let cost = cell.metric.behind(link);
            if destination.dead || !fresh || !cost.exists() {
                continue;
            }
            let hop = Hop {
                place: neighbour,
                cost,
                rest: cell.metric,
            };
            insert(&mut hops, &mut found, hop);
        }
        if self.downhill {
            let own = hops.first().map_or(Metric::NONE, |best| best.cost);
            let kept = hops
                .iter()
                .take(usize::from(found))
                .filter(|hop| hop.rest <= own);
            let (mut near, mut count) = ([NO_HOP; NEXT_HOPS_MAX], 0u8);
            kept.for_each(|&hop| insert(&mut near, &mut count, hop));
            (hops, found) = (near, count);
        }
        let Some(destination) = self.get_mut(place) else {
            return false;
        };
        let changed = (destination.found == 0) != (found == 0);
        (destination.hops, destination.found) = (hops, found);
        changed
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

    /// The entry of a destination in this node's update.
    pub fn entry(&self, place: u16, links: &Links) -> Option<Route> {
        let destination = self.get(place)?;
        let best = destination.hops().first();
        let via = best
            .and_then(|hop| links.get(hop.place))
            .map(|link| link.node);
        Some(Route {
            destination: destination.node,
            seq: destination.newest,
            metric: best.map_or(Metric::NONE, |hop| hop.cost),
            via: via.unwrap_or(self.me),
        })
    }

    fn row_mut(&mut self, place: u16) -> &mut [Cell] {
        let start = usize::from(place) * self.neighbours;
        let row = self.cells.get_mut(start..start + self.neighbours);
        row.unwrap_or_default()
    }

    fn cell(&self, place: u16, neighbour: u8) -> Option<&Cell> {
        let neighbour = usize::from(neighbour);
        let at = usize::from(place) * self.neighbours + neighbour;
        self.cells.get(at).filter(|_| neighbour < self.neighbours)
    }

    fn cell_mut(&mut self, place: u16, neighbour: u8) -> Option<&mut Cell> {
        self.row_mut(place).get_mut(usize::from(neighbour))
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
            k: 1,
            changed: false,
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

    /// The metric of the best route.
    pub fn metric(&self) -> Metric {
        self.hops().first().map_or(Metric::NONE, |hop| hop.cost)
    }
}

/// Whether one sequence number follows another: less than half the number space ahead.
pub(crate) fn newer(seq: u16, than: u16) -> bool {
    let ahead = seq.wrapping_sub(than);
    ahead != 0 && ahead < 0x8000
}

/// Inserts a hop in order of cost, then place; the worst is dropped.
fn insert(hops: &mut [Hop; NEXT_HOPS_MAX], found: &mut u8, hop: Hop) {
    let count = usize::from(*found);
    let better = |other: &Hop| (other.cost, other.place) <= (hop.cost, hop.place);
    let at = hops
        .iter()
        .take(count)
        .take_while(|other| better(other))
        .count();
    // The last one is dropped to make room. If all are better, the new hop itself is.
    let after = hops.get_mut(at..).unwrap_or_default();
    if let Some(last) = after.last_mut() {
        *last = hop;
        after.rotate_right(1);
        *found = (count + 1).min(NEXT_HOPS_MAX) as u8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Settings;
    use chappe_core::Duration;

    const NOW: Instant = Instant::from_millis(3000);

    /// Node 0 with neighbours 1, 2, 3 at ETX 1, 2, 1.
    fn links() -> Links {
        let mut links = Links::new(Settings::paper().probes, 4);
        for (node, heard) in [(1, 10), (2, 5), (3, 10)] {
            let place = links.enter(Instant::ZERO, node).unwrap();
            for n in 0..10 {
                links.on_probe(NOW, place, (1, n), Some((heard, 10)));
            }
            links.update(NOW, place);
        }
        links
    }

    fn routes() -> Routes {
        Routes::new(0, Settings::paper().routing, false, 4, 4)
    }

    fn route(destination: u16, seq: u16, etx: f64, via: u16) -> Route {
        Route {
            destination,
            seq,
            metric: Metric::from_etx(etx),
            via,
        }
    }

    fn on_route(routes: &mut Routes, now: Instant, neighbour: u8, entry: Route) -> RouteChange {
        routes.on_route(now, neighbour, entry, &links(), |_| true)
    }

    fn ranked(routes: &Routes, node: u16) -> Vec<(u8, f64)> {
        let destination = routes.get(routes.find(node).unwrap()).unwrap();
        let hop = |hop: &Hop| (hop.place, hop.cost.etx());
        destination.hops().iter().map(hop).collect()
    }

    #[test]
    fn next_hops_are_ranked_by_the_whole_path() {
        let mut routes = routes();
        assert_eq!(
            on_route(&mut routes, NOW, 0, route(9, 2, 3.0, 5)),
            RouteChange::Reach
        );
        assert_eq!(
            on_route(&mut routes, NOW, 1, route(9, 4, 1.0, 9)),
            RouteChange::Newer
        );
        assert_eq!(
            on_route(&mut routes, NOW, 2, route(9, 4, 2.5, 5)),
            RouteChange::None
        );
        assert_eq!(ranked(&routes, 9), [(1, 3.0), (2, 3.5), (0, 4.0)]);
        let entry = routes.entry(routes.find(9).unwrap(), &links()).unwrap();
        assert_eq!(entry, route(9, 4, 3.0, 2));
        // Neighbour 1's route leads back here, then it has none.
        on_route(&mut routes, NOW, 1, route(9, 4, 1.0, 0));
        assert_eq!(ranked(&routes, 9), [(2, 3.5), (0, 4.0)]);
        let mut gone = route(9, 4, 0.0, 0);
        gone.metric = Metric::NONE;
        on_route(&mut routes, NOW, 2, gone);
        assert_eq!(ranked(&routes, 9), [(0, 4.0)]);
        assert_eq!(on_route(&mut routes, NOW, 0, gone), RouteChange::Reach);
    }

    /// Of more neighbours than can be kept the nearest are, in whatever order they come.
    #[test]
    fn the_best_of_many_are_kept() {
        let mut random = chappe_core::Seed(1).stream(chappe_core::Purpose::Trial(7));
        for _ in 0..200 {
            let mut costs: Vec<u16> = (0..20).map(|_| random.below(30) as u16).collect();
            let (mut hops, mut found) = ([NO_HOP; NEXT_HOPS_MAX], 0);
            for (place, &cost) in costs.iter().enumerate() {
                let (place, cost) = (place as u8, Metric(cost));
                let rest = Metric::ZERO;
                insert(&mut hops, &mut found, Hop { place, cost, rest });
            }
            costs.sort_unstable();
            assert!(
                hops.iter()
                    .map(|hop| hop.cost.0)
                    .eq(costs.into_iter().take(NEXT_HOPS_MAX))
            );
            assert_eq!(usize::from(found), NEXT_HOPS_MAX);
        }
    }

    #[test]
    fn downhill_leaves_detours_out() {
        let mut routes = Routes::new(0, Settings::paper().routing, true, 4, 4);
        on_route(&mut routes, NOW, 0, route(9, 2, 1.0, 9));
        on_route(&mut routes, NOW, 2, route(9, 2, 2.0, 9));
        on_route(&mut routes, NOW, 1, route(9, 2, 2.5, 9));
        assert_eq!(
            ranked(&routes, 9),
            [(0, 2.0), (2, 3.0)],
            "equally far is allowed"
        );
    }

    #[test]
    fn a_route_dies_with_its_sequence_numbers_and_comes_back_with_a_newer_one() {
        let (mut routes, links) = (routes(), links());
        on_route(&mut routes, NOW, 0, route(9, 2, 1.0, 9));
        let place = routes.find(9).unwrap();
        let life = Duration::from_secs(45);
        // The neighbour goes on telling, but the number does not move.
        let late = NOW + life;
        on_route(&mut routes, late, 0, route(9, 2, 1.0, 9));
        assert!(!routes.expire(late, place, &links));
        assert!(routes.expire(late + Duration::from_millis(1), place, &links));
        assert_eq!(
            on_route(&mut routes, late, 2, route(9, 2, 1.0, 9)),
            RouteChange::None
        );
        assert_eq!(
            on_route(&mut routes, late, 2, route(9, 4, 1.0, 9)),
            RouteChange::Reach
        );
    }

    #[test]
    fn routes_that_are_far_behind_do_not_count() {
        let mut routes = routes();
        on_route(&mut routes, NOW, 0, route(9, 2, 1.0, 9));
        on_route(&mut routes, NOW, 2, route(9, 8, 3.0, 9));
        assert_eq!(ranked(&routes, 9).len(), 2);
        on_route(&mut routes, NOW, 2, route(9, 10, 3.0, 9));
        assert_eq!(ranked(&routes, 9), [(2, 4.0)]);
        // Numbers go round.
        assert!(newer(1, u16::MAX - 3) && !newer(u16::MAX - 3, 1) && !newer(4, 4));
    }

    #[test]
    fn a_full_table_gives_up_what_is_out_of_reach_only() {
        let mut routes = routes();
        (1..5).for_each(|node| {
            assert_eq!(
                on_route(&mut routes, NOW, 0, route(node, 2, 1.0, 9)),
                RouteChange::Reach
            )
        });
        assert_eq!(
            on_route(&mut routes, NOW, 0, route(5, 2, 1.0, 9)),
            RouteChange::None
        );
        assert_eq!((routes.find(5), routes.refused), (None, 1));
        let mut gone = route(3, 4, 0.0, 0);
        gone.metric = Metric::NONE;
        on_route(&mut routes, NOW, 0, gone);
        assert_eq!(
            on_route(&mut routes, NOW, 0, route(5, 2, 1.0, 9)),
            RouteChange::Reach
        );
        assert_eq!(routes.find(3), None);
        assert_eq!(
            on_route(&mut routes, NOW, 0, route(0, 7, 1.0, 9)),
            RouteChange::Own(7)
        );
    }

    #[test]
    fn what_was_told_is_forgotten_after_a_while() {
        let mut routes = routes();
        on_route(&mut routes, NOW, 0, route(9, 2, 1.0, 9));
        let place = routes.find(9).unwrap();
        routes.set_backlog(NOW, place, 0, Backlog(80));
        assert_eq!(routes.backlog(NOW, place, 0), Backlog(80));
        assert_eq!(routes.backlog(NOW, place, 1), Backlog(0));
        routes.assume(NOW, place, 0, Backlog(16));
        assert_eq!(routes.backlog(NOW, place, 0), Backlog(96));
        assert_eq!(
            routes.backlog(NOW + Duration::from_millis(1), place, 0),
            Backlog(0)
        );
        routes.forget(0);
        assert_eq!(routes.backlog(NOW, place, 0), Backlog(0));
    }
}
