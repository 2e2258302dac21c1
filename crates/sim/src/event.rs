//! Keys of events: 16 bytes with a total order.
//!
//! A key is everything there is to an event: when, which kind, whose, and a count that tells two apart and names the
//! frame or the deadline. No two events have the same key, so their order does not depend on how the queue works.

use crate::AirTime;
use crate::id::{NodeId, Slot};

/// What happens. Events of one instant happen in this order.
///
/// THE ORDER OF THESE LINES DECIDES TIES AND IS PART OF EVERY RUN'S DIGEST. A frame ends before a deadline set for its end
/// fires. Nodes act before they can hear what others begin at the same instant, as real radios must. A fault strikes
/// after everything else of its instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A frame ends at the next antenna in its order of arrival.
    FrameEnd,
    /// The head of a frame has arrived at a node that asked to see it early.
    Head,
    /// The deadline of a node has come.
    Timeout,
    /// A frame's scheduled start.
    Transmission,
    /// A frame arrives at the next antenna in its order of arrival.
    FrameStart,
    /// A fault, or an interferer's burst.
    Scenario,
}

const KINDS: [Kind; 6] = [
    Kind::FrameEnd,
    Kind::Head,
    Kind::Timeout,
    Kind::Transmission,
    Kind::FrameStart,
    Kind::Scenario,
];

/// `(time, kind, node, count)` in one number: 64, 3, 17 and 44 bits. One comparison of 128 bits orders two events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(u128);

const NODE_BITS: u32 = 17;
const COUNT_BITS: u32 = 44;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;
/// Bits of a count that hold a slot, in events that have one.
const SLOT_BITS: u32 = 18;

impl Key {
    /// The key after all others: an empty queue or cursor.
    pub(crate) const NEVER: Key = Key(u128::MAX);

    #[inline]
    pub(crate) fn new(at: AirTime, kind: Kind, node: NodeId, count: u64) -> Key {
        // Most significant first: comparing two numbers compares time, kind, node and count in this order.
        let order = (kind as u64) << (NODE_BITS + COUNT_BITS)
            | (node.number() & ((1 << NODE_BITS) - 1)) << COUNT_BITS
            | count & COUNT_MASK;
        Key(u128::from(at.0) << 64 | u128::from(order))
    }

    /// A key whose count holds a slot and, above it, another number.
    #[inline]
    pub(crate) fn with_slot(
        at: AirTime,
        kind: Kind,
        node: NodeId,
        (number, slot): (u64, Slot),
    ) -> Key {
        Key::new(at, kind, node, number << SLOT_BITS | u64::from(slot.0))
    }

    /// The same event at another time.
    #[inline]
    pub(crate) fn at_time(self, at: AirTime) -> Key {
        Key(u128::from(at.0) << 64 | u128::from(self.0 as u64))
    }

    /// The last moment at which this event still comes before `bound`; `None` if there is none.
    #[inline]
    pub(crate) fn last_before(self, bound: Key) -> Option<AirTime> {
        // At the bound's own instant the lower halves decide: kind, node and count.
        let tie = u64::from(self.0 as u64 >= bound.0 as u64);
        bound.at().0.checked_sub(tie).map(AirTime)
    }

    #[inline]
    pub(crate) fn at(self) -> AirTime {
        AirTime((self.0 >> 64) as u64)
    }

    #[inline]
    pub(crate) fn kind(self) -> Kind {
        let index = (self.0 as u64 >> (NODE_BITS + COUNT_BITS)) as usize;
        KINDS.get(index).copied().unwrap_or(Kind::Scenario)
    }

    #[inline]
    pub(crate) fn node(self) -> NodeId {
        NodeId((self.0 as u64 >> COUNT_BITS) as u32 & ((1 << NODE_BITS) - 1))
    }

    #[inline]
    pub(crate) fn count(self) -> u64 {
        self.0 as u64 & COUNT_MASK
    }

    /// The slot in the count.
    #[inline]
    pub(crate) fn slot(self) -> Slot {
        Slot(self.count() as u32 & ((1 << SLOT_BITS) - 1))
    }

    /// What stands above the slot in the count.
    #[inline]
    pub(crate) fn above_slot(self) -> u64 {
        self.count() >> SLOT_BITS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(at: u64, kind: Kind, node: u32, count: u64) -> Key {
        Key::new(AirTime(at), kind, NodeId(node), count)
    }

    #[test]
    fn keys_keep_their_parts_and_order_by_them() {
        let one = key(u64::MAX - 1, Kind::FrameStart, 70_000, 1 << 43 | 5);
        assert_eq!(
            (one.at(), one.kind()),
            (AirTime(u64::MAX - 1), Kind::FrameStart)
        );
        assert_eq!((one.node(), one.count()), (NodeId(70_000), 1 << 43 | 5));
        assert_eq!(
            one.at_time(AirTime(3)),
            key(3, Kind::FrameStart, 70_000, 1 << 43 | 5)
        );
        for bound in [key(7, Kind::FrameEnd, 0, 0), key(7, Kind::Scenario, 0, 0)] {
            let last = one.last_before(bound).unwrap();
            assert!(one.at_time(last) < bound && one.at_time(AirTime(last.0 + 1)) >= bound);
        }
        assert_eq!(one.last_before(key(0, Kind::FrameEnd, 0, 0)), None);
        let ordered = [
            key(1, Kind::Scenario, 9, 9),
            key(2, Kind::FrameEnd, 9, 9),
            key(2, Kind::Head, 9, 9),
            key(2, Kind::Timeout, 0, 9),
            key(2, Kind::Timeout, 1, 0),
            key(2, Kind::Timeout, 1, 1),
            key(2, Kind::Transmission, 0, 0),
            key(2, Kind::FrameStart, 0, 0),
            key(2, Kind::Scenario, 0, 0),
        ];
        assert!(ordered.is_sorted());
    }
}
