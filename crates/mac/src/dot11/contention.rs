//! Contention: when the station's functions may send, and which of them does (10.3.4 and 10.23.2.4).

use chappe_core::{Class, Classes, Duration, Instant, LinkNode, Wake};

use super::claim::{Claiming, Claims};
use super::function::Function;
use super::{BACKOFF, Dot11, State};

impl<const N: usize, C: Claiming, const A: usize> Dot11<N, C, A> {
    /// The radio reports the carrier.
    #[inline(never)] // Inlined, it would make every event save the registers of its longest path.
    pub(super) fn on_carrier(&mut self, now: Instant, busy: bool, since: Instant) {
        if !self.sensing {
            return;
        }
        // What the radio reports of a carrier that has just begun, the station cannot have detected.
        let undetected = self.config.cca_when_ready
            && busy
            && self.medium.is_unknown()
            && now.saturating_since(since) < self.timing.cca;
        let (busy, since) = match undetected {
            true => (false, since.saturating_before(self.timing.difs)),
            false => (busy, since),
        };
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

    /// Energy began at `since`: freezes the back-offs. True if a function is committed and transmits nevertheless.
    fn freeze(&mut self, now: Instant, since: Instant) -> bool {
        let (slot, cca) = (self.timing.slot, self.timing.cca);
        let mut committed = false;
        // Written without `filter`, here and below: the compiler then unrolls the loop for a single function.
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

    /// The medium became busy while one function is committed. The other functions find it busy and must draw.
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

    /// Finds the next slot boundary at which the station may send, by present knowledge. Call it in state `Contending`
    /// whenever one of its inputs has changed.
    pub(super) fn contend(&mut self, now: Instant) {
        if self.claims.get().is_some() {
            return self.contend_by_claim(now);
        }
        if self.functions.iter().any(|f| f.backoff.is_committed()) {
            return self.settle();
        }
        // 10.3.4.2: a station that finds the medium busy when a frame is ready starts a back-off. Its own ACK or CTS
        // keeps the medium busy as well, from the end of the frame that it answers.
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
            // `difs_backoff`: the medium is idle, but not for long enough. Other stations may wait for this same instant.
            let early = core::mem::take(&mut function.fresh) && idle > now;
            if early && self.config.difs_backoff && !function.backoff.is_drawn() {
                function.draw(now, &mut self.random);
            }
            let from = idle.max(function.floor);
            let at = function.backoff.resume(from, self.timing.slot);
            function.at = Some(at);
            earliest = Some(earliest.map_or(at, |earliest: Instant| earliest.min(at)));
        }
        // At most one deadline: the earliest boundary. The others are found again when this one is handled.
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

    /// Something other than the carrier moved the first slot boundary (NAV, EIFS, an answer): counts the slots that
    /// have passed and contends anew.
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

    /// A boundary is reached: the most urgent function that has a frame gets the medium (10.23.2.4).
    pub(super) fn grant(&mut self, now: Instant) {
        // Categories are ordered least urgent first.
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

    /// Returns to contention after an exchange or a failed attempt, with the back-off that must follow (10.3.4.3).
    /// Slots count from `wait` after now, and for a less urgent function from its AIFS.
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

    /// Index of the function that was granted the medium or holds it.
    pub(super) fn active(&self) -> usize {
        // A constant for the DCF: the compiler then removes loops and bounds checks.
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

    /// The pending classes of the link node changed, or a claim's urgency must be determined anew.
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
                // The station's own exchange keeps the medium busy, so this frame starts with a back-off (10.3.4.2).
                if !waits && !function.backoff.is_drawn() {
                    function.draw(now, &mut self.random);
                }
            } else if !pending && waits && function.contending && !function.must_contend() {
                // The frame is gone, and there is no back-off to finish.
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

    /// The classes in which a frame waits, including a notification of this MAC's.
    pub(super) fn waiting<L: LinkNode>(&self, link: &L) -> Classes {
        match self.claims.get() {
            Some(claims) if claims.notice.is_some() => link.pending().with(Class::Control),
            _ => link.pending(),
        }
    }

    /// Sets the most urgent class for the next claim. True if it changed.
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

    /// The holder begins to transmit: the station's other functions find the medium busy.
    pub(super) fn seize(&mut self, now: Instant) {
        let mut collisions = 0;
        let active = self.active();
        for (at, function) in self.functions.iter_mut().enumerate() {
            if at == active {
                function.contending = false;
                function.at = None;
                // `txop` is zero without a TXOP limit (10.23.2.8).
                // A claim for a control frame used the owner's window in any slot: it carries no data.
                let control = self.claims.get().is_some_and(Claims::is_control);
                self.txop_end = if control { now } else { now + function.txop };
            } else if function.give_way(now, self.timing.slot, &mut self.random) {
                collisions += 1;
            }
        }
        self.counters.internal_collisions =
            self.counters.internal_collisions.saturating_add(collisions);
    }
}
