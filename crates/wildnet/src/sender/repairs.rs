//! Repairs: for which bodies, how many, and what goes into them.
//!
//! Bodies that are sent in one round form a [`Block`], which shares its repairs. In slots a block lasts until all of its
//! bodies are settled, and gets new repairs in each round. Without slots, what one report shows to be lost forms a new block,
//! a cohort (`cohorts.rs`).

mod blocks;
mod cohorts;
mod hurry;
mod policies;
mod turns;

use chappe_coding::Kernel;
use chappe_core::Instant;

use super::choice::{Choice, Out};
use super::conditions::Conditions;
use super::loss::{LossDetection, is_settled};
use super::window::{SendWindow, State};
use crate::config::{Recovery, Redundancy, SERVICES};
use crate::decoder::{add, coefficient};
use crate::gilbert::{LOSS_MAX, block_length};
use crate::header::{BODY, COVER, SPAN, set_bit};
use crate::paths::{FrameId, Paths};
use crate::policy::ROUNDS_MAX;
use blocks::{Block, Blocks};
use cohorts::Pace;
use hurry::Hurry;
use policies::Policies;
use turns::Turns;

#[derive(Clone, Debug)]
pub(super) struct Repairs {
    blocks: Blocks,
    policies: Policies,
    /// The rate of new bodies in each class.
    paces: [Pace; SERVICES],
    /// The index of the next repair, from which its coefficients follow.
    index: u8,
    turns: Turns,
    hurry: Hurry,
    /// Bodies before this one have been in a repair that idle time was spent on, or are too old for it.
    filled: u32,
    kernel: Kernel,
}

/// Repairs that a block gets, and the rounds that it has left.
type Plan = (usize, u8);

/// What a block's policy is made for: its bodies and rounds when it began, and its turn.
#[derive(Clone, Copy, Debug)]
struct Origin {
    bodies: usize,
    rounds: u8,
    turn: f64,
}

impl Repairs {
    pub fn new() -> Repairs {
        Repairs {
            blocks: Blocks::new(),
            policies: Policies::new(),
            paces: [Pace::default(); SERVICES],
            index: 0,
            turns: Turns::default(),
            hurry: Hurry::default(),
            filled: 0,
            kernel: Kernel::best(),
        }
    }

    pub fn clear(&mut self) {
        self.blocks.clear();
    }

    /// Whether any repair is due.
    pub fn is_owing(&self) -> bool {
        self.blocks.owing().is_some()
    }

    /// The class of the next repair that is due.
    pub fn owing_service(&self) -> Option<usize> {
        let block = self.blocks.owing().and_then(|i| self.blocks.get(i));
        block.map(|block| block.service)
    }

    /// Octets that the next repair takes, or a little more; `None` if its block lacks nothing any more.
    pub fn next_len(&self, window: &SendWindow) -> Option<usize> {
        let block = self.blocks.owing().and_then(|i| self.blocks.get(i))?;
        let missing = block.members().filter(|&seq| window.is_missing(seq));
        let longest = missing.map(|seq| window.body(seq).len()).max();
        // A repair has a bitmap besides.
        longest.map(|longest| longest + COVER)
    }

    /// Room in the slot, in repairs, that must stay free if one more body joins the open block.
    pub fn reserve(&mut self, conditions: &Conditions, now: Instant) -> usize {
        let open = self.blocks.open_block();
        let size = open.map_or(0, |(_, size)| size) + 1;
        match conditions.config().recovery {
            Recovery::Blocks { rule, .. } => by_rule(conditions, rule, size),
            // A first body always goes, whatever it needs: silence would never end, since estimates come from frames.
            Recovery::Improved { .. } if conditions.in_slots() => {
                let Some((service, _)) = open else { return 0 };
                let left = self.open_rounds(conditions, now);
                let origin = Origin {
                    bodies: size,
                    rounds: left,
                    turn: self.blocks.open_turn(),
                };
                self.planned(conditions, service, (size, left), origin)
            }
            _ => 0,
        }
    }

    /// A new body of `len` octets leaves: it joins the open block, or opens one.
    pub fn on_new(
        &mut self,
        conditions: &Conditions,
        now: Instant,
        (seq, service, len): (u32, usize, usize),
        deadline: Option<Instant>,
    ) {
        let left = conditions.rounds_left(now, deadline);
        let open = self.blocks.open_service();
        // A packet that has more rounds than those before it needs fewer repairs than they do.
        let later = open.is_some()
            && conditions.plans_exactly(service)
            && self.open_rounds(conditions, now) != left;
        if open.is_some_and(|open| open != service) || later || self.is_cut_off(conditions, now) {
            self.close_open_block(conditions, now);
        }
        self.count_new(conditions, now, service);
        let opened = self.blocks.open_block();
        self.hurry.on_new(len, opened.is_none());
        let turn = match opened {
            Some(_) => self.blocks.open_turn(),
            None => self.next_turn(conditions, service),
        };
        if self.blocks.add(seq, (service, deadline, left), turn) {
            self.close_open_block(conditions, now);
        }
    }

    /// A body leaves in `frame`, with which its block's round ends.
    pub fn on_sent(&mut self, conditions: &Conditions, seq: u32, frame: FrameId) {
        // A cohort's round ends with its last repair instead.
        if !conditions.has_cohorts() {
            self.blocks.sent(seq, frame);
        }
    }

    //= wildnet 3.3.2: the packets of a slot are one block, and its repairs follow them
    /// Nothing new is to be sent now, with room for `fits` frames in the slot: closes the open block, unless it waits for
    /// more. True if it is closed.
    pub fn close_if_due(&mut self, conditions: &Conditions, now: Instant, fits: usize) -> bool {
        let Some((service, size)) = self.blocks.open_block() else {
            return false;
        };
        let plan = self.plan(conditions, now, service, size);
        // Until the slot has room for its repairs and one frame more, further packets may join.
        let due = !conditions.blocks_are_slots() || fits <= plan.0 + 1;
        if due {
            let plan = self.hurry(conditions, (service, size), plan);
            self.close(conditions, plan);
        }
        due
    }

    /// Closes the open block of a class that is hurried, if the next new packet is of another one: its repairs then leave before that.
    pub fn close_urgent(&mut self, conditions: &Conditions, now: Instant, next: Option<usize>) {
        let open = self.blocks.open_service().filter(|&open| {
            let hurried = conditions.has_cohorts() && conditions.service(open).drop_late;
            hurried && next != Some(open)
        });
        if open.is_some() {
            self.close_open_block(conditions, now);
        }
    }

    // Ours: what is waited for does not wait for another round, while that costs hardly anything
    /// Adds to the plan of the open block what lets most of its packets arrive in their first round.
    fn hurry(
        &mut self,
        conditions: &Conditions,
        (service, size): (usize, usize),
        (repairs, rounds): Plan,
    ) -> Plan {
        let promise = conditions.service(service);
        if !conditions.has_cohorts() || !promise.drop_late {
            return (repairs, rounds);
        }
        let goal = Hurry::goal(promise);
        let mixture = self.policies.get(conditions.estimate(), &goal, (size, 0));
        let wanted = mixture.map_or(0, |mixture| mixture.of(0.0).extra(size, 0));
        let more = wanted.saturating_sub(repairs);
        let around = conditions.config().frame_max - conditions.config().body_max();
        (repairs + self.hurry.pay(more, around), rounds)
    }

    /// A frame of `len` octets has left.
    pub fn earn(&mut self, len: usize) {
        self.hurry.earn(len);
    }

    fn close_open_block(&mut self, conditions: &Conditions, now: Instant) {
        if let Some((service, size)) = self.blocks.open_block() {
            let plan = self.plan(conditions, now, service, size);
            let plan = self.hurry(conditions, (service, size), plan);
            self.close(conditions, plan);
        }
    }

    /// In slots: the slot is over, so nothing joins the open block any more, and no repair goes with it in its first round.
    pub fn close_cut_block(&mut self, conditions: &Conditions, now: Instant) {
        if let Some((service, size)) = self.blocks.open_block() {
            let (_, rounds) = self.plan(conditions, now, service, size);
            self.blocks.close((0, rounds));
        }
    }

    /// A slot has ended: what first rounds were owed in it and did not fit is not sent any more.
    pub fn end_slot(&mut self) {
        self.blocks.close_all();
    }

    /// Repairs that wait for the end of the slot, in case more packets join their block; `None` if there are none.
    pub fn waiting(&mut self, conditions: &Conditions, now: Instant) -> Option<usize> {
        let (service, size) = self.blocks.open_block()?;
        let (repairs, _) = self.plan(conditions, now, service, size);
        (conditions.blocks_are_slots() && repairs > 0).then_some(repairs)
    }

    /// What goes with a block of `size` bodies in its first round.
    fn plan(&mut self, conditions: &Conditions, now: Instant, service: usize, size: usize) -> Plan {
        match conditions.config().recovery {
            Recovery::None | Recovery::Acks => (0, 0),
            Recovery::Blocks { rule, .. } => (by_rule(conditions, rule, size), 0),
            Recovery::Improved { .. } => {
                let left = self.open_rounds(conditions, now);
                // Without a further round the block must meet the residual by itself: a policy for larger ones may leave out the
                // repairs of a small one.
                let bodies = match conditions.has_cohorts() && left > 0 {
                    true => self.bodies_of(service),
                    false => size,
                };
                let origin = Origin {
                    bodies,
                    rounds: left,
                    turn: self.blocks.open_turn(),
                };
                let repairs = self.planned(conditions, service, (size, left), origin);
                (repairs, left)
            }
        }
    }

    // Ours: two plans in turn leave what the promise allows, and hardly less
    /// A body of a class that may lose the share `residual` is settled: whether it was lost or came too late.
    pub fn settle(&mut self, service: usize, residual: f64, missed: bool) {
        self.turns.settle(service, residual, missed);
    }

    /// Which of two policies the next block of a class follows; 0: the one that meets the promise by itself.
    fn next_turn(&mut self, conditions: &Conditions, service: usize) -> f64 {
        // Where the channel changes, the estimate comes late, and what plans do too much makes up for it.
        match conditions.plans_exactly(service) && conditions.estimate().is_full() {
            true => self.turns.next(service),
            false => 0.0,
        }
    }

    /// What the policy made for a block with this `origin` adds when `missing` of its bodies have `left` rounds.
    fn planned(
        &mut self,
        conditions: &Conditions,
        service: usize,
        (missing, left): (usize, u8),
        origin: Origin,
    ) -> usize {
        if left > ROUNDS_MAX {
            return 0;
        }
        let service = conditions.service(service);
        let block = (origin.bodies, origin.rounds);
        let mixture = self.policies.get(conditions.estimate(), &service, block);
        mixture.map_or(0, |mixture| mixture.of(origin.turn).extra(missing, left))
    }

    /// Rounds that the open block has left.
    fn open_rounds(&self, conditions: &Conditions, now: Instant) -> u8 {
        match self.blocks.open_deadline() {
            // The rounds of its oldest body began when that was sent.
            Some((_, rounds)) if conditions.has_cohorts() => rounds,
            Some((deadline, _)) => conditions.rounds_left(now, deadline),
            None => u8::MAX,
        }
    }

    /// The next block at or after place `i` whose round has ended, and how many bodies it lacks. Blocks that lack nothing are
    /// removed.
    pub fn next_ended(
        &mut self,
        i: &mut usize,
        window: &SendWindow,
        loss: &Paths<LossDetection>,
    ) -> Option<(Block, usize)> {
        loop {
            let block = self.blocks.get(*i)?;
            let missing = block.members().filter(|&seq| window.is_missing(seq));
            let missing = missing.count();
            let busy = block.is_open() || block.owed > 0 || block.ended;
            if missing == 0 {
                self.blocks.remove(*i);
            } else if busy || !is_settled(loss, block.last) {
                *i += 1;
            } else {
                return Some((block, missing));
            }
        }
    }

    pub fn remove(&mut self, i: usize) {
        self.blocks.remove(i);
    }

    /// The round of block `i` has ended, which lacks `missing` bodies: plans the next one, whose frames begin with `frame`.
    pub fn end_round(
        &mut self,
        conditions: &Conditions,
        now: Instant,
        (i, missing): (usize, usize),
        frame: FrameId,
    ) {
        if conditions.in_slots() {
            // What it needs depends on when the next slot begins, which is not known before.
            self.blocks.end_round(i);
        } else {
            let extra = self.extra_for(conditions, now, i, missing);
            self.blocks.next_round(i, extra, frame);
        }
    }

    /// In slots: a slot begins, and with it the next round of all blocks whose last one has ended.
    pub fn begin_rounds(
        &mut self,
        conditions: &Conditions,
        window: &SendWindow,
        now: Instant,
        frame: FrameId,
    ) {
        let mut i = 0;
        while let Some(block) = self.blocks.get(i) {
            if !block.ended {
                i += 1;
                continue;
            }
            let missing = block.members().filter(|&seq| window.is_missing(seq));
            let missing = missing.count();
            if missing == 0 {
                self.blocks.remove(i);
                continue;
            }
            let extra = self.extra_for(conditions, now, i, missing);
            self.blocks.next_round(i, extra, frame);
            i += 1;
        }
    }

    fn extra_for(
        &mut self,
        conditions: &Conditions,
        now: Instant,
        block: usize,
        missing: usize,
    ) -> usize {
        let Some(block) = self.blocks.get(block) else {
            return 0;
        };
        if !conditions.is_planned() || conditions.is_past(now, block.deadline) {
            return 0;
        }
        let left = conditions.rounds_left(now, block.deadline);
        let origin = Origin {
            bodies: block.size(),
            rounds: block.rounds,
            turn: block.turn,
        };
        self.planned(conditions, block.service, (missing, left), origin)
    }

    /// Makes a repair that a block is owed, which leaves in `frame`.
    pub fn next_owed(
        &mut self,
        conditions: &Conditions,
        window: &mut SendWindow,
        frame: FrameId,
        out: &mut Out<'_>,
    ) -> Option<Choice> {
        loop {
            let i = self.blocks.owing()?;
            let block = self.blocks.get(i)?;
            let (mut missing, mut len) = ([0; 64], 0);
            let members = block.members().filter(|&seq| window.is_missing(seq));
            for (cell, seq) in missing.iter_mut().zip(members) {
                *cell = seq;
                len += 1;
            }
            if len == 0 {
                self.blocks.remove(i);
                continue;
            }
            let missing = missing.get(..len).unwrap_or_default();
            self.blocks.pay(i, frame);
            let part = part_of(window, missing, block.owed, out);
            let choice = self.combine(window, part.iter().copied(), out);
            if block.owed == 1 && choice.is_some() && conditions.has_cohorts() {
                // Until its last repair is settled, nothing is known of the cohort's bodies.
                for &seq in missing {
                    if window.state(seq) == Some(State::InFlight) {
                        window.sent_in(seq, frame);
                        window.note_copy(seq);
                    }
                }
            }
            return choice;
        }
    }

    // Ours: time left in a slot is spent on repairs of all that is open.
    /// Makes a repair of open bodies, as many as one reaches. Those that none has covered come first, in their order, with older ones
    /// as far as there is room. If there are none the flow waits for its oldest body, and so does a full window.
    pub fn fill(&mut self, window: &mut SendWindow, out: &mut Out<'_>) -> Option<Choice> {
        let (base, next) = (window.base(), window.next());
        let reach = reach(window, out);
        let fresh = next.wrapping_sub(self.filled).min(window.len());
        let from = match fresh == 0 || window.is_full() {
            true => base,
            false => next.wrapping_sub(fresh.max(reach).min(window.len())),
        };
        if fresh > 0 {
            self.filled = next.wrapping_sub(fresh.saturating_sub(reach));
        }
        let skipped = from.wrapping_sub(base) as usize;
        self.over(window, window.open().skip(skipped), out)
    }

    /// Makes a repair of those of `seqs`, which ascend, that are missing, as far as one reaches.
    pub fn over(
        &mut self,
        window: &mut SendWindow,
        seqs: impl Iterator<Item = u32>,
        out: &mut Out<'_>,
    ) -> Option<Choice> {
        let mut missing = [0; SPAN as usize];
        let mut len = 0;
        let cells = missing.iter_mut();
        for (cell, seq) in cells.zip(seqs.filter(|&seq| window.is_missing(seq))) {
            *cell = seq;
            len += 1;
        }
        let missing = missing.get(..len).unwrap_or_default();
        self.combine(window, missing.iter().copied(), out)
    }

    /// Writes a combination of the bodies of `seqs`, which ascend.
    fn combine(
        &mut self,
        window: &mut SendWindow,
        seqs: impl Iterator<Item = u32>,
        out: &mut Out<'_>,
    ) -> Option<Choice> {
        let index = self.index;
        self.index = self.index.wrapping_add(1);
        out.cover.fill(0);
        let (mut first, mut len, mut last) = (None, 0, 0);
        for seq in seqs {
            let from = *first.get_or_insert(seq);
            let body = window.body(seq);
            let place = seq.wrapping_sub(from);
            // What does not fit, the longest body with a wide bitmap, is left to the next repair.
            let cover = place as usize / 8 + 1;
            if place >= SPAN || body.len().max(len) + cover > out.coded.len() {
                break;
            }
            // Shorter bodies count as filled up with zeros, so the sum is as long as the longest.
            if let Some(more) = out.coded.get_mut(len..body.len().max(len)) {
                more.fill(0);
            }
            add(self.kernel, coefficient(index, seq), body, out.coded);
            len = len.max(body.len());
            window.note_copy(seq);
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

/// Numbers that one repair of the newest bodies spans: fewer than [`SPAN`] if they are so long that a bitmap hardly fits.
pub(super) fn reach(window: &SendWindow, out: &Out<'_>) -> u32 {
    let older = window.len().saturating_sub(SPAN) as usize;
    let near = window.open().skip(older);
    reach_over(window, near.filter(|&seq| window.is_missing(seq)), out)
}

/// Numbers that a repair of these bodies spans.
fn reach_over(window: &SendWindow, seqs: impl Iterator<Item = u32>, out: &Out<'_>) -> u32 {
    let longest = seqs.map(|seq| window.body(seq).len()).max();
    let room = out.coded.len().saturating_sub(longest.unwrap_or(0));
    (room as u32).saturating_mul(8).clamp(1, SPAN)
}

/// The part of a block's bodies, which ascend, that its next repair covers. If one does not reach all, its repairs take turns.
fn part_of<'b>(window: &SendWindow, bodies: &'b [u32], owed: usize, out: &Out<'_>) -> &'b [u32] {
    let reach = reach_over(window, bodies.iter().copied(), out);
    let (Some(first), Some(last)) = (bodies.first(), bodies.last()) else {
        return bodies;
    };
    let parts = last.wrapping_sub(*first) / reach + 1;
    let part = owed as u32 % parts;
    let place = |seq: &u32| seq.wrapping_sub(*first) / reach;
    let from = bodies.partition_point(|seq| place(seq) < part);
    let until = bodies.partition_point(|seq| place(seq) <= part);
    let own = bodies.get(from..until).unwrap_or_default();
    if own.is_empty() { bodies } else { own }
}

/// Repairs that the paper's rules give a block of `size` bodies.
fn by_rule(conditions: &Conditions, rule: Redundancy, size: usize) -> usize {
    //= wildnet 3.3.2: redundancy for the slot from the mean loss of the last ten
    let loss = conditions.estimate().loss();
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

#[cfg(test)]
mod tests {
    use super::*;

    /// More bodies are open than one repair covers. In idle time a repair covers the newest; before, all further ones did so too,
    /// and the oldest body, for which the flow waits, got none.
    #[test]
    fn idle_time_covers_what_is_new_and_then_what_is_oldest() {
        let mut window = SendWindow::new(256, 1024, 100);
        let mut repairs = Repairs::new();
        let mut cover = [0; COVER];
        let mut coded = [0; 200];
        let frame = FrameId::NONE;
        let open = |window: &mut SendWindow| {
            window.begin_body(&[&[7; 80]]);
            window.open_body(0, Instant::ZERO, frame)
        };
        let mut fill = |window: &mut SendWindow, room: usize| {
            let out = &mut Out {
                cover: &mut cover,
                coded: &mut coded[..room],
            };
            match repairs.fill(window, out) {
                Some(Choice::Repair { first, cover, .. }) => (first, cover as u32 * 8),
                other => panic!("{other:?}"),
            }
        };
        for _ in 0..200 {
            open(&mut window);
        }
        let newest = 200 - SPAN;
        let three = [(); 3].map(|()| fill(&mut window, 200));
        assert_eq!(three, [(0, SPAN), (newest, SPAN), (0, SPAN)]);
        open(&mut window);
        let two = [(); 2].map(|()| fill(&mut window, 200));
        assert_eq!(two, [(newest + 1, SPAN), (0, SPAN)]);
        // A full window waits for its oldest body as well.
        window.set_limit(202);
        open(&mut window);
        assert_eq!(fill(&mut window, 200).0, 0);
        // Long bodies leave room for a bitmap of four octets: 32 numbers. What is new is covered all the same, 32 by 32.
        window.set_limit(1024);
        for _ in 0..70 {
            open(&mut window);
        }
        let long = body(&window);
        let four = [(); 4].map(|()| fill(&mut window, long + 4));
        assert_eq!(four, [(202, 32), (234, 32), (240, 32), (0, 32)]);
    }

    /// A block of 64 full-sized bodies, of which one repair reaches 32: its repairs take turns. Before, all of them covered the first
    /// half.
    #[test]
    fn repairs_of_a_long_block_take_turns() {
        let mut window = SendWindow::new(256, 1024, 100);
        for _ in 0..64 {
            window.begin_body(&[&[7; 80]]);
            window.open_body(0, Instant::ZERO, FrameId::NONE);
        }
        let (mut cover, mut coded) = ([0; COVER], [0; 200]);
        let all: [u32; 64] = core::array::from_fn(|place| place as u32);
        let long = body(&window);
        let mut part = |room: usize, bodies: &[u32], owed: usize| {
            let out = &Out {
                cover: &mut cover,
                coded: &mut coded[..room],
            };
            let part = part_of(&window, bodies, owed, out);
            (part[0], part[part.len() - 1])
        };
        let turns = [4, 3, 2, 1].map(|owed| part(long + 4, &all, owed));
        assert_eq!(turns, [(0, 31), (32, 63), (0, 31), (32, 63)]);
        assert_eq!(part(long + 8, &all, 1), (0, 63));
        // Nothing is missing in the middle third.
        assert_eq!(part(long + 2, &[3, 40], 1), (3, 40));
        assert_eq!(part(long + 2, &[3, 40], 2), (40, 40));
    }

    fn body(window: &SendWindow) -> usize {
        window.body(window.base()).len()
    }
}
