//! The receive buffer: one flat ring, in which data out of order is written to its final place at once.
//!
//! ```text
//!            head        ready              |<-- out of order -->|
//!   ..........[ in order, unread ][  hole  ][ kept ][ hole ][kept].........
//!                                 ^ next sequence number expected
//! ```
//! A short list of sequence ranges, lent by the caller, records which octets past the hole are present. The range that
//! changed last stands first, which is the order of SACK blocks (RFC 2018 4). When the list is full, data that would need
//! another range is dropped rather than stored in the place of an older one. So nothing once reported is taken back, and a
//! flood of small segments costs at most one walk over the list per segment.

use super::ring::{Ring, copy};
use super::{Range, Seq};

/// Data received: in order and unread, or kept until a hole before it is filled.
#[derive(Debug)]
pub struct Reassembly<'a> {
    ring: Ring<'a>,
    /// Ranges in use first; the first empty one ends the list.
    ranges: &'a mut [Range],
    ready: u32,
}

/// The result of inserting a segment's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inserted {
    /// By how much the next expected sequence number moves.
    pub advanced: u32,
    /// Whether a hole appeared or was filled, wholly or in part: the peer must get an acknowledgement at once.
    pub gap: bool,
    /// The first part of the data that was present already, to be reported by a D-SACK; empty if none.
    pub duplicate: Range,
}

impl<'a> Reassembly<'a> {
    pub(super) fn new(ring: &'a mut [u8], ranges: &'a mut [Range]) -> Reassembly<'a> {
        let mut buffer = Reassembly {
            ring: Ring::new(ring),
            ranges,
            ready: 0,
        };
        buffer.clear();
        buffer
    }

    /// Octets that can be read now.
    pub fn ready(&self) -> u32 {
        self.ready
    }

    /// Octets the ring can hold.
    pub fn capacity(&self) -> u32 {
        self.ring.capacity()
    }

    /// Octets of sequence space past RCV.NXT for which there is room.
    pub fn free(&self) -> u32 {
        self.capacity().saturating_sub(self.ready)
    }

    /// The ranges out of order; the one that changed last stands first.
    pub fn ranges(&self) -> &[Range] {
        self.ranges.get(..self.count()).unwrap_or_default()
    }

    fn count(&self) -> usize {
        let end = self.ranges.iter().position(|range| range.is_empty());
        end.unwrap_or(self.ranges.len())
    }

    /// The octets that can be read, in order, in two parts.
    pub fn readable(&self) -> (&[u8], &[u8]) {
        let [first, second] = self.ring.parts(0, self.ready);
        (first, second)
    }

    /// Copies out as much as fits and returns the number of octets.
    pub fn read(&mut self, data: &mut [u8]) -> usize {
        let len = data.len().min(self.ready as usize);
        let [first, second] = self.ring.parts(0, len as u32);
        copy(data, 0, first);
        copy(data, first.len(), second);
        self.consume(len as u32);
        len
    }

    /// Drops the oldest `octets`, which the application has read.
    pub fn consume(&mut self, octets: u32) {
        let octets = octets.min(self.ready);
        self.ring.advance(octets);
        self.ready = self.ready.wrapping_sub(octets);
    }

    /// Inserts `data` that starts at `seq`; `next` is RCV.NXT. The caller has cut the data to the window: it starts at or
    /// after `next` and ends within [`free`](Self::free).
    pub(super) fn insert(&mut self, next: Seq, seq: Seq, data: &[u8]) -> Inserted {
        let new = Range::new(seq, seq + data.len() as u32);
        let offset = seq.since(next);
        if new.is_empty() || offset.saturating_add(new.len()) > self.free() {
            return Inserted::default();
        }
        let in_order = offset == 0;
        let gap = !in_order || !self.ranges().is_empty();
        // Empty, past the end of what is new.
        let mut duplicate = Range::new(new.end, new.end);
        let union = self.gather(new, &mut duplicate);
        if in_order || self.keep(union) {
            self.ring.put(self.ready.wrapping_add(offset), data);
        }
        let advanced = if in_order { union.end.since(next) } else { 0 };
        self.ready = self.ready.wrapping_add(advanced);
        Inserted {
            advanced,
            gap,
            duplicate,
        }
    }

    /// Removes the ranges that join `new`, and returns their union with it. Ranges in the list never join each other, so one pass
    /// finds all. `duplicate` becomes the first part of `new` that is present already.
    fn gather(&mut self, new: Range, duplicate: &mut Range) -> Range {
        let (mut union, mut index) = (new, 0usize);
        while let Some(&range) = self.ranges().get(index) {
            if !range.joins(new) {
                index = index.wrapping_add(1);
                continue;
            }
            let both = range.and(new);
            if !both.is_empty() && both.start.before(duplicate.start) {
                *duplicate = both;
            }
            union.start = union.start.earlier(range.start);
            union.end = union.end.later(range.end);
            if let Some(list) = self.ranges.get_mut(index..) {
                list.copy_within(1.., 0);
            }
            if let Some(last) = self.ranges.last_mut() {
                *last = Range::default();
            }
        }
        union
    }

    /// Adds a range out of order at the front. False if the list is full.
    fn keep(&mut self, range: Range) -> bool {
        if self.ranges.last().is_none_or(|last| !last.is_empty()) {
            return false;
        }
        self.ranges.rotate_right(1);
        if let Some(front) = self.ranges.first_mut() {
            *front = range;
        }
        true
    }

    /// Empties the buffer and the list of ranges, for a new connection.
    pub(super) fn clear(&mut self) {
        self.ring.reset();
        self.ready = 0;
        self.ranges.fill(Range::default());
    }

    /// Takes the memory out: of the ring, and of the list.
    pub(super) fn take(&mut self) -> (&'a mut [u8], &'a mut [Range]) {
        (self.ring.take(), core::mem::take(&mut self.ranges))
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec;
    use std::vec::Vec;

    /// A model of the receive buffer, with one `Option` per octet of the stream.
    struct Model {
        stream: Vec<Option<u8>>,
        next: usize,
    }

    impl Model {
        fn insert(&mut self, seq: usize, data: &[u8]) -> usize {
            for (slot, octet) in self.stream[seq..].iter_mut().zip(data) {
                *slot = Some(*octet);
            }
            let before = self.next;
            while self.stream.get(self.next).is_some_and(Option::is_some) {
                self.next += 1;
            }
            self.next - before
        }
    }

    /// T07: every buffer of 1 to 20 octets, every head position, every pair of segments inside it, against the
    /// model: same advance, same octets, and the ranges say exactly what is held beyond the hole.
    #[test]
    fn t07_every_pair_of_segments_in_every_small_buffer() {
        for size in (1..=12usize).chain([16, 20]) {
            for head in 0..size {
                for (seq, len) in spans(size) {
                    for (seq2, len2) in spans(size) {
                        play(size, head, &[(seq, len), (seq2, len2)]);
                    }
                }
            }
        }
    }

    /// T07, larger: buffers up to 64 octets with eight random segments each.
    #[test]
    fn t07_random_segments_in_buffers_up_to_64_octets() {
        let mut random = chappe_core::Seed(3).stream(chappe_core::Purpose::Trial(0));
        for _ in 0..40_000 {
            let size = 1 + random.below(64) as usize;
            let segments: Vec<(usize, usize)> = (0..8)
                .map(|_| {
                    let seq = random.below(size as u64) as usize;
                    (seq, random.below((size - seq) as u64 + 1) as usize)
                })
                .collect();
            play(size, random.below(size as u64) as usize, &segments);
        }
    }

    fn spans(size: usize) -> impl Iterator<Item = (usize, usize)> {
        (0..size).flat_map(move |seq| (0..=size - seq).map(move |len| (seq, len)))
    }

    fn play(size: usize, head: usize, segments: &[(usize, usize)]) {
        let base = Seq::new(u32::MAX - 5);
        let (mut ring, mut ranges) = (vec![0; size], vec![Range::default(); 16]);
        let mut buffer = Reassembly::new(&mut ring, &mut ranges);
        assert_eq!(
            buffer.insert(base, base, &vec![9; head]).advanced,
            head as u32
        );
        buffer.consume(head as u32);
        let mut model = Model {
            stream: vec![None; size],
            next: 0,
        };
        for &(seq, len) in segments {
            // The socket cuts off what lies before the next expected octet.
            let cut = model.next.saturating_sub(seq).min(len);
            let (seq, len) = (seq.max(model.next), len - cut);
            let data: Vec<u8> = (seq..seq + len).map(|at| at as u8 + 1).collect();
            if seq + len > size {
                continue;
            }
            let next = base + model.next as u32;
            let inserted = buffer.insert(next, base + seq as u32, &data);
            let before: Vec<bool> = model.stream.iter().map(Option::is_some).collect();
            assert_eq!(inserted.advanced as usize, model.insert(seq, &data));
            let first = (seq..seq + len).find(|&at| before[at]);
            let held = first.map_or(0, |at| {
                (at..seq + len).take_while(|&at| before[at]).count() as u32
            });
            assert_eq!(inserted.duplicate.len(), held, "{size} {head} {segments:?}");
            check(&buffer, &model, base);
        }
    }

    fn check(buffer: &Reassembly<'_>, model: &Model, base: Seq) {
        let (a, b) = buffer.readable();
        let got: Vec<u8> = a.iter().chain(b).copied().collect();
        let want: Vec<u8> = (0..model.next).map(|at| at as u8 + 1).collect();
        assert_eq!(got, want);
        let held = |at: usize| {
            let at = base + at as u32;
            let inside = |range: &&Range| range.contains(Range::new(at, at + 1));
            buffer.ranges().iter().filter(inside).count()
        };
        for at in model.next..model.stream.len() {
            assert_eq!(held(at), usize::from(model.stream[at].is_some()));
        }
        for (index, one) in buffer.ranges().iter().enumerate() {
            assert!(buffer.ranges()[..index].iter().all(|two| !one.joins(*two)));
        }
    }

    /// T06: one octet in every two across a window of 4096: the list fills, the rest is dropped, and accepted data stays
    /// intact.
    #[test]
    fn t06_a_flood_of_single_octets_fills_the_list_and_no_more() {
        let (mut ring, mut ranges) = (vec![0; 4096], vec![Range::default(); 8]);
        let mut buffer = Reassembly::new(&mut ring, &mut ranges);
        let next = Seq::new(0);
        for at in (1..4096).step_by(2) {
            assert_eq!(buffer.insert(next, next + at, &[at as u8]).advanced, 0);
        }
        assert_eq!(buffer.ranges().len(), 8);
        let all: Vec<u8> = (0..4096u32).map(|at| at as u8).collect();
        assert_eq!(buffer.insert(next, next, &all).advanced, 4096);
        assert!(buffer.ranges().is_empty());
        let (a, b) = buffer.readable();
        assert!(a.iter().chain(b).eq(&all));
    }

    #[test]
    fn the_range_that_changed_last_stands_first() {
        let (mut ring, mut ranges) = (vec![0; 100], vec![Range::default(); 4]);
        let mut buffer = Reassembly::new(&mut ring, &mut ranges);
        let at = Seq::new;
        for (seq, len) in [(10, 5), (30, 5), (50, 5), (15, 3)] {
            buffer.insert(at(0), at(seq), &vec![0; len]);
        }
        let starts: Vec<u32> = buffer.ranges().iter().map(|r| r.start.bits()).collect();
        assert_eq!(starts, [10, 50, 30]);
    }
}
