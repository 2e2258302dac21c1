//! What the tests share: random choices and the slow, obvious way to combine packets.
#![allow(dead_code)]

use chappe_coding::field;
use chappe_testkit::SplitMix64;

/// `count` different numbers below `bound`.
pub fn choose(random: &mut SplitMix64, count: usize, bound: usize) -> Vec<u8> {
    let mut all: Vec<u8> = (0..bound).map(|index| index as u8).collect();
    for index in 0..count {
        let other = index + random.below(bound - index);
        all.swap(index, other);
    }
    all.truncate(count);
    all
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
