//! Frames in: what a node learns from the frames of an object, and which of their packets it keeps.

use chappe_core::{Duration, Instant, Stream};

use super::{Group, Role};
use crate::improved::header::{Coded, Done, Head, Plan};
use crate::improved::shelf::Gain;
use crate::set::NodeSet;

/// A receiver comes late if it has heard nothing of so many batches: one in this part of the window. With the usual 64 these are 4 of up
/// to 32 packets, and on a link that loses nine of ten frames, all 128 get lost once in 700,000 times.
const LATE: u32 = 16;

impl Group {
    /// Takes in a frame of the group, sent by `from`.
    pub fn on_frame(
        &mut self,
        now: Instant,
        from: u16,
        head: &Head<'_>,
        data: Option<&Coded<'_>>,
        random: &mut Stream,
    ) -> Option<Gain> {
        self.heard_any = now;
        // The plan first: a new epoch clears the set of complete receivers, which the frame then fills again.
        if head.told {
            self.on_plan(now, from, &head.plan, random);
            self.on_complete(now, from, &head.complete, random);
            if let (Some(done), true) = (&head.done, self.id.is_cut()) {
                self.on_done(now, done, random);
            }
        }
        self.on_state(now, from, head);
        self.take_back(now, from, random);
        if let (Some(gone), true) = (&head.gone, head.told) {
            self.on_gone(now, gone, random);
        }
        if self.is_agent(now) && self.report_at.is_none() {
            self.speak_after(now, self.settings.report_interval, random);
        }
        let gain = data.map(|coded| self.on_data(now, from, coded, random));
        self.evaluate(now);
        // The frame ends now, so the medium may be idle.
        self.draw_access(now);
        self.advance_access(now);
        gain
    }

    /// Adopts a plan from a node nearer to the source, and spreads it.
    fn on_plan(&mut self, now: Instant, from: u16, plan: &Plan, random: &mut Stream) {
        if (plan.epoch, plan.number) == (self.plan.epoch, self.plan.number) {
            self.unaware.remove(from);
        }
        if *plan == self.plan {
            return;
        }
        if self.leads(from) {
            let anew = plan.epoch != self.plan.epoch;
            // The sender may not have heard yet that members contend.
            let contend = plan.contend || !anew && self.plan.contend;
            if contend && !self.plan.contend {
                self.contends_from = now;
            }
            self.plan = Plan { contend, ..*plan };
            if anew {
                self.complete = NodeSet::EMPTY;
                self.done = Done::default();
                self.confirmed = NodeSet::EMPTY;
                self.agents = NodeSet::EMPTY;
                self.neighbours.forget();
                self.since = now;
            }
            self.find_ways(now, random);
        }
        // Either the sender follows an older plan and should hear of this one, or this node has just adopted the plan and
        // nodes farther away may not have it yet.
        self.speak_within(now, self.settings.gossip, random);
    }

    fn on_complete(&mut self, now: Instant, from: u16, complete: &NodeSet, random: &mut Stream) {
        if self.is_nearer(from) {
            self.confirmed = self.confirmed.union(complete);
        }
        let mut all = self.complete.union(&complete.without(&self.disputed));
        if self.role == Role::Receiver && !self.shelf.is_whole() {
            // A restarted receiver hears old gossip about itself: only its own shelf tells whether it is complete.
            all.remove(self.me);
        }
        if all != self.complete {
            self.complete = all;
            self.note_progress();
            self.recruit();
            self.repeat = self.settings.repeat_min;
            self.speak_within(now, self.settings.gossip, random);
        }
    }

    fn on_state(&mut self, now: Instant, from: u16, head: &Head<'_>) {
        if self.is_overtaken(now, from, head.times.as_ref()) {
            return;
        }
        self.measure(now, from, head.times.as_ref());
        self.neighbours.on_report(now, from, &self.id, &head.report);
        self.add_recent(now, from);
        let (yielding, patience) = (self.settings.yielding, self.settings.doubt_min);
        if let Some(neighbour) = self.neighbours.get_mut(from) {
            neighbour.heard = Some(now);
            neighbour.urge = head.urge;
            neighbour.urge_until = now + yielding;
            neighbour.patience = patience;
            neighbour.doubt_at = now + patience;
        }
        let asks = head.report.base() < self.id.all() && from != self.source;
        if asks && !self.plan.members.contains(from) && self.guests.insert(from) {
            self.recruit();
        }
        let changed = match asks && self.complete.contains(from) {
            true => self.agents.insert(from),
            false => self.agents.remove(from),
        };
        if changed {
            self.recruit();
        }
        self.follow_customers(now);
    }

    /// Whether this is a complete receiver that lacks packets for a node behind it, because it handed the batches to its
    /// application.
    pub(super) fn is_agent(&self, now: Instant) -> bool {
        self.role == Role::Receiver
            && self.complete.contains(self.me)
            && self.first_wanted(now).is_some()
    }

    /// The first batch of which this node wants more packets.
    pub(super) fn first_wanted(&self, now: Instant) -> Option<u32> {
        let mut places = self.shelf.base()..self.id.all().min(self.shelf.end());
        places.find(|&batch| self.wants(batch, now))
    }

    /// Moves the shelf to the first batch that the served neighbours want: those behind this node, and for a receiver all of
    /// them. A receiver's shelf never begins after the first batch that it lacks itself.
    pub(super) fn follow_customers(&mut self, now: Instant) {
        if self.role == Role::Source {
            return;
        }
        let bases = self
            .customers
            .iter()
            .filter(|customer| customer.behind || self.role == Role::Receiver)
            .filter(|customer| self.is_alive(customer.node, now))
            // A relay that leads nowhere names the last batch that it met, and wants nothing. Of turns there are such, and places would wait
            // for it.
            .filter(|customer| self.slots.is_none() || self.neighbours.wants_any(customer.node))
            .filter_map(|customer| self.neighbours.get(customer.node))
            .map(|neighbour| neighbour.base);
        let theirs = bases.min().filter(|&base| base < self.id.all());
        let base = match (self.role, self.shelf.first_missing()) {
            (Role::Receiver, Some(own)) => {
                // Half of the places are its own, however far behind others are: otherwise it could not finish.
                let least = own.saturating_sub(self.shelf.places() / 2);
                Some(theirs.unwrap_or(own).clamp(least, own))
            }
            _ => theirs,
        };
        if let Some(base) = base {
            self.shelf.move_to(base);
        }
    }

    fn on_data(&mut self, now: Instant, from: u16, coded: &Coded<'_>, random: &mut Stream) -> Gain {
        let batch = coded.batch;
        let sender_rank = match from == self.source {
            true => self.id.packets(batch),
            false => self.neighbours.said(from, batch, self.id.packets(batch)),
        };
        // Before the packet is judged: neighbours may have received it even if this node does not want it.
        self.spread_guess(now, from, batch, sender_rank);
        self.join_round(batch);
        if self.role == Role::Source || self.shelf.makes(batch) {
            self.front = self.front.max(batch.saturating_add(1));
            self.meet(batch, now);
        }
        self.earn(batch, false, now);
        // No node repairs a batch that is past, but what comes of it counts.
        let past = self.role == Role::Receiver && self.is_past(batch) && !self.shelf.is_full(batch);
        if !past && !self.wants(batch, now) {
            return Gain::Nothing;
        }
        self.front = self.front.max(batch.saturating_add(1));
        let gain = self.shelf.insert(coded);
        if gain != Gain::Nothing {
            self.earn(batch, true, now);
            if gain == Gain::Whole || gain == Gain::Decoded {
                self.name_itself();
            }
            self.check_whole(now, random);
            self.repeat = self.settings.repeat_min;
            self.speak_after(now, self.settings.report_interval, random);
        }
        gain
    }

    /// A receiver that has nothing yet, and hears a batch far behind the first one that it lacks, begins there: the batch serves it and
    /// those who are ahead. It collects the earlier ones in a second round, together with others that came late (a data carousel). If
    /// it began with the first batch, those ahead would wait until it has caught up. That held also where the batch still had a place:
    /// once its places were used up, each batch for all waited for one of the first, which served the latecomer alone.
    ///
    /// What it heard first may have been a repair behind the others, or they begin a second round. So a latecomer begins anew where they
    /// are when the frames that it lacks and has no place for are ahead by two batches: each that it has a place for makes up for two.
    fn join_round(&mut self, batch: u32) {
        if self.role != Role::Receiver {
            return;
        }
        let late = batch.saturating_sub(self.shelf.base()) >= self.settings.window.div_ceil(LATE);
        if self.front == 0 && late {
            self.shelf.begin_at(batch);
            self.strays = Some(0);
        }
        let (settled, fits) = (self.shelf.is_settled(batch), self.shelf.has_place(batch));
        let Some(strays) = self.strays.as_mut().filter(|_| !settled) else {
            return;
        };
        *strays = match fits {
            true => strays.saturating_sub(2),
            false => *strays + 1,
        };
        if *strays >= 2 * u32::from(self.id.k) {
            *strays = 0;
            self.shelf.begin_at(batch);
        }
    }

    /// Adds this receiver to the complete ones once it is, and reports it.
    pub fn check_whole(&mut self, now: Instant, random: &mut Stream) {
        if self.role == Role::Receiver && self.shelf.is_whole() && self.complete.insert(self.me) {
            self.recruit();
            self.speak_within(now, self.settings.gossip, random);
        }
    }

    /// Raises the estimates of neighbours that may have received a frame of `from`.
    fn spread_guess(&mut self, now: Instant, from: u16, batch: u32, rank: usize) {
        self.recent.note(now, from, batch, rank as f32);
        let (limit, full) = (rank as f32, self.id.packets(batch) as f32);
        for customer in &self.customers {
            let chance = self.links.ratio(from, customer.node);
            if customer.node != from && chance > 0.0 {
                self.neighbours.expect(
                    now,
                    (customer.node, batch),
                    false,
                    chance as f32,
                    (limit, full),
                );
                self.neighbours.touch(customer.node, batch, now);
            }
        }
    }

    /// Adds the frames in flight to a neighbour's estimate, since its report does not cover them.
    fn add_recent(&mut self, now: Instant, node: u16) {
        if self.settings.timed {
            return;
        }
        let since = now.saturating_before(self.settings.lag);
        for sent in self.recent.since(since).filter(|sent| sent.from != node) {
            let chance = self.links.ratio(sent.from, node);
            self.neighbours
                .count_on(node, sent.batch, chance as f32, sent.rank);
        }
    }

    /// Whether a neighbour was heard lately. The limit grows with its link's ETX, up to 100 times `absent`: few of its frames
    /// arrive over a bad link.
    pub(super) fn is_alive(&self, node: u16, now: Instant) -> bool {
        self.is_heard_within(node, self.settings.absent, now)
    }

    /// Whether a neighbour was heard within a time, which grows with its link's ETX up to a hundred times, or this node takes part for less.
    pub(super) fn is_heard_within(&self, node: u16, time: Duration, now: Instant) -> bool {
        let heard_one_in = 1.0 / self.links.ratio(node, self.me).max(0.01);
        let since = now.saturating_before(time.mul_f64(heard_one_in));
        let neighbour = self.neighbours.get(node);
        self.since >= since || neighbour.is_some_and(|neighbour| neighbour.heard_since(since))
    }

    /// Whether this node wants more packets of a batch.
    pub(super) fn wants(&self, batch: u32, now: Instant) -> bool {
        if self.shelf.is_full(batch) || !self.shelf.has_place(batch) || self.is_done(batch) {
            return false;
        }
        match self.role {
            Role::Source => false,
            Role::Receiver => {
                !self.shelf.is_settled(batch) && !self.is_past(batch)
                    || self.is_wanted_behind(batch, now)
            }
            Role::Relay => self.is_wanted_behind(batch, now),
        }
    }

    /// Whether a batch is so far behind that no node repairs it: with an outer code later batches of its segment make up for it, while there
    /// are any.
    fn is_past(&self, batch: u32) -> bool {
        let far = batch.saturating_add(self.settings.window / 2) < self.front;
        far && self.id.is_before_end(batch, self.front)
    }

    /// Turns may lead packets round in a ring, in which each node wants what the others want. Of batches that are past, which none of them
    /// sends, only nodes farther from the source count.
    fn is_wanted_behind(&self, batch: u32, now: Instant) -> bool {
        let past = self.is_past(batch);
        self.customers.iter().any(|customer| {
            customer.behind
                && !(past && self.is_nearer(customer.node))
                && self.neighbours.wants(customer.node, batch)
                && self.is_alive(customer.node, now)
        })
    }
}
