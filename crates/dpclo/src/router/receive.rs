//! What the router does with each kind of received frame.

use chappe_core::{Address, Arrival, DropReason, Duration, Instant, Layer, TraceEvent};

use super::Router;
use crate::baseline::matching::Message;
use crate::distance;
use crate::header::{self, Backlog, Data, Frame, Prices, Probe, Round, Routes};
use crate::routes::RouteChange;
use crate::seen::{self, Key};
use crate::store::Packet;

impl Router {
    /// Handles a received or overheard frame.
    pub(super) fn on_frame(&mut self, now: Instant, arrival: Arrival<'_>) {
        let Some(from) = arrival.from.node_number().filter(|&from| from != self.me) else {
            return self.drop_frame(DropReason::NotForUs);
        };
        let pairs = self.rounds.is_some();
        match header::parse(arrival.sdu) {
            Ok(Frame::Probe(probe)) if !pairs => self.on_probe(now, from, &probe),
            Ok(Frame::Routes(update)) if !pairs => self.on_routes(now, from, &update),
            Ok(Frame::Report(report)) if !pairs => self.on_report(now, from, &report),
            Ok(Frame::Request(request)) if !pairs => match arrival.to == super::address(self.me) {
                true => self.on_request(now, from, request),
                // Overheard on its way to another node, or from a node that does not address its requests.
                false => self.drop_frame(DropReason::NotForUs),
            },
            Ok(Frame::Prices(round, prices)) if pairs => self.on_prices(now, from, round, &prices),
            Ok(Frame::Pairing(round, message)) if pairs => {
                self.on_pairing(now, from, round, message)
            }
            Ok(Frame::Data(data, payload)) => self.on_packet(now, from, arrival.to, &data, payload),
            Ok(Frame::Priced(data, stamp, payload)) => {
                self.on_stamp(now, from, &data, stamp);
                self.on_packet(now, from, arrival.to, &data, payload);
            }
            // A node that runs another scheme.
            Ok(_) => self.drop_frame(DropReason::NotForUs),
            Err(_) => self.drop_frame(DropReason::Malformed),
        }
    }

    /// Handles a packet for this node or another one.
    fn on_packet(&mut self, now: Instant, from: u16, to: Address, data: &Data, payload: &[u8]) {
        self.overhear(now, from, data);
        match to == super::address(self.me) {
            true => self.on_data(now, from, data, payload),
            false if to.is_broadcast() => self.drop_frame(DropReason::NotForUs),
            false => self.on_passing(now, to, data),
        }
    }

    /// DCLO: a neighbour advertises all its queues. Queues that it does not list are empty.
    fn on_prices(&mut self, now: Instant, from: u16, round: Round, prices: &Prices<'_>) {
        let Some(place) = self.links.enter(now, from) else {
            self.counters.neighbours_refused += 1;
            return self.drop_frame(DropReason::QueueFull);
        };
        self.links.on_heard(now, place);
        self.follow(now, round);
        for at in 0..self.routes.count() {
            if let Some(destination) = self.routes.place_at(at) {
                self.routes.set_backlog(now, destination, place, Backlog(0));
            }
        }
        for queue in prices.queues() {
            if let Some(destination) = self.destination(now, queue.destination) {
                self.routes
                    .set_backlog(now, destination, place, queue.backlog);
            }
        }
    }

    /// DCLO: a neighbour requests a pair, or announces one.
    fn on_pairing(&mut self, now: Instant, from: u16, round: Round, message: Message) {
        self.follow(now, round);
        let Some(rounds) = &mut self.rounds else {
            return;
        };
        match rounds.position(now).number == round.number {
            true => rounds.on_message(now, from, message),
            false => self.drop_frame(DropReason::Stale),
        }
    }

    fn follow(&mut self, now: Instant, round: Round) {
        if let Some(rounds) = &mut self.rounds
            && rounds.follow(now, round, &mut self.random)
        {
            self.counters.rounds += 1;
        }
    }

    fn on_probe(&mut self, now: Instant, from: u16, probe: &Probe<'_>) {
        let Some(place) = self.links.enter(now, from) else {
            self.counters.neighbours_refused += 1;
            return self.drop_frame(DropReason::QueueFull);
        };
        let ours = probe.counts().find(|count| count.node == self.me);
        let report = ours.map(|count| (count.received, count.of));
        self.links
            .on_probe(now, place, (probe.epoch, probe.number), report);
        for queue in probe.queues() {
            if let Some(destination) = self.routes.find(queue.destination) {
                self.routes
                    .set_backlog(now, destination, place, queue.backlog);
            }
        }
        self.on_tariff(now, from, probe);
        self.counters.probes_heard += 1;
    }

    fn on_routes(&mut self, now: Instant, from: u16, update: &Routes<'_>) {
        let Some(place) = self.links.enter(now, from) else {
            self.counters.neighbours_refused += 1;
            return self.drop_frame(DropReason::QueueFull);
        };
        self.counters.updates_heard += 1;
        let settle = self.settings.routing.settle;
        for route in update.iter() {
            let queues = &self.queues;
            let spare = |place: u16| {
                queues
                    .get(usize::from(place))
                    .is_none_or(super::Queue::is_idle)
            };
            let news = self.routes.on_route(now, place, route, &self.links, spare);
            match news {
                RouteChange::None => {}
                RouteChange::Own(seq) => self.on_own_number(now, seq),
                RouteChange::Newer => {
                    let place = self.routes.find(route.destination);
                    let known = place.and_then(|place| self.routes.get(place));
                    let awaited = known.is_some_and(|known| known.has_awaited());
                    let hurries = awaited && known.is_some_and(|known| known.hurries);
                    let delay = match awaited {
                        true => Duration::ZERO,
                        false => settle,
                    };
                    if hurries
                        && let Some(known) = place.and_then(|place| self.routes.get_mut(place))
                    {
                        known.again = known.again.max(self.settings.routing.reach_repeats);
                    }
                    self.advertise_soon(now, route.destination, delay);
                    if hurries && self.settings.routing.renews {
                        self.hurry_update(now);
                    }
                }
                RouteChange::Reach => {
                    if let Some(place) = self.routes.find(route.destination) {
                        self.advertise_reach(now, place);
                    }
                }
            }
        }
        self.ask(now);
    }

    /// A neighbour knows a newer sequence number of this node than the node itself: it has restarted, and must exceed
    /// that number for its updates to be accepted.
    fn on_own_number(&mut self, now: Instant, seq: u16) {
        if distance::newer(seq, self.seq) {
            self.seq = seq.wrapping_add(2);
            self.request_update(now, Duration::ZERO);
        }
    }

    fn advertise_soon(&mut self, now: Instant, destination: u16, delay: Duration) {
        let place = self.routes.find(destination);
        if let Some(known) = place.and_then(|place| self.routes.get_mut(place)) {
            known.changed = true;
            self.request_update(now, delay);
        }
    }

    //= dpclo IV-A: nodes listen to their neighbours' transmissions for the lengths of their queues
    fn overhear(&mut self, now: Instant, from: u16, data: &Data) {
        let place = self.links.find(from);
        let destination = self.routes.find(data.destination);
        let (Some(place), Some(destination)) = (place, destination) else {
            return;
        };
        self.routes
            .set_backlog(now, destination, place, data.backlog);
        self.routes.set_room(destination, place, data.room);
        self.bits.on_packet(now, place, data.congested);
        let parent = self
            .routes
            .get(destination)
            .and_then(|known| known.hops().first());
        if parent.is_some_and(|parent| parent.place == place)
            && let Some(source) = self
                .sources
                .iter_mut()
                .find(|own| own.node == data.destination)
        {
            source.rate.on_forwarded(now, data.source);
        }
    }

    /// A packet for another node was overheard: one more waits there, unless that node is the destination.
    fn on_passing(&mut self, now: Instant, to: Address, data: &Data) {
        self.counters.overheard += 1;
        let place = to.node_number().and_then(|node| self.links.find(node));
        let destination = self.routes.find(data.destination);
        let ends = to.node_number() == Some(data.destination);
        if let (Some(place), Some(destination), false) = (place, destination, ends) {
            self.count_on(now, destination, place, self.settings.extras.count_sent);
        }
    }

    fn on_data(&mut self, now: Instant, from: u16, data: &Data, payload: &[u8]) {
        self.reporter.on_frame(header::DATA + payload.len());
        self.trace.push(TraceEvent::Received {
            layer: Layer::Link,
            from: super::address(from),
            bytes: payload.len() as u32,
        });
        match (data.destination == self.me, data.empty) {
            (_, true) => self.on_empty(now, data),
            (true, false) => self.on_arrived(now, data, payload),
            (false, false) => self.on_relay(now, from, data, payload),
        }
    }

    /// An empty packet moves one unit of queue length to this node; at the destination it disappears.
    fn on_empty(&mut self, now: Instant, data: &Data) {
        self.counters.empty_received += 1;
        let place = self.routes.find(data.destination);
        let limit = self.settings.queues.limit;
        let Some(place) = place.filter(|_| data.destination != self.me) else {
            return;
        };
        if let Some(queue) = self.queues.get_mut(usize::from(place)) {
            // A bound against faulty neighbours: a correct one stops when this queue is longer than its own.
            queue.floating = queue
                .floating
                .saturating_add(1)
                .min(limit.saturating_mul(8));
            self.queue_changed(now, place);
            self.review_soon(now);
        }
    }

    fn on_arrived(&mut self, now: Instant, data: &Data, payload: &[u8]) {
        let flow = (data.source, data.flow);
        match self.flows.enter(now, flow, data.epoch, data.number) {
            seen::Arrival::New => {}
            seen::Arrival::Copy => {
                self.counters.losses.copies += 1;
                return self.drop_frame(DropReason::Duplicate);
            }
            seen::Arrival::Old => {
                self.counters.losses.old += 1;
                return self.drop_frame(DropReason::Stale);
            }
        }
        let packet = Packet {
            hop_limit: data.hop_limit,
            ..received(now, data)
        };
        // A quarter of the store at most: an application that takes no packets must not stop the forwarding.
        let full = self.undelivered() >= (self.settings.room.packets / 4).max(1);
        let place = match full {
            true => None,
            false => self.store.keep(packet, payload),
        };
        let Some(place) = place else {
            self.counters.losses.inbox_full += 1;
            return self.drop_frame(DropReason::QueueFull);
        };
        if let Some(airtime) = &mut self.airtime {
            airtime.on_end(now);
        }
        self.counters.delivered += 1;
        self.counters.delivered_octets += payload.len() as u64;
        self.trace.push(TraceEvent::Delivered {
            flow: u32::from(data.source) << 16 | u32::from(data.flow),
            bytes: payload.len() as u32,
        });
        self.hold_or_deliver(place, data);
    }

    /// Delivers a packet that is in order; holds one that is early, if resequencing is on.
    fn hold_or_deliver(&mut self, place: u16, data: &Data) {
        let next = self
            .flows
            .find_mut(data.source, data.flow)
            .map(|flow| flow.next);
        let ahead = next.map_or(0, |next| data.number.wrapping_sub(next));
        // A packet from before `next`, which was given up, is delivered late: order is best effort.
        let early = ahead > 0 && ahead < 1 << 31;
        if self.settings.extras.resequence.is_some() && early {
            self.counters.held += 1;
            return self.store.push_last(&mut self.held, place);
        }
        self.deliver(place);
        self.deliver_next(data.source, data.flow);
    }

    /// Delivers a packet to the application. Missing packets before it are given up.
    fn deliver(&mut self, place: u16) {
        if let Some(packet) = self.store.packet(place).copied()
            && let Some(flow) = self.flows.find_mut(packet.source, packet.flow)
        {
            let after = packet.number.wrapping_add(1);
            if follows(after, flow.next) {
                flow.next = after;
            }
        }
        self.store.push_last(&mut self.inbox, place);
    }

    /// Delivers the held packets that follow the packet just delivered.
    fn deliver_next(&mut self, source: u16, flow: u16) {
        while let Some(next) = self.flows.find_mut(source, flow).map(|flow| flow.next) {
            let is_next = |place: &u16| {
                let packet = self.store.packet(*place);
                packet.is_some_and(|p| (p.source, p.flow, p.number) == (source, flow, next))
            };
            let Some(place) = self.store.places(&self.held).find(is_next) else {
                return;
            };
            self.store.remove(&mut self.held, place);
            self.deliver(place);
        }
    }

    /// Delivers packets that have waited long enough for their predecessors, the lowest numbers of a flow first.
    pub(super) fn deliver_late(&mut self, now: Instant) {
        while self.held_until().is_some_and(|until| until <= now) {
            let Some(oldest) = self.held.first().and_then(|place| self.store.packet(place)) else {
                return;
            };
            let (source, flow) = (oldest.source, oldest.flow);
            let mut lowest: Option<(u32, u16)> = None;
            for place in self.store.places(&self.held) {
                let Some(packet) = self.store.packet(place) else {
                    continue;
                };
                let same = (packet.source, packet.flow) == (source, flow);
                if same && lowest.is_none_or(|(number, _)| follows(number, packet.number)) {
                    lowest = Some((packet.number, place));
                }
            }
            let Some((_, place)) = lowest else { return };
            self.store.remove(&mut self.held, place);
            self.deliver(place);
            self.deliver_next(source, flow);
        }
    }

    /// When the packet that was held longest must be delivered.
    pub(super) fn held_until(&self) -> Option<Instant> {
        let wait = self.settings.extras.resequence?;
        let oldest = self.store.packet(self.held.first()?)?;
        Some(oldest.came + wait)
    }

    /// A packet came from `from`. If that is a next hop for the packet, or if the packet has been here before, the next hop's
    /// route leads through this node: it has advertised a false distance or restarted, since feasible routes do not. It is no
    /// next hop until it advertises anew (after RPL's check of the data path, RFC 6550, 11.2).
    fn check_path(&mut self, now: Instant, from: u16, key: Key, destination: u16) {
        let (place, sender) = (self.routes.find(destination), self.links.find(from));
        let (Some(place), true) = (place, self.settings.next_hops.feasible_only) else {
            return;
        };
        let back = key.source == self.me || self.seen.has_returned(key);
        let known = self.routes.get(place);
        let best = known.and_then(|known| known.hops().first().map(|hop| hop.place));
        for neighbour in [sender, best.filter(|_| back)].into_iter().flatten() {
            if self.routes.on_returned(now, place, neighbour, &self.links) {
                self.counters.returned += 1;
                self.ask(now);
            }
        }
    }

    fn on_relay(&mut self, now: Instant, from: u16, data: &Data, payload: &[u8]) {
        if data.hop_limit <= 1 {
            self.counters.losses.hop_limit += 1;
            return self.drop_frame(DropReason::RetryLimit);
        }
        let key = Key {
            source: data.source,
            flow: data.flow,
            number: data.number,
            epoch: data.epoch,
            hop_limit: data.hop_limit,
        };
        if self.seen.enter(key) || self.seen.has_copy(key) {
            self.counters.losses.copies += 1;
            return self.drop_frame(DropReason::Duplicate);
        }
        self.check_path(now, from, key, data.destination);
        // If there is no place for the destination, `destination` counts the packet as refused.
        let taken = self
            .destination(now, data.destination)
            .is_some_and(|place| {
                let packet = Packet {
                    hop_limit: data.hop_limit - 1,
                    ..received(now, data)
                };
                self.enqueue(now, place, packet, payload)
            });
        match taken {
            true => self.counters.relayed += 1,
            false => self.seen.forget(key),
        }
    }
}

fn received(now: Instant, data: &Data) -> Packet {
    Packet {
        source: data.source,
        destination: data.destination,
        flow: data.flow,
        number: data.number,
        epoch: data.epoch,
        first: data.first,
        came: now,
        ..Packet::default()
    }
}

/// Whether one packet number follows another.
fn follows(number: u32, than: u32) -> bool {
    let ahead = number.wrapping_sub(than);
    ahead != 0 && ahead < 1 << 31
}
