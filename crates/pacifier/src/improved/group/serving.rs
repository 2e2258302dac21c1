//! Scheduling: which neighbours a node serves next, with which batch, and when it yields to others.

use chappe_core::Instant;

use super::{Customer, Group, Offer, Rival, Role};

/// A neighbour lacks little if it wants at most one in this part of the window: with the usual 64 four batches, a fifth of a second of a
/// sender at 8 Mbit/s.
const LITTLE: u32 = 16;

/// The choice of the next frame.
impl Group {
    /// Chooses the batch with the most expected innovation per frame, and decides whether it may go now.
    pub(super) fn evaluate(&mut self, now: Instant) {
        self.yields_until = None;
        self.leaves_until = None;
        if self.in_turns() {
            return;
        }
        self.offer = None;
        if self.plan.closed || !self.takes_part() {
            return;
        }
        let Some((first, end)) = self.range() else {
            return;
        };
        let mut best: Option<(Offer, f32, bool)> = None;
        let mut soonest = Instant::MAX;
        for batch in first..end {
            let worth = self.worth(batch, now, &mut soonest);
            if worth < self.settings.worth_min {
                continue;
            }
            // Only the source can serve a batch with packets that it has not sent yet: of two equals that one goes first.
            let fresh = self.shelf.next_plain(batch).is_some();
            let score = match fresh {
                true => worth - self.foregone(batch),
                false => worth + self.released(batch),
            };
            if best.is_none_or(|(_, former, was)| (former, was) < (score, fresh)) {
                best = Some((Offer { batch, worth }, score, fresh));
            }
        }
        self.leaves_until = Some(soonest).filter(|&at| at != Instant::MAX);
        let Some((offer, ..)) = best else {
            return;
        };
        self.offer = Some(offer);
        self.yield_to_rivals(now, offer.worth);
    }

    /// The first batch that a neighbour may want, and one more than the last that this node can send; `None` without neighbours.
    pub(super) fn range(&self) -> Option<(u32, u32)> {
        let bases = || {
            let customers = self.customers.iter();
            let known = customers.filter_map(|customer| self.neighbours.get(customer.node));
            known.map(|neighbour| neighbour.base)
        };
        let first = bases().min()?;
        // No neighbour has packets of batches beyond the front, so all of them are worth the same: the source looks at the
        // first one only. A restarted source learns from its neighbours where the front is.
        let end = match self.role {
            _ if self.is_origin() => {
                let theirs = bases().filter(|&base| base < self.id.all()).max();
                let front = self.front.max(theirs.unwrap_or(0));
                let next = self.next_wanted(front);
                next.saturating_add(1).min(self.id.all())
            }
            _ => self.front.min(self.shelf.end()),
        };
        Some((first.max(self.shelf.base()), end))
    }

    /// The first batch from `front` on that a neighbour lacks, of those that no node has begun. No receiver may lack coded batches of a segment that
    /// all have, where later segments are to come.
    fn next_wanted(&self, front: u32) -> u32 {
        let Some(segments) = self.id.segments().filter(|_| self.id.is_cut()) else {
            return front;
        };
        let (mut next, all) = (front, segments.all());
        while next < all {
            let full = self.id.packets(next) as f32;
            let mut customers = self.customers.iter();
            let lacks = customers.any(|customer| self.neighbours.guess(customer.node, next) < full);
            if lacks && !self.is_done(next) {
                return next;
            }
            next = segments.next(next);
        }
        front
    }

    /// Innovative receptions that a frame of the batch promises. Lowers `soonest` to the time at which this node takes over a
    /// neighbour that it leaves to others now.
    pub(super) fn worth(&self, batch: u32, now: Instant, soonest: &mut Instant) -> f32 {
        let rank = self.shelf.rank(batch);
        if rank == 0 || self.is_done(batch) {
            return 0.0;
        }
        let mut worth = 0.0;
        for customer in &self.customers {
            let guess = self.neighbours.guess(customer.node, batch);
            // One frame raises a rank by one at most.
            let lack = (rank as f32 - guess).clamp(0.0, 1.0);
            if lack <= 0.0 {
                continue;
            }
            // In a turn of its own a node leaves nothing to others.
            let turn = match self.in_turns() {
                true => None,
                false => self.turn(customer, batch, (rank, guess), now.max(*soonest)),
            };
            match turn {
                Some(at) if at > now => *soonest = at.min(*soonest),
                _ => worth += lack * customer.weight,
            }
        }
        worth
    }

    /// Receptions lost at neighbours that have no room for a new batch yet, to which the source has to send it again.
    fn foregone(&self, batch: u32) -> f32 {
        let crowded = self.customers.iter().filter(|customer| {
            let known = self.neighbours.get(customer.node);
            known.is_some_and(|known| known.base <= batch)
                && self.neighbours.guess(customer.node, batch) == f32::INFINITY
        });
        crowded.map(|customer| customer.chance).sum()
    }

    /// What a frame of a batch is worth for the room that it makes: a neighbour that lacks `d` packets of the first batch that
    /// it wants has room for `k` more after `d / chance` frames. One that lacks little else goes first: that delays the others by a few
    /// batches at most, which it needs in any case, and it does not wait until all others have what serves more of them.
    fn released(&self, batch: u32) -> f32 {
        let packets = self.id.packets(batch) as f32;
        let first = self.customers.iter().filter(|customer| {
            let known = self.neighbours.get(customer.node);
            known.is_some_and(|known| known.base == batch)
        });
        let released = first.map(|customer| {
            let lack = packets - self.neighbours.guess(customer.node, batch);
            if lack <= 0.0 {
                return 0.0;
            }
            if self.lacks_little(customer.node, batch) {
                return packets * customer.chance;
            }
            match self.is_crowded(customer.node, batch) {
                true => packets * customer.chance * customer.chance / lack.max(1.0),
                false => 0.0,
            }
        });
        released.sum()
    }

    /// Whether a neighbour that wants `base` first wants at most a few batches of its window, and so of all that it can take now. Only the
    /// source asks, where frames are timed: there late receivers join a transfer under way, and only the source keeps its first batches.
    fn lacks_little(&self, node: u16, base: u32) -> bool {
        let few = self.settings.window.div_ceil(LITTLE) as usize;
        let end = base.saturating_add(self.settings.window);
        let wanted =
            (base..end.min(self.id.batches)).filter(|&batch| self.neighbours.wants(node, batch));
        self.role == Role::Source && self.settings.timed && wanted.take(few + 1).count() <= few
    }

    /// Whether a neighbour that wants `base` first needs room: it has used a quarter of its window. The front does not tell that
    /// of one which is more than a window behind: it must have got something there. At the end of its first round a neighbour
    /// begins the second one when it has the rest.
    fn is_crowded(&self, node: u16, base: u32) -> bool {
        let window = self.settings.window;
        let quarter = base.saturating_add(window / 4);
        let is_near = self.front <= base.saturating_add(window);
        let used = is_near || self.neighbours.guess(node, quarter) > 0.0;
        let ends = self.front >= self.id.batches && base.saturating_add(window) >= self.front;
        self.front > quarter && used
            || ends && self.is_anyone_before(base.saturating_sub(window / 2))
    }

    /// Whether a neighbour wants a batch before this one.
    fn is_anyone_before(&self, batch: u32) -> bool {
        let customers = self.customers.iter();
        let mut known = customers.filter_map(|customer| self.neighbours.get(customer.node));
        known.any(|known| known.base < batch)
    }

    /// When it is this node's turn to serve a neighbour with a batch: `None` for now, if no rival goes first; otherwise once
    /// the rivals have left the neighbour unattended for long enough, since they may not know what it lacks. This node sees
    /// their frames no sooner than a lag after they learn of the lack. A turn after `late` may be given too early, but after `late`.
    fn turn(
        &self,
        customer: &Customer,
        batch: u32,
        (rank, guess): (usize, f32),
        late: Instant,
    ) -> Option<Instant> {
        let full = self.id.packets(batch);
        let own = (rank, self.draw(self.me, batch));
        let goes_first = |rival: &&Rival| {
            let theirs = match rival.node == self.source {
                true => full,
                false if self.has_passed(rival.node, batch) => return false,
                false => self.held(rival.node, batch, full),
            };
            theirs as f32 > guess && (rival.better || (theirs, self.draw(rival.node, batch)) > own)
        };
        let begin = self.neighbours.attended(customer.node, batch) + self.lag(customer.node);
        let (mut at, mut first) = (begin, true);
        // Each rival ahead adds one interval, so that they take over one after the other and not all at once.
        for _ in customer.rivals.iter().filter(goes_first) {
            (at, first) = (at + self.settings.report_interval, false);
            // Most turns are late, and how late does not matter.
            if at > late {
                break;
            }
        }
        (!first).then_some(at)
    }

    /// The rank of a rival as it reported; where reports are late, its estimated rank, since rivals that become able to serve
    /// at the same time do not know it of each other.
    fn held(&self, node: u16, batch: u32, full: usize) -> usize {
        let said = self.neighbours.said(node, batch, full);
        match self.settings.timed {
            true => {
                let guess = self.neighbours.guess(node, batch).min(full as f32);
                said.max((guess + 0.5) as usize)
            }
            false => said,
        }
    }

    /// Whether a batch is so far behind what a neighbour wants that it may have dropped the packets.
    fn has_passed(&self, node: u16, batch: u32) -> bool {
        let base = self.neighbours.get(node).map_or(0, |known| known.base);
        base.saturating_sub(batch) > self.settings.window / 2
    }

    /// The draw between nodes that could serve a batch equally well: the largest serves it, and the source, with 0, only if no
    /// other node can. All nodes compute the same draws, by the finalizer of MurmurHash3, so they agree without a frame.
    fn draw(&self, node: u16, batch: u32) -> u32 {
        if node == self.source {
            return 0;
        }
        let mut draw = (batch << 8) ^ u32::from(node);
        draw = (draw ^ draw >> 16).wrapping_mul(0x85eb_ca6b);
        draw = (draw ^ draw >> 13).wrapping_mul(0xc2b2_ae35);
        (draw ^ draw >> 16) | 1
    }

    /// Yields to the neighbours with a larger urge, until the first of these urges expires and the choice is made anew.
    fn yield_to_rivals(&mut self, now: Instant, worth: f32) {
        let least = f32::from(urge(worth)) / self.settings.gate;
        for (_, rival) in self.neighbours.iter() {
            if rival.urge_until > now && f32::from(rival.urge) > least {
                self.yields_until = match self.yields_until {
                    Some(until) => Some(until.min(rival.urge_until)),
                    None => Some(rival.urge_until),
                };
            }
        }
    }

    /// Whether a data frame may go now.
    pub fn ready(&self) -> bool {
        let may = !self.contends() || self.access.is_open();
        may && self.offer.is_some() && self.yields_until.is_none()
    }

    /// Whether a report may go now.
    pub fn report_due(&self) -> bool {
        self.due && (!self.contends() || self.access.is_open())
    }

    /// Whether a report goes before data: the last data frame had no room for all states.
    pub fn report_first(&self) -> bool {
        self.report_due() && self.untold
    }
}

/// A worth in the unit of frames, 1/8 of a reception.
pub(super) fn urge(worth: f32) -> u8 {
    (worth * 8.0).clamp(0.0, 255.0) as u8
}
