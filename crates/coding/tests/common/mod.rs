//! What the tests share: a seeded generator and the slow, obvious way to combine packets.
#![allow(dead_code)]

use chappe_coding::field;

/// SplitMix64 (Steele, Lea, Flood 2014): every seed gives a good sequence.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let word = self.next().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }

    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.fill(&mut bytes);
        bytes
    }

    /// `count` different numbers below `bound`.
    pub fn choose(&mut self, count: usize, bound: usize) -> Vec<u8> {
        let mut all: Vec<u8> = (0..bound).map(|index| index as u8).collect();
        for index in 0..count {
            let other = index + self.below(bound - index);
            all.swap(index, other);
        }
        all.truncate(count);
        all
    }
}

/// The sum of `coefficients[i] * rows[i]`, byte by byte.
pub fn combination(coefficients: &[u8], rows: &[&[u8]], len: usize) -> Vec<u8> {
    let mut sum = vec![0; len];
    for (&coefficient, row) in coefficients.iter().zip(rows) {
        for (sum, &byte) in sum.iter_mut().zip(*row) {
            *sum ^= field::mul(coefficient, byte);
        }
    }
    sum
}

/// That many random cases; a failure prints its smallest input, and no file is written.
pub fn cases(count: u32) -> proptest::test_runner::Config {
    proptest::test_runner::Config {
        cases: count,
        failure_persistence: None,
        ..Default::default()
    }
}
