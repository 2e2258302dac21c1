//! Sent frames and their outcomes; the queues.

use chappe_core::{Address, Class, Classes, DropReason, Duration, Instant, LinkSend, Outcome};

use super::{IN_FLIGHT_MAX, InFlight, Pin, Router, address};
use crate::config::Scheme;
use crate::header::{self, Backlog, Data, Metric, Prices, Probe, QUEUES_MAX, Queue, Route, Routes};
use crate::store::Packet;

/// The token of frames whose outcome is ignored.
pub(super) const NO_TOKEN: u32 = 0;

impl Router {
    /// Writes the control frame that is due: request, probe, update, report or pairing message, in this order.
    pub(super) fn send_control(&mut self, now: Instant, sdu: &mut [u8]) -> Option<LinkSend> {
        if let Some(send) = self.write_request(now, sdu) {
            self.counters.control_octets += send.len as u64;
            self.spend(1, send.len);
            return Some(send);
        }
        let len = match self.probe_ready {
            true => self.write_probe(now, sdu),
            false if self.update_ready => self.write_update(now, sdu),
            false if self.reporter.is_due() => self.write_report(now, sdu),
            false => self.write_pairing(now, sdu),
        }?;
        self.counters.control_octets += len as u64;
        self.spend(1, len);
        Some(LinkSend {
            to: Address::BROADCAST,
            len,
            class: Class::Control,
            mode: None,
            token: NO_TOKEN,
        })
    }

    //= dpclo IV-A: probes carry a number and how many of each neighbour's were received
    fn write_probe(&mut self, now: Instant, sdu: &mut [u8]) -> Option<usize> {
        self.probe_ready = false;
        let longest = self.longest(now);
        let told = longest.iter().flatten().copied();
        let counts = self.links.counts(now);
        let (octets, head) = (self.settings.probes.octets, (self.epoch, self.probe_number));
        let len = Probe::emit(head, counts, told, octets, sdu)?;
        let len = self.write_tariff(now, &longest, len, sdu)?;
        self.probe_number = self.probe_number.wrapping_add(1);
        for queue in longest.iter().flatten() {
            if let Some(place) = self.routes.find(queue.destination) {
                self.note_reported(place, queue.backlog);
            }
        }
        self.counters.probes_sent += 1;
        Some(len)
    }

    /// DCLO: the queues at the beginning of a round, or a pairing message.
    fn write_pairing(&mut self, now: Instant, sdu: &mut [u8]) -> Option<usize> {
        let rounds = self.rounds.as_mut()?;
        let round = rounds.position(now);
        if !core::mem::take(&mut rounds.advertise) {
            if !rounds.has_message() {
                return None;
            }
            let message = rounds.matcher.poll()?;
            self.counters.pairing_sent += 1;
            return header::emit_pairing(round, message, sdu);
        }
        let active = &self.active;
        for (place, queue) in (0..).zip(&mut self.queues) {
            queue.round_backlog = match active.contains(&place) {
                true => Backlog::from_packets(queue.len()),
                false => Backlog(0),
            };
        }
        let (routes, queues) = (&self.routes, &self.queues);
        let told = active.iter().filter_map(|&place| {
            let queue = queues.get(usize::from(place))?;
            Some(Queue {
                destination: routes.get(place)?.node,
                backlog: queue.round_backlog,
            })
        });
        Prices::emit(round, told, sdu)
    }

    /// The longest queues, longest first.
    fn longest(&self, now: Instant) -> [Option<Queue>; QUEUES_MAX] {
        let mut longest: [Option<Queue>; QUEUES_MAX] = [None; QUEUES_MAX];
        for &place in &self.active {
            let Some(destination) = self.routes.get(place) else {
                continue;
            };
            let queue = Queue {
                destination: destination.node,
                backlog: Backlog::from_packets(self.backlog(now, place)),
            };
            let longer =
                |known: &Option<Queue>| known.is_some_and(|known| known.backlog >= queue.backlog);
            let at = longest.iter().take_while(|known| longer(known)).count();
            let after = longest.get_mut(at..).unwrap_or_default();
            if let Some(last) = after.last_mut() {
                *last = Some(queue);
                after.rotate_right(1);
            }
        }
        longest
    }

    //= dpclo IV-E: routes are advertised as in DSDV, with sums of ETX
    fn write_update(&mut self, now: Instant, sdu: &mut [u8]) -> Option<usize> {
        let own = Route {
            destination: self.me,
            seq: self.seq,
            metric: Metric::ZERO,
            via: self.me,
        };
        let len = {
            let (routes, links) = (&self.routes, &self.links);
            let is_changed = |place: &u16| routes.get(*place).is_some_and(|known| known.changed);
            let told = routes.places().filter(is_changed);
            let told = told.filter_map(|place| routes.entry(place, links));
            Routes::emit(&mut core::iter::once(own).chain(told), sdu)?
        };
        // Routes that fitted the frame are done; the rest goes into the next one.
        let written = (len.saturating_sub(header::ROUTES) / header::ROUTE).saturating_sub(1);
        let (mut done, mut rest, mut again) = (0, false, self.own_again > 0);
        self.own_again = self.own_again.saturating_sub(1);
        for at in 0..self.routes.count() {
            let Some(known) = self.routes.at_mut(at).filter(|known| known.changed) else {
                continue;
            };
            let fitted = done < written;
            rest |= !fitted;
            let repeats = known.again > 0;
            (known.changed, again) = (!fitted || repeats, again || fitted && repeats);
            known.again = known.again.saturating_sub(u8::from(fitted));
            if let Some(place) = self.routes.place_at(at).filter(|_| done < written) {
                self.routes.on_advertised(now, place, &self.links);
            }
            done += 1;
        }
        self.update_ready = rest;
        self.updated_at = Some(now);
        self.counters.updates_sent += 1;
        if again {
            self.request_update(now, Duration::ZERO);
        }
        Some(len)
    }

    /// Sends the packet of the largest price, if the `allowed` classes permit.
    pub(super) fn send_data(
        &mut self,
        now: Instant,
        allowed: Classes,
        sdu: &mut [u8],
    ) -> Option<LinkSend> {
        let choice = self.choose(now)?;
        // The packet may use channel access won for its own class or a less urgent one, never for a more urgent one.
        let mut classes = Class::BY_URGENCY.into_iter();
        let class = classes.find(|&class| allowed.contains(class) && class <= choice.class)?;
        let node = self.links.get(choice.neighbour)?.node;
        let place = self.dequeue(now, choice.destination);
        let packet = place.and_then(|place| self.store.packet(place)).copied();
        let header = self.header(now, choice.destination, packet.as_ref())?;
        let payload = place.map_or(&[][..], |place| self.store.payload(place));
        let stamp = self.stamp(now, choice.destination);
        let Some(len) = header.emit_with(stamp, payload, sdu) else {
            // The driver's buffer is shorter than its caps state: the packet stays queued.
            if let Some(place) = place {
                self.put_back(now, choice.destination, place);
            }
            return None;
        };
        if let Some(known) = self.routes.get_mut(choice.destination) {
            known.used = Some(now);
        }
        self.count_sent(choice.detour, packet.is_none());
        self.reporter.on_frame(len);
        self.bits.sent(choice.neighbour);
        if let Some(packet) = &packet {
            self.pin(now, packet, choice.neighbour);
        }
        let token = self.note_in_flight(InFlight {
            token: 0,
            packet: place,
            destination: choice.destination,
            neighbour: choice.neighbour,
            node,
            octets: len as u16,
        });
        Some(LinkSend {
            to: address(node),
            len,
            class,
            mode: self.settings.mode,
            token,
        })
    }

    /// The header of a data frame; of an empty packet if there is none.
    fn header(&self, now: Instant, destination: u16, packet: Option<&Packet>) -> Option<Data> {
        let node = self.routes.get(destination)?.node;
        //= dpclo IV-A: each packet carries the number of packets that wait behind it
        let backlog = Backlog::from_packets(self.backlog(now, destination));
        Some(Data {
            hop_limit: packet.map_or(1, |packet| packet.hop_limit),
            first: packet.is_some_and(|packet| packet.first),
            source: packet.map_or(self.me, |packet| packet.source),
            destination: node,
            flow: packet.map_or(0, |packet| packet.flow),
            number: packet.map_or(0, |packet| packet.number),
            backlog,
            congested: self.is_congested(),
            empty: packet.is_none(),
            room: self.room(destination),
            epoch: packet.map_or(self.epoch, |packet| packet.epoch),
        })
    }

    fn count_sent(&mut self, detour: bool, empty: bool) {
        let counters = &mut self.counters;
        match empty {
            true => counters.empty_sent += 1,
            false => counters.data_sent += 1,
        }
        counters.detours += u64::from(detour);
    }

    /// Records the next hop of a packet's flow.
    fn pin(&mut self, now: Instant, packet: &Packet, neighbour: u8) {
        let Some(rule) = self.settings.extras.pins else {
            return;
        };
        let pin = Pin {
            source: packet.source,
            flow: packet.flow,
            neighbour,
            used: now,
        };
        let same = |known: &&mut Pin| (known.source, known.flow) == (pin.source, pin.flow);
        if let Some(known) = self.pins.iter_mut().find(same) {
            let moved = known.neighbour != neighbour;
            let busy = now.saturating_since(known.used) <= rule.gap;
            self.counters.repinned += u64::from(moved && busy);
            *known = pin;
        } else if self.pins.len() < usize::from(self.settings.room.flows) {
            self.pins.push(pin);
        } else if let Some(oldest) = self.pins.iter_mut().min_by_key(|pin| pin.used) {
            *oldest = pin;
        }
    }

    /// Records that the link holds a packet. Returns its token.
    fn note_in_flight(&mut self, flight: InFlight) -> u32 {
        self.tokens = self.tokens.wrapping_add(1).max(1);
        let token = self.tokens;
        // Takes a free place. If there is none, the link failed to report a packet; the oldest is taken for it.
        let age = |flight: &Option<InFlight>| {
            flight.map_or(u32::MAX, |old| token.wrapping_sub(old.token))
        };
        let place = (0..IN_FLIGHT_MAX).max_by_key(|&at| self.in_flight.get(at).map(age));
        if let Some(slot) = place.and_then(|at| self.in_flight.get_mut(at)) {
            let forgotten = slot.replace(InFlight { token, ..flight });
            if let Some(old) = forgotten {
                self.counters.losses.unanswered += u64::from(old.packet.is_some());
                self.release_in_flight(old);
            }
        }
        if let Some(queue) = self.queues.get_mut(usize::from(flight.destination)) {
            queue.in_flight += 1;
        }
        token
    }

    /// Releases a packet that the link held and that is done with.
    fn release_in_flight(&mut self, flight: InFlight) {
        if let Some(queue) = self.queues.get_mut(usize::from(flight.destination)) {
            queue.in_flight = queue.in_flight.saturating_sub(1);
        }
        if let Some(packet) = flight.packet {
            self.store.release(packet);
        }
    }

    /// Handles the link's report of a frame's outcome.
    pub(super) fn on_sent(&mut self, now: Instant, token: u32, outcome: Outcome) {
        let is =
            |flight: &&mut Option<InFlight>| flight.is_some_and(|flight| flight.token == token);
        let slot = self.in_flight.iter_mut().find(is);
        let Some(flight) = slot.and_then(Option::take) else {
            return;
        };
        let attempts = match outcome {
            Outcome::Acknowledged { attempts } | Outcome::Failed { attempts } => attempts,
            Outcome::Unconfirmed => 1,
        };
        self.counters.attempts += u64::from(attempts);
        self.spend(attempts, usize::from(flight.octets));
        let (known, acknowledged) = (
            self.links.get(flight.neighbour),
            matches!(outcome, Outcome::Acknowledged { .. }),
        );
        if known.is_some_and(|link| link.node == flight.node) {
            self.links
                .on_attempts(now, flight.neighbour, attempts, acknowledged);
        }
        match outcome {
            Outcome::Acknowledged { .. } | Outcome::Unconfirmed => self.on_confirmed(now, flight),
            Outcome::Failed { .. } => self.on_failed(now, flight),
        }
    }

    fn on_confirmed(&mut self, now: Instant, flight: InFlight) {
        self.release_in_flight(flight);
        let destination = self.routes.get(flight.destination).map(|known| known.node);
        let arrived = destination == Some(flight.node);
        let source = self
            .sources
            .iter_mut()
            .find(|source| Some(source.node) == destination);
        if let Some(source) = source.filter(|_| arrived) {
            source.rate.on_forwarded(now, self.me);
        }
        let counts =
            self.settings.extras.count_sent || matches!(self.settings.scheme, Scheme::Dclo(_));
        if !arrived {
            self.count_on(now, flight.destination, flight.neighbour, counts);
        }
    }

    /// A neighbour received a packet. Until it advertises anew, it has room for one less and, if `counts`, one more waits
    /// there.
    pub(super) fn count_on(&mut self, now: Instant, destination: u16, neighbour: u8, counts: bool) {
        self.routes.take_room(destination, neighbour);
        if counts {
            let one = Backlog::from_packets(1.0);
            self.routes.assume(now, destination, neighbour, one);
        }
    }

    /// The link gave a packet up: its ETX grows, and the packet is queued again, perhaps for another next hop.
    fn on_failed(&mut self, now: Instant, flight: InFlight) {
        self.counters.link_failures += 1;
        let same = self
            .links
            .get(flight.neighbour)
            .is_some_and(|link| link.node == flight.node);
        if same {
            self.links.on_failure(flight.neighbour);
            // The link's ETX grew, so another next hop may be better now.
            self.rank_all(now);
            self.ask(now);
        }
        let Some(place) = flight.packet else {
            return self.release_in_flight(flight);
        };
        let failures_max = self.settings.queues.failures_max;
        let Some(packet) = self.store.packet_mut(place) else {
            return self.release_in_flight(flight);
        };
        // Counted per packet, not per link: another next hop gets what is left of the limit.
        packet.failures = packet.failures.saturating_add(1);
        if packet.failures >= failures_max {
            self.counters.losses.link += 1;
            self.drop_frame(DropReason::RetryLimit);
            return self.release_in_flight(flight);
        }
        if let Some(queue) = self.queues.get_mut(usize::from(flight.destination)) {
            queue.in_flight = queue.in_flight.saturating_sub(1);
        }
        self.put_back(now, flight.destination, place);
    }

    /// Puts a packet back at the head of its queue.
    fn put_back(&mut self, now: Instant, destination: u16, place: u16) {
        let Some(queue) = self.queues.get_mut(usize::from(destination)) else {
            return self.store.release(place);
        };
        self.store.push_first(&mut queue.list, place);
        self.queue_changed(now, destination);
    }

    /// Takes the next packet of a queue. An empty queue loses one floating packet instead, which gives `None`.
    fn dequeue(&mut self, now: Instant, destination: u16) -> Option<u16> {
        let queue = self.queues.get_mut(usize::from(destination))?;
        let place = self.store.pop_first(&mut queue.list);
        if place.is_none() {
            queue.floating = queue.floating.saturating_sub(1);
        }
        self.queue_changed(now, destination);
        place
    }

    /// Puts a packet into the queue of its destination. False, and counted as a loss, if there is no room.
    pub(super) fn enqueue(
        &mut self,
        now: Instant,
        destination: u16,
        packet: Packet,
        payload: &[u8],
    ) -> bool {
        let lifo = self.settings.extras.lifo;
        if self.room(destination) == 0 && !(lifo && self.push_out(destination)) {
            self.counters.losses.queue_full += 1;
            self.drop_frame(DropReason::QueueFull);
            return false;
        }
        self.order = self.order.wrapping_add(1);
        let packet = Packet {
            order: self.order,
            ..packet
        };
        let Some(place) = self.store.keep(packet, payload) else {
            self.counters.losses.store_full += 1;
            self.drop_frame(DropReason::QueueFull);
            return false;
        };
        let Some(queue) = self.queues.get_mut(usize::from(destination)) else {
            self.store.release(place);
            return false;
        };
        match (packet.first, lifo) {
            (true, _) => self.store.push_ahead(&mut queue.list, place),
            (false, true) => self.store.push_first(&mut queue.list, place),
            (false, false) => self.store.push_last(&mut queue.list, place),
        }
        self.queue_changed(now, destination);
        self.review_soon(now);
        let patient = self.settings.routing.patience > Duration::ZERO;
        if patient && self.routes.starved().contains(&destination) {
            // An idle request may be on its way.
            self.ask(now);
        }
        true
    }

    /// LIFO: drops the oldest packet, which still counts in the queue's length.
    fn push_out(&mut self, destination: u16) -> bool {
        let Some(queue) = self.queues.get_mut(usize::from(destination)) else {
            return false;
        };
        let Some(place) = self.store.pop_last(&mut queue.list) else {
            return false;
        };
        queue.floating = queue.floating.saturating_add(1);
        self.store.release(place);
        self.counters.losses.pushed_out += 1;
        true
    }

    /// A queue changed: updates its smoothed length and the list of active queues.
    pub(super) fn queue_changed(&mut self, now: Instant, destination: u16) {
        let weight = self.settings.extras.smoothing;
        let Some(queue) = self.queues.get_mut(usize::from(destination)) else {
            return;
        };
        queue.smooth = weight * queue.smooth + (1.0 - weight) * queue.len();
        let has = queue.has_something();
        match self.active.iter().position(|&place| place == destination) {
            None if has => self.active.push(destination),
            Some(at) if !has => {
                self.active.swap_remove(at);
            }
            _ => {}
        }
        self.compare_with_reported(now, destination);
    }

    /// Drops packets that have waited too long.
    pub(super) fn drop_old(&mut self, now: Instant) {
        let age_max = self.settings.queues.age_max;
        let lifo = self.settings.extras.lifo;
        let mut at = 0;
        while let Some(&place) = self.active.get(at) {
            let too_old = |packet: &Packet| now.saturating_since(packet.came) > age_max;
            if !self.oldest(place).is_some_and(too_old) {
                at += 1;
                continue;
            }
            let Some(queue) = self.queues.get_mut(usize::from(place)) else {
                return;
            };
            let popped = match lifo {
                true => self.store.pop_last(&mut queue.list),
                false => self.store.pop_first(&mut queue.list),
            };
            if let Some(popped) = popped {
                self.store.release(popped);
                self.counters.losses.age += 1;
                self.drop_frame(DropReason::Stale);
            }
            self.queue_changed(now, place);
        }
    }

    /// A destination became reachable or unreachable: neighbours must know.
    pub(super) fn advertise_reach(&mut self, now: Instant, place: u16) {
        let repeats = self.settings.routing.reach_repeats;
        if let Some(known) = self.routes.get_mut(place) {
            (known.changed, known.again) = (true, repeats);
            self.request_update(now, Duration::ZERO);
        }
    }

    /// Schedules an update that packets wait for.
    pub(super) fn hurry_update(&mut self, now: Instant) {
        self.update_from(now);
    }

    /// Schedules an update after at most `delay`, but no sooner than the gap between updates allows.
    pub(super) fn request_update(&mut self, now: Instant, delay: Duration) {
        let gap = self.settings.routing.gap;
        let earliest = self.updated_at.map_or(now, |before| before + gap);
        self.update_from((now + delay).max(earliest));
    }

    /// Schedules an update within the jitter after `earliest`, if none comes sooner.
    fn update_from(&mut self, earliest: Instant) {
        let jitter = self.settings.routing.jitter.nanos().saturating_add(1);
        let at = earliest + Duration::from_nanos(self.random.below(jitter));
        self.timers.update = Some(self.timers.update.map_or(at, |before| before.min(at)));
    }
}
