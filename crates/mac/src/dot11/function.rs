//! One channel access function: DCF has one, EDCA one for each access category.

use chappe_core::{Classes, Duration, Instant, Stream};

use super::backoff::Backoff;
use super::category::Category;
use super::send::Kept;

/// One channel access function: a back-off, a contention window and a frame, on the medium that all functions share.
#[derive(Clone, Debug)]
pub(super) struct Function {
    pub classes: Classes,
    /// Its AIFS less the station's shortest.
    pub extra: Duration,
    pub cw_min: u16,
    pub cw_max: u16,
    pub txop: Duration,
    pub backoff: Backoff,
    /// Slots before this instant do not count for the running back-off.
    pub floor: Instant,
    /// The boundary at which it may transmit, by present knowledge.
    pub at: Option<Instant>,
    /// The link node had a frame for it when last asked.
    pub pending: bool,
    /// It became pending, and the carrier has not been considered since.
    pub fresh: bool,
    /// It waits for the medium or counts slots.
    pub contending: bool,
    pub kept: Kept,
    /// The station's A-MPDU is this function's, and has frames.
    pub holds: bool,
}

impl Function {
    /// `shortest` is the least AIFSN of the station's functions; an `eager` back-off counts a slot at its beginning.
    pub fn new(category: Category, shortest: u8, slot: Duration, eager: bool) -> Function {
        Function {
            classes: category.classes,
            extra: slot * u64::from(category.aifsn.saturating_sub(shortest)),
            cw_min: category.cw_min,
            cw_max: category.cw_max,
            txop: category.txop,
            backoff: Backoff::new(category.cw_min, eager),
            floor: Instant::ZERO,
            at: None,
            pending: false,
            fresh: false,
            contending: false,
            kept: Kept::default(),
            holds: false,
        }
    }

    /// Whether `waiting` includes a class of this function.
    #[inline]
    pub fn is_for(&self, waiting: Classes) -> bool {
        !waiting.and(self.classes).is_empty()
    }

    /// Whether it has a frame to send, new or kept.
    #[inline]
    pub fn has_frame(&self) -> bool {
        self.pending || self.kept.is_held() || self.holds
    }

    /// Whether it continues to contend although the link node has nothing to send.
    pub fn must_contend(&self) -> bool {
        self.kept.is_held() || self.holds || self.backoff.is_drawn()
    }

    /// Whether its boundary has come.
    #[inline]
    pub fn is_due(&self, now: Instant) -> bool {
        self.contending && self.at.is_some_and(|at| at <= now)
    }

    /// Draws a back-off whose slots do not begin before `at`.
    #[inline]
    pub fn draw(&mut self, at: Instant, random: &mut Stream) {
        self.backoff.draw(random);
        self.floor = at;
        self.at = None;
    }

    /// Stops contending and forgets the back-off.
    pub fn rest(&mut self) {
        self.backoff.finish();
        self.contending = false;
        self.at = None;
    }

    /// Another function of the station begins to transmit at `now`. A running back-off freezes; a function that waited
    /// without one finds the medium busy and draws; a function at its boundary has collided internally and widens its
    /// window (10.23.2.4). True for an internal collision.
    pub fn give_way(&mut self, now: Instant, slot: Duration, random: &mut Stream) -> bool {
        if !self.contending {
            return false;
        }
        if self.is_due(now) {
            if !self.has_frame() {
                self.rest();
                return false;
            }
            self.backoff.widen(self.cw_max);
            self.draw(now, random);
            return true;
        }
        if self.backoff.is_drawn() {
            // The station need not detect its own transmission: no CCA time.
            self.backoff.freeze(now, slot, Duration::ZERO);
            self.at = None;
        } else {
            self.draw(now, random);
        }
        false
    }
}
