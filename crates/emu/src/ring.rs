//! A queue of frames in memory allocated once.

/// A bounded FIFO of frames of bounded length.
#[derive(Clone, Debug)]
pub struct Ring {
    octets: Vec<u8>,
    lengths: Vec<usize>,
    slot: usize,
    first: usize,
    count: usize,
}

impl Ring {
    /// Room for `frames` frames of up to `frame_max` octets each.
    pub fn new(frames: usize, frame_max: usize) -> Ring {
        let (frames, slot) = (frames.max(1), frame_max.max(1));
        Ring {
            octets: vec![0; frames * slot],
            lengths: vec![0; frames],
            slot,
            first: 0,
            count: 0,
        }
    }

    /// The number of frames.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no frames.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Appends a frame that `write` writes into its slot. `write` returns the frame's length, or `None` for no frame.
    /// Returns false if the ring is full or there is no frame.
    pub fn push(&mut self, write: impl FnOnce(&mut [u8]) -> Option<usize>) -> bool {
        if self.count == self.lengths.len() {
            return false;
        }
        let place = (self.first + self.count) % self.lengths.len();
        let room = &mut self.octets[place * self.slot..][..self.slot];
        let Some(len) = write(room).filter(|&len| len <= self.slot) else {
            return false;
        };
        self.lengths[place] = len;
        self.count += 1;
        true
    }

    /// The oldest frame, if there is one.
    pub fn front(&self) -> Option<&[u8]> {
        self.iter().next()
    }

    /// Removes the `count` oldest frames.
    pub fn forget(&mut self, count: usize) {
        let count = count.min(self.count);
        self.first = (self.first + count) % self.lengths.len();
        self.count -= count;
    }

    /// All frames, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.count).map(|number| {
            let place = (self.first + number) % self.lengths.len();
            &self.octets[place * self.slot..][..self.lengths[place]]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(ring: &mut Ring, frame: &[u8]) -> bool {
        ring.push(|room| {
            room.get_mut(..frame.len())?.copy_from_slice(frame);
            Some(frame.len())
        })
    }

    #[test]
    fn the_ring_is_a_bounded_fifo() {
        let mut ring = Ring::new(2, 3);
        for round in 0..5u8 {
            assert!(push(&mut ring, &[round]));
            assert!(push(&mut ring, &[round, 1, 2]));
            assert!(!push(&mut ring, &[9]), "a third frame");
            assert_eq!(
                ring.iter().collect::<Vec<_>>(),
                [&[round][..], &[round, 1, 2]]
            );
            ring.forget(1);
            assert_eq!(ring.front(), Some(&[round, 1, 2][..]));
            assert!(!push(&mut ring, &[0; 4]), "longer than the room");
            ring.forget(9);
            assert!(ring.is_empty());
        }
    }
}
