//! How values stand in a page of Parquet: packed bits, runs and differences.
//!
//! The format is Apache Parquet's ("Encodings", <https://parquet.apache.org/docs/file-format/data-pages/encodings/>). The crate
//! `parquet` writes any column that Arrow knows, and hashes, compresses and copies for it. Columns here have one of six kinds, for which a few
//! functions are enough; `docs/studies/view.md` says what recording costs with them.

use std::ops::BitOr;

use parquet::errors::ParquetError;

/// Values of a block of differences, and of each of its four parts, which have a width of their own.
const BLOCK: usize = 128;
const PART: usize = 32;

/// Values that are packed together.
const GROUP: usize = 8;

pub(crate) fn wrong(why: impl Into<String>) -> ParquetError {
    ParquetError::General(why.into())
}

/// Octets that are read from their beginning. Octets from a file may be anything, so every read may fail.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Octets<'a>(pub(crate) &'a [u8]);

impl<'a> Octets<'a> {
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], ParquetError> {
        let (taken, rest) =
            (self.0.split_at_checked(count)).ok_or_else(|| wrong("a page too short"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn octet(&mut self) -> Result<u8, ParquetError> {
        let (&first, rest) = self
            .0
            .split_first()
            .ok_or_else(|| wrong("a page too short"))?;
        self.0 = rest;
        Ok(first)
    }

    /// A length of four octets.
    pub(crate) fn length(&mut self) -> Result<usize, ParquetError> {
        let octets = self.take(4)?;
        Ok(octets
            .iter()
            .rev()
            .fold(0, |length, &octet| length << 8 | usize::from(octet)))
    }

    fn varint(&mut self) -> Result<u64, ParquetError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let octet = self.octet()?;
            value |= u64::from(octet & 0x7f) << shift;
            if octet < 0x80 {
                return Ok(value);
            }
        }
        Err(wrong("a number of more than 64 bits"))
    }

    fn zigzag(&mut self) -> Result<i64, ParquetError> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }
}

pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(crate) fn put_zigzag(out: &mut Vec<u8>, value: i64) {
    put_varint(out, (value << 1 ^ value >> 63) as u64);
}

/// The bits that hold every number up to `largest`.
pub(crate) fn width_of(largest: u64) -> u32 {
    64 - largest.leading_zeros()
}

/// Packs values of `width` bits, the lowest bit first. All values are below two to this power. Their bits fill whole octets, or are filled
/// up with zeros.
fn pack(out: &mut Vec<u8>, values: impl Iterator<Item = u64>, width: u32) {
    if width == 0 {
        return;
    }
    let (mut bits, mut filled) = (0u64, 0u32);
    for value in values {
        // `filled` is below 64, so nothing wraps.
        bits |= value.wrapping_shl(filled);
        filled = filled.wrapping_add(width);
        if filled >= 64 {
            out.extend_from_slice(&bits.to_le_bytes());
            filled -= 64;
            // What is left of this value; a shift by 64 would be none.
            bits = if filled == 0 {
                0
            } else {
                value >> (width - filled)
            };
        }
    }
    out.extend_from_slice(&bits.to_le_bytes()[..filled.div_ceil(8) as usize]);
}

/// [`pack`] for a part of at most 32 bits each: pairs are joined, then pairs of pairs, as long as 64 bits hold them.
fn pack_part(out: &mut Vec<u8>, values: &[u32; PART], width: u32) {
    fn joined<const N: usize>(values: &[u64], width: u32) -> [u64; N] {
        let mut joined = [0; N];
        for (joined, [low, high]) in joined.iter_mut().zip(values.as_chunks().0) {
            *joined = low | high.wrapping_shl(width);
        }
        joined
    }
    let two: [u64; 16] = joined(&values.map(u64::from), width);
    if width > 16 {
        return pack(out, two.into_iter(), 2 * width);
    }
    let four: [u64; 8] = joined(&two, 2 * width);
    if width > 8 {
        return pack(out, four.into_iter(), 4 * width);
    }
    let eight: [u64; 4] = joined(&four, 4 * width);
    if width > 4 {
        return pack(out, eight.into_iter(), 8 * width);
    }
    pack(out, joined::<2>(&eight, 8 * width).into_iter(), 16 * width);
}

/// Gives `take` each of `count` values of `width` bits, at most 64.
fn unpack(packed: &[u8], width: u32, count: usize, mut take: impl FnMut(u64)) {
    let mask = u64::MAX.checked_shr(64 - width).unwrap_or(0);
    let (mut octets, mut bits, mut filled) = (packed.iter(), 0u128, 0);
    for _ in 0..count {
        while filled < width {
            bits |= u128::from(*octets.next().unwrap_or(&0)) << filled;
            filled += 8;
        }
        take(bits as u64 & mask);
        bits >>= width;
        filled -= width;
    }
}

/// Codes of `width` bits in runs: equal ones by their number, others packed ("RLE/bit-packing hybrid").
pub(crate) fn put_runs(out: &mut Vec<u8>, codes: &[u32], width: u32) {
    let equal = |group: &[u32]| group.iter().all(|code| *code == group[0]);
    let mut rest = codes;
    while let Some(&first) = rest.first() {
        let groups = rest.chunks(GROUP);
        if equal(&rest[..rest.len().min(GROUP)]) {
            let length = rest.iter().take_while(|code| **code == first).count();
            // A run that ends within a group leaves the group's other values to the next run, whose groups begin there.
            put_varint(out, (length as u64) << 1);
            out.extend_from_slice(&first.to_le_bytes()[..width.div_ceil(8) as usize]);
            rest = &rest[length..];
            continue;
        }
        let groups = groups.take_while(|group| !equal(group)).count();
        let (packed, after) = rest.split_at(rest.len().min(groups * GROUP));
        put_varint(out, (groups as u64) << 1 | 1);
        let (parts, last) = packed.as_chunks();
        for part in parts {
            pack_part(out, part, width);
        }
        // Zeros fill the last group.
        let filled = last.len().next_multiple_of(GROUP);
        let mut part = [0; PART];
        part[..last.len()].copy_from_slice(last);
        pack(out, part[..filled].iter().map(|&code| code.into()), width);
        rest = after;
    }
}

/// The `count` codes of `width` bits that stand in runs.
pub(crate) fn runs(
    from: &mut Octets<'_>,
    width: u32,
    count: usize,
) -> Result<Vec<u32>, ParquetError> {
    if width > 32 {
        return Err(wrong("a code of more than 32 bits"));
    }
    let mut codes = Vec::new();
    while codes.len() < count {
        let head = from.varint()?;
        let left = count - codes.len();
        if head & 1 == 0 {
            let value = from.take(width.div_ceil(8) as usize)?;
            let value = value
                .iter()
                .rev()
                .fold(0, |value, &octet| value << 8 | u32::from(octet));
            codes.resize(codes.len() + left.min((head >> 1) as usize), value);
            continue;
        }
        let groups = (head >> 1) as usize;
        let packed = from.take(groups.saturating_mul(width as usize).min(from.0.len()))?;
        // The last group of a page may lack what no value needs.
        let there = left.min(groups.saturating_mul(GROUP));
        if (packed.len() * 8) < there * width as usize || groups == 0 {
            return Err(wrong("a page too short"));
        }
        unpack(packed, width, there, |code| codes.push(code as u32));
    }
    Ok(codes)
}

/// Whole numbers by the differences between them ("delta encoding"): times and places in order take a few bits each. Those of numbers of 32
/// bits wrap there.
pub(crate) fn put_short_differences(out: &mut Vec<u8>, values: &[i32]) {
    put_blocks(
        out,
        values,
        i32::wrapping_sub,
        |difference, least| difference.wrapping_sub(least) as u32,
        pack_part,
    );
}

/// The same for numbers of 64 bits.
pub(crate) fn put_long_differences(out: &mut Vec<u8>, values: &[i64]) {
    put_blocks(
        out,
        values,
        i64::wrapping_sub,
        |difference, least| difference.wrapping_sub(least) as u64,
        |out, above, width| match width {
            0..=32 => pack_part(out, &above.map(|above| above as u32), width),
            _ => pack(out, above.iter().copied(), width),
        },
    );
}

/// The differences between values in blocks. A block's least difference stands before what the others are above it. Arrays of one size
/// and numbers of one width let the compiler work on several at a time.
fn put_blocks<V, A>(
    out: &mut Vec<u8>,
    values: &[V],
    difference: impl Fn(V, V) -> V,
    above: impl Fn(V, V) -> A,
    put: impl Fn(&mut Vec<u8>, &[A; PART], u32),
) where
    V: Copy + Default + Ord + Into<i64>,
    A: Copy + Default + BitOr<Output = A> + Into<u64>,
{
    for constant in [BLOCK, BLOCK / PART, values.len()] {
        put_varint(out, constant as u64);
    }
    put_zigzag(out, values.first().copied().unwrap_or_default().into());
    let mut differences = [V::default(); BLOCK];
    let mut rest = values;
    while let [first, after @ ..] = rest
        && !after.is_empty()
    {
        let count = after.len().min(BLOCK);
        match after.first_chunk::<BLOCK>() {
            Some(after) => {
                differences[0] = difference(after[0], *first);
                for place in 1..BLOCK {
                    differences[place] = difference(after[place], after[place - 1]);
                }
            }
            None => {
                for (into, [before, after]) in differences.iter_mut().zip(rest.array_windows()) {
                    *into = difference(*after, *before);
                }
                // What is missing of the last block takes no bits.
                let least = differences[..count].iter().min().copied();
                differences[count..].fill(least.unwrap_or_default());
            }
        }
        let least = differences.iter().fold(differences[0], |a, &b| a.min(b));
        put_zigzag(out, least.into());
        let widths = out.len();
        out.resize(widths + BLOCK / PART, 0);
        for (place, part) in differences.as_chunks::<PART>().0.iter().enumerate() {
            let part = part.map(|difference| above(difference, least));
            let all = part.iter().fold(A::default(), |all, &above| all | above);
            let width = width_of(all.into());
            out[widths + place] = width as u8;
            if width > 0 {
                put(out, &part, width);
            }
        }
        rest = &rest[count..];
    }
}

/// The whole numbers that stand as differences; an error if there are not `count`.
pub(crate) fn differences(
    from: &mut Octets<'_>,
    count: usize,
    short: bool,
) -> Result<Vec<i64>, ParquetError> {
    let [block, parts, total] = [from.varint()?, from.varint()?, from.varint()?];
    let part = block.checked_div(parts).unwrap_or(0) as usize;
    if total != count as u64 || part == 0 || block > 1 << 16 || !part.is_multiple_of(GROUP) {
        return Err(wrong("differences in blocks of an unknown size"));
    }
    let mut last = from.zigzag()?;
    let mut values = Vec::new();
    if count > 0 {
        values.push(last);
    }
    while values.len() < count {
        let least = from.zigzag()?;
        let widths = from.take(parts as usize)?;
        for &width in widths {
            let left = (count - values.len()).min(part);
            if left == 0 {
                break;
            }
            if width > 64 {
                return Err(wrong("a difference of more than 64 bits"));
            }
            let packed = from.take(part / 8 * usize::from(width))?;
            unpack(packed, width.into(), left, |above| {
                last = last.wrapping_add(least).wrapping_add(above as i64);
                if short {
                    last = i64::from(last as i32);
                }
                values.push(last);
            });
        }
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    use chappe_core::{Purpose, Seed};

    /// Numbers of every width, by a seed.
    fn numbers(seed: u64, count: usize, width: u32) -> Vec<u64> {
        let mut stream = Seed(seed).stream(Purpose::Trial(0));
        let mask = u64::MAX.checked_shr(64 - width).unwrap_or(0);
        (0..count).map(|_| stream.next_u64() & mask).collect()
    }

    #[test]
    fn packed_values_are_unpacked_again() {
        for width in 0..=64 {
            let values = numbers(u64::from(width), 64, width);
            let mut packed = Vec::new();
            pack(&mut packed, values.iter().copied(), width);
            assert_eq!(packed.len(), 8 * width as usize);
            let mut read = Vec::new();
            unpack(&packed, width, values.len(), |value| read.push(value));
            assert_eq!(read, values, "{width} bits");
        }
    }

    /// Runs of every length beside other codes, of every width, and lengths that no group divides.
    #[test]
    fn codes_in_runs_are_read_again() {
        for width in 0..=32 {
            for count in (0..40).chain([1000, 5003]) {
                let random = numbers(u64::from(width), count, width);
                let codes: Vec<u32> = (random.iter().enumerate())
                    // Long runs, short runs, and none.
                    .map(|(place, code)| match place / 37 % 3 {
                        0 => 0,
                        1 => random[place / 5 * 5] as u32,
                        _ => *code as u32,
                    })
                    .collect();
                let mut out = Vec::new();
                put_runs(&mut out, &codes, width);
                let mut from = Octets(&out);
                assert_eq!(runs(&mut from, width, count).unwrap(), codes);
                assert!(from.0.is_empty());
            }
        }
    }

    #[test]
    fn differences_are_read_again() {
        for count in [0, 1, 2, 31, 32, 33, 128, 129, 130, 1000] {
            for width in [0, 1, 7, 31, 32, 63, 64] {
                let random = numbers(width.into(), count, width);
                let long: Vec<i64> = random.iter().map(|&value| value as i64).collect();
                let short: Vec<i32> = random.iter().map(|&value| value as i32).collect();
                let mut out = Vec::new();
                put_long_differences(&mut out, &long);
                let read = differences(&mut Octets(&out), count, false).unwrap();
                assert_eq!(read, long, "{count} of {width} bits");
                let mut out = Vec::new();
                put_short_differences(&mut out, &short);
                let read = differences(&mut Octets(&out), count, true).unwrap();
                assert!(
                    read.into_iter().eq(short.into_iter().map(i64::from)),
                    "{count} of {width} bits"
                );
            }
        }
    }

    /// The example of the format's page: 1, 2, 3, 4, 5 are a first value and differences that take no bits.
    #[test]
    fn differences_stand_as_the_format_says() {
        let mut out = Vec::new();
        put_long_differences(&mut out, &[1, 2, 3, 4, 5]);
        // 128 values a block in four parts, five values, the first is 1; the least difference is 1; four widths.
        assert_eq!(out, [0x80, 1, 4, 5, 2, 2, 0, 0, 0, 0]);
    }

    /// Octets at random give an error or some values.
    #[test]
    fn any_octets_are_read_without_a_panic() {
        for seed in 0..2000 {
            let mut octets: Vec<u8> = numbers(seed, 40, 8)
                .iter()
                .map(|&octet| octet as u8)
                .collect();
            if seed % 2 == 0 {
                octets.splice(..3, [0x80, 1, 4]);
            }
            let _ = runs(&mut Octets(&octets), seed as u32 % 40, 100);
            let _ = differences(&mut Octets(&octets), seed as usize % 200, seed % 3 == 0);
        }
    }
}
