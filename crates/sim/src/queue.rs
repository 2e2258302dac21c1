//! The event queue: a heap of keys.
//!
//! Nothing is ever removed from the middle. A deadline that was moved leaves its key behind, and the wrong generation in
//! the key's count gives it away when it comes up.

use crate::event::{Key, Kind};

/// A heap with four children per parent: half the depth of a binary one, and siblings share a cache line.
///
/// Beside it stand two short sorted lists, for the cursors of frames that are just beginning and just ending. When several
/// frames begin at once, their cursors take turns from receiver to receiver; a list of a few keys is cheaper for that
/// than a heap that holds all deadlines. The place of a key does not change when it comes up.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    heap: Vec<Key>,
    /// The last one is the earliest.
    starts: Vec<Key>,
    ends: Vec<Key>,
}

const CHILDREN: usize = 4;
/// Insertion into a longer list would be slower than into the heap.
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
        // Correct in either place: `top` and `pop` look at all three.
        if list.len() >= LIST_MAX {
            return self.push(key);
        }
        // Searched from the end: a cursor comes up soon, so few keys are earlier and have to move.
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
        // Keys are unique, so there are no ties between the lists and the heap.
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
    use crate::AirTime;
    use crate::event::Kind::*;
    use crate::id::NodeId;
    use chappe_core::{Purpose, Seed};

    const KINDS: [Kind; 6] = [FrameEnd, Head, Timeout, Transmission, FrameStart, Scenario];

    /// The heap sorts: pushes and pops at random against a sorted list.
    #[test]
    fn events_come_out_in_order() {
        let mut random = Seed(1).stream(Purpose::Trial(0));
        let (mut queue, mut model) = (Queue::default(), Vec::new());
        for count in 0..20_000 {
            let kind = KINDS[random.below(6) as usize];
            let key = Key::new(
                AirTime(random.below(50)),
                kind,
                NodeId(random.below(9) as u32),
                count,
            );
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
}
