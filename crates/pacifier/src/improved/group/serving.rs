//! Whom a node serves next, with which batch, and when it lets others go first.

use chappe_core::Instant;

use super::{Customer, Group, Offer, Rival, Role};

/// Decisions.
impl Group {
    // the batch with the most expected innovation per frame
    pub(super) fn evaluate(&mut self, now: Instant) {
        self.offer = None;
        self.yields_until = None;
        self.leaves_until = None;
        if self.plan.closed || !self.takes_part() {
            return;
        }
        let bases = || {
            let customers = self.customers.iter();
            let known = customers.filter_map(|customer| self.neighbours.get(customer.node));
            known.map(|neighbour| neighbour.base)
        };
        let Some(first) = bases().min() else {
            return;
        };
        // Beyond the front nobody has anything: one batch of the source stands for all. A source that was restarted
        // learns where the front is from its neighbours.
        let end = match self.role {
            Role::Source => {
                let theirs = bases().filter(|&base| base < self.id.batches).max();
                let front = self.front.max(theirs.unwrap_or(0));
                front.saturating_add(1).min(self.id.batches)
            }
            _ => self.front.min(self.shelf.end()),
        };
        let mut best: Option<(Offer, f32, bool)> = None;
        let mut soonest = Instant::MAX;
        for batch in first.max(self.shelf.base())..end {
            let worth = self.worth(batch, now, &mut soonest);
            if worth < self.settings.worth_min {
                continue;
            }
            // What nobody has seen yet can wait for nobody else to serve it: of two equals it goes first.
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

    /// Innovative receptions that a frame of the batch promises. What is left to others may be this node's after `soonest`.
    fn worth(&self, batch: u32, now: Instant, soonest: &mut Instant) -> f32 {
        let rank = self.shelf.rank(batch);
        if rank == 0 {
            return 0.0;
        }
        let mut worth = 0.0;
        for customer in &self.customers {
            let guess = self.neighbours.guess(customer.node, batch);
            let lack = (rank as f32 - guess).clamp(0.0, 1.0);
            if lack <= 0.0 {
                continue;
            }
            match self.turn(customer, batch, rank, guess) {
                Some(at) if at > now => *soonest = at.min(*soonest),
                _ => worth += lack * customer.weight,
            }
        }
        worth
    }

    /// What those would have gained who have no room for a new batch yet: it will have to be sent to them again.
    fn foregone(&self, batch: u32) -> f32 {
        let crowded = self.customers.iter().filter(|customer| {
            let known = self.neighbours.get(customer.node);
            known.is_some_and(|known| known.base <= batch)
                && self.neighbours.guess(customer.node, batch) == f32::INFINITY
        });
        crowded.map(|customer| customer.chance).sum()
    }

    /// What a frame of a batch is worth beside what it tells: a neighbour that lacks `d` packets of the first batch that it
    /// wants has room for `k` more after `d / chance` frames. Counts for those who are about to run out of it.
    fn released(&self, batch: u32) -> f32 {
        let crowded = self.customers.iter().filter(|customer| {
            let known = self.neighbours.get(customer.node);
            known.is_some_and(|known| known.base == batch)
                && self.front.saturating_sub(batch) > self.settings.window / 4
        });
        let packets = self.id.packets(batch) as f32;
        let released = crowded.map(|customer| {
            let lack = packets - self.neighbours.guess(customer.node, batch);
            match lack > 0.0 {
                true => packets * customer.chance * customer.chance / lack.max(1.0),
                false => 0.0,
            }
        });
        released.sum()
    }

    /// When it is this node's turn to serve a neighbour with a batch: at once, if nobody goes first; otherwise when those
    /// who do have left it unattended for long enough, since none of them may know what it lacks. What they do is seen
    /// here no sooner than a lag after they learn of it.
    fn turn(&self, customer: &Customer, batch: u32, rank: usize, guess: f32) -> Option<Instant> {
        let full = self.id.packets(batch);
        let own = (rank, self.lot(self.me, batch));
        let goes_first = |rival: &&Rival| {
            let theirs = match rival.node == self.source {
                true => full,
                false if self.has_passed(rival.node, batch) => return false,
                false => self.held(rival.node, batch, full),
            };
            theirs as f32 > guess && (rival.better || (theirs, self.lot(rival.node, batch)) > own)
        };
        let before = customer.rivals.iter().filter(goes_first).count() as u64;
        let attended = self.neighbours.attended(customer.node, batch);
        (before > 0)
            .then(|| attended + self.lag(customer.node) + self.settings.report_interval * before)
    }

    /// The rank of a rival: as it said; where reports are late, as it probably is by now, since those who become able to
    /// serve at the same time do not know it of each other.
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

    /// Whether a batch is so far behind what a neighbour wants that its packets may be gone there.
    fn has_passed(&self, node: u16, batch: u32) -> bool {
        let base = self.neighbours.get(node).map_or(0, |known| known.base);
        base.saturating_sub(batch) > self.settings.window / 2
    }

    /// Who of those that could serve a batch equally well does it: the largest, and the source only if nobody else can.
    /// All nodes draw the same lots, by the finalizer of MurmurHash3.
    fn lot(&self, node: u16, batch: u32) -> u32 {
        if node == self.source {
            return 0;
        }
        let mut lot = (batch << 8) ^ u32::from(node);
        lot = (lot ^ lot >> 16).wrapping_mul(0x85eb_ca6b);
        lot = (lot ^ lot >> 13).wrapping_mul(0xc2b2_ae35);
        (lot ^ lot >> 16) | 1
    }

    // whoever promises more goes first
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
        self.offer.is_some() && self.yields_until.is_none()
    }

    /// Whether a report may go now.
    pub fn report_due(&self) -> bool {
        self.due
    }

    /// Whether a report goes before data: data had no room for all that this node should tell.
    pub fn report_first(&self) -> bool {
        self.due && self.untold
    }
}

/// A worth as it stands in a frame.
pub(super) fn urge(worth: f32) -> u8 {
    (worth * 8.0).clamp(0.0, 255.0) as u8
}
