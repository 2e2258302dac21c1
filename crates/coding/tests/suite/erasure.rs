//! The erasure code: any n of the n + m packets are enough.

use crate::common;

use chappe_coding::{Erasure, Kernel, ReconstructError, Rows, RowsMut, Shape, ShapeError};
use chappe_testkit::SplitMix64;
use common::{cases, choose, combination};
use proptest::prelude::*;

struct Coded {
    code: Erasure,
    shapes: (Shape, Shape),
    data: Vec<u8>,
    parity: Vec<u8>,
}

fn coded(random: &mut SplitMix64, n: usize, m: usize, len: usize, kernel: Kernel) -> Coded {
    let code = Erasure::new(n, m).unwrap().with_kernel(kernel);
    let shapes = (Shape::new(n, len).unwrap(), Shape::new(m, len).unwrap());
    let data = random.bytes(shapes.0.bytes());
    let mut parity = vec![0xaa; shapes.1.bytes()];
    let rows = Rows::new(shapes.0, &data).unwrap();
    code.encode(rows, RowsMut::new(shapes.1, &mut parity).unwrap())
        .unwrap();
    Coded {
        code,
        shapes,
        data,
        parity,
    }
}

impl Coded {
    /// Destroys all that is lost, reconstructs, compares.
    fn check(&self, missing: &[u8], received: &[u8]) {
        let len = self.shapes.0.len();
        let (mut data, mut parity) = (self.data.clone(), self.parity.clone());
        for &index in missing {
            data[usize::from(index) * len..][..len].fill(0x55);
        }
        for index in (0..self.code.parity()).filter(|&i| !received.contains(&(i as u8))) {
            parity[index * len..][..len].fill(0x33);
        }
        let rows = RowsMut::new(self.shapes.0, &mut data).unwrap();
        let parity = RowsMut::new(self.shapes.1, &mut parity).unwrap();
        self.code
            .reconstruct(rows, missing, parity, received)
            .unwrap();
        assert!(
            data == self.data,
            "missing {missing:?}, parity {received:?}"
        );
    }
}

fn members(mask: usize, count: usize) -> Vec<u8> {
    (0..count as u8)
        .filter(|&index| mask >> index & 1 == 1)
        .collect()
}

/// Goal: the code is maximum distance separable. Method: for all n, m up to 5, every set of lost
/// data packets with every set of as many parity packets.
#[test]
fn every_loss_pattern_of_small_codes() {
    let mut random = SplitMix64(1);
    for n in 1..=5usize {
        for m in 1..=5usize {
            let coded = coded(&mut random, n, m, 19, Kernel::best());
            for lost in 0..1usize << n {
                for parity in 0..1usize << m {
                    if lost.count_ones() <= parity.count_ones() {
                        coded.check(&members(lost, n), &members(parity, m));
                    }
                }
            }
        }
    }
}

#[test]
fn the_first_parity_is_the_exclusive_or() {
    let mut random = SplitMix64(2);
    for (n, m) in [(1, 1), (3, 2), (100, 156), (255, 1)] {
        let coded = coded(&mut random, n, m, 11, Kernel::best());
        let rows: Vec<&[u8]> = coded.data.chunks(11).collect();
        assert_eq!(coded.parity[..11], combination(&vec![1; n], &rows, 11));
    }
}

proptest! {
    #![proptest_config(cases(150))]
    #[test]
    fn random_losses_of_large_codes(seed: u64, n in 1usize..=255, parity: u8, len in 0usize..150) {
        let mut random = SplitMix64(seed);
        let m = 1 + usize::from(parity) % (256 - n);
        let kernels: Vec<Kernel> = Kernel::available().collect();
        let kernel = kernels[random.below(kernels.len())];
        let coded = coded(&mut random, n, m, len, kernel);
        let lost = random.below(n.min(m) + 1);
        let missing = choose(&mut random, lost, n);
        let arrived = lost + random.below(m - lost + 1);
        let received = choose(&mut random, arrived, m);
        coded.check(&missing, &received);
    }
}

#[test]
fn the_largest_codes_lose_all_they_can() {
    let mut random = SplitMix64(3);
    for (n, m) in [(128, 128), (1, 255), (255, 1), (20, 236), (236, 20)] {
        let coded = coded(&mut random, n, m, 70, Kernel::best());
        let lost = n.min(m);
        let missing = choose(&mut random, lost, n);
        let received = choose(&mut random, lost, m);
        coded.check(&missing, &received);
    }
}

/// Goal: the code is fixed permanently. Method: coefficients and parity computed by hand from
/// (n + j) / (n + i + j) in the field: for n = 2, row 1 is 2/3 and (2 + 1)/(3 + 1) = 3/2.
#[test]
fn coefficients_are_those_of_the_formula() {
    use chappe_coding::field::div;
    let code = Erasure::new(2, 3).unwrap();
    assert_eq!([code.coefficient(0, 0), code.coefficient(0, 1)], [1, 1]);
    assert_eq!(code.coefficient(1, 0), div(2, 3).unwrap());
    assert_eq!(code.coefficient(1, 1), div(3, 2).unwrap());
    assert_eq!((code.coefficient(3, 0), code.coefficient(0, 2)), (0, 0));
}

#[test]
fn what_cannot_be_done_is_refused_and_changes_nothing() {
    let mut random = SplitMix64(4);
    let coded = coded(&mut random, 4, 2, 8, Kernel::best());
    let (mut data, mut parity) = (coded.data.clone(), coded.parity.clone());
    let mut attempt = |missing: &[u8], received: &[u8]| {
        let rows = RowsMut::new(coded.shapes.0, &mut data).unwrap();
        let checks = RowsMut::new(coded.shapes.1, &mut parity).unwrap();
        coded
            .code
            .reconstruct(rows, missing, checks, received)
            .unwrap_err()
    };
    assert_eq!(
        attempt(&[0, 1], &[1]),
        ReconstructError::TooFew {
            missing: 2,
            parity: 1
        }
    );
    let index = |given, count| ReconstructError::Shape(ShapeError::Index { given, count });
    assert_eq!(attempt(&[4], &[1]), index(4, 4));
    assert_eq!(attempt(&[1, 1], &[0, 1]), index(1, 4));
    assert_eq!(attempt(&[1], &[2]), index(2, 2));
    assert_eq!(attempt(&[1], &[0, 0]), index(0, 2));
    assert_eq!((data, parity), (coded.data, coded.parity));
    for (n, m) in [(0, 1), (1, 0), (256, 0), (255, 2), (128, 129), (1, 256)] {
        assert!(Erasure::new(n, m).is_err(), "{n} + {m}");
    }
}
