//! Which segments of a long object all receivers have.
//!
//! Members that feed each other in a ring each want what the others report to want, so reports alone do not tell that no receiver lacks a segment
//! any more. Therefore receivers name themselves once they have the first segment that is not done, as they do for the whole object. When all
//! have it the source counts it as done, and no node wants or sends its batches any more.

use chappe_core::{Instant, Stream};

use super::{Group, Role};
use crate::improved::header::Done;
use crate::set::NodeSet;

impl Group {
    /// What frames say of the segments, if the object has several.
    pub(super) fn told_done(&self) -> Option<Done> {
        self.id.is_cut().then_some(self.done)
    }

    /// Whether all receivers have the segment of a batch.
    pub(super) fn is_done(&self, batch: u32) -> bool {
        let is_past = |segment| segment < u32::from(self.done.segments);
        self.id.is_cut() && self.id.segment(batch).is_some_and(is_past)
    }

    /// How many segments the object has; none without an outer code.
    fn segments(&self) -> u32 {
        self.id.segments().map_or(0, |segments| segments.count())
    }

    /// Takes in what another node knows of the segments.
    pub(super) fn on_done(&mut self, now: Instant, said: &Done, random: &mut Stream) {
        let before = self.done;
        let is_real = u32::from(said.segments) < self.segments().max(1);
        match said.segments.cmp(&self.done.segments) {
            // Only the source counts segments.
            core::cmp::Ordering::Greater if is_real && self.role != Role::Source => {
                self.done = *said;
            }
            core::cmp::Ordering::Equal => self.done.next = self.done.next.union(&said.next),
            _ => {}
        }
        self.name_itself();
        if self.done != before {
            self.speak_within(now, self.settings.gossip, random);
        }
    }

    /// A receiver names itself if it has the next segment; only its own shelf tells.
    pub(super) fn name_itself(&mut self) {
        if self.role != Role::Receiver {
            return;
        }
        let own = u32::from(self.done.segments);
        match self.shelf.has_segment(own) {
            true => self.done.next.insert(self.me),
            false => self.done.next.remove(self.me),
        };
    }

    /// Counts the segments that all these receivers have, as the source.
    pub fn advance_done(&mut self, now: Instant, receivers: &NodeSet, random: &mut Stream) {
        let have = self.done.next.union(&self.complete);
        let is_last = u32::from(self.done.segments) + 1 >= self.segments();
        if is_last || !receivers.without(&have).is_empty() {
            return;
        }
        self.done = Done {
            segments: self.done.segments.saturating_add(1),
            next: NodeSet::EMPTY,
        };
        self.note_progress();
        self.speak_within(now, self.settings.gossip, random);
    }
}
