//! Slots: when this node's turns are, and what it sends in them.

use alloc::sync::Arc;

use chappe_core::{Duration, Instant, Mode, Stream};

use super::flow::Flows;
use super::{Group, Offer, Role};
use crate::improved::header::ObjectId;
use crate::improved::segments::Place;
use crate::improved::slot::{GUARD, OPEN, between};
use crate::improved::turns::Turns;

/// A frame that is later than this does not go: members that share the slot would disturb each other. It is one slot of 802.11.
pub(super) const LATE: Duration = Duration::from_micros(20);

/// The turns of one node, and the clock that tells them.
#[derive(Clone, Debug)]
pub(in crate::improved) struct Slots {
    turns: Arc<Turns>,
    me: u16,
    /// Turns between two open slots.
    between: u64,
    /// How long a slot is.
    span: Duration,
    /// How long the longest report is.
    report: Duration,
    mode: Mode,
    link_overhead: usize,
    /// A slot, and when it began; unknown until a frame of a node nearer to the source tells.
    mark: Option<(u64, Instant)>,
    /// The slot of this node's next turn.
    next: Option<u64>,
    /// The turn of this moment: its slot, and until when its frame may begin.
    turn: Option<(u64, Instant)>,
    flows: Flows,
    /// Since when the source has nothing new to send.
    drained: Option<Instant>,
    /// The segment of the object that the source began last, and when.
    began: Option<(u32, Instant)>,
}

impl Slots {
    pub fn new(
        turns: Arc<Turns>,
        me: u16,
        id: &ObjectId,
        window: u32,
        mode: Mode,
        (frame, report, link_overhead): (usize, usize, usize),
    ) -> Slots {
        Slots {
            turns,
            me,
            between: between(id),
            span: mode.airtime(frame + link_overhead) + GUARD,
            report: mode.airtime(report + link_overhead),
            mode,
            link_overhead,
            mark: None,
            next: None,
            turn: None,
            flows: Flows::new(window),
            drained: None,
            began: None,
        }
    }

    /// Begins slot 0, as the source.
    pub fn start(&mut self, now: Instant) {
        self.mark = Some((0, now));
        self.began = Some((0, now));
        self.find_next(0);
        if self.is_turn(0) {
            self.next = Some(0);
        }
    }

    /// Sets the clock by a frame of slot `slot` that ends now.
    pub fn follow(&mut self, now: Instant, slot: u32, len: usize) {
        let slot = u64::from(slot);
        let airtime = self.mode.airtime(len + self.link_overhead);
        let back = self.mark.is_some_and(|(mark, _)| mark > slot);
        self.mark = Some((slot, now.saturating_before(airtime)));
        // A source that starts over counts its slots anew: the next turn is not that of the old count.
        if back || self.next.is_none_or(|next| next <= slot) {
            self.find_next(slot);
        }
    }

    /// Whether packets go from this node to another one by the turns; `None` if the turns do not say.
    pub fn feeds(&self, node: u16) -> Option<bool> {
        self.turns.feeds(self.me, node)
    }

    /// The slot of this moment's turn.
    pub fn slot(&self) -> Option<u32> {
        self.turn.and_then(|(slot, _)| u32::try_from(slot).ok())
    }

    /// How long a slot is.
    pub fn span(&self) -> Duration {
        self.span
    }

    pub fn end_turn(&mut self) {
        self.turn = None;
    }

    /// When the next turn begins or the present one ends.
    pub fn deadline(&self) -> Option<Instant> {
        let end = self.turn.map(|(_, until)| until);
        let begin = self.next.and_then(|next| self.begin(next));
        end.into_iter().chain(begin).min()
    }

    /// Begins a turn if it is time to. True if one has begun.
    fn advance(&mut self, now: Instant) -> bool {
        if self.turn.is_some_and(|(_, until)| until <= now) {
            self.turn = None;
        }
        let mut begun = false;
        while let Some(next) = self.next
            && let Some(at) = self.begin(next)
            && at <= now
        {
            if at + LATE > now {
                self.turn = Some((next, at + LATE));
                begun = true;
            }
            // After a long silence the turns of the meantime are skipped at once.
            let present = self.at(now).unwrap_or(next).max(next);
            self.find_next(present);
        }
        begun
    }

    fn begin(&self, slot: u64) -> Option<Instant> {
        let (mark, at) = self.mark?;
        Some(at + self.span * slot.saturating_sub(mark))
    }

    fn at(&self, now: Instant) -> Option<u64> {
        let (mark, at) = self.mark?;
        Some(mark + now.saturating_since(at).steps(self.span))
    }

    fn is_turn(&self, slot: u64) -> bool {
        let cycle = self.between + OPEN;
        let within = slot % cycle;
        within < self.between
            && self
                .turns
                .is_turn(slot / cycle * self.between + within, self.me)
    }

    /// Finds the first turn after a slot.
    fn find_next(&mut self, slot: u64) {
        self.next = None;
        if self.turns.has_turns(self.me) {
            // A period of turns and the open slots in it hold a turn of each node that has any.
            let most = (self.turns.horizon() / self.between + 2) * (self.between + OPEN);
            self.next = (slot + 1..=slot + most).find(|&slot| self.is_turn(slot));
        }
    }

    /// A random time in the open slots at or after `at`.
    fn open(&self, at: Instant, random: &mut Stream) -> Option<Instant> {
        let cycle = self.between + OPEN;
        let slot = self.at(at)?;
        let first = slot / cycle * cycle + self.between;
        let first = self.begin(first.max(self.mark?.0))?;
        let last = first + self.span * OPEN;
        let last = last.saturating_before(self.report);
        let (first, last) = match at < last {
            true => (first.max(at), last),
            false => (first + self.span * cycle, last + self.span * cycle),
        };
        Some(first + last.saturating_since(first).mul_f64(random.fraction()))
    }
}

impl Group {
    /// Sends in turns from now on.
    pub fn take_turns(&mut self, mut slots: Slots, now: Instant) {
        if self.role == Role::Source {
            slots.start(now);
        }
        self.slots = Some(slots);
        // Turns say which neighbours are behind.
        self.recruit();
    }

    /// Sets the clock by a data frame of a node nearer to the source.
    pub fn follow_clock(&mut self, now: Instant, from: u16, slot: Option<u32>, len: usize) {
        let leads = self.leads(from);
        if let (Some(slots), Some(slot), true) = (&mut self.slots, slot, leads) {
            slots.follow(now, slot, len);
        }
    }

    /// A time for a report that is due at `at`: in open slots, if there are slots.
    pub(super) fn open_time(&self, at: Instant, random: &mut Stream) -> Instant {
        let slots = self.slots.as_ref().filter(|_| self.in_turns());
        slots.and_then(|slots| slots.open(at, random)).unwrap_or(at)
    }

    /// Whether a report that was set for `report_at` is late because others were sending: with slots it waits for another time.
    pub fn report_late(&self, now: Instant) -> bool {
        self.in_turns() && self.report_at.is_some_and(|at| now > at + LATE)
    }

    pub fn postpone_report(&mut self, now: Instant, random: &mut Stream) {
        self.due = false;
        self.report_at = Some(self.open_time(now + GUARD, random));
    }

    /// Handles the clock: at the beginning of a turn it chooses the batch.
    pub(super) fn advance_slots(&mut self, now: Instant) {
        let Some(slots) = self.slots.as_mut().filter(|_| !self.plan.contend) else {
            return;
        };
        let begun = slots.advance(now);
        if slots.turn.is_none() {
            self.offer = None;
        }
        if begun {
            self.choose(now);
        }
    }

    /// Chooses what to send in a turn: the oldest batch with credit, or with an outer code that of most worth; then what a batch that has come to rest still lacks; then a
    /// batch with a part of a credit.
    fn choose(&mut self, now: Instant) {
        self.offer = None;
        if self.plan.closed || !self.takes_part() {
            return;
        }
        let Some((first, end)) = self.range() else {
            // The source has none left to serve, but receivers farther away may still lack the object.
            self.note_drained(true, now);
            return;
        };
        let mut soonest = Instant::MAX;
        let (mut main, mut repair, mut part) = (None, None::<Offer>, None::<(f32, Offer)>);
        let mut spare: Option<(Instant, Offer)> = None;
        // The source goes on with its oldest batch, or it would begin new ones only.
        let weighs = self.id.outer && self.role != Role::Source;
        for batch in first..end {
            if self.shelf.rank(batch) == 0 || self.is_done(batch) {
                continue;
            }
            let (credit, last) = self.credit(batch);
            if credit >= 1.0 && weighs {
                let worth = self.worth(batch, now, &mut soonest);
                let more = main.is_none_or(|best: Offer| worth > best.worth);
                if more && worth >= self.settings.worth_min {
                    main = Some(Offer { batch, worth });
                }
            } else if credit > 0.0 {
                let worth = self.wanted(batch);
                if worth <= 0.0 {
                    continue;
                }
                let offer = Offer { batch, worth };
                if credit >= 1.0 {
                    main = Some(offer);
                    break;
                }
                if part.is_none_or(|(most, _)| credit > most) {
                    part = Some((credit, offer));
                }
            }
            if spare.is_none_or(|(earliest, _)| last < earliest) {
                let worth = self.said_to_lack(batch);
                if worth > 0.0 {
                    spare = Some((last, Offer { batch, worth }));
                }
            }
            if last + self.settings.settled > now {
                continue;
            }
            let worth = self.worth(batch, now, &mut soonest);
            if worth >= self.settings.worth_min && repair.is_none_or(|best| worth > best.worth) {
                repair = Some(Offer { batch, worth });
            }
        }
        // Coded batches among those of the next segment are new, too: on slow networks eight of them take longer than a member may be silent.
        let new = main.is_some_and(|main| !self.id.is_late(main.batch));
        self.note_drained(!new, now);
        let spare = spare.map(|(_, offer)| offer);
        self.offer = main.or(repair).or(part.map(|(_, offer)| offer)).or(spare);
    }

    /// At the source: when nothing new has been left to send for so long that a member may have failed, members contend.
    fn note_drained(&mut self, drained: bool, now: Instant) {
        if self.role != Role::Source {
            return;
        }
        let (after, outer) = (self.settings.drained, self.id.outer);
        let Some(slots) = &mut self.slots else {
            return;
        };
        let since = *slots.drained.get_or_insert(now);
        let began = slots.began.map_or(since, |(_, began)| began);
        // With coded batches the rest may take as long again as the last segment.
        let after = match outer {
            true => after.max(since.saturating_since(began)),
            false => after,
        };
        match drained {
            false => slots.drained = None,
            true if now.saturating_since(since) >= after => {
                self.plan.contend = true;
                self.contends_from = now;
                self.plan.number = self.plan.number.wrapping_add(1);
                self.recruit();
                self.due = true;
            }
            true => {}
        }
    }

    /// A receiver has become complete, or all have a segment, so members have not failed.
    pub(super) fn note_progress(&mut self) {
        if let Some(slots) = self.slots.as_mut().filter(|_| self.id.outer) {
            slots.drained = None;
        }
    }

    /// The credit of a batch, and when it was last active. The source has the whole credit of a batch that it has not begun.
    fn credit(&self, batch: u32) -> (f32, Instant) {
        let Some(slots) = &self.slots else {
            return (0.0, Instant::ZERO);
        };
        slots.flows.credit(batch).unwrap_or_else(|| {
            let fresh = self.is_origin() && batch >= self.front;
            let credit = if fresh { self.share(batch) } else { 0.0 };
            (credit, Instant::ZERO)
        })
    }

    /// The frames of a batch that this node sends by the plan. The source sends no more than that: its turns set the pace of all, and the next
    /// batch serves everyone, where one more frame of this one serves those who lack its last packets.
    fn share(&self, batch: u32) -> f32 {
        let slots = self.slots.as_ref();
        let own = slots.map_or(0.0, |slots| slots.turns.own(self.me));
        let share = own * self.id.packets(batch) as f32;
        match self.id.outer && self.role != Role::Source {
            true => share * self.settings.share,
            false => share,
        }
    }

    /// Counts a frame of a batch that goes now.
    pub(super) fn spend(&mut self, batch: u32, now: Instant) {
        let (credit, _) = self.credit(batch);
        let share = self.share(batch);
        let own = match self.id.place(batch) {
            Place::Own { segment, .. } => Some(segment),
            Place::Coded { .. } | Place::Beyond => None,
        };
        if let Some(slots) = &mut self.slots {
            if own > slots.began.map(|(segment, _)| segment) {
                slots.began = own.map(|segment| (segment, now));
            }
            if slots.flows.credit(batch).is_none() {
                slots.flows.earn(batch, credit, share, now);
            }
            slots.flows.spend(batch, now);
        }
    }

    /// Gives the whole credit of a batch that was not met before.
    pub(super) fn meet(&mut self, batch: u32, now: Instant) {
        let share = self.share(batch);
        if let Some(slots) = &mut self.slots
            && slots.flows.credit(batch).is_none()
        {
            slots.flows.earn(batch, share, share, now);
        }
    }

    /// Counts a frame of a batch that was heard.
    pub(super) fn earn(&mut self, batch: u32, innovative: bool, now: Instant) {
        let (me, share) = (self.me, self.share(batch));
        if let Some(slots) = &mut self.slots {
            let credit = match innovative {
                true => slots.turns.per_heard(me),
                false => 0.0,
            };
            slots.flows.earn(batch, credit, share, now);
        }
    }

    /// What a frame by credit reaches: members behind that want more of the batch.
    fn wanted(&self, batch: u32) -> f32 {
        let full = self.id.packets(batch) as f32;
        let wanting = self.customers.iter().filter(|customer| {
            customer.behind && self.neighbours.guess(customer.node, batch) < full
        });
        wanting.map(|customer| customer.weight).sum()
    }

    /// What a frame of a batch may be worth to neighbours that lack a packet by their last report, whatever was sent since.
    fn said_to_lack(&self, batch: u32) -> f32 {
        let (rank, full) = (self.shelf.rank(batch), self.id.packets(batch));
        let lacking = self.customers.iter().filter(|customer| {
            self.neighbours.wants(customer.node, batch)
                && self.neighbours.said(customer.node, batch, full) < rank
        });
        lacking.map(|customer| customer.weight).sum()
    }

    /// The rank that this node reports: a relay that sends in turns reports what the members behind it have at least, since its own
    /// rank is as high as its share needs.
    pub(super) fn told_rank(&self, batch: u32, now: Instant) -> u8 {
        let rank = self.shelf.rank(batch) as u8;
        if self.role != Role::Relay || !self.in_turns() {
            return rank;
        }
        let full = self.id.packets(batch);
        let behind = self.customers.iter().filter(|customer| {
            customer.behind
                && self.neighbours.wants(customer.node, batch)
                && self.is_alive(customer.node, now)
        });
        let least = behind.map(|customer| self.neighbours.said(customer.node, batch, full));
        (least.min().unwrap_or(full) as u8).max(rank)
    }
}
