//! What a node says of an object, and when.

use alloc::sync::Arc;

use chappe_core::{Duration, Instant, Stream};

use super::serving::urge;
use super::{Group, Role};
use crate::improved::header::{HeadRepr, Times};
use crate::improved::report::{self, STATES_MAX, State};
use crate::links::{Links, Paths};
use crate::set::NodeSet;

impl Group {
    /// Writes a data frame; gives its length.
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
        self.recent.note(now, self.me, batch, rank);
        self.front = self.front.max(batch.saturating_add(1));
        self.evaluate(now);
        let mut states = [0; STATES_MAX];
        let most = self.settings.data_states.min(STATES_MAX);
        let (base, used) = self.states(now, states.get_mut(..most)?);
        // Sets of large numbers may need more room than the payload leaves: then reports tell them.
        let room = self.settings.nodes_max.div_ceil(8) * 8;
        let nodes = Some(self.named())
            .filter(|&nodes| nodes <= room)
            .unwrap_or(0);
        let cut = report::is_cut(states.get(..used)?) || nodes == 0;
        let times = self.times(now);
        let repr = self.head(nodes, base, states.get(..used)?, times);
        let (written, len) = match self.shelf.next_plain(batch) {
            Some(index) => {
                let len = repr.plain_len(self.payload);
                let payload = repr.emit_plain(batch, index, self.payload, sdu)?;
                (self.shelf.write_plain(batch, payload), len)
            }
            None => {
                let len = repr.data_len(batch, self.payload);
                let open = repr.emit_data(batch, self.payload, sdu)?;
                let written = self.shelf.write(batch, random, open.vector, open.payload);
                (written, len)
            }
        };
        if !written {
            // The application cannot read its object now: try again when something happens.
            self.offer = None;
            return None;
        }
        // Whoever sends data all the time has to tell the rest, too.
        let owed = self.report_at;
        self.untold = cut;
        self.spoken(now, random);
        if self.untold {
            self.speak_after(now, self.settings.report_interval, random);
            self.report_at = self.report_at.min(owed).or(self.report_at);
        }
        Some(len)
    }

    /// Writes a report frame; gives its length.
    pub fn write_report(
        &mut self,
        now: Instant,
        sdu: &mut [u8],
        random: &mut Stream,
    ) -> Option<usize> {
        let mut states = [0; STATES_MAX];
        let (base, used) = self.states(now, &mut states);
        let times = self.times(now);
        let len = self
            .head(self.named(), base, states.get(..used)?, times)
            .emit_report(sdu)?;
        self.untold = false;
        self.spoken(now, random);
        Some(len)
    }

    /// One more than the largest number in the sets.
    fn named(&self) -> usize {
        let both = self.plan.members.union(&self.complete);
        both.iter().last().map_or(1, |node| usize::from(node) + 1)
    }

    fn head<'a>(
        &'a self,
        nodes: usize,
        base: u32,
        states: &'a [u8],
        times: Option<Times>,
    ) -> HeadRepr<'a> {
        HeadRepr {
            source: self.source,
            object: self.id,
            plan: &self.plan,
            complete: &self.complete,
            urge: self.offer.map_or(0, |offer| urge(offer.worth)),
            times,
            nodes,
            base,
            states,
        }
    }

    // each frame carries the sender's rank of the batches in flight
    fn states(&self, now: Instant, to: &mut [u8]) -> (u32, usize) {
        let end = self.id.batches;
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
        // A number of batches that a frame names is no limit: places are.
        let places_end = end.min(self.shelf.end());
        let base = self.first_wanted(now).unwrap_or(match self.role {
            Role::Receiver if self.shelf.is_whole() => end,
            // All places wait for the application: what comes after them is still missing.
            Role::Receiver => places_end,
            _ => self.front.max(self.shelf.base()),
        });
        // Others take what is not named for wanted, a window far. Where there is no room for it, or no need of it, this has
        // to be said: they would send it for ever, and with an urge that keeps those silent who have what is needed.
        let named = self.front.min(places_end).max(base);
        let ahead = named..base.saturating_add(self.settings.window).min(end);
        let unwanted = ahead.rev().find(|&batch| !self.wants(batch, now));
        let said = unwanted.map_or(named, |batch| batch.saturating_add(1));
        let states = (base..said).map(|batch| match self.wants(batch, now) {
            true => State::Rank(self.shelf.rank(batch) as u8),
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
        if owed || asks {
            self.speak_after(now, self.repeat, random);
            self.repeat = (self.repeat * 2).min(self.settings.repeat_max);
        }
    }

    /// A report so long after the last frame, give or take a quarter, unless one comes sooner anyway.
    pub(super) fn speak_after(&mut self, now: Instant, after: Duration, random: &mut Stream) {
        let soon = now + self.settings.gossip.mul_f64(random.fraction());
        let at = self.spoke + after.mul_f64(0.75 + 0.5 * random.fraction());
        let at = at.max(soon);
        self.report_at = Some(self.report_at.map_or(at, |known| known.min(at)));
    }

    /// A report within a time from now.
    pub(super) fn speak_within(&mut self, now: Instant, within: Duration, random: &mut Stream) {
        let at = now + within.mul_f64(random.fraction());
        self.report_at = Some(self.report_at.map_or(at, |known| known.min(at)));
    }

    /// Begins: the source's first look at its customers.
    pub fn begin(&mut self, now: Instant) {
        self.evaluate(now);
        if self.doubt_at.is_none() && !self.customers.is_empty() {
            self.doubt_at = Some(now + self.settings.doubt_min);
        }
    }

    /// The source serves others from now on.
    pub fn serve(&mut self, now: Instant, members: NodeSet, random: &mut Stream) {
        self.plan.number = self.plan.number.wrapping_add(1);
        self.plan.members = members;
        self.plan.closed = false;
        self.recruit();
        self.speak_within(now, self.settings.gossip, random);
        self.begin(now);
    }

    /// The source takes nothing for granted any more that was said of complete receivers.
    pub fn start_over(&mut self, now: Instant, random: &mut Stream) {
        self.plan.epoch = self.plan.epoch.wrapping_add(1);
        self.complete = NodeSet::EMPTY;
        self.agents = NodeSet::EMPTY;
        self.neighbours.forget();
        self.serve(now, self.plan.members, random);
    }

    /// Batches of which a node wants no more, as far as is known here.
    pub fn satisfied(&self, node: u16) -> u32 {
        match self.complete.contains(node) {
            true => self.id.batches,
            false => self
                .neighbours
                .get(node)
                .map_or(0, |neighbour| neighbour.base),
        }
    }

    /// Other delivery ratios and distances hold from now on.
    pub fn relink(&mut self, links: Arc<Links>, paths: Arc<Paths>) {
        self.neighbours.resize(links.nodes());
        (self.links, self.paths) = (links, paths);
        self.recruit();
    }

    /// A report is owed because something changed here.
    pub fn tell(&mut self, now: Instant, random: &mut Stream) {
        self.check_whole(now, random);
        self.follow_customers(now);
        self.speak_within(now, self.settings.gossip, random);
        self.evaluate(now);
    }

    /// The source's last word.
    pub fn close(&mut self, now: Instant, random: &mut Stream) {
        self.plan.closed = true;
        self.evaluate(now);
        self.speak_within(now, self.settings.gossip, random);
    }
}
