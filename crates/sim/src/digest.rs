//! A number that stands for everything that happened on the air.

/// Multiply and rotate over words; not cryptographic. Equal runs have equal digests; unequal runs have equal ones with a
/// probability of about 2^-64. The order of the words matters.
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
        self.0 = step(self.0, word);
    }

    /// Four lanes of eight bytes each at a time: no multiplication waits for the one before. The length is mixed in, so that
    /// trailing zeros count.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        let mut lanes = [0u64; 4];
        let (blocks, rest) = bytes.as_chunks::<32>();
        for block in blocks {
            let (words, _) = block.as_chunks::<8>();
            for (lane, word) in lanes.iter_mut().zip(words) {
                *lane = step(*lane, u64::from_le_bytes(*word));
            }
        }
        lanes.into_iter().for_each(|lane| self.mix(lane));
        let (words, rest) = rest.as_chunks::<8>();
        words
            .iter()
            .for_each(|word| self.mix(u64::from_le_bytes(*word)));
        let last = rest
            .iter()
            .fold(0, |last, &byte| last << 8 | u64::from(byte));
        self.mix(last);
        self.mix(bytes.len() as u64);
    }

    pub(crate) fn value(self) -> u64 {
        let mixed = (self.0 ^ self.0 >> 31).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 29
    }
}

#[inline]
fn step(state: u64, word: u64) -> u64 {
    (state.rotate_left(23) ^ word).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: &[u8]) -> u64 {
        let mut digest = Digest::default();
        digest.bytes(bytes);
        digest.value()
    }

    /// One bit anywhere, or one zero more, changes it.
    #[test]
    fn every_bit_counts() {
        for len in [0, 1, 7, 8, 31, 32, 33, 100] {
            let mut bytes = vec![0u8; len];
            let plain = of(&bytes);
            for place in 0..len * 8 {
                bytes[place / 8] ^= 1 << (place % 8);
                assert_ne!(of(&bytes), plain);
                bytes[place / 8] ^= 1 << (place % 8);
            }
            bytes.push(0);
            assert_ne!(of(&bytes), plain);
        }
    }
}
