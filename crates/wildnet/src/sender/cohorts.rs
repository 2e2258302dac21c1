//! Where nobody takes turns: repairs for what is sent again together.
//!
//! Reports come all the time there, and soon the bodies of one block are in different rounds: some of them are being sent for
//! the first time while others are lost for the third. So plans are not made for blocks. What one report shows to be lost
//! goes out again at once, and those of it that have as many rounds left are a cohort: it gets as many repairs as the
//! class's policy adds to so many missing bodies with so many rounds left, and its next round begins when the last of these
//! repairs is settled.

use super::*;

/// How many new bodies a class sends in a round.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    since: Instant,
    present: usize,
    before: usize,
}

impl Pace {
    fn count(&mut self, now: Instant, round: Duration) {
        let past = now.saturating_since(self.since);
        if past >= round {
            // After a pause what came before it says nothing.
            self.before = if past < round * 2 { self.present } else { 0 };
            (self.since, self.present) = (now, 0);
        }
        self.present = self.present.saturating_add(1);
    }

    fn in_a_round(self) -> usize {
        self.present.max(self.before).max(1)
    }
}

impl Sender {
    /// Whether repairs are planned for cohorts.
    pub(super) fn has_cohorts(&self) -> bool {
        matches!(self.config.recovery, Recovery::Improved { .. }) && self.slot_at.is_none()
    }

    /// A loss became known so long after its frame had left. Reports are lost as well, and wait for frames to ride on, so
    /// that this is longer than a round trip. Smoothed as RFC 6298, 2, does it.
    ///
    /// Its mean deviation is left out: with two of them 1.1 instead of 2.0 % came late at half of all frames lost, but a queue
    /// made rounds seem longer, that called forth repairs, and these made the queue longer.
    pub(super) fn note_loss(&mut self, after: Duration) {
        let known = self.known_after;
        self.known_after = match known > Duration::ZERO {
            true => (known * 7 + after) / 8,
            false => after,
        };
    }

    /// Whether the oldest body of the open block would have a round less if it stayed open.
    pub(super) fn is_cut_off(&self, now: Instant) -> bool {
        let open = self.blocks.open_deadline().filter(|_| self.has_cohorts());
        open.is_some_and(|(deadline, rounds)| self.rounds_left(now, deadline) < rounds)
    }

    /// A body of a class is sent for the first time.
    pub(super) fn count_new(&mut self, now: Instant, service: usize) {
        let round = self.round;
        if let Some(pace) = self.paces.get_mut(service) {
            pace.count(now, round);
        }
    }

    /// The block that plans of a class are made for: what it sends in a round, with so many rounds left.
    pub(super) fn plan_of(&self, service: usize, rounds: u8) -> (usize, u8) {
        let pace = self.paces.get(service).copied().unwrap_or_default();
        (pace.in_a_round(), rounds)
    }

    /// Plans repairs for what has just been found lost: `lost` from place `from` on.
    pub(super) fn gather_cohorts(&mut self, now: Instant, from: usize) {
        let mut done = None;
        loop {
            let lost = self.lost.iter().skip(from);
            let all = lost.filter_map(|&seq| self.cohort_of(now, seq));
            let next = all.filter(|cohort| Some(*cohort) > done).min();
            let Some(cohort) = next else { return };
            done = next;
            self.gather(now, from, cohort);
        }
    }

    /// Rounds left and class of a body, if its deadline is near enough to plan for.
    fn cohort_of(&self, now: Instant, seq: u32) -> Option<(u8, u8)> {
        let entry = self.entry(seq)?;
        let deadline = entry.offered + self.service(entry.service).deadline?;
        if self.is_past(now, Some(deadline)) {
            return None;
        }
        let left = self.rounds_left(now, Some(deadline));
        (left <= ROUNDS_MAX).then_some((left, entry.service))
    }

    fn gather(&mut self, now: Instant, from: usize, cohort: (u8, u8)) {
        let (left, service) = cohort;
        let promise = self.service(service);
        let fresh = self.rounds_left(now, promise.deadline.map(|deadline| now + deadline));
        let plan = self.plan_of(service.into(), fresh);
        let mut begin = 0;
        loop {
            let lost = self.lost.iter().skip(from).copied();
            let members = lost
                .filter(|&seq| self.cohort_of(now, seq) == Some(cohort))
                .map(|seq| seq.wrapping_sub(self.base))
                .filter(|&place| place >= begin);
            let Some(oldest) = members.clone().min() else {
                return;
            };
            let bits = members.filter_map(|place| 1u64.checked_shl(place - oldest));
            let mask = bits.fold(0, |mask, bit| mask | bit);
            let missing = mask.count_ones() as usize;
            let owed = self.planned(usize::from(service), (missing, left), plan);
            // Where so many wait already, bodies are repeated without.
            if owed > 0 && self.blocks.have_room() {
                self.blocks
                    .gather(self.base.wrapping_add(oldest), mask, owed);
            }
            begin = oldest.saturating_add(u64::BITS);
        }
    }

    /// Closes the open block. As a cohort it is only worth keeping if it gets repairs.
    pub(super) fn close_block(&mut self, repairs: (usize, u8)) {
        self.blocks.close(repairs);
        if self.has_cohorts() && repairs.0 == 0 {
            self.blocks.remove_last();
        }
    }

    /// The last repair of a cohort leaves: until it is settled nothing is known of the bodies.
    pub(super) fn await_repair(&mut self, members: &[u32]) {
        let number = self.number;
        for &seq in members {
            if let Some(entry) = self.entry_mut(seq)
                && entry.state == State::Flight
            {
                entry.frame = number;
            }
        }
    }

    /// A repair is settled: what its cohort still lacks is lost once more.
    pub(super) fn settle_cohort(&mut self, now: Instant, number: u32, ack: &Ack<'_>) {
        let Some(i) = self.blocks.paid_with(number) else {
            return;
        };
        let Some(cohort) = self.blocks.get(i) else {
            return;
        };
        self.blocks.remove(i);
        let mut lacks = false;
        for seq in cohort.members() {
            let waits = self
                .entry(seq)
                .is_some_and(|entry| entry.state == State::Flight && entry.frame == number);
            if waits && ack.has(seq).is_some() {
                lacks = true;
                self.lose_or_give_up(now, seq);
            }
        }
        if lacks && let Some(at) = self.logged(number).map(|logged| logged.at) {
            self.note_loss(now.saturating_since(at));
        }
    }

    /// Forgets what has nothing to wait for any more.
    pub(super) fn forget_cohorts(&mut self) {
        let mut i = 0;
        while let Some(block) = self.blocks.get(i) {
            let settled = block.owed == 0 && !before(self.settled, block.last);
            let whole = || !block.members().any(|seq| self.is_missing(seq));
            if !block.is_open() && (settled || whole()) {
                self.blocks.remove(i);
            } else {
                i += 1;
            }
        }
    }
}
