//! All deadlines of a node, in one table.

use chappe_core::{Duration, Instant, TraceEvent, Wake};

use super::Router;
use crate::airtime::Airtime;
use crate::baseline::dclo::{Due, Rounds};
use crate::config::{NEXT_HOPS_MAX, Pace};
use crate::links::Change;
use crate::price;

/// The deadlines that belong to no other part.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Timers {
    /// When the node began, or began to send.
    began: Instant,
    /// The next probe. Links are updated at the same time.
    probe: Instant,
    /// The next full update.
    period: Instant,
    /// When routes that packets wait for are looked at next, while anything waits.
    ask: Instant,
    /// The next update of any kind.
    pub update: Option<Instant>,
    /// The next review of K and of packets' ages, while anything waits.
    review: Option<Instant>,
}

/// How often routes that packets wait for are looked at. Probes may be rarer, and a route that is lost should not wait for one. 1 s: the
/// usual time between probes.
const ASK_EVERY: Duration = Duration::from_secs(1);

const ROUND: &str = "round";
const PROBE: &str = "probe";
const PERIOD: &str = "full update";
const ASK: &str = "routes of packets";
const UPDATE: &str = "update";
const REQUEST: &str = "request found no frame";
const REVIEW: &str = "queues reviewed";
const PRICE: &str = "price updated";
const LOOK: &str = "rate adapted";
const TOKEN: &str = "rate allows a packet";
const HELD: &str = "missing packet given up";

impl Router {
    /// Draws the times of the first probe and update at random within the probe interval, so that nodes that start together
    /// do not send together.
    pub(super) fn start_timers(&mut self, now: Instant) {
        let probes = self.settings.probes;
        let interval = probes
            .first
            .map_or(probes.interval, |first| first.interval(0));
        let (first, update) = (self.within(now, interval), self.within(now, interval));
        self.timers = Timers {
            began: now,
            probe: first,
            period: update,
            ask: now,
            update: None,
            review: None,
        };
    }

    pub(super) fn next_deadline(&self) -> Option<Wake> {
        let looks = self.sources.iter().map(|source| source.rate.next_update());
        let look = looks.min().filter(|&at| at < Instant::MAX);
        // Frames that are ready wait for the link and have no deadline.
        let round = self.rounds.as_ref().and_then(Rounds::deadline);
        let timers = [
            (round, ROUND),
            (Some(self.timers.probe), PROBE),
            (Some(self.timers.period), PERIOD),
            (self.ask_due(), ASK),
            (self.timers.update, UPDATE),
            (self.request_due(), REQUEST),
            (self.timers.review, REVIEW),
            (look, LOOK),
            (self.airtime.as_ref().map(Airtime::next_update), PRICE),
            (self.refused_until, TOKEN),
            (self.held_until(), HELD),
        ];
        let wakes = timers
            .into_iter()
            .map(|(at, why)| at.map(|at| Wake { at, why }));
        wakes.fold(None, Wake::earlier)
    }

    pub(super) fn meet_deadlines(&mut self, now: Instant) {
        if self
            .rounds
            .as_ref()
            .and_then(Rounds::deadline)
            .is_some_and(|at| at <= now)
        {
            self.fired(ROUND);
            self.on_rounds(now);
        }
        if self.timers.probe <= now {
            self.fired(PROBE);
            self.on_probe_time(now);
        }
        if self.timers.period <= now {
            self.fired(PERIOD);
            self.on_period(now);
        }
        if self.ask_due().is_some_and(|at| at <= now) {
            self.fired(ASK);
            self.timers.ask = now + ASK_EVERY;
            self.ask_for_packets(now);
        }
        if self.timers.update.is_some_and(|at| at <= now) {
            self.fired(UPDATE);
            (self.timers.update, self.update_ready) = (None, true);
        }
        if self.request_due().is_some_and(|at| at <= now) {
            self.fired(REQUEST);
            self.look_at_requests(now);
        }
        if self.timers.review.is_some_and(|at| at <= now) {
            self.fired(REVIEW);
            self.review(now);
        }
        if self.refused_until.is_some_and(|at| at <= now) {
            self.fired(TOKEN);
            self.refused_until = None;
        }
        self.update_price(now);
        self.update_rates(now);
        self.deliver_late(now);
    }

    fn fired(&mut self, why: &'static str) {
        self.trace.push(TraceEvent::Timer { why });
    }

    fn on_probe_time(&mut self, now: Instant) {
        let probes = self.settings.probes;
        let factor = 1.0 + probes.jitter * (2.0 * self.random.fraction() - 1.0);
        let interval = match probes.first {
            Some(first) if now < self.timers.began + first.lasts || self.hurries() => {
                first.interval(self.links.iter().count())
            }
            _ => probes.interval,
        };
        let next = self.timers.probe + interval.mul_f64(factor);
        // After a long sleep one probe is sent, not all that were missed.
        self.timers.probe = match next > now {
            true => next,
            false => now + interval.mul_f64(factor),
        };
        // DCLO sends no probes; it only forgets silent neighbours.
        self.probe_ready = self.rounds.is_none();
        let (mut changed, mut fresh) = (false, false);
        for place in 0..self.links.places() {
            let change = self.links.update(now, place);
            changed |= change != Change::None;
            fresh |= change == Change::Up;
            if change == Change::Gone {
                self.routes.forget(place);
                self.pins.retain(|pin| pin.neighbour != place);
            }
        }
        self.expire(now);
        if changed {
            self.rank_all(now);
        }
        self.ask(now);
        self.renew(now);
        if fresh {
            // A new neighbour has none of the routes that were advertised before.
            self.advertise_all(now, Duration::ZERO);
        }
    }

    /// Whether the neighbours should hear of prices sooner: a starved node is heard in its probes only, and some are lost. Where packets
    /// end, no data frames tell of them, and the senders may not hear each other.
    fn hurries(&self) -> bool {
        let tells = |airtime: &Airtime| airtime.asks() || airtime.ends();
        self.settings.probes.first_again && self.airtime.as_ref().is_some_and(tells)
    }

    /// When routes that packets wait for are looked at, if requests renew routes.
    fn ask_due(&self) -> Option<Instant> {
        let asks = self.settings.routing.renews && !self.active.is_empty();
        asks.then_some(self.timers.ask)
    }

    /// This node began to send: its neighbours should hear of its price sooner.
    pub(super) fn on_begin(&mut self, now: Instant) {
        let probes = self.settings.probes;
        let Some(first) = probes.first.filter(|_| probes.first_again) else {
            return;
        };
        let interval = first.interval(self.links.iter().count());
        self.timers.began = now;
        self.timers.probe = self.sooner(now, self.timers.probe, interval);
    }

    /// Changes how often the node tells of itself from now on. What is due later than the new times allow comes sooner, at random, so that
    /// nodes which learn the same at once do not send together.
    pub fn set_pace(&mut self, now: Instant, pace: Pace) {
        self.settings.set_pace(pace);
        let (probe, period) = (self.settings.probes.interval, self.settings.routing.period);
        self.links.set_interval(probe);
        self.routes.set_period(period);
        self.timers.probe = self.sooner(now, self.timers.probe, probe);
        self.timers.period = self.sooner(now, self.timers.period, period);
    }

    /// An instant that is due within `span`: the one that is planned, or else one at random.
    fn sooner(&mut self, now: Instant, planned: Instant, span: Duration) -> Instant {
        match planned > now + span {
            true => self.within(now, span),
            false => planned,
        }
    }

    /// A random instant within `span`.
    fn within(&mut self, now: Instant, span: Duration) -> Instant {
        now + Duration::from_nanos(self.random.below(span.nanos()))
    }

    fn expire(&mut self, now: Instant) {
        for at in 0..self.routes.count() {
            let Some(place) = self.routes.place_at(at) else {
                return;
            };
            if self.routes.expire(now, place, &self.links) {
                self.advertise_reach(now, place);
            }
        }
    }

    /// Ranks the next hops of all destinations anew.
    pub(super) fn rank_all(&mut self, now: Instant) {
        for at in 0..self.routes.count() {
            let Some(place) = self.routes.place_at(at) else {
                return;
            };
            if self.routes.rank(now, place, &self.links) {
                self.advertise_reach(now, place);
            }
        }
    }

    fn advertise_all(&mut self, now: Instant, delay: Duration) {
        for at in 0..self.routes.count() {
            if let Some(known) = self.routes.at_mut(at) {
                known.changed = true;
            }
        }
        self.request_update(now, delay);
    }

    /// A full update with a new sequence number.
    fn on_period(&mut self, now: Instant) {
        let next = self.timers.period + self.settings.routing.period;
        self.timers.period = match next > now {
            true => next,
            false => now + self.settings.routing.period,
        };
        if self.rounds.is_none() {
            // Even numbers, as in DSDV: a destination numbers its own route in steps of 2.
            self.seq = self.seq.wrapping_add(2);
            self.advertise_all(now, Duration::ZERO);
        }
    }

    /// DCLO: handles everything in a round that has become due.
    fn on_rounds(&mut self, now: Instant) {
        while let Some(rounds) = &mut self.rounds {
            let paired = rounds.matcher.pair().is_some();
            match rounds.poll_due(now, &mut self.random) {
                Some(Due::Round) => {
                    self.counters.rounds += 1;
                    self.counters.paired += u64::from(paired);
                }
                Some(Due::Advertise) => {}
                Some(Due::Match) => {
                    // Taken out because `edges` borrows the rest of the node.
                    let mut rounds = self.rounds.take();
                    if let Some(rounds) = &mut rounds {
                        rounds.start(self.edges(now));
                    }
                    self.rounds = rounds;
                }
                None => return,
            }
        }
    }

    /// Schedules a review, since something waits.
    pub(super) fn review_soon(&mut self, now: Instant) {
        if self.timers.review.is_none() {
            self.timers.review = Some(now + self.settings.next_hops.every);
        }
    }

    //= dpclo IV-E: K follows the queues of the next hops in use
    fn review(&mut self, now: Instant) {
        self.drop_old(now);
        let next_hops = self.settings.next_hops;
        let neighbours = self.links.usable().count();
        let limit = price::k_max(&next_hops, neighbours, NEXT_HOPS_MAX);
        // Advertised lengths from before this instant have expired.
        let oldest = now.saturating_before(self.settings.queues.backlog_life);
        let mut wide = false;
        for at in 0..self.routes.count() {
            let Some(place) = self.routes.place_at(at) else {
                break;
            };
            let Some(known) = self.routes.get(place) else {
                continue;
            };
            let (mut queues, mut count) = ([0.0; NEXT_HOPS_MAX], 0);
            for (queue, hop) in queues.iter_mut().zip(known.in_use()) {
                *queue = self.routes.backlog(oldest, place, hop.place).packets();
                count += 1;
            }
            let k = usize::from(known.k);
            let limit = match self.pays(now, place, k) {
                true => limit,
                false => k.min(limit),
            };
            let next = price::next_k(
                k,
                limit,
                &next_hops,
                queues.get(..count).unwrap_or_default(),
            );
            self.counters.k_grew += u64::from(next > k);
            self.counters.k_shrank += u64::from(next < k);
            wide |= next > 1;
            if let Some(known) = self.routes.get_mut(place) {
                known.k = next as u8;
            }
        }
        let again = wide || !self.active.is_empty();
        self.timers.review = again.then(|| now + next_hops.every);
    }

    fn update_rates(&mut self, now: Instant) {
        for at in 0..self.sources.len() {
            let Some(source) = self
                .sources
                .get(at)
                .filter(|source| source.rate.next_update() <= now)
            else {
                continue;
            };
            let place = self.routes.find(source.node);
            let queue = place.and_then(|place| self.queues.get(usize::from(place)));
            let len = queue.map_or(0.0, |queue| f64::from(queue.list.len()));
            let cost = place.and_then(|place| self.cost_to(now, place));
            if let Some(source) = self.sources.get_mut(at) {
                source.rate.update(now, len, cost);
            }
            self.fired(LOOK);
        }
    }
}
