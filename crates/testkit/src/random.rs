//! Random numbers for tests of what takes no [`chappe_core::Stream`].

/// SplitMix64 with its state (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014): every
/// seed gives a good sequence, the same on every machine.
#[derive(Clone, Debug)]
pub struct SplitMix64(pub u64);

impl SplitMix64 {
    /// The next 64 random bits.
    #[allow(clippy::should_implement_trait, reason = "it never ends")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// Uniform in 0..1, in steps of 2^-53.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number below `bound`; small bounds only, since the remainder of a division is not quite uniform. Panics at 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// Fills `bytes` with random octets.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let word = self.next().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }

    /// A vector of `count` random octets.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.fill(&mut bytes);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of seed 1234567, as the reference implementation gives them
    /// (<https://prng.di.unimi.it/splitmix64.c>).
    #[test]
    fn numbers_are_those_of_the_reference() {
        let mut random = SplitMix64(1_234_567);
        let first = [(); 3].map(|()| random.next());
        assert_eq!(
            first,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }

    #[test]
    fn octets_are_those_of_the_words() {
        let (mut words, mut octets) = (SplitMix64(3), SplitMix64(3));
        let bytes = octets.bytes(11);
        assert_eq!(bytes[..8], words.next().to_le_bytes());
        assert_eq!(bytes[8..], words.next().to_le_bytes()[..3]);
    }
}
