//! What a report changes: bodies that have arrived, are lost, or are given up.
//!
//! Of what lies before the base that frames carry, the peer reports everything as settled, whether it has arrived or not. A body that
//! was given up before any report covered it would therefore count as lost, though it may only have been reported late. So the
//! base in frames waits for a report on whatever may have carried such a body, which is *in doubt* meanwhile. Only where that holds
//! up nothing: packets that need no order.

use chappe_core::{Duration, Instant};

use super::Sender;
use super::loss::{SentFrame, is_settled};
use super::window::{Entry, State};
use crate::config::Recovery;
use crate::header::{Ack, before};
use crate::paths::FrameId;

impl Sender {
    /// Takes a report; whether it settles anything new. `turns`: the peer speaks only when we have ended, so all frames
    /// are settled by it. It is read `now` and has `arrived` then or earlier.
    pub fn on_ack(
        &mut self,
        (now, arrived): (Instant, Instant),
        ack: &Ack<'_>,
        turns: bool,
    ) -> bool {
        if !self.loss.covers(ack) {
            self.counters.strange_reports += 1;
            return false;
        }
        // Before any frame is settled: only a report that is news measures a round trip.
        let sample = self.loss.rtt_sample(arrived, ack).filter(|_| !turns);
        let first = self.loss.first_number();
        self.conditions.estimate_mut().on_ack(ack, first);
        self.loss.hear(arrived, ack);
        let until = match turns {
            true => self.loss.newest(),
            false => self.loss.overtaken(arrived, ack.highest),
        };
        // Arrivals before losses: a body that is reported is not lost, whatever became of its latest frame.
        self.resolve_doubts((now, arrived), ack);
        let mut unseen = false;
        for seq in self.window.open() {
            match ack.has(seq) {
                Some(true) if self.window.is_missing(seq) => {
                    self.arrived((now, arrived), seq, ack);
                }
                Some(true) => {}
                // Settled by a report that was cut before it.
                Some(false) => unseen |= self.is_overlooked(seq),
                None => {}
            }
        }
        self.loss.on_report(arrived, ack);
        let lost = self.window.lost_count();
        let mut progress = false;
        if unseen {
            self.lose_overlooked(now, ack);
        }
        self.lose_passed(now);
        while let Some((number, frame)) = self.loss.settle_next(until) {
            progress = true;
            if let Some(frame) = frame {
                self.settle(now, number, frame, Some(ack));
            }
        }
        if self.conditions.has_cohorts() {
            self.repairs.forget_cohorts(&self.window, &self.loss);
            self.repairs
                .gather_cohorts(&self.conditions, &self.window, now, lost);
        } else {
            self.end_rounds(now, ack);
        }
        self.window.advance();
        if let Some(sample) = sample {
            // What a report waits for at the peer beyond what it may, and here.
            let held = ack
                .held()
                .saturating_sub(self.conditions.config().ack_delay);
            let rtt = self.loss.rtt_mut();
            rtt.note_hosts(held + now.saturating_since(arrived));
            self.measure(now, sample);
        }
        self.judge_paths(now, ack);
        progress
    }

    /// Whether a body is in flight though the latest frame that could bring it is settled: the report left open what came of it.
    fn is_overlooked(&self, seq: u32) -> bool {
        let entry = self.window.entry(seq);
        entry.is_some_and(|entry| {
            entry.state == State::InFlight && is_settled(&self.loss, entry.frame)
        })
    }

    fn lose_overlooked(&mut self, now: Instant, ack: &Ack<'_>) {
        for seq in self.window.open() {
            if ack.has(seq) == Some(false) && self.is_overlooked(seq) {
                self.note_lost(now, seq);
            }
        }
    }

    /// A round trip was measured, from which the length of a round follows.
    fn measure(&mut self, now: Instant, sample: Duration) {
        self.loss.rtt_mut().note(now, sample);
        let rtt = self.loss.rtt();
        let waits = self.conditions.config().ack_delay + rtt.host_delay();
        let expected = rtt.smoothed + rtt.variation + waits;
        // Twice at most: what lasted longer had no frame after it that could tell, as while hosts are silent. Planned as if
        // rounds were that long, each acknowledgement of TCP took twenty repairs once the hosts went on.
        let known = self.loss.loss_delay().min(expected * 2);
        let one_way = rtt.smoothed / 2;
        let path = rtt.least().unwrap_or_default() / 2;
        self.conditions.set_round(expected.max(known), one_way);
        self.conditions.set_path(path);
    }

    /// Frames were overtaken long enough ago, though no report has come since; whether any was. Only without slots.
    pub fn settle_overtaken(&mut self, now: Instant) -> bool {
        if self.loss.settle_at().is_none_or(|at| at > now) {
            return false;
        }
        let until = self.loss.overtaken(now, self.loss.newest());
        let lost = self.window.lost_count();
        while let Some((number, frame)) = self.loss.settle_next(until) {
            if let Some(frame) = frame {
                self.settle(now, number, frame, None);
            }
        }
        self.repairs.forget_cohorts(&self.window, &self.loss);
        self.repairs
            .gather_cohorts(&self.conditions, &self.window, now, lost);
        self.window.advance();
        true
    }

    /// A frame is settled: if its body has not arrived and has not been sent again, it is lost. Without a report: it was not
    /// in the last one.
    fn settle(&mut self, now: Instant, number: u32, frame: SentFrame, ack: Option<&Ack<'_>>) {
        let Some(seq) = frame.seq else {
            if self.conditions.has_cohorts() {
                self.settle_cohort(now, number, ack);
            }
            return;
        };
        self.settle_body(now, (seq, number), frame.at, ack);
        if frame.shared {
            for other in self.window.open().filter(|&other| other != seq) {
                self.settle_body(now, (other, number), frame.at, ack);
            }
        }
    }

    /// A frame that left at `sent_at` is settled: what becomes of a body, if it was in it.
    fn settle_body(
        &mut self,
        now: Instant,
        (seq, number): (u32, u32),
        sent_at: Instant,
        ack: Option<&Ack<'_>>,
    ) {
        // What the report leaves open stays in flight: its bitmap was cut.
        if !self.waits_for(seq, number) || ack.is_some_and(|ack| ack.has(seq).is_none()) {
            return;
        }
        self.loss.on_loss(now.saturating_since(sent_at));
        self.note_lost(now, seq);
    }

    /// The frame of a body is settled, and the body has not arrived.
    fn note_lost(&mut self, now: Instant, seq: u32) {
        match self.conditions.config().recovery {
            Recovery::None => self.give_up(seq),
            // The block's repairs may bring it: decided at the end of the round.
            Recovery::Blocks { .. } => self.window.lose_in_block(seq),
            Recovery::Acks | Recovery::Improved { .. } => self.lose_or_give_up(now, seq),
        }
    }

    /// A repair is settled: what its cohort still lacks is lost once more.
    fn settle_cohort(&mut self, now: Instant, number: u32, ack: Option<&Ack<'_>>) {
        let Some(cohort) = self.repairs.take_paid_with(self.here(number)) else {
            return;
        };
        let mut lacks = false;
        for seq in cohort.members() {
            if self.waits_for(seq, number) && ack.is_none_or(|ack| ack.has(seq).is_some()) {
                lacks = true;
                self.lose_or_give_up(now, seq);
            }
        }
        if lacks && let Some(at) = self.loss.sent_at(number) {
            self.loss.on_loss(now.saturating_since(at));
        }
    }

    /// Whether a body is in flight and frame `number` was the latest that could bring it.
    fn waits_for(&self, seq: u32, number: u32) -> bool {
        let entry = self.window.entry(seq);
        entry
            .is_some_and(|entry| entry.state == State::InFlight && entry.frame == self.here(number))
    }

    /// Blocks whose round has ended with this report: what they lack goes into the next round, or is given up.
    fn end_rounds(&mut self, now: Instant, ack: &Ack<'_>) {
        if self.conditions.in_slots() {
            self.repairs.close_cut_block(&self.conditions, now);
        }
        let mut i = 0;
        while let Some((block, missing)) = self.repairs.next_ended(&mut i, &self.window, &self.loss)
        {
            if !self.conditions.has_fixed_blocks() {
                let frame = self.next_frame_id();
                self.repairs
                    .end_round(&self.conditions, now, (i, missing), frame);
                i += 1;
                continue;
            }
            for seq in block.members() {
                if self.window.is_missing(seq) && ack.has(seq) == Some(false) {
                    match self.conditions.repeats() {
                        true => self.lose_or_give_up(now, seq),
                        false => self.give_up(seq),
                    }
                }
            }
            self.repairs.remove(i);
        }
    }

    pub(super) fn lose_or_give_up(&mut self, now: Instant, seq: u32) {
        let Some(&entry) = self.window.entry(seq) else {
            return;
        };
        let service = self.conditions.service(entry.service.into());
        let spent = |limit| entry.transmissions > limit;
        let spent = service.retries.is_some_and(spent);
        if spent || self.conditions.is_late(now, &service, entry.offered) {
            self.give_up(seq);
        } else {
            self.window.lose(seq);
        }
    }

    pub(super) fn give_up(&mut self, seq: u32) {
        let Some(&entry) = self.window.entry(seq) else {
            return;
        };
        let path = entry.frame.path;
        let newest = FrameId {
            path,
            number: self.loss.of(path.into()).newest(),
        };
        let allowed = self.conditions.allows_doubt(entry.service.into());
        let doubt = allowed && !is_settled(&self.loss, newest);
        self.window.give_up(seq, doubt.then_some(newest));
        self.counters.given_up += 1;
        let class = usize::from(entry.service);
        let residual = self.conditions.service(class).residual;
        self.repairs.settle(class, residual, true);
    }

    /// What would arrive too late even in the round that begins now is not sent again, and no repair is made for it.
    pub(super) fn give_up_late(&mut self, now: Instant) {
        for seq in self.window.open() {
            let late = self.window.entry(seq).is_some_and(|entry| {
                let service = self.conditions.service(entry.service.into());
                entry.state == State::Lost && self.conditions.is_late(now, &service, entry.offered)
            });
            if late {
                self.give_up(seq);
            }
        }
        self.window.advance();
    }

    /// Takes from a report what it says about bodies in doubt.
    fn resolve_doubts(&mut self, at: (Instant, Instant), ack: &Ack<'_>) {
        for seq in self.window.placed() {
            let Some(State::InDoubt { newest }) = self.window.state(seq) else {
                continue;
            };
            match ack.has(seq) {
                Some(true) => {
                    self.counters.given_up = self.counters.given_up.saturating_sub(1);
                    self.arrived(at, seq, ack);
                }
                Some(false) if self.is_past(ack.highest, newest) => self.window.give_up(seq, None),
                _ => {}
            }
        }
    }

    /// Whether a report on the selected path with this highest frame covers `frame`, which left on the same path.
    fn is_past(&self, highest: u32, frame: FrameId) -> bool {
        usize::from(frame.path) == self.loss.at() && !before(highest, frame.number)
    }

    /// A body is reported, in a report that came then.
    fn arrived(&mut self, (now, came): (Instant, Instant), seq: u32, ack: &Ack<'_>) {
        let Some(&entry) = self.window.entry(seq) else {
            return;
        };
        self.note_order(came, seq, &entry, ack);
        if entry.state == State::InFlight && entry.transmissions == 1 && !entry.copied {
            self.note_shown(now, entry.frame);
        }
        let took = self.arrival(came, &entry, ack);
        let took = took.saturating_since(entry.offered);
        let service = self.conditions.service(entry.service.into());
        let deadline = self.conditions.allowed(&service);
        self.window.done(seq);
        self.counters.delivered += 1;
        let late = deadline.is_some_and(|deadline| took > deadline);
        self.counters.late += u64::from(late);
        self.repairs
            .settle(entry.service.into(), service.residual, late);
    }

    /// Notes a body that came with its first frame after that was overtaken.
    fn note_order(&mut self, now: Instant, seq: u32, entry: &Entry, ack: &Ack<'_>) {
        let again = entry.transmissions > 1;
        // It was sent again, but nothing as new as the repetition has arrived.
        let here = usize::from(entry.frame.path) == self.loss.at();
        let spurious = again && here && before(ack.highest, entry.frame.number);
        if entry.copied || again && !spurious || entry.transmissions > 2 {
            return;
        }
        self.counters.needless += u64::from(spurious);
        let first = entry.first_frame;
        if spurious {
            self.note_spurious(now, first);
        }
        self.loss
            .of_mut(first.path.into())
            .came_with(now, first.number, seq);
    }

    /// When a reported body arrived at the latest. A report is one one-way delay old when it arrives. If reports before it
    /// were lost, what it says was true earlier: a body came no later than the latest frame that can have carried it.
    fn arrival(&self, now: Instant, entry: &Entry, ack: &Ack<'_>) -> Instant {
        let one_way = self.conditions.one_way();
        let by_now = Instant::ZERO + now.saturating_since(Instant::ZERO + one_way);
        // In slots a report comes when the slot is over, whatever was sent in it.
        if self.conditions.in_slots() {
            return by_now;
        }
        let carrier = match entry.state {
            // Nothing was sent for it after it was given up.
            State::InDoubt { newest } => newest,
            _ => entry.frame,
        };
        if usize::from(carrier.path) != self.loss.at() {
            return by_now;
        }
        let carrier = match entry.state {
            State::InDoubt { .. } => carrier.number,
            _ => self.loss.latest_carrier(carrier.number, ack),
        };
        let arrival = self.loss.sent_at(carrier).map(|at| at + one_way);
        arrival.map_or(by_now, |arrival| arrival.min(by_now))
    }
}
