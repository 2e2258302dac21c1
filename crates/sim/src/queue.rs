//! The event queue: a heap of 16-byte keys with a total order.
//!
//! A key is everything there is to an event: when, what kind, whose, and a count that tells two apart and says
//! which frame or which deadline is meant. Nothing is ever removed from the middle: a deadline that was moved
//! leaves its key behind, and a wrong generation in the count tells it when it surfaces.

/// What happens. Events of one instant happen in this order.
///
/// THE ORDER OF THESE LINES DECIDES TIES AND IS PART OF EVERY RUN'S DIGEST. A frame ends before the deadline
/// that was set for its end; nodes act before they can hear what others begin at the same instant, as real
/// radios must; and a fault strikes after everything else of its instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A frame ends at the next antenna in its order of arrival.
    FrameEnd,
    /// The front of a frame has arrived at a node that wants to see it.
    Head,
    /// A node's deadline.
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

/// `(time, kind, node, count)` in one number: 64, 3, 17 and 44 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(u128);

const NODE_BITS: u32 = 17;
const COUNT_BITS: u32 = 44;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;

impl Key {
    /// Later than everything.
    pub(crate) const NEVER: Key = Key(u128::MAX);

    #[inline]
    pub(crate) fn new(at: u64, kind: Kind, node: u32, count: u64) -> Key {
        let order = (kind as u64) << (NODE_BITS + COUNT_BITS)
            | u64::from(node & ((1 << NODE_BITS) - 1)) << COUNT_BITS
            | count & COUNT_MASK;
        Key(u128::from(at) << 64 | u128::from(order))
    }

    /// The same event at another time.
    #[inline]
    pub(crate) fn at_time(self, at: u64) -> Key {
        Key(u128::from(at) << 64 | u128::from(self.0 as u64))
    }

    /// The last moment at which this event still comes before `bound`; `None` if there is none.
    #[inline]
    pub(crate) fn last_before(self, bound: Key) -> Option<u64> {
        let tie = u64::from(self.0 as u64 >= bound.0 as u64);
        bound.at().checked_sub(tie)
    }

    #[inline]
    pub(crate) fn at(self) -> u64 {
        (self.0 >> 64) as u64
    }

    #[inline]
    pub(crate) fn kind(self) -> Kind {
        let index = (self.0 as u64 >> (NODE_BITS + COUNT_BITS)) as usize;
        KINDS.get(index).copied().unwrap_or(Kind::Scenario)
    }

    #[inline]
    pub(crate) fn node(self) -> u32 {
        (self.0 as u64 >> COUNT_BITS) as u32 & ((1 << NODE_BITS) - 1)
    }

    #[inline]
    pub(crate) fn count(self) -> u64 {
        self.0 as u64 & COUNT_MASK
    }
}

/// A heap with four children per parent: half the depth of a binary one, and siblings share a cache line.
///
/// Beside it stand two short sorted lists, for the cursors of frames that are just beginning and just ending: when
/// several frames begin at once their cursors take turns from receiver to receiver, and a list of a few keys is cheaper
/// for that than a heap with everybody's deadlines in it. Where a key waits says nothing about when it comes up.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    heap: Vec<Key>,
    /// The last one is the earliest.
    starts: Vec<Key>,
    ends: Vec<Key>,
}

const CHILDREN: usize = 4;
/// A list longer than this would be slower than the heap.
const LIST_MAX: usize = 32;

impl Queue {
    pub(crate) fn with_capacity(events: usize) -> Queue {
        Queue {
            heap: Vec::with_capacity(events),
            starts: Vec::with_capacity(LIST_MAX),
            ends: Vec::with_capacity(LIST_MAX),
        }
    }

    /// The next event; [`Key::NEVER`] if there is none.
    #[inline]
    pub(crate) fn top(&self) -> Key {
        last(&self.starts).min(self.top_but_starts())
    }

    /// The next event that is not a beginning of a frame, as far as those wait in their list.
    #[inline]
    pub(crate) fn top_but_starts(&self) -> Key {
        last(&self.ends).min(self.top_but_cursors())
    }

    /// The next event that is neither the beginning nor the end of a frame, as far as those wait in their lists.
    #[inline]
    pub(crate) fn top_but_cursors(&self) -> Key {
        self.heap.first().copied().unwrap_or(Key::NEVER)
    }

    /// The same as [`push`](Self::push), for the cursor of a frame that comes up soon.
    #[inline]
    pub(crate) fn push_cursor(&mut self, key: Key) {
        let list = match key.kind() {
            Kind::FrameEnd => &mut self.ends,
            _ => &mut self.starts,
        };
        if list.len() >= LIST_MAX {
            return self.push(key);
        }
        let mut place = list.len();
        list.push(key);
        while place > 0 && list[place - 1] < key {
            list[place] = list[place - 1];
            place -= 1;
        }
        list[place] = key;
    }

    #[inline]
    pub(crate) fn push(&mut self, key: Key) {
        self.heap.push(key);
        let mut place = self.heap.len() - 1;
        while place > 0 {
            let parent = (place - 1) / CHILDREN;
            if self.heap[parent] <= key {
                break;
            }
            self.heap[place] = self.heap[parent];
            place = parent;
        }
        self.heap[place] = key;
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Key> {
        let (start, end) = (last(&self.starts), last(&self.ends));
        if start.min(end) < self.top_but_cursors() {
            return match start < end {
                true => self.starts.pop(),
                false => self.ends.pop(),
            };
        }
        let last = self.heap.pop()?;
        match self.heap.first().copied() {
            None => Some(last),
            Some(top) => {
                self.sink(last);
                Some(top)
            }
        }
    }

    /// How many events wait.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.heap.len() + self.starts.len() + self.ends.len()
    }

    /// Puts `key` where the top was and lets it sink to its place.
    fn sink(&mut self, key: Key) {
        let heap = self.heap.as_mut_slice();
        let mut place = 0;
        loop {
            let first = place * CHILDREN + 1;
            if first >= heap.len() {
                break;
            }
            let end = (first + CHILDREN).min(heap.len());
            let mut least = first;
            for child in first + 1..end {
                if heap[child] < heap[least] {
                    least = child;
                }
            }
            if heap[least] >= key {
                break;
            }
            heap[place] = heap[least];
            place = least;
        }
        heap[place] = key;
    }
}

/// The earliest key of a list.
#[inline]
fn last(list: &[Key]) -> Key {
    list.last().copied().unwrap_or(Key::NEVER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_core::{Purpose, Seed};

    /// The heap sorts: pushes and pops at random against a sorted list.
    #[test]
    fn events_come_out_in_order() {
        let mut random = Seed(1).stream(Purpose::Trial(0));
        let (mut queue, mut model) = (Queue::default(), Vec::new());
        for count in 0..20_000 {
            let kind = KINDS[random.below(6) as usize];
            let key = Key::new(random.below(50), kind, random.below(9) as u32, count);
            if random.below(9) < 5 {
                match kind {
                    Kind::FrameEnd | Kind::FrameStart if random.chance(0.7) => {
                        queue.push_cursor(key);
                    }
                    _ => queue.push(key),
                }
                model.push(key);
            } else {
                model.sort_unstable_by(|a, b| b.cmp(a));
                assert_eq!(queue.top(), model.last().copied().unwrap_or(Key::NEVER));
                assert_eq!(queue.pop(), model.pop());
            }
        }
    }

    #[test]
    fn keys_keep_their_parts_and_order_by_them() {
        let key = Key::new(u64::MAX - 1, Kind::FrameStart, 70_000, 1 << 43 | 5);
        assert_eq!((key.at(), key.kind()), (u64::MAX - 1, Kind::FrameStart));
        assert_eq!((key.node(), key.count()), (70_000, 1 << 43 | 5));
        assert_eq!(
            key.at_time(3),
            Key::new(3, Kind::FrameStart, 70_000, 1 << 43 | 5)
        );
        for bound in [
            Key::new(7, Kind::FrameEnd, 0, 0),
            Key::new(7, Kind::Scenario, 0, 0),
        ] {
            let last = key.last_before(bound).unwrap();
            assert!(key.at_time(last) < bound && key.at_time(last + 1) >= bound);
        }
        assert_eq!(key.last_before(Key::new(0, Kind::FrameEnd, 0, 0)), None);
        let ordered = [
            Key::new(1, Kind::Scenario, 9, 9),
            Key::new(2, Kind::FrameEnd, 9, 9),
            Key::new(2, Kind::Head, 9, 9),
            Key::new(2, Kind::Timeout, 0, 9),
            Key::new(2, Kind::Timeout, 1, 0),
            Key::new(2, Kind::Timeout, 1, 1),
            Key::new(2, Kind::Transmission, 0, 0),
            Key::new(2, Kind::FrameStart, 0, 0),
            Key::new(2, Kind::Scenario, 0, 0),
        ];
        assert!(ordered.is_sorted());
    }
}
