//! Contention: when the station's functions may send, and which of them does.

use chappe_core::{Class, Classes, Duration, Instant, LinkNode, Wake};

use super::claim::Claiming;
use super::function::Function;
use super::{BACKOFF, Dot11, State};

impl<const N: usize, C: Claiming> Dot11<N, C> {
    /// The radio reports the carrier.
    #[inline(never)] // else every event pays for the registers that the longest path saves
    pub(super) fn on_carrier(&mut self, now: Instant, busy: bool, since: Instant) {
        if !self.sensing {
            return;
        }
        self.medium.on_carrier(busy, since, self.timing.eifs);
        if self.state != State::Contending {
            return;
        }
        if let Some(claims) = self.claims.get_mut() {
            claims.on_carrier(busy, since, self.timing.slot, self.timing.cca);
        }
        if busy && self.freeze(now, since) {
            return;
        }
        self.contend(now);
    }

    /// Energy came at `since`. True if it came too late for a function that transmits nevertheless.
    fn freeze(&mut self, now: Instant, since: Instant) -> bool {
        let (slot, cca) = (self.timing.slot, self.timing.cca);
        let mut committed = false;
        // Here and below: the compiler unrolls this for one function, and would not with `filter`.
        for function in &mut self.functions {
            if !function.contending {
                continue;
            }
            let before = function.backoff.is_committed();
            function.backoff.freeze(since, slot, cca);
            if function.backoff.is_committed() {
                self.counters.committed += u64::from(!before);
                committed = true;
            }
        }
        if N > 1 && committed {
            self.hold_others(now);
        }
        committed
    }

    /// The medium became busy, and one function transmits nevertheless: the others' boundaries are void all the same.
    fn hold_others(&mut self, now: Instant) {
        for function in &mut self.functions {
            if !function.contending || function.backoff.is_committed() {
                continue;
            }
            function.at = None;
            if !function.backoff.is_drawn() {
                function.draw(now, &mut self.random);
            }
        }
    }

    /// Finds the next slot boundary at which the station may send, as far as is known now. To be called in
    /// state `Contending` whenever something that decides it has changed.
    pub(super) fn contend(&mut self, now: Instant) {
        if self.claims.get().is_some() {
            return self.contend_by_claim(now);
        }
        if self.functions.iter().any(|f| f.backoff.is_committed()) {
            return self.settle();
        }
        // 10.3.4.2: whoever finds the medium busy with a frame in hand starts a back-off. The own answer to a
        // frame keeps it busy as well, from the end of that frame on.
        let reserved = self.sensing && self.medium.is_reserved(now);
        let answering = self.answer.is_some();
        let busy = self.medium.is_busy() || reserved || answering;
        let start = self.medium.slots_from(self.timing.difs);
        let (mut contending, mut earliest) = (false, None);
        for function in &mut self.functions {
            if !function.contending {
                continue;
            }
            contending = true;
            function.at = None;
            if busy && !function.backoff.is_drawn() {
                function.draw(now, &mut self.random);
            }
            let Some(idle) = start.filter(|_| !answering) else {
                continue;
            };
            let idle = idle + function.extra;
            // The same for whoever finds it idle, but not for long enough: others may have waited for this moment too.
            let early = core::mem::take(&mut function.fresh) && idle > now;
            if early && self.config.difs_backoff && !function.backoff.is_drawn() {
                function.draw(now, &mut self.random);
            }
            let from = idle.max(function.floor);
            let at = function.backoff.resume(from, self.timing.slot);
            function.at = Some(at);
            earliest = Some(earliest.map_or(at, |earliest: Instant| earliest.min(at)));
        }
        match earliest {
            Some(at) if at <= now => self.grant(now),
            Some(at) => self.deadline = Some(Wake { at, why: BACKOFF }),
            None => {
                self.deadline = None;
                if !contending {
                    self.state = State::Idle;
                }
            }
        }
    }

    /// Waits for the earliest boundary, or rests if no function contends.
    pub(super) fn settle(&mut self) {
        let contending = || self.functions.iter().filter(|f| f.contending);
        let earliest = contending().filter_map(|f| f.at).min();
        self.state = match contending().next() {
            Some(_) => State::Contending,
            None => State::Idle,
        };
        self.deadline = earliest.map(|at| Wake { at, why: BACKOFF });
    }

    /// Something other than the carrier changed when slots begin: count what has passed and start over.
    pub(super) fn reconsider(&mut self, now: Instant) {
        if self.state != State::Contending {
            return;
        }
        let by_claim = self.claims.get().is_some();
        for function in &mut self.functions {
            if !function.contending {
                continue;
            }
            if by_claim {
                function.backoff.hold();
                continue;
            }
            function.backoff.pause(now, self.timing.slot);
            function.floor = function.floor.max(now);
        }
        self.contend(now);
    }

    /// A boundary is reached: the most urgent function that has a frame gets the medium.
    pub(super) fn grant(&mut self, now: Instant) {
        for (at, function) in self.functions.iter_mut().enumerate().rev() {
            if !function.is_due(now) {
                continue;
            }
            if function.has_frame() {
                function.backoff.finish();
                self.active = at;
                self.state = match self.claims.get() {
                    Some(claims) if claims.is_waiting() => State::Announcing,
                    _ => State::Granted,
                };
                self.deadline = None;
                return;
            }
            function.rest();
        }
        self.settle();
    }

    /// Back to contention after an exchange or an attempt: the back-off that follows each of them. Slots count
    /// from `wait` later on, and for a less urgent function later still.
    pub(super) fn contend_again(&mut self, now: Instant, wait: Duration) {
        if self.claims.get().is_some() {
            return self.claim_again(now, wait);
        }
        self.state = State::Contending;
        let active = self.active();
        for (at, function) in self.functions.iter_mut().enumerate() {
            let floor = match wait {
                Duration::ZERO => now,
                _ => now + wait + function.extra,
            };
            if at == active {
                function.contending = true;
                function.draw(floor, &mut self.random);
            } else {
                function.floor = function.floor.max(floor);
            }
        }
        self.contend(now);
    }

    /// Which function was granted the medium or holds it.
    pub(super) fn active(&self) -> usize {
        // A constant for a single one: the compiler drops the loops and the checks of bounds.
        if N == 1 { 0 } else { self.active }
    }

    /// The function that was granted the medium or holds it.
    pub(super) fn holder(&mut self) -> Option<&mut Function> {
        let active = self.active();
        self.functions.get_mut(active)
    }

    /// The holder has nothing to send and no back-off to finish.
    pub(super) fn rest(&mut self, now: Instant) {
        if let Some(function) = self.holder() {
            function.rest();
        }
        self.state = State::Contending;
        self.contend(now);
    }

    /// What waits at the link node is not what it was, or a claim is to be weighed anew.
    pub(super) fn note_waiting(&mut self, now: Instant, waiting: Classes) {
        let (mut came, mut went) = (false, false);
        let waits = matches!(self.state, State::Idle | State::Contending);
        let active = self.active();
        for (at, function) in self.functions.iter_mut().enumerate() {
            let pending = function.is_for(waiting);
            if pending == function.pending {
                continue;
            }
            function.pending = pending;
            if pending && !function.contending && (waits || at != active) {
                function.contending = true;
                function.fresh = true;
                came |= waits;
                // The station's own exchange keeps the medium busy.
                if !waits && !function.backoff.is_drawn() {
                    function.draw(now, &mut self.random);
                }
            } else if !pending && waits && function.contending && !function.must_contend() {
                // Nothing to send after all, and no back-off to finish.
                function.rest();
                went = true;
            }
        }
        let weighed = self.weigh(waiting) && self.state == State::Contending;
        if came || weighed {
            self.state = State::Contending;
            self.contend(now);
        } else if went {
            self.settle();
        }
    }

    /// The classes in which a frame waits, an own notification among them.
    pub(super) fn waiting<L: LinkNode>(&self, link: &L) -> Classes {
        match self.claims.get() {
            Some(claims) if claims.notice.is_some() => link.pending().with(Class::Control),
            _ => link.pending(),
        }
    }

    /// Notes the most urgent class for the next claim. True if it changed.
    pub(super) fn weigh(&mut self, waiting: Classes) -> bool {
        let Some(claims) = self.claims.get_mut() else {
            return false;
        };
        let kept = self.functions.first().and_then(|f| f.kept.class());
        let class = kept.into_iter().chain(waiting.most_urgent()).max();
        class.is_some_and(|class| claims.weigh(class))
    }

    /// Whether the link node has something for the holder.
    pub(super) fn holder_pending<L: LinkNode>(&mut self, link: &L) -> bool {
        let waiting = self.waiting(link);
        self.weigh(waiting);
        self.holder().is_some_and(|function| {
            function.pending = function.is_for(waiting);
            function.pending
        })
    }

    /// The holder begins to transmit: the other functions find the medium busy.
    pub(super) fn seize(&mut self, now: Instant) {
        let mut collisions = 0;
        let active = self.active();
        for (at, function) in self.functions.iter_mut().enumerate() {
            if at == active {
                function.contending = false;
                function.at = None;
                self.txop_end = now + function.txop;
            } else if function.give_way(now, self.timing.slot, &mut self.random) {
                collisions += 1;
            }
        }
        self.counters.internal_collisions =
            self.counters.internal_collisions.saturating_add(collisions);
    }
}
