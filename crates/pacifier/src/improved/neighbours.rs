//! What a node knows and estimates about the batches of its neighbours.
//!
//! A neighbour's reports are facts, but old ones. Between two of them a node estimates: each frame that it sends or
//! overhears raises the estimated ranks of neighbours that may have received it too, by the probability that they
//! did. Estimates decide what to send next; facts decide what to drop. The next report corrects an estimate, whichever
//! way it was wrong, so stale or false delivery ratios cost pauses or repetitions, never packets.

use alloc::vec;
use alloc::vec::Vec;

use chappe_core::{Duration, Instant};

use crate::improved::flight::Flight;
use crate::improved::header::ObjectId;
use crate::improved::report::{Report, State};

/// The stored state of a batch of which a neighbour wants no more.
const SATISFIED: u8 = u8::MAX;

/// All nodes of the network as neighbours of one of them, by number.
#[derive(Clone, Debug)]
pub(crate) struct Neighbours {
    window: u32,
    /// The initial lag, if the node accounts for frames in flight by measured lags.
    timed: Option<Duration>,
    table: Vec<Neighbour>,
}

#[derive(Clone, Debug)]
pub(crate) struct Neighbour {
    /// When its last frame arrived.
    pub heard: Option<Instant>,
    /// The first batch that it may want.
    pub base: u32,
    /// Reported ranks from the base on, at the batch's number modulo the window.
    said: Vec<u8>,
    guess: Vec<f32>,
    /// When it last reported something new of a batch, or this node heard another one serve it.
    touched: Vec<Instant>,
    /// When to fall back from estimates to its last report, if it stays silent until then.
    pub doubt_at: Instant,
    /// The next interval of doubt.
    pub patience: Duration,
    /// The batch whose estimate fell back last while it stayed silent.
    doubted: u32,
    /// Its latest urge, and until when that counts.
    pub urge: u8,
    pub urge_until: Instant,
    /// Its latest stamp, and when that arrived.
    pub stamp: Option<(u16, Instant)>,
    /// Frames of this node to it.
    pub own: Flight,
    /// Frames of others to it.
    pub overheard: Flight,
}

impl Neighbours {
    /// Neighbours of which nothing is known yet. Each holds at most `window` batches. With `timed`, the node accounts for frames
    /// in flight, at first by this lag.
    pub fn new(nodes: usize, window: u32, timed: Option<Duration>) -> Neighbours {
        let table = Vec::new();
        let mut neighbours = Neighbours {
            window,
            timed,
            table,
        };
        neighbours.resize(nodes);
        neighbours
    }

    /// Adds or removes neighbours, so that there are `nodes` of them.
    pub fn resize(&mut self, nodes: usize) {
        // Without measured lags flights have no slots: `group/recent.rs` accounts for frames in flight.
        let slots = self.timed.map_or(0, |_| self.window as usize);
        let flight = Flight::new(slots, self.timed.unwrap_or(Duration::ZERO));
        let unknown = Neighbour {
            heard: None,
            base: 0,
            said: vec![0; self.window as usize],
            guess: vec![0.0; self.window as usize],
            touched: vec![Instant::ZERO; self.window as usize],
            doubt_at: Instant::ZERO,
            patience: Duration::ZERO,
            doubted: 0,
            urge: 0,
            urge_until: Instant::ZERO,
            stamp: None,
            own: flight.clone(),
            overheard: flight,
        };
        self.table.resize(nodes, unknown);
    }

    pub fn get(&self, node: u16) -> Option<&Neighbour> {
        self.table.get(usize::from(node))
    }

    pub fn get_mut(&mut self, node: u16) -> Option<&mut Neighbour> {
        self.table.get_mut(usize::from(node))
    }

    pub fn iter(&self) -> impl Iterator<Item = (u16, &Neighbour)> {
        (0u16..).zip(&self.table)
    }

    /// Forgets the state of all batches, but not when neighbours were heard.
    pub fn forget(&mut self) {
        for neighbour in &mut self.table {
            neighbour.move_to(0, 0);
        }
    }

    fn slot(&self, node: u16, batch: u32) -> Option<(&Neighbour, usize)> {
        let neighbour = self.get(node)?;
        let ahead = batch.checked_sub(neighbour.base)?;
        // Each choice of a batch asks thousands of times, and a division takes as long as all the rest.
        let slot = match self.window.is_power_of_two() {
            true => batch & (self.window - 1),
            false => batch % self.window,
        };
        (ahead < self.window).then_some((neighbour, slot as usize))
    }

    /// The estimated rank of a neighbour; infinite for a batch of which it wants no more, or for which it has no room
    /// yet.
    pub fn guess(&self, node: u16, batch: u32) -> f32 {
        let known = self.slot(node, batch);
        known
            .and_then(|(neighbour, slot)| neighbour.guess.get(slot).copied())
            .unwrap_or(f32::INFINITY)
    }

    /// Whether a neighbour wants more of a batch, as far as it has reported; batches not named count as wanted.
    pub fn wants(&self, node: u16, batch: u32) -> bool {
        let known = self.slot(node, batch);
        known
            .and_then(|(neighbour, slot)| neighbour.said.get(slot))
            .is_some_and(|&said| said != SATISFIED)
    }

    /// Whether a neighbour wants more of any batch that it has a place for, as far as it has reported.
    pub fn wants_any(&self, node: u16) -> bool {
        let Some(neighbour) = self.get(node) else {
            return false;
        };
        let end = neighbour.base.saturating_add(self.window);
        (neighbour.base..end).any(|batch| self.wants(node, batch))
    }

    /// The rank that a neighbour has reported for a batch, or `full` if it is satisfied.
    pub fn said(&self, node: u16, batch: u32, full: usize) -> usize {
        let Some(neighbour) = self.get(node) else {
            return 0;
        };
        if batch < neighbour.base {
            return full;
        }
        match self
            .slot(node, batch)
            .and_then(|(neighbour, slot)| neighbour.said.get(slot))
        {
            Some(&SATISFIED) => full,
            Some(&said) => said.into(),
            None => 0,
        }
    }

    /// Raises a neighbour's estimate for a frame that reached it with a probability of `chance`, up to `limit`, the rank of
    /// the sender: combinations cannot exceed the rank of the packets they are made of.
    pub fn count_on(&mut self, node: u16, batch: u32, chance: f32, limit: f32) {
        let window = self.window;
        let Some(neighbour) = self.table.get_mut(usize::from(node)) else {
            return;
        };
        let inside = batch
            .checked_sub(neighbour.base)
            .is_some_and(|ahead| ahead < window);
        if !inside {
            return;
        }
        if let Some(guess) = neighbour.guess.get_mut((batch % window) as usize)
            && *guess < limit
        {
            *guess = (*guess + chance).min(limit);
        }
    }

    /// As [`count_on`](Self::count_on), and records the frame as in flight: this node's `own`, or an overheard one. Every
    /// reception from a sender that has all `full` packets counts.
    pub fn expect(
        &mut self,
        now: Instant,
        (node, batch): (u16, u32),
        own: bool,
        chance: f32,
        (limit, full): (f32, f32),
    ) {
        // Read before it is raised: receptions count in flight only as far as they raise the rank.
        let guess = match self.timed {
            Some(_) => self.guess(node, batch),
            None => f32::INFINITY,
        };
        self.count_on(node, batch, chance, limit);
        // Nothing is measured, or the neighbour wants no more of the batch.
        if guess == f32::INFINITY {
            return;
        }
        let slot = (batch % self.window) as usize;
        let Some(neighbour) = self.get_mut(node) else {
            return;
        };
        let receptions = match limit >= full {
            true => chance,
            false => (limit - guess).clamp(0.0, chance),
        };
        match own {
            true => neighbour.own.note(now, slot, receptions),
            false => neighbour.overheard.note(now, slot, receptions),
        }
    }

    /// Records that another node was heard serving a batch to a neighbour.
    pub fn touch(&mut self, node: u16, batch: u32, now: Instant) {
        let window = self.window;
        let Some(neighbour) = self.table.get_mut(usize::from(node)) else {
            return;
        };
        if let Some(touched) = neighbour.touched.get_mut((batch % window) as usize) {
            *touched = now;
        }
    }

    /// When this node last heard another one serve a batch to a neighbour, or something new of it from the neighbour.
    pub fn attended(&self, node: u16, batch: u32) -> Instant {
        let touched = self
            .slot(node, batch)
            .and_then(|(neighbour, slot)| neighbour.touched.get(slot));
        touched.copied().unwrap_or(Instant::ZERO)
    }

    /// Replaces the estimates of a neighbour by its report, plus the receptions expected of frames in flight.
    pub fn on_report(&mut self, now: Instant, node: u16, object: &ObjectId, report: &Report<'_>) {
        let window = self.window;
        let Some(neighbour) = self.table.get_mut(usize::from(node)) else {
            return;
        };
        // First, so that the states below find their slots.
        neighbour.move_to(report.base(), window);
        let (own, overheard) = (
            neighbour.own.uncovered(now),
            neighbour.overheard.uncovered(now),
        );
        let mut states = report.states();
        // A forged frame may name the last numbers that there are.
        let batches = (0..window).map_while(|ahead| report.base().checked_add(ahead));
        for batch in batches {
            let said = match states.next() {
                Some(State::Satisfied) => SATISFIED,
                Some(State::Rank(rank)) => rank,
                // A cut report says nothing of the rest, which keeps its state; after a complete one batches are empty.
                None if report.is_cut() => break,
                None => 0,
            };
            let slot = (batch % window) as usize;
            // News restart the time that the first rival has to serve it (`turn` in `group/serving.rs`).
            if neighbour.said.get(slot) != Some(&said)
                && let Some(touched) = neighbour.touched.get_mut(slot)
            {
                *touched = now;
            }
            neighbour.say(slot, said);
            if (own.is_some() || overheard.is_some())
                && let Some(guess) = neighbour.guess.get_mut(slot)
                && said != SATISFIED
            {
                let under_way =
                    neighbour.own.since(own, slot) + neighbour.overheard.since(overheard, slot);
                let full = object.packets(batch) as f32;
                *guess = (*guess + under_way).min(full.max(*guess));
            }
        }
    }

    /// Falls back from estimates to a neighbour's last report.
    pub fn doubt(&mut self, node: u16) {
        let Some(neighbour) = self.get_mut(node) else {
            return;
        };
        for slot in 0..neighbour.said.len() {
            let said = neighbour.said.get(slot).copied().unwrap_or(0);
            neighbour.say(slot, said);
        }
    }

    /// Falls back from the estimate of one batch to a neighbour's last report: of the next one after that of the last call, around its window.
    /// A neighbour that is gone so costs a batch at a time, and one that is only not heard gets all of them in turn.
    pub fn doubt_one(&mut self, node: u16) {
        let window = self.window;
        let Some(neighbour) = self.get_mut(node) else {
            return;
        };
        let base = neighbour.base;
        let from = neighbour.doubted.saturating_sub(base).saturating_add(1);
        for ahead in 0..window {
            let batch = base.saturating_add((from % window + ahead) % window);
            let slot = (batch % window) as usize;
            let (Some(&said), Some(&guess)) = (neighbour.said.get(slot), neighbour.guess.get(slot))
            else {
                continue;
            };
            if said != SATISFIED && guess > f32::from(said) {
                neighbour.say(slot, said);
                neighbour.doubted = batch;
                return;
            }
        }
    }
}

impl Neighbour {
    fn say(&mut self, slot: usize, said: u8) {
        if let Some(place) = self.said.get_mut(slot) {
            *place = said;
        }
        if let Some(guess) = self.guess.get_mut(slot) {
            *guess = match said {
                SATISFIED => f32::INFINITY,
                rank => rank.into(),
            };
        }
    }

    /// Moves the window to `base`. Batches that enter it are empty; after a move backwards, which is a restart, all are.
    fn move_to(&mut self, base: u32, window: u32) {
        let fresh = match base.checked_sub(self.base) {
            Some(0) if window > 0 => return,
            Some(steps) if steps < window => {
                self.base.saturating_add(window)..base.saturating_add(window)
            }
            _ => 0..self.said.len() as u32,
        };
        for batch in fresh {
            let slot = (batch as usize) % self.said.len().max(1);
            self.say(slot, 0);
            self.own.clear(slot);
            self.overheard.clear(slot);
            if let Some(touched) = self.touched.get_mut(slot) {
                *touched = Instant::ZERO;
            }
        }
        self.base = base;
    }

    /// Whether it was heard at or after `since`.
    pub fn heard_since(&self, since: Instant) -> bool {
        self.heard.is_some_and(|heard| heard >= since)
    }
}
