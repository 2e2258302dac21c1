//! How many repairs a block gets, and what goes into them.

use super::*;

/// Redundancy.
impl Sender {
    /// Repairs that the open block will need if one more body joins it: room that must be kept in the slot.
    pub(super) fn planned_repairs(&mut self, now: Instant) -> usize {
        let open = self.blocks.open_block();
        let size = open.map_or(0, |(_, size)| size) + 1;
        match self.config.recovery {
            Recovery::Blocks { rule, .. } => self.rule_repairs(rule, size),
            // A first body always goes, whatever it needs: silence would never end, since estimates come from frames.
            Recovery::Improved { .. } if self.slot_at.is_some() => {
                let Some((service, _)) = open else { return 0 };
                let left = self.open_rounds(now);
                self.planned(service, (size, left), (size, left))
            }
            _ => 0,
        }
    }

    /// Repairs that go with a block of `size` bodies in its first round.
    pub(super) fn repairs_for(&mut self, now: Instant, service: usize, size: usize) -> (usize, u8) {
        match self.config.recovery {
            Recovery::None | Recovery::Acks => (0, 0),
            Recovery::Blocks { rule, .. } => (self.rule_repairs(rule, size), 0),
            Recovery::Improved { .. } => {
                let left = self.open_rounds(now);
                let block = match self.has_cohorts() {
                    true => self.plan_of(service, left),
                    false => (size, left),
                };
                (self.planned(service, (size, left), block), left)
            }
        }
    }

    /// Whether a block is a slot, as in the paper. The controller's blocks are rather what came together: a later packet
    /// has a later deadline.
    pub(super) fn blocks_are_slots(&self) -> bool {
        self.slot_at.is_some() && matches!(self.config.recovery, Recovery::Blocks { .. })
    }

    /// Repairs that wait for the end of the slot, in case more packets join their block; `None` if there are none.
    pub fn waiting_repairs(&mut self, now: Instant) -> Option<usize> {
        let (service, size) = self.blocks.open_block()?;
        let (repairs, _) = self.repairs_for(now, service, size);
        (self.blocks_are_slots() && repairs > 0).then_some(repairs)
    }

    /// What the policy of a block of so many bodies and rounds says for `missing` of them and `left` rounds.
    pub(super) fn planned(
        &mut self,
        service: usize,
        (missing, left): (usize, u8),
        block: (usize, u8),
    ) -> usize {
        let service = self.service(service as u8);
        if left > ROUNDS_MAX {
            return 0;
        }
        let policy = self.policies.get(&self.estimate, &service, block);
        policy.map_or(0, |policy| policy.extra(missing, left))
    }

    pub(super) fn rule_repairs(&self, rule: Redundancy, size: usize) -> usize {
        //= wildnet 3.3.2: redundancy for the slot from the mean loss of the last ten
        let loss = self.estimate.loss();
        match rule {
            Redundancy::Mean => {
                libm::ceil(size as f64 * loss / (1.0 - loss.min(LOSS_MAX)) - 1e-9) as usize
            }
            Redundancy::Residual(residual) => {
                let most = size * 4 + 8;
                block_length(loss, size, residual, most).unwrap_or(most) - size
            }
            Redundancy::Fixed { data, parity } => {
                (size * usize::from(parity)).div_ceil(usize::from(data.max(1)))
            }
        }
    }

    /// Rounds that the open block has left.
    fn open_rounds(&self, now: Instant) -> u8 {
        match self.blocks.open_deadline() {
            // The rounds of its oldest body began when that was sent.
            Some((_, rounds)) if self.has_cohorts() => rounds,
            Some((deadline, _)) => self.rounds_left(now, deadline),
            None => u8::MAX,
        }
    }

    /// Whether what is sent in the present round is late anyway: it is repeated until it arrives, and repairs would hurry
    /// it for nothing.
    pub(super) fn is_past(&self, now: Instant, deadline: Option<Instant>) -> bool {
        deadline.is_some_and(|deadline| self.round_began(now) + self.one_way > deadline)
    }

    /// Rounds that fit between now and the deadline, after one that begins now; without a deadline, very many. In turns
    /// rounds begin with slots: what is sent late in one has its next round as soon as what was sent first.
    pub(super) fn rounds_left(&self, now: Instant, deadline: Option<Instant>) -> u8 {
        let Some(deadline) = deadline else {
            return u8::MAX;
        };
        let begin = self.round_began(now);
        let left = deadline
            .saturating_since(begin)
            .saturating_sub(self.one_way);
        left.steps(self.round).min(254) as u8
    }

    /// Looks which blocks' rounds have ended with this report, and what they need in the next.
    pub(super) fn end_rounds(&mut self, now: Instant, ack: &Ack<'_>) {
        let coded = matches!(self.config.recovery, Recovery::Improved { .. });
        let repeats = self.repeats();
        if self.slot_at.is_some() {
            self.close_cut_block(now);
        }
        let mut i = 0;
        while let Some(block) = self.blocks.get(i) {
            let missing: usize = block.members().filter(|&seq| self.is_missing(seq)).count();
            if missing == 0 {
                self.blocks.remove(i);
                continue;
            }
            let blocks_mode = matches!(self.config.recovery, Recovery::Blocks { .. });
            let busy = block.is_open() || block.owed > 0 || block.ended;
            if busy || before(self.settled, block.last) {
                i += 1;
                continue;
            }
            if blocks_mode {
                let members: ([u32; 64], usize) = block.list();
                for &seq in members.0.iter().take(members.1) {
                    if self.is_missing(seq) && ack.has(seq) == Some(false) {
                        if repeats {
                            self.lose_or_give_up(now, seq)
                        } else {
                            self.give_up(seq)
                        }
                    }
                }
                self.blocks.remove(i);
                continue;
            }
            if self.slot_at.is_some() {
                // What it needs depends on when the next slot begins, which is not known before.
                self.blocks.end_round(i);
            } else {
                let extra = if coded {
                    self.extra_for(now, i, missing)
                } else {
                    0
                };
                self.blocks.next_round(i, extra, self.number);
            }
            i += 1;
        }
    }

    /// In turns: a slot begins, and with it the next round of all blocks whose last one has ended.
    pub(super) fn begin_rounds(&mut self, now: Instant) {
        let coded = matches!(self.config.recovery, Recovery::Improved { .. });
        let mut i = 0;
        while let Some(block) = self.blocks.get(i) {
            if !block.ended {
                i += 1;
                continue;
            }
            let missing = block.members().filter(|&seq| self.is_missing(seq)).count();
            if missing == 0 {
                self.blocks.remove(i);
                continue;
            }
            let extra = if coded {
                self.extra_for(now, i, missing)
            } else {
                0
            };
            self.blocks.next_round(i, extra, self.number);
            i += 1;
        }
    }

    pub(super) fn extra_for(&mut self, now: Instant, block: usize, missing: usize) -> usize {
        let Some(block) = self.blocks.get(block) else {
            return 0;
        };
        if self.is_past(now, block.deadline) {
            return 0;
        }
        let left = self.rounds_left(now, block.deadline);
        self.planned(block.service, (missing, left), (block.size(), block.rounds))
    }

    /// A repair that a block is owed.
    pub(super) fn block_repair(&mut self, out: &mut Out<'_>) -> Option<Choice> {
        loop {
            let i = self.blocks.owing()?;
            let (members, count) = self.blocks.get(i)?.list();
            let mut missing = [0; 64];
            let mut len = 0;
            for &seq in members
                .iter()
                .take(count)
                .filter(|&&seq| self.is_missing(seq))
            {
                if let Some(cell) = missing.get_mut(len) {
                    *cell = seq;
                    len += 1;
                }
            }
            if len == 0 {
                self.blocks.remove(i);
                continue;
            }
            self.blocks.pay(i, self.number);
            let paid = self.blocks.get(i).is_some_and(|block| block.owed == 0);
            let choice = self.combine(missing.iter().copied().take(len), out);
            if paid && choice.is_some() && self.has_cohorts() {
                self.await_repair(missing.get(..len).unwrap_or_default());
            }
            self.counters.repairs += u64::from(choice.is_some());
            return choice;
        }
    }

    /// Ours: time left in a slot is spent on repairs of all that is open.
    pub(super) fn fill(&mut self, out: &mut Out<'_>) -> Option<Choice> {
        let open: Vec<u32> = self
            .open()
            .take(SPAN as usize)
            .filter(|&seq| self.is_missing(seq))
            .collect();
        let choice = self.combine(open.into_iter(), out);
        self.counters.fills += u64::from(choice.is_some());
        choice
    }

    /// Writes a combination of the bodies of `seqs`, which ascend.
    pub(super) fn combine(
        &mut self,
        seqs: impl Iterator<Item = u32>,
        out: &mut Out<'_>,
    ) -> Option<Choice> {
        let index = self.repair;
        self.repair = self.repair.wrapping_add(1);
        out.cover.fill(0);
        let (mut first, mut len, mut last) = (None, 0, 0);
        for seq in seqs {
            let from = *first.get_or_insert(seq);
            let body = self.bodies.get(self.place(seq));
            let place = seq.wrapping_sub(from);
            // What does not fit, the longest body with a wide bitmap, is left to the next repair.
            let cover = place as usize / 8 + 1;
            if place >= SPAN || body.len().max(len) + cover > out.coded.len() {
                break;
            }
            if let Some(more) = out.coded.get_mut(len..body.len().max(len)) {
                more.fill(0);
            }
            add(self.kernel, coefficient(index, seq), body, out.coded);
            len = len.max(body.len());
            set_bit(out.cover, place);
            last = place;
        }
        let first = first.filter(|_| len > BODY)?;
        Some(Choice::Repair {
            first,
            index,
            cover: last as usize / 8 + 1,
            len,
        })
    }
}
