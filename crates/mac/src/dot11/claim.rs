//! ZMAC+ on this station: the contention that replaces the back-off of the DCF. See [`zmac`](crate::zmac).

use chappe_core::{Burst, Class, Classes, Duration, Instant, RadioRequest};

use super::notice::Notice;
use super::{Counters, Dot11, State};
use crate::zmac::{Config, Schedule};

/// Whether a station claims the channel, decided when it is compiled: a plain one has neither the state nor the checks.
pub trait Claiming {
    /// The claims, if there are any.
    fn get(&self) -> Option<&Claims>;

    /// The same, to be changed.
    fn get_mut(&mut self) -> Option<&mut Claims>;
}

/// A station of the standard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoClaims;

/// What a ZMAC+ station knows beside the medium.
#[derive(Clone, Debug)]
pub struct Claims {
    pub(super) config: Config,
    pub(super) schedule: Schedule,
    phase: Phase,
    /// Since when the channel is busy with somebody else, while that is watched.
    busy_since: Option<Instant>,
    /// Somebody else's burst holds the channel until then.
    silent_until: Instant,
    /// The most urgent class that waits, or that of the frame to be sent again.
    urgency: Class,
    /// Contention was notified: other nodes' time slots are theirs until then.
    pub(super) shy_until: Instant,
    /// A notification to send.
    pub(super) notice: Option<Notice>,
    /// No own notification before that.
    pub(super) notify_from: Instant,
    /// Frames that could not be decoded since the last one for this station.
    pub(super) undecodable: u8,
    /// Since when the frame that waits has been waiting.
    pub(super) waiting_since: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// For the channel to be idle long enough for a burst.
    Waiting,
    /// The own burst ended at this moment: slots count.
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

impl Claims {
    pub(super) fn new(config: Config, schedule: Schedule) -> Claims {
        Claims {
            config,
            schedule,
            phase: Phase::Waiting,
            busy_since: None,
            silent_until: Instant::ZERO,
            urgency: Class::Background,
            shy_until: Instant::ZERO,
            notice: None,
            notify_from: Instant::ZERO,
            undecodable: 0,
            waiting_since: None,
        }
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.phase == Phase::Waiting
    }

    /// The classes that the present claim covers.
    pub(super) fn classes(&self) -> Classes {
        let all = Class::BY_URGENCY.into_iter();
        match self.urgency {
            // The owner's window was taken for routing alone.
            Class::Control => Classes::only(Class::Control),
            urgency => all
                .filter(|&class| Config::level(class) <= Config::level(urgency))
                .fold(Classes::NONE, Classes::with),
        }
    }

    /// Notes the most urgent class. True if it changed.
    pub(super) fn weigh(&mut self, class: Class) -> bool {
        core::mem::replace(&mut self.urgency, class) != class
    }

    /// How long the longest contention after a burst lasts.
    fn contention(&self, slot: Duration) -> Duration {
        slot * u64::from(self.config.window)
    }

    /// Somebody else began or stopped. A busy period as short as a burst is one, and its sender has the channel for its
    /// contention window; a longer one was a frame, and all begin again.
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
            false => Instant::ZERO,
        };
    }

    /// When to burst if the channel has been idle since `idle`.
    fn burst_at(&self, idle: Instant, floor: Instant, now: Instant) -> Instant {
        let config = &self.config;
        let level = config.beacon * Config::level(self.urgency);
        // A notification does not wait for others to count: those who would hear it keep its sender from speaking.
        let silent_until = match self.notice {
            Some(_) => Instant::ZERO,
            None => self.silent_until,
        };
        let at = (idle.max(silent_until) + config.wait).max(floor) + level;
        match config.ecn {
            Some(ecn) if now < self.shy_until => {
                let from = at.max(now);
                let guard = ecn.guard.min(config.slot / 2);
                let clear = self.schedule.clear_from(from, config.slot, guard);
                // Whoever waited for a time slot to end bursts in the order of the levels.
                if clear > from {
                    clear + config.wait + level
                } else {
                    at
                }
            }
            _ => at,
        }
    }
}

impl<const N: usize, C: Claiming> Dot11<N, C> {
    /// The counterpart of [`Dot11::contend`].
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
            // Another burst may end a little later than the own one.
            let latest = ended + self.timing.cca;
            let lost = match idle {
                Some(idle) => idle > latest,
                None => self.answer.is_some() || self.medium.is_busy() && now > latest,
            };
            if lost {
                Counters::add(&mut self.counters.claims_lost);
                claims.phase = Phase::Waiting;
                function.backoff.finish();
            } else if let Some(idle) = idle {
                function.at = Some(function.backoff.resume(idle.max(ended), slot));
            }
        }
        if let (Phase::Waiting, Some(idle)) = (claims.phase, idle) {
            if core::mem::take(&mut function.fresh) {
                // The station did not listen before: there may have been a burst.
                let until = idle + claims.contention(slot);
                claims.silent_until = claims.silent_until.max(until);
            }
            let at = claims.burst_at(idle, function.floor, now);
            function.at = Some(function.backoff.resume(at, slot));
        }
        match function.is_due(now) {
            true => self.grant(now),
            false => self.settle(),
        }
    }

    /// The counterpart of [`Dot11::contend_again`]: nothing is drawn before the next burst.
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

    /// The burst, once its moment has come.
    pub(super) fn poll_burst(&mut self, now: Instant) -> Option<RadioRequest> {
        if self.state != State::Announcing {
            return None;
        }
        let claims = self.claims.get_mut()?;
        claims.busy_since = None;
        self.state = State::Claiming;
        Counters::add(&mut self.counters.bursts_sent);
        Some(RadioRequest::Burst(Burst {
            at: now,
            lasts: claims.config.beacon,
            power: None,
        }))
    }

    /// The own burst ended: Z-MAC's contention in the present time slot.
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
