//! Costs of paths in airtime: what this node hears of them, computes and tells.

use chappe_core::Instant;

use super::Router;
use crate::header::{self, Cost, Data, Probe, Share, Stamp, Tariff};
use crate::routes::Hop;

impl Router {
    /// The cost of a packet from here to a destination by the best route, if rates follow it and there is a route.
    pub(super) fn cost_to(&self, now: Instant, place: u16) -> Option<f64> {
        let hop = self.routes.get(place)?.hops().first()?;
        self.cost_by(now, place, hop)
    }

    /// Whether the next hop after the `k` in use is worth opening: its path costs no more than the best route. Without prices
    /// of airtime it always is.
    pub(super) fn pays(&self, now: Instant, place: u16, k: usize) -> bool {
        let known = self.routes.get(place);
        let Some(hop) = known.and_then(|known| known.hops().get(k)) else {
            return true;
        };
        match (self.cost_to(now, place), self.cost_by(now, place, hop)) {
            (Some(best), Some(other)) => other <= best,
            _ => true,
        }
    }

    fn cost_by(&self, now: Instant, place: u16, hop: &Hop) -> Option<f64> {
        let airtime = self.airtime.as_ref()?;
        let destination = self.routes.get(place)?;
        let node = self.links.get(hop.place)?.node;
        let octets = header::DATA + header::STAMP + usize::from(self.settings.room.payload);
        let each = airtime.cost(octets);
        let here = self.links.etx(hop.place)? * each;
        if node == destination.node {
            return Some(here);
        }
        let oldest = now.saturating_before(self.settings.queues.backlog_life);
        // What the next hop has not told is taken to cost as much as here.
        let rest = self.routes.cost(oldest, place, hop.place);
        Some(here + rest.unwrap_or(hop.rest.etx() * each))
    }

    /// What a data frame tells of this node.
    pub(super) fn stamp(&self, now: Instant, place: u16) -> Option<Stamp> {
        let share = self.airtime.as_ref()?.own();
        let cost = self.cost_to(now, place).map_or(Cost::NONE, Cost::new);
        Some(Stamp { share, cost })
    }

    /// A data frame of a neighbour was received or overheard, with its stamp.
    pub(super) fn on_stamp(&mut self, now: Instant, from: u16, data: &Data, stamp: Stamp) {
        let Some(airtime) = &mut self.airtime else {
            return;
        };
        airtime.on_share(now, from, stamp.share, 1);
        let places = (self.routes.find(data.destination), self.links.find(from));
        if let (Some(place), Some(neighbour)) = places {
            self.routes.set_cost(place, neighbour, stamp.cost);
        }
    }

    /// A neighbour's probe tells its share, those of its neighbours, and its costs.
    pub(super) fn on_tariff(&mut self, now: Instant, from: u16, probe: &Probe<'_>) {
        let (Some(airtime), Some(tariff)) = (&mut self.airtime, probe.tariff()) else {
            return;
        };
        airtime.on_share(now, from, tariff.own, 1);
        for (count, share) in probe.counts().zip(tariff.shares()) {
            if count.node != self.me && share != Share::default() {
                airtime.on_share(now, count.node, share, 2);
            }
        }
        for (node, share) in tariff.far().filter(|&(node, _)| node != self.me) {
            airtime.on_share(now, node, share, 3);
        }
        let Some(neighbour) = self.links.find(from) else {
            return;
        };
        for (queue, cost) in probe.queues().zip(tariff.costs()) {
            if let Some(place) = self.routes.find(queue.destination) {
                self.routes.set_cost(place, neighbour, cost);
            }
        }
    }

    /// Writes the tariff into a probe of `len` octets, over its padding. Returns the probe's length.
    pub(super) fn write_tariff(
        &self,
        now: Instant,
        queues: &[Option<header::Queue>],
        len: usize,
        sdu: &mut [u8],
    ) -> Option<usize> {
        let Some(airtime) = &self.airtime else {
            return Some(len);
        };
        let counts = self.links.counts(now);
        let told = queues.iter().flatten();
        let start =
            header::PROBE + header::COUNT * counts.count() + header::QUEUE * told.clone().count();
        let shares = self.links.counts(now).map(|count| airtime.of(count.node));
        let costs = told.map(|queue| {
            let place = self.routes.find(queue.destination);
            let cost = place.and_then(|place| self.cost_to(now, place));
            cost.map_or(Cost::NONE, Cost::new)
        });
        let end = Tariff::emit(airtime.own(), shares, costs, airtime.far(), (start, sdu))?;
        Some(len.max(end))
    }

    /// A frame of this node was on the air.
    pub(super) fn spend(&mut self, attempts: u8, octets: usize) {
        if let Some(airtime) = &mut self.airtime {
            airtime.spend(attempts, octets);
        }
    }

    /// Updates this node's price, if it is time.
    pub(super) fn update_price(&mut self, now: Instant) {
        let due = |airtime: &crate::airtime::Airtime| airtime.next_update() <= now;
        if !self.airtime.as_ref().is_some_and(due) {
            return;
        }
        let waiting = self.waiting_here() as f64;
        let airtime = self.airtime.as_mut();
        if airtime.is_some_and(|airtime| airtime.update(now, waiting)) {
            self.on_begin(now);
        }
    }
}
