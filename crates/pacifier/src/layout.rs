//! How an object is cut into batches and packets.

use core::ops::Range;

use chappe_coding::Shape;

/// The cut of one object: batches of `k` packets of `payload` octets. The last batch may have fewer packets, and
/// its last packet is padded with zeros, which the receiver removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub len: usize,
    pub k: usize,
    pub payload: usize,
}

impl Layout {
    /// The number of batches, or `None` if a frame cannot count them.
    pub fn batches(&self) -> Option<u32> {
        u32::try_from(self.len.div_ceil(self.batch_len())).ok()
    }

    /// Packets in a batch; 0 beyond the object.
    pub fn packets(&self, batch: u32) -> usize {
        let all = self.len.div_ceil(self.payload);
        all.saturating_sub((batch as usize).saturating_mul(self.k))
            .min(self.k)
    }

    /// Number and length of the packets of a batch.
    pub fn shape(&self, batch: u32) -> Option<Shape> {
        Shape::new(self.packets(batch), self.payload).ok()
    }

    /// The range of a batch in the object, padded to whole packets.
    pub fn range(&self, batch: u32) -> Range<usize> {
        let start = (batch as usize)
            .saturating_mul(self.batch_len())
            .min(self.padded_len());
        start..start + self.packets(batch) * self.payload
    }

    /// The object's length, padded to whole packets.
    pub fn padded_len(&self) -> usize {
        self.len.div_ceil(self.payload) * self.payload
    }

    /// Octets of the object in a batch, without padding.
    pub fn octets(&self, batch: u32) -> usize {
        let range = self.range(batch);
        range.end.min(self.len).saturating_sub(range.start)
    }

    fn batch_len(&self) -> usize {
        self.k * self.payload
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_batch_is_shorter() {
        let layout = Layout {
            len: 95,
            k: 4,
            payload: 10,
        };
        assert_eq!(layout.batches(), Some(3));
        assert_eq!([0, 1, 2, 3].map(|b| layout.packets(b)), [4, 4, 2, 0]);
        assert_eq!((layout.range(2), layout.octets(2)), (80..100, 15));
        assert_eq!((layout.range(9), layout.octets(9)), (100..100, 0));
        assert_eq!(layout.padded_len(), 100);
        let empty = Layout {
            len: 0,
            k: 4,
            payload: 10,
        };
        assert_eq!((empty.batches(), empty.packets(0)), (Some(0), 0));
        let exact = Layout {
            len: 80,
            k: 4,
            payload: 10,
        };
        assert_eq!(
            (exact.batches(), exact.packets(1), exact.padded_len()),
            (Some(2), 4, 80)
        );
    }
}
