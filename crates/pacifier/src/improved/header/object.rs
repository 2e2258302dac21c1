//! Which object a frame is of, and where its batches belong.

use crate::improved::K_MAX;
use crate::improved::segments::{Place, SEGMENT, Segments};

/// Which object, and how it is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectId {
    /// A checksum of the octets and of the cut: a source that starts over with the same object has the same tag.
    pub tag: u32,
    /// Batches, at least 1.
    pub batches: u32,
    /// Packets in every batch but the last, 1 to 96.
    pub k: u8,
    /// Packets in the last batch, 1 to k.
    pub last: u8,
    /// Whether batches of an outer code are among those of the object (`segments.rs`).
    pub outer: bool,
}

impl ObjectId {
    /// Whether it has batches, and packets in them.
    pub(super) fn is_sound(&self) -> bool {
        self.batches > 0 && usize::from(self.k) <= K_MAX && (1..=self.k).contains(&self.last)
    }

    /// Packets of a batch; 0 beyond the object.
    pub fn packets(&self, batch: u32) -> usize {
        // Asked thousands of times for each choice of a batch, so without its place.
        let (last, all) = match self.segments() {
            Some(segments) => (
                segments.number(self.batches.saturating_sub(1)),
                segments.all(),
            ),
            None => (self.batches.saturating_sub(1), self.batches),
        };
        match batch {
            _ if batch >= all => 0,
            _ if batch == last => self.last.into(),
            _ => self.k.into(),
        }
    }

    /// All batches that may be sent, with those of the outer code: their numbers are below this.
    pub fn all(&self) -> u32 {
        let segments = self.segments();
        segments.map_or(self.batches, |segments| segments.all())
    }

    /// Packets of the object.
    pub fn sources(&self) -> usize {
        let full = self.batches.saturating_sub(1) as usize;
        full.saturating_mul(self.k.into())
            .saturating_add(self.last.into())
    }
}

/// For objects of several segments.
impl ObjectId {
    /// The segments, if the object is sent with an outer code.
    pub(in crate::improved) fn segments(&self) -> Option<Segments> {
        self.outer.then(|| Segments::of(self.batches))
    }

    /// Whether it has more than one segment.
    pub(in crate::improved) fn is_cut(&self) -> bool {
        self.outer && self.batches > SEGMENT
    }

    /// Where a batch belongs.
    pub fn place(&self, batch: u32) -> Place {
        match self.segments() {
            Some(segments) => segments.place(batch),
            None if batch < self.batches => Place::Own { segment: 0, batch },
            None => Place::Beyond,
        }
    }

    /// The number in the object of a batch that is not coded.
    pub fn own(&self, batch: u32) -> Option<u32> {
        match self.place(batch) {
            Place::Own { batch, .. } => Some(batch),
            Place::Coded { .. } | Place::Beyond => None,
        }
    }

    /// Whether a batch is one of the coded ones that come after all others.
    pub(in crate::improved) fn is_late(&self, batch: u32) -> bool {
        self.segments()
            .is_some_and(|segments| segments.is_late(batch))
    }

    /// Whether the segment of a batch has coded batches from `front` on.
    pub(in crate::improved) fn is_before_end(&self, batch: u32, front: u32) -> bool {
        let segment = self.segments().zip(self.segment(batch));
        segment.is_some_and(|(segments, segment)| front < segments.late_of(segment).end)
    }

    /// The segment of a batch.
    pub fn segment(&self, batch: u32) -> Option<u32> {
        match self.place(batch) {
            Place::Own { segment, .. } | Place::Coded { segment, .. } => Some(segment),
            Place::Beyond => None,
        }
    }
}
