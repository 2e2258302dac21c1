//! The kernel in plain Rust: exclusive or of machine words, no multiplication at all.
//!
//! Write each coefficient in bits. Then `sum of c_i * s_i` is `sum over b of x^b * P_b`, where the
//! plane P_b is the plain sum of those sources whose coefficient has bit b set. The planes need
//! only exclusive or; the powers of x come from Horner's rule, seven steps whatever the number of
//! sources. For four sources at a time all 16 possible sums are tabulated once, and every plane of
//! every output takes its sum from the table with one look-up (the "method of the four Russians").

use core::array;

use crate::matrix::Matrix;
use crate::rows::{Rows, RowsMut};

/// Words of 8 bytes in a column. Small processors have little stack and no vector registers, so
/// theirs is shorter.
const WORDS: usize = if usize::BITS == 64 { 4 } else { 2 };
/// Bytes that are computed at a time.
const BYTES: usize = WORDS * 8;
/// Sources whose sums are tabulated together.
const GROUP: usize = 4;
/// Groups of sources per pass.
const GROUPS: usize = 8;
/// Sources in one pass over the payloads.
const SOURCES: usize = GROUP * GROUPS;
/// Up to so many sources are added without tables.
const FEW: usize = 4;
/// Outputs for which one set of tables is used.
const OUTPUTS: usize = 16;

type Column = [u64; WORDS];
/// The sums of each subset of the sources of each group.
type Tables = [[Column; 1 << GROUP]; GROUPS];
/// For each group of sources: bits 4b..4b+4 say which of the four are in plane b.
type Subsets = [u32; GROUPS];

/// `to[j] (+)= sum over i of coefficients[j][i] * from[i]`; sizes are checked by the caller.
pub(crate) fn combine(coefficients: Matrix<'_>, from: &Rows<'_>, to: &mut RowsMut<'_>, add: bool) {
    let count = from.count();
    if count <= FEW && to.count() == 1 {
        let rows = array::from_fn(|i| from.row(i));
        let to = to.row_mut(0).unwrap_or_default();
        return sum_of_few(coefficients.row(0), rows, to, add);
    }
    for source in (0..count).step_by(SOURCES) {
        // A later pass adds to what the first one wrote.
        let add = add || source > 0;
        for output in (0..to.count()).step_by(OUTPUTS) {
            let outputs = OUTPUTS.min(to.count() - output);
            // Before the columns: the subsets follow from the coefficients alone.
            let subsets = subsets_of(coefficients, source, output, outputs);
            for at in (0..from.row_len()).step_by(BYTES) {
                let tables = tabulate(|i| column_at(from.row(source + i), at));
                for (offset, subsets) in subsets.iter().enumerate().take(outputs) {
                    let sum = evaluate(&tables, subsets);
                    write(to.row_mut(output + offset), at, sum, add);
                }
            }
        }
    }
}

/// `rows[order[j]] = sum over i of coefficients[j][i] * rows[i]`; sizes are checked by the caller.
pub(crate) fn combine_in_place(coefficients: Matrix<'_>, rows: &mut RowsMut<'_>, order: &[u8]) {
    let count = rows.count();
    // Outputs overwrite sources, so a column of all sources is copied before the first output.
    let mut old = [[0u64; WORDS]; crate::rows::MAX_ROWS];
    for at in (0..rows.row_len()).step_by(BYTES) {
        for (row, old) in old.iter_mut().enumerate().take(count) {
            *old = column_at(rows.as_rows().row(row), at);
        }
        for source in (0..count).step_by(SOURCES) {
            let tables = tabulate(|i| old.get(source + i).copied().unwrap_or_default());
            for (output, &row) in order.iter().enumerate() {
                let subsets = subsets_of(coefficients, source, output, 1);
                let sum = evaluate(&tables, &subsets[0]);
                write(rows.row_mut(row.into()), at, sum, source > 0);
            }
        }
    }
}

/// `to += sum over i of factors[i] * rows[i]`.
pub(crate) fn reduce(factors: &[u8], rows: &[u8], to: &mut [u8]) {
    let len = to.len();
    if len == 0 {
        return;
    }
    if factors.len() <= FEW {
        let mut rows = rows.chunks_exact(len);
        return sum_of_few(factors, array::from_fn(|_| rows.next()), to, true);
    }
    for (factors, rows) in factors.chunks(SOURCES).zip(rows.chunks(len * SOURCES)) {
        let subsets = subsets_of_row(factors);
        for at in (0..len).step_by(BYTES) {
            let tables = tabulate(|i| column_at(rows.chunks_exact(len).nth(i), at));
            write(Some(to), at, evaluate(&tables, &subsets), true);
        }
    }
}

/// The sum of up to [`FEW`] sources: Horner's rule over the bits of the factors. The tables of 32 sources would cost more
/// than the sum. Out of line, so that the loops of its callers are compiled as they were without it.
#[inline(never)]
fn sum_of_few(factors: &[u8], rows: [Option<&[u8]>; FEW], to: &mut [u8], add: bool) {
    let used = factors.iter().fold(0, |bits, factor| bits | factor);
    // Horner's rule may begin at the highest bit that any factor has: small factors take fewer steps.
    let bits = 8 - used.leading_zeros();
    for at in (0..to.len()).step_by(BYTES) {
        let columns = rows.map(|row| column_at(row, at));
        let mut sum = [0; WORDS];
        for bit in (0..bits).rev() {
            sum = sum.map(times_x);
            for (factor, column) in factors.iter().zip(&columns) {
                if factor >> bit & 1 == 1 {
                    sum = plus(sum, *column);
                }
            }
        }
        write(Some(to), at, sum, add);
    }
}

/// Scales a row in place: `data = factor * data`.
pub(crate) fn scale(factor: u8, data: &mut [u8]) {
    for column in data.chunks_mut(BYTES) {
        let multiples = multiples_of(column_at(Some(column), 0));
        write(Some(column), 0, pick(&multiples, factor), false);
    }
}

/// Clears a column of all rows by the pivot row: `rows[i] += rows[i][column] * pivot`.
pub(crate) fn eliminate(rows: &mut [u8], column: usize, pivot: &[u8]) {
    if column >= pivot.len() {
        return;
    }
    // Read first: the elimination clears the entries that the rows are multiplied by.
    let mut factors = [0; crate::rows::MAX_ROWS];
    for (factor, row) in factors.iter_mut().zip(rows.chunks_exact(pivot.len())) {
        *factor = row.get(column).copied().unwrap_or_default();
    }
    for at in (0..pivot.len()).step_by(BYTES) {
        let multiples = multiples_of(column_at(Some(pivot), at));
        for (row, &factor) in rows.chunks_exact_mut(pivot.len()).zip(&factors) {
            write(Some(row), at, pick(&multiples, factor), true);
        }
    }
}

/// The products of a column with 0..=15, and with 0, 16, ..., 240.
fn multiples_of(column: Column) -> [[Column; 16]; 2] {
    let mut power = column;
    let mut table = [[[0; WORDS]; 16]; 2];
    for half in &mut table {
        for bit in 0..4 {
            let (known, new) = half.split_at_mut(1 << bit);
            for (sum, known) in new.iter_mut().zip(known) {
                *sum = plus(*known, power);
            }
            power = power.map(times_x);
        }
    }
    table
}

/// One of all the products of a column.
fn pick(multiples: &[[Column; 16]; 2], factor: u8) -> Column {
    plus(
        multiples[0][usize::from(factor & 15)],
        multiples[1][usize::from(factor >> 4)],
    )
}

/// The bytes from `at` on, with zeros beyond the end of the row.
#[inline(always)]
fn column_at(row: Option<&[u8]>, at: usize) -> Column {
    let mut bytes = [0; BYTES];
    let rest = row.and_then(|row| row.get(at..)).unwrap_or_default();
    if let Some(full) = rest.first_chunk::<BYTES>() {
        bytes = *full;
    } else if let Some(part) = bytes.get_mut(..rest.len()) {
        part.copy_from_slice(rest);
    }
    // Every operation treats the bytes of a word alike, so the byte order does not matter.
    let (words, _) = bytes.as_chunks::<8>();
    core::array::from_fn(|i| words.get(i).map_or(0, |word| u64::from_ne_bytes(*word)))
}

#[inline(always)]
fn write(row: Option<&mut [u8]>, at: usize, sum: Column, add: bool) {
    let rest = row.and_then(|row| row.get_mut(at..)).unwrap_or_default();
    if let Some(full) = rest.first_chunk_mut::<BYTES>() {
        for (bytes, word) in full.as_chunks_mut::<8>().0.iter_mut().zip(sum) {
            let old = if add { u64::from_ne_bytes(*bytes) } else { 0 };
            *bytes = (word ^ old).to_ne_bytes();
        }
        return;
    }
    for (byte, new) in rest
        .iter_mut()
        .zip(sum.iter().flat_map(|word| word.to_ne_bytes()))
    {
        *byte = if add { *byte ^ new } else { new };
    }
}

/// The subsets that the given outputs need of the sources from `source` on.
fn subsets_of(
    coefficients: Matrix<'_>,
    source: usize,
    output: usize,
    outputs: usize,
) -> [Subsets; OUTPUTS] {
    let mut all = [[0; GROUPS]; OUTPUTS];
    for (offset, subsets) in all.iter_mut().enumerate().take(outputs) {
        let row = coefficients.row(output + offset);
        *subsets = subsets_of_row(row.get(source..).unwrap_or_default());
    }
    all
}

/// The subsets of up to [`SOURCES`] sources for one output.
fn subsets_of_row(coefficients: &[u8]) -> Subsets {
    let mut subsets = [0; GROUPS];
    for (subset, group) in subsets.iter_mut().zip(coefficients.chunks(GROUP)) {
        *subset = group
            .iter()
            .rev()
            .fold(0, |subset, &c| subset << 1 | spread(c));
    }
    subsets
}

/// Moves bit b to bit 4b.
fn spread(byte: u8) -> u32 {
    let bits = u32::from(byte);
    let bits = (bits | bits << 12) & 0x000f_000f;
    let bits = (bits | bits << 6) & 0x0303_0303;
    (bits | bits << 3) & 0x1111_1111
}

/// All sums of the sources of each group.
#[inline(always)]
fn tabulate(source: impl Fn(usize) -> Column) -> Tables {
    let mut tables = [[[0; WORDS]; 1 << GROUP]; GROUPS];
    for (group, table) in tables.iter_mut().enumerate() {
        for member in 0..GROUP {
            let column = source(group * GROUP + member);
            let (known, new) = table.split_at_mut(1 << member);
            for (sum, known) in new.iter_mut().zip(known) {
                *sum = plus(*known, column);
            }
        }
    }
    tables
}

/// The combination that `subsets` describes.
#[inline(always)]
fn evaluate(tables: &Tables, subsets: &Subsets) -> Column {
    let mut planes = [[0; WORDS]; 8];
    for (table, subset) in tables.iter().zip(subsets) {
        for (bit, plane) in planes.iter_mut().enumerate() {
            *plane = plus(*plane, table[(subset >> (4 * bit) & 15) as usize]);
        }
    }
    let [low @ .., top] = planes;
    low.iter()
        .rev()
        .fold(top, |sum, plane| plus(sum.map(times_x), *plane))
}

#[inline(always)]
fn plus(a: Column, b: Column) -> Column {
    core::array::from_fn(|i| a[i] ^ b[i])
}

/// Each of the eight bytes times x.
#[inline(always)]
fn times_x(word: u64) -> u64 {
    let tops = word & 0x8080_8080_8080_8080;
    // All ones in each byte whose top bit is set; a borrow out of the highest byte is lost, as is
    // the bit that `<< 1` pushes out there.
    let overflowing = (tops << 1).wrapping_sub(tops >> 7);
    const REDUCTION: u64 = 0x0101_0101_0101_0101 * (crate::field::POLYNOMIAL & 0xff) as u64;
    ((word ^ tops) << 1) ^ (overflowing & REDUCTION)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::mul;

    /// Goal: the sum with few sources and the sum by tables are the same. Method: 0 to 9 sources, lengths around a column,
    /// every tenth factor, against the definition.
    #[test]
    fn a_sum_of_few_sources_equals_its_definition() {
        for sources in 0..2 * FEW + 2 {
            for len in [0, 1, BYTES - 1, BYTES, 3 * BYTES + 5] {
                let byte = |i: usize| (i * 167 + len * 31 + 13) as u8;
                let rows: std::vec::Vec<u8> = (0..sources * len).map(byte).collect();
                for first in (0..=255).step_by(10) {
                    let factors: std::vec::Vec<u8> =
                        (0..sources).map(|i| byte(i) ^ first).collect();
                    let mut to: std::vec::Vec<u8> = (0..len).map(|i| byte(i + 7)).collect();
                    let before = to.clone();
                    reduce(&factors, &rows, &mut to);
                    for at in 0..len {
                        let sum = (0..sources).fold(before[at], |sum, i| {
                            sum ^ mul(factors[i], rows[i * len + at])
                        });
                        assert_eq!(to[at], sum, "{sources} sources, {len} octets, at {at}");
                    }
                }
            }
        }
    }
}
