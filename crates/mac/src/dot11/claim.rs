//! ZMAC+'s contention, which replaces the back-off of the DCF. See [`zmac`](crate::zmac).

use chappe_core::{Address, Burst, Class, Classes, Duration, Instant, RadioRequest, Stream};

use super::near::Near;
use super::notice::Notice;
use super::reserved::Reserved;
use super::{Category, Dot11, State, config, only};
use crate::zmac::{Config, Protects, Schedule};

/// Whether a station claims the channel before it contends. A type parameter, so that plain stations are compiled
/// without the state and the checks.
pub trait Claiming {
    /// The claim's state; `None` for a plain station.
    fn get(&self) -> Option<&Claims>;

    /// As [`get`](Self::get), by mutable reference.
    fn get_mut(&mut self) -> Option<&mut Claims>;
}

/// A station that follows the standard: no claims.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoClaims;

/// The state that a ZMAC+ station keeps in addition to the medium's.
#[derive(Clone, Debug)]
pub struct Claims {
    pub(super) config: Config,
    pub(super) schedule: Schedule,
    phase: Phase,
    /// When the present busy period began, if the carrier was watched then.
    busy_since: Option<Instant>,
    /// When a frame ended last, as far as this station heard or sent it.
    pub(super) heard: Instant,
    /// Another station's burst holds the channel until then.
    silent_until: Instant,
    /// The most urgent class that waits, or the class of the frame to be retransmitted.
    urgency: Class,
    /// After a notification: until then, time slots of others are kept free.
    pub(super) shy_until: Instant,
    /// Time slots of single stations that suffer.
    pub(super) reserved: Reserved,
    /// Stations that this one hears.
    pub(super) near: Near,
    /// A notification to send.
    pub(super) notice: Option<Notice>,
    /// The own notification to a receiver has not been heard to be passed on.
    pub(super) unheard: bool,
    /// Earliest time of the next own notification.
    pub(super) notify_from: Instant,
    /// Undecodable frames since the last frame for this station.
    pub(super) undecodable: u8,
    /// When the waiting frame began to wait.
    pub(super) waiting_since: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Waits until the channel has been idle long enough for a burst.
    Waiting,
    /// The own burst ended at this instant; back-off slots count from here.
    Claimed(Instant),
}

impl Claiming for NoClaims {
    #[inline]
    fn get(&self) -> Option<&Claims> {
        None
    }

    #[inline]
    fn get_mut(&mut self) -> Option<&mut Claims> {
        None
    }
}

impl Claiming for Claims {
    #[inline]
    fn get(&self) -> Option<&Claims> {
        Some(self)
    }

    #[inline]
    fn get_mut(&mut self) -> Option<&mut Claims> {
        Some(self)
    }
}

/// A ZMAC+ station (see [`zmac`](crate::zmac)): one function, which bursts before it contends.
pub type ZmacPlus = Dot11<1, Claims>;

impl ZmacPlus {
    /// A ZMAC+ station that has received nothing yet (see [`zmac`](crate::zmac)).
    pub fn zmac_plus(
        config: Config,
        schedule: Schedule,
        address: Address,
        random: Stream,
    ) -> ZmacPlus {
        // Interframe spaces are SIFS (`aifsn: 0`), and a failed attempt is followed by no wait beyond the ACK timeout.
        let station = config::Config {
            aifsn: 0,
            difs_after_timeout: false,
            difs_backoff: false,
            ..config.station
        };
        let claims = Claims::new(config, schedule);
        let category = Category {
            txop: config.savings.txop,
            ..only(&station)
        };
        Dot11::with_functions(station, [category], claims, false, address, random)
    }

    /// Replaces the schedule of time slots, effective from the next claim.
    pub fn set_schedule(&mut self, schedule: Schedule) {
        self.claims.schedule = schedule;
    }
}

impl Claims {
    pub(super) fn new(config: Config, schedule: Schedule) -> Claims {
        Claims {
            config,
            schedule,
            phase: Phase::Waiting,
            busy_since: None,
            heard: Instant::ZERO,
            silent_until: Instant::ZERO,
            urgency: Class::Background,
            shy_until: Instant::ZERO,
            reserved: Reserved::default(),
            near: Near::default(),
            notice: None,
            unheard: false,
            notify_from: Instant::ZERO,
            undecodable: 0,
            waiting_since: None,
        }
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.phase == Phase::Waiting
    }

    /// Whether the claim is for a control frame, which has the owner's window in any time slot.
    pub(super) fn is_control(&self) -> bool {
        self.urgency == Class::Control
    }

    /// The classes whose frames the present claim may send.
    pub(super) fn classes(&self) -> Classes {
        let all = Class::BY_URGENCY.into_iter();
        match self.urgency {
            // A claim for a control frame used the owner's window in any slot, which data must not.
            Class::Control => Classes::only(Class::Control),
            urgency => all
                .filter(|&class| Config::level(class) <= Config::level(urgency))
                .fold(Classes::NONE, Classes::with),
        }
    }

    /// Sets the most urgent class. True if it changed.
    pub(super) fn weigh(&mut self, class: Class) -> bool {
        core::mem::replace(&mut self.urgency, class) != class
    }

    /// The longest contention after a burst.
    fn contention(&self, slot: Duration) -> Duration {
        slot * u64::from(self.config.window)
    }

    /// The carrier changed. A busy period no longer than a burst is taken for one: its sender has the channel for its
    /// contention window. A longer one was a frame, after which all stations begin again.
    pub(super) fn on_carrier(&mut self, busy: bool, since: Instant, slot: Duration, cca: Duration) {
        if busy {
            self.busy_since = Some(since);
            return;
        }
        let Some(began) = self.busy_since.take() else {
            return;
        };
        self.silent_until = match since.saturating_since(began) <= self.config.beacon + cca {
            true => since + self.contention(slot),
            false => {
                self.heard = self.heard.max(since);
                Instant::ZERO
            }
        };
    }

    /// Whether the claim begins with a burst.
    fn bursts(&self) -> bool {
        !self.config.savings.burstless || Config::level(self.urgency) == 0
    }

    /// How long the claim waits for more urgent ones to begin.
    fn gives_way(&self, slot: Duration) -> Duration {
        let level = Config::level(self.urgency);
        let steps = self.config.beacon * level;
        match self.bursts() || level < 2 {
            true => steps,
            // Data is not heard before its frame.
            false => steps + self.contention(slot),
        }
    }

    /// When to burst if the channel has been idle since `idle` and the claim may not begin before `floor`.
    fn burst_at(&self, idle: Instant, (floor, now): (Instant, Instant), slot: Duration) -> Instant {
        let config = &self.config;
        let level = self.gives_way(slot);
        // A notification does not respect bursts: the stations that should hear it are those that burst.
        let silent_until = match self.notice {
            Some(_) => Instant::ZERO,
            None => self.silent_until,
        };
        let at = (idle.max(silent_until) + config.wait).max(floor) + level;
        let from = at.max(now);
        let clear = self.clear_from(now, from);
        // Stations that waited for the same time slot to end burst in the order of their levels.
        match clear > from {
            true => clear + config.wait + level,
            false => at,
        }
    }

    /// The earliest moment from `from` on at which no exchange reaches into a time slot that is kept free, as far as is known `now`.
    fn clear_from(&self, now: Instant, from: Instant) -> Instant {
        let config = &self.config;
        let Some(ecn) = config.ecn.filter(|_| now < self.shy_until) else {
            return from;
        };
        let guard = ecn.guard.min(config.slot / 2);
        match ecn.protects {
            Protects::TwoHops => self.schedule.clear_from(from, config.slot, guard),
            Protects::Sufferer => self.reserved.clear_from(from, config.slot, guard),
        }
    }

    /// Whether another frame of a transmission opportunity may begin then: only where a claim may, too.
    pub(super) fn may_go_on(&self, at: Instant) -> bool {
        self.clear_from(at, at) == at
    }
}

impl<const N: usize, C: Claiming, const A: usize> Dot11<N, C, A> {
    /// Finds the next burst or slot boundary; the counterpart of [`Dot11::contend`].
    pub(super) fn contend_by_claim(&mut self, now: Instant) {
        let (Some(claims), Some(function)) = (self.claims.get_mut(), self.functions.first_mut())
        else {
            return;
        };
        if !function.contending || function.backoff.is_committed() {
            return self.settle();
        }
        function.at = None;
        function.backoff.hold();
        claims.waiting_since.get_or_insert(now);
        let slot = self.timing.slot;
        let idle = match self.answer {
            Some(_) => None,
            None => self.medium.slots_from(Duration::ZERO),
        };
        if let Phase::Claimed(ended) = claims.phase {
            // Another burst of the same level may end up to a CCA time later than the own one: that is a tie, which
            // the back-off decides. Energy beyond that is a frame: the claim is lost.
            let latest = ended + self.timing.cca;
            let lost = match idle {
                Some(idle) => idle > latest,
                None => self.answer.is_some() || self.medium.is_busy() && now > latest,
            };
            if lost {
                self.counters.claims_lost += 1;
                claims.phase = Phase::Waiting;
                function.backoff.finish();
            } else if let Some(idle) = idle {
                function.at = Some(function.backoff.resume(idle.max(ended), slot));
            }
        }
        if let (Phase::Waiting, Some(idle)) = (claims.phase, idle) {
            // The idle time began with the end of a frame, so no burst was in it before.
            let known = claims.config.savings.attentive && self.medium.is_idle_since(claims.heard);
            if core::mem::take(&mut function.fresh) && !known {
                // Sensing was off until now, so a burst may have been missed: respect its contention window.
                let until = idle + claims.contention(slot);
                claims.silent_until = claims.silent_until.max(until);
            }
            let at = claims.burst_at(idle, (function.floor, now), slot);
            function.at = Some(function.backoff.resume(at, slot));
        }
        match function.is_due(now) {
            true => self.grant(now),
            false => self.settle(),
        }
    }

    /// Begins a new claim; the counterpart of [`Dot11::contend_again`]. A back-off is drawn after the burst only.
    pub(super) fn claim_again(&mut self, now: Instant, wait: Duration) {
        self.state = State::Contending;
        if let (Some(claims), Some(function)) = (self.claims.get_mut(), self.functions.first_mut())
        {
            claims.phase = Phase::Waiting;
            function.backoff.finish();
            function.floor = now + wait;
            function.contending = function.has_frame();
        }
        self.contend(now);
    }

    /// The request for the burst, once its instant has come.
    pub(super) fn poll_burst(&mut self, now: Instant) -> Option<RadioRequest> {
        if self.state != State::Announcing {
            return None;
        }
        let claims = self.claims.get_mut()?;
        if !claims.bursts() {
            self.end_burst(now);
            return None;
        }
        claims.busy_since = None;
        self.state = State::Claiming;
        self.counters.bursts_sent += 1;
        Some(RadioRequest::Burst(Burst {
            at: now,
            lasts: claims.config.beacon,
            power: None,
        }))
    }

    /// The own burst ended, or would have begun: draws a back-off from the owner's or the others' window of the present time slot.
    pub(super) fn end_burst(&mut self, now: Instant) {
        if let (Some(claims), Some(function)) = (self.claims.get_mut(), self.functions.first_mut())
        {
            let config = &claims.config;
            let owner = claims.urgency == Class::Control || claims.schedule.owns(now, config.slot);
            let window = match owner {
                true => 0..config.owner_window,
                false => config.owner_window..config.window,
            };
            function.backoff.draw_from(window, &mut self.random);
            function.contending = true;
            claims.phase = Phase::Claimed(now);
        }
        self.state = State::Contending;
        self.contend(now);
    }
}
