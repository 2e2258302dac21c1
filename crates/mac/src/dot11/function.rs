//! One channel access function: DCF has one, EDCA one for each access category.

use chappe_core::{Classes, Duration, Instant, Stream};

use super::backoff::Backoff;
use super::category::Category;
use super::send::Kept;

/// A back-off, a contention window and a frame of its own, towards one medium that the station's functions share.
#[derive(Clone, Debug)]
pub(super) struct Function {
    pub classes: Classes,
    /// How much later than the station's shortest interframe space its slots begin.
    pub extra: Duration,
    pub cw_min: u16,
    pub cw_max: u16,
    pub txop: Duration,
    pub backoff: Backoff,
    /// When the running back-off was drawn: slots before that do not count.
    pub floor: Instant,
    /// The boundary at which it may transmit, as far as is known now.
    pub at: Option<Instant>,
    /// The link node has something for it to send, as far as was last seen.
    pub pending: bool,
    /// It became so just now, and the carrier has not been looked at yet.
    pub fresh: bool,
    /// It waits for the medium or counts slots.
    pub contending: bool,
    pub kept: Kept,
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
        }
    }

    /// Whether one of these classes is its own.
    #[inline]
    pub fn is_for(&self, waiting: Classes) -> bool {
        !waiting.and(self.classes).is_empty()
    }

    /// Whether there is a frame to put on the air.
    #[inline]
    pub fn has_frame(&self) -> bool {
        self.pending || self.kept.is_held()
    }

    /// Whether it goes on contending although the link node has nothing.
    pub fn must_contend(&self) -> bool {
        self.kept.is_held() || self.backoff.is_drawn()
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

    /// Stops contending.
    pub fn rest(&mut self) {
        self.backoff.finish();
        self.contending = false;
        self.at = None;
    }

    /// Another function of the station begins to transmit at `now`. Slots count up to there; whoever waited without a
    /// back-off finds the medium busy and draws one; and whoever has reached its own boundary has collided inside
    /// the station, which widens its window (10.23.2.4). True for such a collision.
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
            self.backoff.freeze(now, slot, Duration::ZERO);
            self.at = None;
        } else {
            self.draw(now, random);
        }
        false
    }
}
