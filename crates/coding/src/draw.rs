//! Random factors from the caller's generator.

use crate::basis::leading;

/// Tries before a source of randomness that gives only zeros is overruled.
const TRIES: usize = 4;

/// Fills `factors` with random bytes that are not all zero.
///
/// Uniform bytes are all zero once in 256^n draws, and are then drawn again, so the result is
/// uniform over the other vectors. A generator that gives nothing but zeros is broken; the first
/// factor is then 1, so that a frame is never empty of information and no caller hangs.
pub fn non_zero(factors: &mut [u8], random: &mut impl FnMut(&mut [u8])) {
    for _ in 0..TRIES {
        random(factors);
        if leading(factors).is_some() {
            return;
        }
    }
    if let Some(first) = factors.first_mut() {
        *first = 1;
    }
}

/// As [`non_zero`] for vectors of `len` bytes, one after the other, mostly by one call.
#[inline]
pub(crate) fn non_zero_rows(factors: &mut [u8], len: usize, random: &mut impl FnMut(&mut [u8])) {
    random(factors);
    for row in factors.chunks_exact_mut(len.max(1)) {
        // Nearly every row has an entry among its first, which is all that has to be read.
        let begins = row.first_chunk::<8>().is_some_and(|eight| *eight != [0; 8]);
        if !begins && leading(row).is_none() {
            non_zero(row, random);
        }
    }
}
