//! Coefficients as GFNI's affine instruction takes them, made by that instruction.

use core::arch::x86_64::*;
use core::mem::MaybeUninit;

use super::lanes::Aligned;
use crate::field::{AFFINE_BYTES, AFFINE_BYTES_AES, RENAME};
use crate::rows::MAX_ROWS;

/// One word for each source: the coefficients of eight outputs.
pub(super) type Columns = Aligned<[u64; MAX_ROWS]>;

/// Makes the matrices of eight coefficients at a time.
#[derive(Clone, Copy)]
pub(super) struct Matrices {
    by_bytes: __m512i,
    transpose: __m512i,
}

impl Matrices {
    /// From coefficients of this field.
    #[inline(always)]
    pub(super) unsafe fn of_field() -> Self {
        // SAFETY: the caller has the instructions.
        unsafe { Self::of(&AFFINE_BYTES) }
    }

    /// From coefficients of the field of `by_bytes`: see [`AFFINE_BYTES`].
    #[inline(always)]
    unsafe fn of(by_bytes: &[u64; 8]) -> Self {
        // SAFETY: both tables have 64 bytes.
        unsafe {
            Self {
                by_bytes: _mm512_loadu_si512(by_bytes.as_ptr().cast()),
                transpose: _mm512_loadu_si512(TRANSPOSE.as_ptr().cast()),
            }
        }
    }

    /// The matrices of eight coefficients, which every lane of `eight` holds. Lane p of the product is byte p of each.
    #[inline(always)]
    pub(super) unsafe fn by(self, eight: __m512i) -> __m512i {
        // SAFETY: the caller has the instructions.
        unsafe {
            let bytes = _mm512_gf2p8affine_epi64_epi8::<0>(eight, self.by_bytes);
            _mm512_permutexvar_epi8(self.transpose, bytes)
        }
    }

    /// The matrices of `sources` columns. Columns come through memory, since loads that fill all lanes with a word leave the
    /// pipes of shuffles and products alone.
    #[inline(always)]
    pub(super) unsafe fn of_columns(self, columns: *const u64, sources: usize, into: *mut u64) {
        written(columns);
        let (mut columns, mut into) = (columns, into);
        for _ in 0..sources {
            // SAFETY: there is a column for each source, and room for its eight matrices.
            unsafe {
                let eight = _mm512_set1_epi64(columns.read().cast_signed());
                _mm512_storeu_si512(into.cast(), self.by(eight));
                // Pointers that step, here and below: sums that are checked for overflow take longer than what they point to.
                columns = columns.add(1);
                into = into.add(8);
            }
        }
    }
}

/// Has the compiler take words from memory: it would take them out of the registers that were stored there, by shuffles.
#[inline(always)]
fn written(words: *const u64) {
    // SAFETY: no instruction; the compiler has to assume that this reads and writes what `words` points to.
    unsafe {
        core::arch::asm!("/* {} */", in(reg) words, options(nostack, preserves_flags));
    }
}

/// The columns of eight rows of `count` bytes, `stride` bytes apart; their bytes are renamed by a matrix, if one is given.
#[inline(always)]
pub(super) unsafe fn transpose(
    (rows, stride): (*const u8, usize),
    count: usize,
    into: *mut u64,
    rename: Option<__m512i>,
) {
    // SAFETY: `count` bytes of each row are read, and `into` has room for a multiple of 8 columns.
    unsafe {
        let order = _mm512_loadu_si512(TRANSPOSE.as_ptr().cast());
        let (mut rows, mut into, mut left) = (rows, into, count);
        while left > 0 {
            let mask = _bzhi_u32(0xff, left.min(8) as u32) as u16;
            let block = eight_words(rows, stride, mask);
            let mut columns = _mm512_permutexvar_epi8(order, block);
            if let Some(matrix) = rename {
                columns = _mm512_gf2p8affine_epi64_epi8::<0>(columns, matrix);
            }
            _mm512_storeu_si512(into.cast(), columns);
            rows = rows.wrapping_add(8);
            into = into.wrapping_add(8);
            left = left.saturating_sub(8);
        }
    }
}

/// Up to eight bytes by a mask, at each of eight multiples of the stride. Built from halves: given a list of words, the compiler
/// inserts them by masks, which takes six times as long as the products.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn eight_words(from: *const u8, stride: usize, mask: u16) -> __m512i {
    let word = |row: usize| {
        let at = from.wrapping_add(row.wrapping_mul(stride));
        // SAFETY: what the mask takes can be read.
        unsafe { _mm_maskz_loadu_epi8(mask, at.cast()) }
    };
    let two = |row| _mm_unpacklo_epi64(word(row), word(row + 1));
    let four = |row| _mm256_set_m128i(two(row + 2), two(row));
    _mm512_inserti64x4::<1>(_mm512_castsi256_si512(four(0)), four(4))
}

/// Groups of eight outputs whose products are formed together.
const GROUPS: usize = 4;

/// The product of two matrices, in the form of coefficients: see [`Lanes::prepare_product`](super::lanes::Lanes::prepare_product).
#[inline(always)]
pub(super) unsafe fn product(
    (left, left_stride): (*const u8, usize),
    right: (*const u8, usize),
    (inner, sources, groups): (usize, usize, usize),
    into: *mut u64,
) {
    let mut factors = MaybeUninit::<[Columns; GROUPS]>::uninit();
    let factors = factors.as_mut_ptr().cast::<u64>();
    let mut columns = MaybeUninit::<[Columns; GROUPS]>::uninit();
    let columns = columns.as_mut_ptr().cast::<u64>();
    // SAFETY: passed on to the caller; there is a list of columns for each group.
    unsafe {
        let rename = _mm512_set1_epi64(RENAME.cast_signed());
        let made = Matrices::of(&AFFINE_BYTES_AES);
        let (mut left, mut into, mut groups) = (left, into, groups);
        while groups > 0 {
            let size = if groups >= GROUPS { GROUPS } else { 1 };
            for group in 0..size {
                let rows = (left.add(8 * group * left_stride), left_stride);
                transpose(rows, inner, factors.add(group * MAX_ROWS), Some(rename));
            }
            written(factors);
            match size {
                GROUPS => bytes_by_bytes::<GROUPS>(factors, right, inner, sources, columns),
                _ => bytes_by_bytes::<1>(factors, right, inner, sources, columns),
            }
            for group in 0..size {
                let columns = columns.add(group * MAX_ROWS);
                made.of_columns(columns, sources, into);
                into = into.add(8 * sources.next_multiple_of(8));
            }
            left = left.add(8 * size * left_stride);
            groups -= size;
        }
    }
}

/// Columns of the product for `G` groups of eight outputs, in the field of AES. Lane s of a sum is source s, its byte o output o:
/// the other way round each source's coefficients would have to be shuffled together.
#[inline(always)]
unsafe fn bytes_by_bytes<const G: usize>(
    factors: *const u64,
    (right, stride): (*const u8, usize),
    inner: usize,
    sources: usize,
    into: *mut u64,
) {
    // SAFETY: `factors` holds `inner` words for each group, there are `inner` rows of `sources` bytes, and `into` has room for a
    // multiple of 32 columns.
    unsafe {
        let rename = _mm512_set1_epi64(RENAME.cast_signed());
        let spread: [__m512i; 4] =
            core::array::from_fn(|part| _mm512_loadu_si512(SPREAD[part].as_ptr().cast()));
        for block in (0..sources).step_by(32) {
            let mask = _bzhi_u32(u32::MAX, (sources - block).min(32) as u32);
            let row = |index: usize| {
                let row = right.wrapping_add(index.wrapping_mul(stride).wrapping_add(block));
                let row = _mm512_maskz_loadu_epi8(mask.into(), row.cast());
                _mm512_gf2p8affine_epi64_epi8::<0>(row, rename)
            };
            let factor = |index: usize, group: usize| {
                let factor = factors.wrapping_add(group * MAX_ROWS).wrapping_add(index);
                _mm512_set1_epi64(factor.read().cast_signed())
            };
            let mut sums = [[_mm512_setzero_si512(); G]; 4];
            for index in (0..inner & !1).step_by(2) {
                let (x, y) = (row(index), row(index + 1));
                for (part, sums) in sums.iter_mut().enumerate() {
                    let x = _mm512_permutexvar_epi8(spread[part], x);
                    let y = _mm512_permutexvar_epi8(spread[part], y);
                    for (group, sum) in sums.iter_mut().enumerate() {
                        let f = _mm512_gf2p8mul_epi8(x, factor(index, group));
                        let g = _mm512_gf2p8mul_epi8(y, factor(index + 1, group));
                        *sum = _mm512_ternarylogic_epi64::<0x96>(*sum, f, g);
                    }
                }
            }
            if inner & 1 == 1 {
                let x = row(inner - 1);
                for (part, sums) in sums.iter_mut().enumerate() {
                    let x = _mm512_permutexvar_epi8(spread[part], x);
                    for (group, sum) in sums.iter_mut().enumerate() {
                        let f = _mm512_gf2p8mul_epi8(x, factor(inner - 1, group));
                        *sum = _mm512_xor_si512(*sum, f);
                    }
                }
            }
            for (part, sums) in sums.into_iter().enumerate() {
                for (group, sum) in sums.into_iter().enumerate() {
                    let into = into.add(group * MAX_ROWS + block + 8 * part);
                    _mm512_storeu_si512(into.cast(), sum);
                }
            }
        }
    }
}

/// The bytes at `from`, of which there are `count`, as a little-endian word.
#[inline(always)]
pub(super) unsafe fn up_to_eight(from: *const u8, count: usize) -> u64 {
    // SAFETY: only `count` bytes are read.
    unsafe {
        if count >= 8 {
            return from.cast::<u64>().read_unaligned();
        }
        let part = core::slice::from_raw_parts(from, count);
        part.iter()
            .rev()
            .fold(0, |word, &byte| word << 8 | u64::from(byte))
    }
}

/// Takes byte j of lane i to byte i of lane j.
static TRANSPOSE: [u8; 64] = {
    let mut table = [0; 64];
    let mut index = 0;
    while index < 64 {
        table[index] = (index % 8 * 8 + index / 8) as u8;
        index += 1;
    }
    table
};

/// Part p takes byte 8 p + i to all bytes of lane i.
static SPREAD: [[u8; 64]; 4] = {
    let mut table = [[0; 64]; 4];
    let mut index = 0;
    while index < 256 {
        table[index / 64][index % 64] = (index / 8) as u8;
        index += 1;
    }
    table
};

/// Each row's entries in another order: entry i of a result is the one at `places[i]`. Rows lie one after the other in both, with an
/// entry for each of at most 64 places.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,bmi2")]
pub(super) unsafe fn reorder(places: &[u8], rows: &[u8], into: &mut [u8]) {
    let len = places.len();
    let mask = _bzhi_u64(u64::MAX, len as u32);
    // SAFETY: masks keep loads and stores inside the slices.
    unsafe {
        let places = _mm512_maskz_loadu_epi8(mask, places.as_ptr().cast());
        for (row, into) in rows.chunks_exact(len).zip(into.chunks_exact_mut(len)) {
            let row = _mm512_maskz_loadu_epi8(mask, row.as_ptr().cast());
            let row = _mm512_permutexvar_epi8(places, row);
            _mm512_mask_storeu_epi8(into.as_mut_ptr().cast(), mask, row);
        }
    }
}
