//! Requests for newer sequence numbers (RFC 8966, 3.8.1.2 and 3.8.2.1).
//!
//! A node that has unfeasible routes only asks the neighbour with the best of them. Neighbours pass the request on along
//! their routes, until a node has a route that is new enough, or the destination itself increases its number. The route then
//! comes back in updates, which are not delayed.

use chappe_core::{Address, Class, Duration, Instant, LinkSend};

use super::send::NO_TOKEN;
use super::{Queue, Router, address};
use crate::distance::newer;
use crate::header::Request;
use crate::routes::Destination;

/// Requests that wait for the link. A starved node asks again, so that one that finds no room is only late.
const WAITING_MAX: usize = 8;
/// Requests that wait for a frame to ride in.
const RIDERS_MAX: usize = 32;
/// The most requests that wait in either list.
pub(super) const ALL_MAX: usize = WAITING_MAX + RIDERS_MAX;

/// Time until an unanswered request is repeated, to the next best neighbour; and the time for which a node does not pass the
/// same request on again. RFC 8966, appendix B, has an initial timeout of 2 s, doubled at each of three repetitions, and sends
/// to all neighbours at once; ours go to one, so they are repeated at the same pace without end.
const REPEAT: Duration = Duration::from_secs(2);

/// A request for one neighbour.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub to: u16,
    pub request: Request,
    /// When it leaves, if no frame has left before in which it could ride.
    pub due: Instant,
}

impl Router {
    /// Requests newer numbers for the destinations that are starved, those that were not asked for lately. Where requests renew routes,
    /// destinations of packets come first: there is not room for all.
    pub(super) fn ask(&mut self, now: Instant) {
        if !self.settings.routing.renews {
            return self.ask_some(now, |_| true);
        }
        self.ask_some(now, Queue::has_something);
        self.ask_some(now, |queue| !queue.has_something());
    }

    /// The same as [`Self::ask`] and [`Self::renew`] for destinations of packets only.
    pub(super) fn ask_for_packets(&mut self, now: Instant) {
        self.ask_some(now, Queue::has_something);
        for at in 0..self.active.len() {
            let Some(&place) = self.active.get(at) else {
                return;
            };
            self.renew_one(now, place);
        }
    }

    fn ask_some(&mut self, now: Instant, which: impl Fn(&Queue) -> bool) {
        for at in 0..self.routes.starved().len() {
            let Some(&place) = self.routes.starved().get(at) else {
                return;
            };
            let wanted = self.routes.get(place).map(Destination::wanted);
            let queue = self.queues.get(usize::from(place));
            if let (Some(seq), true) = (wanted, queue.is_some_and(&which)) {
                self.ask_for(now, place, seq);
            }
        }
    }

    /// Requests newer numbers for the destinations of packets before their routes expire (RFC 8966, 3.8.2.3), and if they have.
    pub(super) fn renew(&mut self, now: Instant) {
        if !self.settings.routing.renews {
            return;
        }
        for at in 0..self.routes.count() {
            let Some(place) = self.routes.place_at(at) else {
                return;
            };
            self.renew_one(now, place);
        }
    }

    fn renew_one(&mut self, now: Instant, place: u16) {
        let queue = self.queues.get(usize::from(place));
        let waits = queue.is_some_and(Queue::has_something);
        if let Some(seq) = self.routes.renewal(now, place, waits) {
            self.ask_for(now, place, seq);
        }
    }

    fn ask_for(&mut self, now: Instant, place: u16, seq: u16) {
        let queue = self.queues.get(usize::from(place));
        let routing = self.settings.routing;
        let idle = (routing.patience > Duration::ZERO || routing.renews)
            && !queue.is_some_and(Queue::has_something);
        let gap = self.repeat(idle);
        let Some(known) = self.routes.get_mut(place) else {
            return;
        };
        if !known.on_request(now, (seq, idle), gap) {
            return;
        }
        let request = Request {
            hop_limit: self.settings.routing.hop_limit,
            destination: known.node,
            seq,
            idle,
        };
        self.asked = self.asked.wrapping_add(1);
        if self.pass(now, place, request, (self.asked, None)) {
            self.counters.requests_sent += 1;
        }
    }

    /// When an unanswered request is repeated.
    fn repeat(&self, idle: bool) -> Duration {
        match idle {
            true => REPEAT.max(self.settings.routing.patience * 2),
            false => REPEAT,
        }
    }

    /// Hands a request to the `n`-th neighbour to ask. False if there is none.
    fn pass(
        &mut self,
        now: Instant,
        place: u16,
        request: Request,
        (n, except): (u8, Option<u8>),
    ) -> bool {
        let neighbour = self.to_ask(place, request.idle, (n, except));
        let link = neighbour.and_then(|neighbour| self.links.get(neighbour));
        let Some(to) = link.map(|link| link.node) else {
            return false;
        };
        let patience = self.settings.routing.patience;
        let (wait, most) = match request.idle {
            true if patience > Duration::ZERO => (patience, RIDERS_MAX),
            _ => (Duration::ZERO, WAITING_MAX),
        };
        let due = now + wait;
        // An idle one that waits for the same destination is older.
        let older = |waiting: &Waiting| {
            waiting.request.idle && waiting.request.destination == request.destination
        };
        self.requests.retain(|waiting| !older(waiting));
        let alike = |waiting: &&Waiting| waiting.request.idle == request.idle;
        if self.requests.iter().filter(alike).count() >= most {
            return false;
        }
        self.requests.push(Waiting { to, request, due });
        self.request_ready |= due <= now;
        true
    }

    /// The `n`-th neighbour to ask for a route: every second time the next hop, otherwise those with the best routes in turn.
    fn to_ask(&self, place: u16, idle: bool, (n, except): (u8, Option<u8>)) -> Option<u8> {
        let renews = self.settings.routing.renews;
        // Along next hops a request cannot go in a circle; along the best routes of any kind it can.
        let known = self.routes.get(place).filter(|_| renews);
        let hop = known.and_then(|known| known.hops().first().map(|hop| hop.place));
        let own = hop.filter(|&hop| n.is_multiple_of(2) && Some(hop) != except);
        let best = own.or_else(|| self.routes.nth_route(place, n, &self.links, except));
        // Where no neighbour has a route packets wait for good, unless one of them asks others (RFC 8966, 3.8.2.1, asks all).
        let any = || {
            let usable = self.links.usable().map(|(neighbour, _)| neighbour);
            let mut others = usable.filter(|&neighbour| Some(neighbour) != except);
            let at = usize::from(n).checked_rem(others.clone().count())?;
            others.nth(at)
        };
        best.or_else(|| any().filter(|_| renews && !idle))
    }

    /// Handles a neighbour's request.
    pub(super) fn on_request(&mut self, now: Instant, from: u16, request: Request) {
        self.counters.requests_heard += 1;
        if request.destination == self.me {
            // By one step, not to the number that is requested, which may be false (RFC 8966, 3.8.1.2).
            if newer(request.seq, self.seq) {
                self.seq = self.seq.wrapping_add(2);
            }
            self.own_again = self.own_again.max(self.answers(request));
            return self.answer(now, request);
        }
        let Some(place) = self.routes.find(request.destination) else {
            return;
        };
        let repeats = self.answers(request);
        let Some(known) = self.routes.get_mut(place) else {
            return;
        };
        if known.reaches(request.seq) {
            (known.changed, known.again) = (true, known.again.max(repeats));
            return self.answer(now, request);
        }
        let gap = self.repeat(request.idle);
        let Some(known) = self.routes.get_mut(place) else {
            return;
        };
        let fresh = known.on_request(now, (request.seq, request.idle), gap);
        if !fresh || request.hop_limit <= 1 {
            return;
        }
        known.await_number(request.seq, !request.idle);
        let request = Request {
            hop_limit: request.hop_limit - 1,
            ..request
        };
        let except = self.links.find(from);
        if self.pass(now, place, request, (0, except)) {
            self.counters.requests_sent += 1;
        }
    }

    /// How many updates more answer a request: a lost answer costs the time until the next request or the next full update. A request that
    /// no packet waits for is answered once.
    fn answers(&self, request: Request) -> u8 {
        match request.idle {
            true => 0,
            false => self.settings.routing.reach_repeats,
        }
    }

    /// The update that answers a request. The gap between updates is kept for those only that no packet waits for.
    fn answer(&mut self, now: Instant, request: Request) {
        match self.settings.routing.renews && !request.idle {
            true => self.hurry_update(now),
            false => self.request_update(now, Duration::ZERO),
        }
    }

    /// Looks whether a request must leave now.
    pub(super) fn look_at_requests(&mut self, now: Instant) {
        self.request_ready = self.requests.iter().any(|waiting| waiting.due <= now);
    }

    /// When the first request must leave, if it finds no frame to ride in.
    pub(super) fn request_due(&self) -> Option<Instant> {
        let due = self.requests.iter().map(|waiting| waiting.due).min();
        // Frames that are ready wait for the link and have no deadline.
        due.filter(|_| !self.request_ready)
    }

    /// Writes the oldest request that is due, or if the frame has something else already, the oldest of all.
    pub(super) fn write_request(&mut self, now: Instant, sdu: &mut [u8]) -> Option<LinkSend> {
        let rides = self.wrote_at == Some(now);
        let may = |waiting: &Waiting| rides || waiting.due <= now;
        let at = self.requests.iter().position(may)?;
        let waiting = self.requests.remove(at);
        self.look_at_requests(now);
        let to: Address = address(waiting.to);
        let len = waiting.request.emit(sdu)?;
        Some(LinkSend {
            to,
            len,
            class: Class::Control,
            mode: None,
            token: NO_TOKEN,
        })
    }
}
