//! Numbers of nodes and frame slots, as types: neither can stand where the other is meant.

/// A row of the medium: a node of the run or, from [`Medium::nodes`](crate::Medium::nodes) on, an external interferer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NodeId(pub(crate) u32);

impl NodeId {
    /// The node at a place in the caller's list. A run has at most 65,535.
    #[inline]
    pub(crate) fn of(index: usize) -> NodeId {
        NodeId(index as u32)
    }

    #[inline]
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }

    /// For digests and positions in random streams.
    #[inline]
    pub(crate) fn number(self) -> u64 {
        u64::from(self.0)
    }
}

/// Where a frame is kept while it waits or flies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(pub(crate) u32);

impl Slot {
    /// No frame. Not `Option<Slot>`, which takes four octets more and a [`Radio`](crate::radio::Radio) over its cache line.
    pub(crate) const NONE: Slot = Slot(u32::MAX);

    #[inline]
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }

    #[inline]
    pub(crate) fn is_none(self) -> bool {
        self == Slot::NONE
    }
}
