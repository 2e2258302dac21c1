//! A number that stands for everything that happened on the air.

/// Multiply and rotate over words; not cryptographic. Equal runs have equal digests; unequal ones differ but for
/// one chance in 2^64 or so.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Digest(u64);

impl Default for Digest {
    fn default() -> Digest {
        Digest(0x9e37_79b9_7f4a_7c15)
    }
}

impl Digest {
    #[inline]
    pub(crate) fn mix(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    }

    /// Eight bytes at a time; the length is mixed in too.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.mix(bytes.len() as u64);
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.mix(u64::from_le_bytes(*word));
        }
        let last = rest
            .iter()
            .fold(0, |last, &byte| last << 8 | u64::from(byte));
        self.mix(last);
    }

    pub(crate) fn value(self) -> u64 {
        let mixed = (self.0 ^ self.0 >> 31).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 29
    }
}
