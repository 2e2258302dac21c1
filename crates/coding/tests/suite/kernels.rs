//! All kernels compute the same bytes, which are those of the definition.

use crate::common;

use chappe_coding::{Kernel, Rows, RowsMut, Shape, field};
use chappe_testkit::SplitMix64;
use common::{cases, combination};
use proptest::prelude::*;

/// One multiplication of random packets by a random matrix, checked on every kernel.
fn check(seed: u64, from: usize, to: usize, len: usize, gap: usize, offset: usize) {
    let mut random = SplitMix64(seed);
    let source_shape = Shape::new(from, len)
        .unwrap()
        .with_stride(len + gap)
        .unwrap();
    let target_shape = Shape::new(to, len).unwrap().with_stride(len + gap).unwrap();
    let sources = random.bytes(offset + source_shape.bytes());
    let before = random.bytes(offset + target_shape.bytes() + gap);
    let mut coefficients = random.bytes(from * to);
    // Zeros and ones are the usual special cases of a wrong short cut.
    for coefficient in coefficients.iter_mut().filter(|c| **c > 200) {
        *coefficient &= 1;
    }
    let source_rows = Rows::new(source_shape, &sources[offset..]).unwrap();
    let rows: Vec<&[u8]> = (0..from).map(|row| source_rows.row(row).unwrap()).collect();
    let mut replaced = before.clone();
    let mut added = before.clone();
    for row in 0..to {
        let sum = combination(&coefficients[row * from..][..from], &rows, len);
        let start = offset + row * (len + gap);
        for (index, byte) in sum.into_iter().enumerate() {
            replaced[start + index] = byte;
            added[start + index] ^= byte;
        }
    }
    for kernel in Kernel::available() {
        let case = format!("{kernel}: {from} to {to}, {len} B, gap {gap}, offset {offset}");
        let mut target = before.clone();
        let view = RowsMut::new(target_shape, &mut target[offset..]).unwrap();
        kernel.combine(&coefficients, source_rows, view).unwrap();
        assert!(target == replaced, "combine {case}");
        let mut target = before.clone();
        let view = RowsMut::new(target_shape, &mut target[offset..]).unwrap();
        kernel
            .combine_onto(&coefficients, source_rows, view)
            .unwrap();
        assert!(target == added, "combine_onto {case}");
    }
}

/// Every length 0 to 300 (all tails of all registers), aligned and not, one output and several.
#[test]
fn kernels_agree_on_every_length() {
    for len in 0..=300 {
        check(len as u64, 5, 1, len, 0, len % 7);
        check(len as u64, 3, 11, len, len % 3, 0);
        check(len as u64, 4, 7, len, 1, 63);
    }
}

/// Every number of outputs up to 40 and of sources up to 40, against a tail and against none.
#[test]
fn kernels_agree_on_every_group() {
    for count in 1..=40 {
        check(count as u64, count, 9, 130, 0, 1);
        check(count as u64, 6, count, 191, 0, 2);
        check(count as u64, count, 1, 1100, 0, 3);
    }
}

#[test]
fn kernels_agree_on_the_largest_matrix() {
    for (from, to) in [(256, 1), (1, 256), (255, 20), (64, 70), (256, 256)] {
        check(1, from, to, 70, 0, 0);
        check(2, from, to, 129, 3, 5);
    }
    for len in [1400, 1460, 1500, 1536, 4096, 9000] {
        check(len as u64, 32, 32, len, 0, 0);
        check(len as u64, 32, 1, len, 0, 0);
    }
}

proptest! {
    #![proptest_config(cases(300))]
    #[test]
    fn kernels_agree(
        seed: u64, from in 1usize..80, to in 1usize..80, len in 0usize..600,
        gap in 0usize..70, offset in 0usize..70,
    ) {
        check(seed, from, to, len, gap, offset);
    }

    /// In place is the same as through a copy.
    #[test]
    fn in_place_agrees(seed: u64, count in 1usize..90, len in 0usize..400, gap in 0usize..3) {
        check_in_place(seed, count, len, gap);
    }

    #[test]
    fn one_packet_operations_agree(seed: u64, len in 0usize..2000, offset in 0usize..64) {
        let mut random = SplitMix64(seed);
        let factor = random.next() as u8;
        let from = random.bytes(offset + len);
        let before = random.bytes(offset + len);
        for kernel in Kernel::available() {
            let mut to = before.clone();
            kernel.axpy(factor, &from[offset..], &mut to[offset..]).unwrap();
            for index in 0..offset + len {
                let product = if index < offset { 0 } else { field::mul(factor, from[index]) };
                prop_assert_eq!(to[index], before[index] ^ product, "axpy {}", kernel);
            }
            let mut to = before.clone();
            kernel.scale(factor, &mut to[offset..]);
            for index in 0..offset + len {
                let factor = if index < offset { 1 } else { factor };
                prop_assert_eq!(to[index], field::mul(factor, before[index]), "scale {}", kernel);
            }
        }
    }
}

fn check_in_place(seed: u64, count: usize, len: usize, gap: usize) {
    let mut random = SplitMix64(seed);
    let shape = Shape::new(count, len)
        .unwrap()
        .with_stride(len + gap)
        .unwrap();
    let before = random.bytes(shape.bytes());
    let coefficients = random.bytes(count * count);
    let mut expected = before.clone();
    Kernel::PORTABLE
        .combine(
            &coefficients,
            Rows::new(shape, &before).unwrap(),
            RowsMut::new(shape, &mut expected).unwrap(),
        )
        .unwrap();
    for kernel in Kernel::available() {
        let mut rows = before.clone();
        let view = RowsMut::new(shape, &mut rows).unwrap();
        kernel.combine_in_place(&coefficients, view).unwrap();
        assert!(rows == expected, "{kernel}: {count} rows of {len} B");
    }
}

#[test]
fn in_place_with_more_rows_than_one_block_of_outputs() {
    for count in [64, 65, 129, 255, 256] {
        check_in_place(count as u64, count, 300, 0);
    }
}

/// Goal: wrong sizes are errors and leave the destination alone.
#[test]
fn wrong_sizes_are_refused() {
    let shape = Shape::new(2, 10).unwrap();
    let sources = [1; 20];
    let mut target = [7; 20];
    for kernel in Kernel::available() {
        let from = Rows::new(shape, &sources).unwrap();
        let to = RowsMut::new(shape, &mut target).unwrap();
        assert!(kernel.combine(&[1; 3], from, to).is_err());
        let short = RowsMut::new(Shape::new(2, 9).unwrap(), &mut target).unwrap();
        assert!(kernel.combine(&[1; 4], from, short).is_err());
        let to = RowsMut::new(shape, &mut target).unwrap();
        assert!(kernel.combine_in_place(&[1; 3], to).is_err());
        assert!(kernel.axpy(1, &[1; 3], &mut target).is_err());
        assert_eq!(target, [7; 20]);
    }
    assert!(Rows::new(shape, &sources[..19]).is_err());
    assert!(Shape::new(0, 10).is_err());
    assert!(Shape::new(257, 10).is_err());
    assert!(shape.with_stride(9).is_err());
    assert!(Rows::new(shape, &sources).unwrap().select(&[2]).is_err());
    assert!(Rows::new(shape.with_stride(usize::MAX).unwrap(), &sources).is_err());
}

#[test]
fn kernels_have_names_and_the_best_is_one_of_them() {
    let names: Vec<&str> = Kernel::available().map(Kernel::name).collect();
    println!("kernels here: {names:?}, best: {}", Kernel::best());
    assert!(names.contains(&"portable") && names.contains(&Kernel::best().name()));
    for kernel in Kernel::available() {
        assert_eq!(Kernel::named(kernel.name()), Some(kernel));
    }
    assert_eq!(Kernel::named("abacus"), None);
}
