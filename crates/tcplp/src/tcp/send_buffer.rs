//! The send buffer: a ring lent by the caller, whose octets go from the application's hands to the packet
//! without a copy in between.
//!
//! The ring holds what is not yet acknowledged. A segment may wrap round its end: it is then two slices, not
//! two short segments.

/// Octets written and not yet acknowledged, oldest first.
#[derive(Debug)]
pub struct SendBuffer<'a> {
    ring: &'a mut [u8],
    head: u32,
    len: u32,
}

impl<'a> SendBuffer<'a> {
    pub(super) fn new(ring: &'a mut [u8]) -> SendBuffer<'a> {
        SendBuffer {
            ring,
            head: 0,
            len: 0,
        }
    }

    /// Octets held.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Octets it can hold.
    pub fn capacity(&self) -> u32 {
        self.ring.len() as u32
    }

    /// Octets that can be added.
    pub fn free(&self) -> u32 {
        self.capacity().saturating_sub(self.len)
    }

    /// The free part of the ring, in order, in two parts; fill from the front and [`commit`](Self::commit).
    pub fn vacant(&mut self) -> (&mut [u8], &mut [u8]) {
        let (start, free) = (self.place(self.len), self.free() as usize);
        let until_end = self.ring.len().saturating_sub(start).min(free);
        let (low, high) = self.ring.split_at_mut(start);
        (
            high.get_mut(..until_end).unwrap_or_default(),
            low.get_mut(..free - until_end).unwrap_or_default(),
        )
    }

    /// Declares that `octets` at the front of [`vacant`](Self::vacant) are data; more than is free counts as all.
    pub fn commit(&mut self, octets: u32) {
        self.len += octets.min(self.free());
    }

    /// Copies in as much of `data` as fits and returns how much.
    pub fn write(&mut self, data: &[u8]) -> usize {
        let (first, second) = self.vacant();
        let cut = data.len().min(first.len());
        let (left, right) = data.split_at(cut);
        let rest = right.len().min(second.len());
        for (target, part) in [(first, left), (second, right)] {
            for (place, octet) in target.iter_mut().zip(part) {
                *place = *octet;
            }
        }
        self.commit((cut + rest) as u32);
        cut + rest
    }

    /// The octets from `offset` on, at most `len` of them, in up to two parts.
    pub(super) fn parts(&self, offset: u32, len: u32) -> [&[u8]; 2] {
        let offset = offset.min(self.len);
        let len = len.min(self.len - offset) as usize;
        let start = self.place(offset);
        let until_end = self.ring.len().saturating_sub(start).min(len);
        [
            self.ring.get(start..start + until_end).unwrap_or_default(),
            self.ring.get(..len - until_end).unwrap_or_default(),
        ]
    }

    /// Forgets the oldest `octets`: they were acknowledged.
    pub(super) fn consume(&mut self, octets: u32) {
        let octets = octets.min(self.len);
        self.head = self.place(octets) as u32;
        self.len -= octets;
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        (self.head, self.len) = (0, 0);
    }

    pub(super) fn release(self) -> &'a mut [u8] {
        self.ring
    }

    /// Where in the ring the octet at `offset` stands; `offset` is at most the capacity.
    fn place(&self, offset: u32) -> usize {
        let place = self.head as usize + offset as usize;
        match place.checked_sub(self.ring.len()) {
            Some(wrapped) => wrapped,
            None => place,
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::collections::VecDeque;
    use std::vec::Vec;

    /// Every size, fill level and phase of a small ring against a queue from the library.
    #[test]
    fn a_ring_is_a_queue_at_every_phase() {
        for size in 0..9usize {
            for phase in 0..=size {
                for fill in 0..=size {
                    let mut memory = std::vec![0u8; size];
                    let mut ring = SendBuffer::new(&mut memory);
                    let mut model = VecDeque::new();
                    let before: Vec<u8> = (0..phase as u8).collect();
                    assert_eq!(ring.write(&before), phase);
                    ring.consume(phase as u32);
                    let data: Vec<u8> = (100..100 + fill as u8 + 3).collect();
                    let taken = ring.write(&data);
                    assert_eq!(taken, data.len().min(size));
                    model.extend(&data[..taken]);
                    for offset in 0..=taken as u32 {
                        for len in 0..=taken as u32 + 1 {
                            let [a, b] = ring.parts(offset, len);
                            let got: Vec<u8> = a.iter().chain(b).copied().collect();
                            let want: Vec<u8> = model
                                .iter()
                                .skip(offset as usize)
                                .take(len as usize)
                                .copied()
                                .collect();
                            assert_eq!(got, want, "{size} {phase} {fill} {offset} {len}");
                        }
                    }
                    assert_eq!(ring.free() as usize, size - taken);
                }
            }
        }
    }
}
