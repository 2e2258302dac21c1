//! The rows of a basis.

use core::mem::MaybeUninit;

use super::lanes::{Aligned, Lanes};
use crate::basis::leading;

/// Inserts a vector into a basis whose rows are `W` registers long: see [`super::insert`].
#[inline(always)]
pub(super) unsafe fn insert<V: Lanes, const W: usize>(
    vector: &[u8],
    pivots: &[u8],
    rows: *mut u8,
) -> Option<u8> {
    let len = W * V::BYTES;
    // SAFETY: there is one row more than pivots, of `len` bytes, and the new pivot is an index of the vector, which is
    // at most half as long.
    unsafe {
        let (sums, (pivot, value)) = residue::<V, W>(vector, pivots, rows)?;
        let inverse = V::factor_of(crate::field::inv(value)?);
        let sums = sums.map(|sum| V::mul(V::source(sum), inverse));
        let new = rows.add(pivots.len() * len);
        for (at, sum) in sums.into_iter().enumerate() {
            V::store(new.add(at * V::BYTES), sum);
        }
        // Clears the new pivot column in the other rows, so that the form stays reduced.
        for index in 0..pivots.len() {
            let row = rows.add(index * len);
            let factor = V::factor_of(*row.add(usize::from(pivot)));
            for (at, &sum) in sums.iter().enumerate() {
                let to = row.add(at * V::BYTES);
                V::store(to, V::mul_add(V::load(to), V::source(sum), factor));
            }
        }
        Some(pivot)
    }
}

/// A vector, and its first entry that is not zero with that entry's index.
type Residue<V, const W: usize> = ([<V as Lanes>::Vector; W], (u8, u8));

/// A vector less its part in the span of a basis, with its first entry that is not zero.
#[inline(always)]
pub(super) unsafe fn residue<V: Lanes, const W: usize>(
    vector: &[u8],
    pivots: &[u8],
    rows: *const u8,
) -> Option<Residue<V, W>> {
    let len = W * V::BYTES;
    // SAFETY: there is one row more than pivots, of `len` bytes, and the vector is at most half as long as a row.
    unsafe {
        let new = rows.add(pivots.len() * len);
        let mut sums = [V::zero(); W];
        for (index, sum) in sums.iter_mut().enumerate() {
            let rest = vector.len().saturating_sub(index * V::BYTES).min(V::BYTES);
            let from = vector.as_ptr().wrapping_add(index * V::BYTES);
            let part = if rest == V::BYTES {
                V::load(from)
            } else {
                V::load_part(from, rest)
            };
            *sum = V::xor(V::load(new.add(index * V::BYTES)), part);
        }
        let row =
            |index: usize, at: usize| V::source(V::load(rows.add(index * len + at * V::BYTES)));
        // The factors come from the vector as it arrived, not from the running sum: in reduced form no row has an
        // entry at another row's pivot. So the products do not wait for each other.
        // Each index is checked here: the largest pivot, looked for beforehand, took a seventh of an insertion.
        let factor = |pivot: u8| V::factor_of(vector.get(usize::from(pivot)).map_or(0, |&c| c));
        let (pairs, last) = pivots.as_chunks::<2>();
        for (index, &[p, q]) in pairs.iter().enumerate() {
            let (f, g) = (factor(p), factor(q));
            for (at, sum) in sums.iter_mut().enumerate() {
                let (x, y) = (row(2 * index, at), row(2 * index + 1, at));
                *sum = V::mul_add_pair(*sum, (x, f), (y, g));
            }
        }
        for &pivot in last {
            let f = factor(pivot);
            for (at, sum) in sums.iter_mut().enumerate() {
                *sum = V::mul_add(*sum, row(pivots.len() - 1, at), f);
            }
        }
        let mut reduced = MaybeUninit::<Aligned<[u8; 4 * 64]>>::uninit();
        let reduced = reduced.as_mut_ptr().cast::<u8>();
        for (at, &sum) in sums.iter().enumerate() {
            V::store(reduced.add(at * V::BYTES), sum);
        }
        let first = leading(core::slice::from_raw_parts(reduced, vector.len()))?;
        Some((sums, first))
    }
}

#[inline(always)]
pub(super) unsafe fn scale<V: Lanes>(factor: u8, data: *mut u8, len: usize) {
    // SAFETY: `len` bytes can be read and written.
    unsafe {
        let factor = V::factor_of(factor);
        let mut at = 0;
        while at + V::BYTES <= len {
            let product = V::mul(V::source(V::load(data.add(at))), factor);
            V::store(data.add(at), product);
            at += V::BYTES;
        }
        if at < len {
            let data = data.add(at);
            let product = V::mul(V::source(V::load_part(data, len - at)), factor);
            V::store_part(data, len - at, product);
        }
    }
}

#[inline(always)]
pub(super) unsafe fn eliminate<V: Lanes>(
    rows: *mut u8,
    count: usize,
    len: usize,
    column: usize,
    pivot: *const u8,
) {
    // SAFETY: there are `count` rows of `len` bytes, and `column` is less than `len`.
    unsafe {
        for index in 0..count {
            let row = rows.add(index * len);
            let factor = V::factor_of(*row.add(column));
            let mut at = 0;
            while at + V::BYTES <= len {
                let x = V::source(V::load(pivot.add(at)));
                let to = row.add(at);
                V::store(to, V::mul_add(V::load(to), x, factor));
                at += V::BYTES;
            }
            if at < len {
                let x = V::source(V::load_part(pivot.add(at), len - at));
                let to = row.add(at);
                let sum = V::mul_add(V::load_part(to, len - at), x, factor);
                V::store_part(to, len - at, sum);
            }
        }
    }
}
