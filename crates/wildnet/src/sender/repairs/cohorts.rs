//! Without slots: repairs for what is sent again together.
//!
//! Reports come all the time there, and soon the bodies of one block are in different rounds: some are sent for the first
//! time while others are lost for the third. So plans are not made for blocks. What one report shows to be lost is sent again
//! at once. Bodies lost in one report that have equally many rounds left form a cohort. It gets the repairs that the
//! class's policy adds for that many missing bodies and rounds, and its next round begins when the last of these repairs is
//! settled.

use chappe_core::{Duration, Instant};

use super::{Origin, Plan, Repairs};
use crate::paths::{FrameId, Paths};
use crate::policy::ROUNDS_MAX;
use crate::sender::conditions::Conditions;
use crate::sender::loss::{LossDetection, is_settled};
use crate::sender::window::SendWindow;

use super::blocks::Block;

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
            // After a pause the count of the round before it says nothing.
            self.before = if past < round * 2 { self.present } else { 0 };
            (self.since, self.present) = (now, 0);
        }
        self.present = self.present.saturating_add(1);
    }

    fn in_a_round(self) -> usize {
        self.present.max(self.before).max(1)
    }
}

impl Repairs {
    /// Whether the oldest body of the open block would have a round less if it stayed open.
    pub(super) fn is_cut_off(&self, conditions: &Conditions, now: Instant) -> bool {
        let open = self.blocks.open_deadline();
        let open = open.filter(|_| conditions.has_cohorts());
        open.is_some_and(|(deadline, rounds)| conditions.rounds_left(now, deadline) < rounds)
    }

    /// A body of a class is sent for the first time.
    pub(super) fn count_new(&mut self, conditions: &Conditions, now: Instant, service: usize) {
        if let Some(pace) = self.paces.get_mut(service) {
            pace.count(now, conditions.round());
        }
    }

    /// The bodies of a block for which a class's policy is made: what it sends in a round.
    pub(super) fn bodies_of(&self, service: usize) -> usize {
        let pace = self.paces.get(service).copied().unwrap_or_default();
        pace.in_a_round()
    }

    /// Closes the open block. As a cohort it is only worth keeping if it gets repairs.
    pub(super) fn close(&mut self, conditions: &Conditions, plan: Plan) {
        self.blocks.close(plan);
        if conditions.has_cohorts() && plan.0 == 0 {
            self.blocks.remove_last();
        }
    }

    /// Plans repairs for what has just been found lost: the window's lost bodies from place `from` on.
    pub fn gather_cohorts(
        &mut self,
        conditions: &Conditions,
        window: &SendWindow,
        now: Instant,
        from: usize,
    ) {
        // The cohorts in ascending order, without memory for a list of them.
        let mut done = None;
        loop {
            let lost = window.lost().skip(from);
            let all = lost.filter_map(|seq| cohort_of(conditions, window, now, seq));
            let next = all.filter(|cohort| Some(*cohort) > done).min();
            let Some(cohort) = next else { return };
            done = next;
            self.gather(conditions, window, (now, from), cohort);
        }
    }

    fn gather(
        &mut self,
        conditions: &Conditions,
        window: &SendWindow,
        (now, from): (Instant, usize),
        cohort: (u8, u8),
    ) {
        let (left, service) = cohort;
        let service = usize::from(service);
        let allowed = conditions.allowed(&conditions.service(service));
        let fresh = conditions.rounds_left(now, allowed.map(|allowed| now + allowed));
        let origin = Origin {
            bodies: self.bodies_of(service),
            rounds: fresh,
            turn: 0.0,
        };
        let base = window.base();
        let mut begin = 0;
        loop {
            let members = window
                .lost()
                .skip(from)
                .filter(|&seq| cohort_of(conditions, window, now, seq) == Some(cohort))
                .map(|seq| seq.wrapping_sub(base))
                .filter(|&place| place >= begin);
            let Some(oldest) = members.clone().min() else {
                return;
            };
            // A block's mask has 64 bits: what lies beyond forms the next block.
            let bits = members.filter_map(|place| 1u64.checked_shl(place - oldest));
            let mask = bits.fold(0, |mask, bit| mask | bit);
            let missing = mask.count_ones() as usize;
            let owed = self.planned(conditions, service, (missing, left), origin);
            // While so many blocks wait, bodies are repeated without repairs.
            if owed > 0 && self.blocks.have_room() {
                let first = base.wrapping_add(oldest);
                self.blocks.gather(service, (first, mask), owed);
            }
            begin = oldest.saturating_add(u64::BITS);
        }
    }

    /// Takes out the cohort whose last repair left in `frame`.
    pub fn take_paid_with(&mut self, frame: FrameId) -> Option<Block> {
        let i = self.blocks.paid_with(frame)?;
        let cohort = self.blocks.get(i)?;
        self.blocks.remove(i);
        Some(cohort)
    }

    /// Forgets cohorts that have nothing to wait for any more.
    pub fn forget_cohorts(&mut self, window: &SendWindow, loss: &Paths<LossDetection>) {
        let mut i = 0;
        while let Some(block) = self.blocks.get(i) {
            let settled = block.owed == 0 && is_settled(loss, block.last);
            let whole = || !block.members().any(|seq| window.is_missing(seq));
            if !block.is_open() && (settled || whole()) {
                self.blocks.remove(i);
            } else {
                i += 1;
            }
        }
    }
}

/// Rounds left and class of a body, if its deadline is near enough to plan for.
fn cohort_of(
    conditions: &Conditions,
    window: &SendWindow,
    now: Instant,
    seq: u32,
) -> Option<(u8, u8)> {
    let entry = window.entry(seq)?;
    let service = conditions.service(entry.service.into());
    let deadline = entry.offered + conditions.allowed(&service)?;
    if conditions.is_past(now, Some(deadline)) {
        return None;
    }
    let left = conditions.rounds_left(now, Some(deadline));
    (left <= ROUNDS_MAX).then_some((left, entry.service))
}
