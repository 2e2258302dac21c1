//! Frames out: data frames and reports, and when reports are due.

use alloc::sync::Arc;

use chappe_core::{Duration, Instant, Stream};

use super::serving::urge;
use super::slots::Slots;
use super::{Group, Role};
use crate::improved::K_MAX;
use crate::improved::header::{Done, Gone, HeadRepr, Times};
use crate::improved::narrow;
use crate::improved::report::{self, STATES_MAX, State};
use crate::improved::slot;
use crate::links::{Links, Paths};
use crate::set::NodeSet;

/// What the head of a frame says beside what the group knows: nodes in the sets, base and states of the report, stamps and slot.
type Said<'a> = (usize, u32, &'a [u8], (Option<Times>, Option<u32>));

impl Group {
    /// Writes a data frame; returns its length.
    pub fn write_data(
        &mut self,
        now: Instant,
        sdu: &mut [u8],
        random: &mut Stream,
    ) -> Option<usize> {
        let batch = self.offer?.batch;
        let rank = self.shelf.rank(batch) as f32;
        let full = self.id.packets(batch) as f32;
        for customer in &self.customers {
            let chance = customer.chance;
            self.neighbours
                .expect(now, (customer.node, batch), true, chance, (rank, full));
        }
        // Counted before the head is written: its urge is the worth of the frame after this one.
        self.recent.note(now, self.me, batch, rank);
        self.spend(batch, now);
        let in_turns = self.in_turns();
        let slot = self.slots.as_ref().and_then(Slots::slot);
        let slot = slot.filter(|_| in_turns);
        self.front = self.front.max(batch.saturating_add(1));
        self.evaluate(now);
        let mut states = [0; STATES_MAX];
        let most = match self.slots {
            Some(_) => self.settings.data_states.min(slot::states(&self.id)),
            None => self.settings.data_states.min(STATES_MAX),
        };
        let (base, used) = self.states(now, states.get_mut(..most)?);
        // Sets with large node numbers may need more room than the payload leaves: then only reports carry them.
        let room = self.settings.nodes_max.div_ceil(8) * 8;
        let nodes = Some(self.named())
            .filter(|&nodes| nodes <= room)
            .unwrap_or(0);
        let cut = report::is_cut(states.get(..used)?) || nodes == 0;
        let times = self.times(now);
        let said = (nodes, base, states.get(..used)?, (times, slot));
        let (written, len) = match self.shelf.next_plain(batch) {
            Some(index) => {
                let repr = self.head(said);
                let len = repr.plain_len(self.payload);
                let payload = repr.emit_plain(batch, index, self.payload, sdu)?;
                (self.shelf.write_plain(batch, payload), len)
            }
            None => self.combine(batch, said, sdu, random)?,
        };
        if let (true, Some(slots)) = (in_turns, &mut self.slots) {
            slots.end_turn();
            self.offer = None;
        }
        self.draw_access(now + self.span());
        if !written {
            // The application cannot read its object now: try again at the next event.
            self.offer = None;
            return None;
        }
        // A node that sends data all the time must report the rest, too: a report that was due stays due.
        let owed = self.report_at;
        self.untold = cut;
        self.spoken(now, random);
        if self.untold {
            self.speak_after(now, self.settings.report_interval, random);
            self.report_at = self.report_at.min(owed).or(self.report_at);
        }
        Some(len)
    }

    /// Writes a report frame; returns its length.
    pub fn write_report(
        &mut self,
        now: Instant,
        sdu: &mut [u8],
        random: &mut Stream,
    ) -> Option<usize> {
        let mut states = [0; STATES_MAX];
        let (base, used) = self.states(now, &mut states);
        let times = self.times(now);
        let mut repr = self.head((self.named(), base, states.get(..used)?, (times, None)));
        // Data frames have no room for it.
        repr.gone = self.told_gone();
        let len = repr.emit_report(sdu)?;
        self.draw_access(now + self.span());
        self.untold = false;
        self.spoken(now, random);
        Some(len)
    }

    /// One more than the largest number in the sets.
    fn named(&self) -> usize {
        let both = self.plan.members.union(&self.complete);
        let both = both.union(&self.done.next).union(&self.gone.nodes);
        both.iter().last().map_or(1, |node| usize::from(node) + 1)
    }

    /// Writes a combination of the packets of a batch; returns whether there was one, and the frame's length. A node that has heard
    /// members without turns may hold coefficients that are not narrow: it sends a frame as theirs, which is longer than its slot.
    fn combine(
        &mut self,
        batch: u32,
        said: Said<'_>,
        sdu: &mut [u8],
        random: &mut Stream,
    ) -> Option<(bool, usize)> {
        let payload = self.payload;
        if self.slots.is_some() {
            let repr = self.head(said);
            let len = repr.narrow_len(batch, payload);
            let open = repr.emit_narrow(batch, payload, sdu)?;
            let mut room = [0; K_MAX];
            let vector = room.get_mut(..self.id.packets(batch))?;
            let mut draw = |factors: &mut [u8]| {
                random.fill(factors);
                narrow::draw(factors);
            };
            let written = self.shelf.write(batch, &mut draw, vector, open.payload);
            if narrow::pack(vector, open.vector) {
                return Some((written, len));
            }
        }
        let repr = self.head(said);
        let len = repr.data_len(batch, payload);
        let open = repr.emit_data(batch, payload, sdu)?;
        let mut draw = |factors: &mut [u8]| random.fill(factors);
        let written = self
            .shelf
            .write(batch, &mut draw, open.vector, open.payload);
        Some((written, len))
    }

    fn head<'a>(&'a self, (nodes, base, states, (times, slot)): Said<'a>) -> HeadRepr<'a> {
        HeadRepr {
            source: self.source,
            object: self.id,
            plan: &self.plan,
            complete: &self.complete,
            done: self.told_done(),
            gone: None,
            urge: self.offer.map_or(0, |offer| urge(offer.worth)),
            times,
            slot,
            nodes,
            base,
            states,
        }
    }

    /// Writes the states of the batches in flight to `to`; returns the first batch and the octets used.
    fn states(&self, now: Instant, to: &mut [u8]) -> (u32, usize) {
        let end = self.id.all();
        let wants_none = match self.role {
            Role::Source => true,
            Role::Receiver => false,
            Role::Relay => !self
                .customers
                .iter()
                .any(|customer| customer.behind && self.is_alive(customer.node, now)),
        };
        if wants_none {
            return (end, 0);
        }
        // The limit is the number of places, not the number of batches that frames name.
        let places_end = end.min(self.shelf.end());
        let base = self.first_wanted(now).unwrap_or(match self.role {
            Role::Receiver if self.shelf.is_whole() => end,
            // All places wait for the application: the batches after them are still missing.
            Role::Receiver => places_end,
            _ => self.front.max(self.shelf.base()),
        });
        // Neighbours assume that batches not named are wanted, up to a window ahead. Where this node has no room for them,
        // or no need of them, it must report so: otherwise neighbours would send them forever, and with an urge that
        // silences the nodes that have the batches needed here.
        let named = self.front.min(places_end).max(base);
        let ahead = named..base.saturating_add(self.settings.window).min(end);
        let unwanted = ahead.rev().find(|&batch| !self.wants(batch, now));
        let said = unwanted.map_or(named, |batch| batch.saturating_add(1));
        let states = (base..said).map(|batch| match self.wants(batch, now) {
            true => State::Rank(self.told_rank(batch, now)),
            false => State::Satisfied,
        });
        (base, report::write(states, to))
    }

    pub(super) fn spoken(&mut self, now: Instant, random: &mut Stream) {
        self.due = false;
        self.report_at = None;
        self.spoke = now;
        if self.plan.closed {
            return;
        }
        let owed = !self.complete.without(&self.confirmed).is_empty() && self.role != Role::Source;
        let asks = self.role == Role::Receiver && !self.complete.contains(self.me)
            || self.role == Role::Relay && self.takes_part()
            || self.is_agent(now);
        if owed || asks || self.owes_plan() {
            self.speak_after(now, self.repeat, random);
            self.repeat = (self.repeat * 2).min(self.settings.repeat_max);
        }
    }

    /// Whether a neighbour that the source serves may not know of the latest plan. If the former one was closed, all others are silent, and
    /// the source has nothing to send to those who wanted no more: no node would ever speak.
    fn owes_plan(&self) -> bool {
        let mut customers = self.customers.iter();
        self.role == Role::Source && customers.any(|customer| self.unaware.contains(customer.node))
    }

    /// Sets a report `after` the last frame, plus or minus a quarter, unless one is due sooner. The spread keeps neighbours
    /// from reporting at once.
    pub(super) fn speak_after(&mut self, now: Instant, after: Duration, random: &mut Stream) {
        let soon = now + self.settings.gossip.mul_f64(random.fraction());
        let at = self.spoke + after.mul_f64(0.75 + 0.5 * random.fraction());
        let at = self.open_time(at.max(soon), random);
        self.report_at = Some(self.report_at.map_or(at, |known| known.min(at)));
    }

    /// Sets a report at a random time `within` this time from now, unless one is due sooner.
    pub(super) fn speak_within(&mut self, now: Instant, within: Duration, random: &mut Stream) {
        let at = self.open_time(now + within.mul_f64(random.fraction()), random);
        self.report_at = Some(self.report_at.map_or(at, |known| known.min(at)));
    }

    /// Starts serving: chooses the first batch, and the first time of doubt.
    pub fn begin(&mut self, now: Instant) {
        self.evaluate(now);
        if self.doubt_at.is_none() && !self.customers.is_empty() {
            self.doubt_at = Some(now + self.settings.doubt_min);
        }
    }

    /// Serves other members from now on, as the source.
    pub fn serve_others(&mut self, now: Instant, members: NodeSet, random: &mut Stream) {
        match self.done.segments {
            0 => self.serve(now, members, random),
            // The new ones may lack what all others have.
            _ => {
                self.plan.members = members;
                self.start_over(now, random);
            }
        }
    }

    pub(super) fn serve(&mut self, now: Instant, members: NodeSet, random: &mut Stream) {
        self.plan.number = self.plan.number.wrapping_add(1);
        self.plan.members = members;
        self.plan.closed = false;
        self.recruit();
        self.unaware = self
            .customers
            .iter()
            .map(|customer| customer.node)
            .collect();
        self.repeat = self.settings.repeat_min;
        self.speak_within(now, self.settings.gossip, random);
        self.begin(now);
    }

    /// Starts over as the source, with a new epoch: no receiver counts as complete any more.
    pub fn start_over(&mut self, now: Instant, random: &mut Stream) {
        self.plan.epoch = self.plan.epoch.wrapping_add(1);
        self.plan.contend = false;
        self.complete = NodeSet::EMPTY;
        self.done = Done::default();
        self.agents = NodeSet::EMPTY;
        self.neighbours.forget();
        self.serve(now, self.plan.members, random);
    }

    /// Takes a receiver for incomplete, whatever others say of it from now on.
    pub fn dispute(&mut self, now: Instant, receiver: u16, random: &mut Stream) {
        self.disputed.insert(receiver);
        if !self.complete.remove(receiver) {
            return;
        }
        self.recruit();
        match self.role {
            // The others do not serve it either.
            Role::Source => self.start_over(now, random),
            _ => self.evaluate(now),
        }
    }

    /// Batches of which a node wants no more, as far as this node knows: at least those before its base.
    pub fn satisfied(&self, node: u16) -> u32 {
        match self.complete.contains(node) {
            true => self.id.all(),
            false => self
                .neighbours
                .get(node)
                .map_or(0, |neighbour| neighbour.base),
        }
    }

    /// Replaces delivery ratios and distances.
    pub fn relink(&mut self, links: Arc<Links>, paths: Arc<Paths>) {
        self.neighbours.resize(links.nodes());
        self.links = links;
        (self.usual, self.paths) = (paths.clone(), paths);
        self.gone = Gone::default();
        self.accused = NodeSet::EMPTY;
        self.recruit();
    }

    /// Sets a report because this node's state has changed.
    pub fn tell(&mut self, now: Instant, random: &mut Stream) {
        self.check_whole(now, random);
        self.follow_customers(now);
        self.speak_within(now, self.settings.gossip, random);
        self.evaluate(now);
    }

    /// Closes the transfer as the source, and spreads that.
    pub fn close(&mut self, now: Instant, random: &mut Stream) {
        self.plan.closed = true;
        self.evaluate(now);
        self.speak_within(now, self.settings.gossip, random);
    }
}
