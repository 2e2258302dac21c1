//! The send buffer: a ring lent by the caller, whose octets are copied once, from the application, and read in place when
//! a packet is written.
//!
//! The ring holds data that is not yet acknowledged. A segment that wraps around its end is two slices, not two short
//! segments.

use super::ring::Ring;

/// Octets written and not yet acknowledged, oldest first.
#[derive(Debug)]
pub struct SendBuffer<'a> {
    ring: Ring<'a>,
    len: u32,
}

impl<'a> SendBuffer<'a> {
    pub(super) fn new(ring: &'a mut [u8]) -> SendBuffer<'a> {
        SendBuffer {
            ring: Ring::new(ring),
            len: 0,
        }
    }

    /// Octets in the buffer, sent or not.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Octets it can hold.
    pub fn capacity(&self) -> u32 {
        self.ring.capacity()
    }

    /// Octets that can be added.
    pub fn free(&self) -> u32 {
        self.capacity().saturating_sub(self.len)
    }

    /// The free part of the ring, in order, in two parts; fill from the front and [`commit`](Self::commit).
    pub fn vacant(&mut self) -> (&mut [u8], &mut [u8]) {
        let (len, free) = (self.len, self.free());
        self.ring.parts_mut(len, free)
    }

    /// Declares `octets` at the front of [`vacant`](Self::vacant) as data; at most what is free.
    pub fn commit(&mut self, octets: u32) {
        self.len = self.len.wrapping_add(octets.min(self.free()));
    }

    /// Copies in as much of `data` as fits and returns the number of octets.
    pub fn write(&mut self, data: &[u8]) -> usize {
        let fits = data.len().min(self.free() as usize);
        self.ring
            .put(self.len, data.get(..fits).unwrap_or_default());
        self.commit(fits as u32);
        fits
    }

    /// The octets from `offset` on, at most `len` of them, in up to two parts.
    pub(super) fn parts(&self, offset: u32, len: u32) -> [&[u8]; 2] {
        let offset = offset.min(self.len);
        self.ring
            .parts(offset, len.min(self.len.wrapping_sub(offset)))
    }

    /// Drops the oldest `octets`, which were acknowledged.
    pub(super) fn consume(&mut self, octets: u32) {
        let octets = octets.min(self.len);
        self.ring.advance(octets);
        self.len = self.len.wrapping_sub(octets);
    }

    /// Empties the buffer, for a new connection.
    pub(super) fn clear(&mut self) {
        self.ring.reset();
        self.len = 0;
    }

    /// Takes the memory out.
    pub(super) fn take(&mut self) -> &'a mut [u8] {
        self.ring.take()
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
