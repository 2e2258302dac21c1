//! Many outputs: a matrix times packets, column by column, group by group.

use core::mem::MaybeUninit;
use core::ops::Range;

use super::Job;
use super::lanes::{Aligned, Lanes};
use crate::matrix::Matrix;
use crate::rows::MAX_ROWS;

/// Coefficients prepared at a time; enough for 16 outputs of [`MAX_ROWS`] sources, or one whose
/// [`EXPANDED`](Lanes::EXPANDED) coefficients have 128 bytes.
const PREPARED: usize = 16 * MAX_ROWS;

/// Part of the packets, one or two registers wide.
#[derive(Clone, Copy)]
struct Column {
    /// Offset of the loads in each source.
    load: usize,
    /// Offset of the stores in each destination.
    store: usize,
    /// Leading bytes of the result that are not stored, since another column stored them.
    skip: usize,
    /// Bytes of the result to store.
    width: usize,
}

/// Coefficients in the form that [`Lanes::factor`] loads.
pub(super) type Prepared = Aligned<[u64; PREPARED]>;

/// The coefficients of a block of outputs that begins at `first`; gives the block.
#[inline(always)]
pub(super) unsafe fn prepare<V: Lanes>(
    job: &Job<'_>,
    first: usize,
    into: &mut MaybeUninit<Prepared>,
) -> Range<usize> {
    let outputs = first..job.to.len().min(first + block_size::<V>(job));
    // SAFETY: there is room for a block.
    unsafe { prepare_block::<V>(job, outputs.clone(), into.as_mut_ptr().cast()) };
    outputs
}

/// As [`prepare`] for coefficients that are a matrix times those of the job: see [`Lanes::prepare_product`].
#[inline(always)]
pub(super) unsafe fn prepare_product<V: Lanes>(
    job: &Job<'_>,
    left: Matrix<'_>,
    first: usize,
    into: &mut MaybeUninit<Prepared>,
) -> Range<usize> {
    let outputs = first..job.to.len().min(first + block_size::<V>(job));
    let start = |matrix: Matrix<'_>, row| (matrix.row(row).as_ptr(), matrix.stride());
    let (left, right) = (start(left, first), start(job.coefficients, 0));
    let sizes = (job.coefficients.rows(), job.from.len(), outputs.len() / 8);
    // SAFETY: the matrices have these sizes, there is room for a block, and outputs come in groups of eight.
    unsafe { V::prepare_product(left, right, sizes, into.as_mut_ptr().cast()) };
    outputs
}

/// Outputs whose coefficients fit the buffer: a multiple of 8, and at least 8, or one group at most.
#[inline(always)]
fn block_size<V: Lanes>(job: &Job<'_>) -> usize {
    let sources = job.from.len().next_multiple_of(8);
    if V::EXPANDED {
        let fit = size_of::<Prepared>() / (sources * size_of::<V::Prepared>());
        return fit.clamp(1, V::OUTPUTS);
    }
    (PREPARED / sources) & !7
}

/// Whether a job's sources have to be copied. In place, outputs overwrite sources, so each column of sources is copied first. Packets
/// shorter than a register are copied because loads without masks would read beyond them.
#[inline(always)]
pub(super) fn needs_copies<V: Lanes>(job: &Job<'_>) -> bool {
    job.in_place || !V::MASKED && job.len < V::BYTES
}

/// As [`combine`], from copies of the sources. A function of its own: its 32 KiB of stack are touched page by page.
#[inline(always)]
pub(super) unsafe fn combine_copies<V: Lanes>(job: &Job<'_>) {
    let mut prepared = MaybeUninit::<Prepared>::uninit();
    let prepared = prepared.as_mut_ptr().cast::<V::Prepared>();
    for at in (0..job.len).step_by(2 * V::BYTES) {
        // SAFETY: the job's pointers are valid for its length; `prepared` has room for a block.
        unsafe { packed_column::<V>(job, at, block_size::<V>(job), prepared) };
    }
}

/// All columns of a block of outputs.
#[inline(always)]
pub(super) unsafe fn columns<V: Lanes>(
    job: &Job<'_>,
    outputs: Range<usize>,
    prepared: &MaybeUninit<Prepared>,
) {
    let prepared = prepared.as_ptr().cast::<V::Prepared>();
    let column = |at, width| Column {
        load: at,
        store: at,
        skip: 0,
        width,
    };
    let outputs = || outputs.clone();
    let mut at = 0;
    // SAFETY: as for the job; every column ends within it.
    unsafe {
        macro_rules! column {
            ($registers:literal, $whole:literal, $width:expr) => {
                groups::<V, $registers, $whole>(
                    job,
                    job.from,
                    outputs(),
                    column(at, $width),
                    prepared,
                )
            };
        }
        let width = V::WIDTH * V::BYTES;
        while job.len - at >= width {
            match V::WIDTH {
                4 => column!(4, true, width),
                _ => column!(2, true, width),
            }
            at += width;
        }
        if V::MASKED {
            let rest = job.len - at;
            match rest.div_ceil(V::BYTES) {
                0 => {}
                1 => column!(1, false, rest),
                2 => column!(2, false, rest),
                // Wider columns only.
                3 if V::WIDTH == 4 => column!(3, false, rest),
                4 if V::WIDTH == 4 => column!(4, false, rest),
                _ => {}
            }
            return;
        }
        if job.len - at >= V::BYTES {
            groups::<V, 1, true>(job, job.from, outputs(), column(at, V::BYTES), prepared);
            at += V::BYTES;
        }
        let rest = job.len - at;
        if rest > 0 {
            // A full register that ends with the packet: it recomputes some bytes, but avoids partial loads, which
            // without masks go through memory.
            let skip = V::BYTES - rest;
            let column = Column {
                load: at - skip,
                store: at,
                skip,
                width: rest,
            };
            groups::<V, 1, true>(job, job.from, outputs(), column, prepared);
        }
    }
}

/// One column whose sources are first copied together, for all outputs.
#[inline(always)]
unsafe fn packed_column<V: Lanes>(
    job: &Job<'_>,
    at: usize,
    block: usize,
    prepared: *mut V::Prepared,
) {
    let mut pack = MaybeUninit::<Aligned<[u8; 128 * MAX_ROWS]>>::uninit();
    let pack = pack.as_mut_ptr().cast::<u8>();
    let mut from = [core::ptr::null::<u8>(); MAX_ROWS];
    let width = (job.len - at).min(2 * V::BYTES);
    // SAFETY: `2 * BYTES` is at most 128; each source has `width` bytes at `at`.
    unsafe {
        for (index, (from, source)) in from.iter_mut().zip(job.from).enumerate() {
            let source = source.add(at);
            *from = pack.add(index * 2 * V::BYTES);
            let row = from.cast_mut();
            if width == 2 * V::BYTES {
                V::store(row, V::load(source));
                V::store(row.add(V::BYTES), V::load(source.add(V::BYTES)));
            } else {
                let first = width.min(V::BYTES);
                V::store(row, V::load_part(source, first));
                let second = V::load_part(source.add(first), width - first);
                V::store(row.add(V::BYTES), second);
            }
        }
        let from = &from[..job.from.len()];
        let column = Column {
            load: 0,
            store: at,
            skip: 0,
            width,
        };
        for first in (0..job.to.len()).step_by(block) {
            let outputs = first..job.to.len().min(first + block);
            if V::DIRECT {
                plain_groups::<V, 2, true>(job, from, outputs, column);
                continue;
            }
            if at == 0 || job.to.len() > block {
                prepare_block::<V>(job, outputs.clone(), prepared);
            }
            groups::<V, 2, true>(job, from, outputs, column, prepared);
        }
    }
}

/// The size of the group that starts with `left` outputs still to do.
#[inline(always)]
fn group_size<V: Lanes>(left: usize) -> usize {
    match left {
        8.. if V::OUTPUTS >= 8 => 8,
        4.. => 4,
        2.. => 2,
        _ => 1,
    }
}

#[inline(always)]
unsafe fn prepare_block<V: Lanes>(
    job: &Job<'_>,
    outputs: Range<usize>,
    prepared: *mut V::Prepared,
) {
    if V::DIRECT && !V::EXPANDED {
        return;
    }
    let sources = job.from.len();
    let mut output = outputs.start;
    let mut into = prepared;
    while output < outputs.end {
        let size = group_size::<V>(outputs.end - output);
        let coefficients = (
            job.coefficients.row(output).as_ptr(),
            job.coefficients.stride(),
        );
        // SAFETY: the matrix has a row of `sources` coefficients for each output.
        unsafe {
            V::prepare(coefficients, sources, size, into);
            into = into.add(sources.next_multiple_of(8) * size);
        }
        output += size;
    }
}

/// All outputs of a block in one column.
#[inline(always)]
unsafe fn groups<V: Lanes, const W: usize, const FULL: bool>(
    job: &Job<'_>,
    from: &[*const u8],
    outputs: Range<usize>,
    column: Column,
    prepared: *const V::Prepared,
) {
    if V::DIRECT && !V::EXPANDED {
        // SAFETY: passed on to the caller.
        return unsafe { plain_groups::<V, W, FULL>(job, from, outputs, column) };
    }
    let mut to = &job.to[outputs];
    let mut prepared = prepared;
    while !to.is_empty() {
        let size = group_size::<V>(to.len());
        // SAFETY: as for the job.
        unsafe {
            match size {
                8 => tile::<V, 8, W, FULL>(from, prepared, to, column, job.add),
                4 => tile::<V, 4, W, FULL>(from, prepared, to, column, job.add),
                2 => tile::<V, 2, W, FULL>(from, prepared, to, column, job.add),
                _ => tile::<V, 1, W, FULL>(from, prepared, to, column, job.add),
            }
            prepared = prepared.add(from.len().next_multiple_of(8) * size);
        }
        to = &to[size..];
    }
}

/// `O` outputs of one column of `W` registers: the inner loop. Unless `FULL`, only the column's
/// width is read.
#[inline(always)]
unsafe fn tile<V: Lanes, const O: usize, const W: usize, const FULL: bool>(
    from: &[*const u8],
    prepared: *const V::Prepared,
    to: &[*mut u8],
    column: Column,
    add: bool,
) {
    // SAFETY: as for the job; `prepared` holds `O` coefficients for each source.
    unsafe {
        let mut sums = [[V::zero(); W]; O];
        let (pairs, last) = from.as_chunks::<2>();
        let (pairs, last) = if V::PAIRED {
            (pairs, last)
        } else {
            (&[][..], from)
        };
        let mut factors = prepared;
        for &[x, y] in pairs {
            let x = load::<V, W, FULL>(x.add(column.load), column.width);
            let y = load::<V, W, FULL>(y.add(column.load), column.width);
            for (output, sums) in sums.iter_mut().enumerate() {
                let f = V::factor(factors.add(output));
                let g = V::factor(factors.add(O + output));
                for (index, sum) in sums.iter_mut().enumerate() {
                    *sum = V::mul_add_pair(*sum, (x[index], f), (y[index], g));
                }
            }
            factors = factors.add(2 * O);
        }
        for &x in last {
            let x = load::<V, W, FULL>(x.add(column.load), column.width);
            for (output, sums) in sums.iter_mut().enumerate() {
                let f = V::factor(factors.add(output));
                for (sum, &x) in sums.iter_mut().zip(&x) {
                    *sum = V::mul_add(*sum, x, f);
                }
            }
            factors = factors.add(O);
        }
        for (sums, to) in sums.into_iter().zip(to) {
            emit::<V, W>(sums, to.add(column.store), column, add);
        }
    }
}

/// As [`groups`], with coefficients as they are in the matrix.
#[inline(always)]
unsafe fn plain_groups<V: Lanes, const W: usize, const FULL: bool>(
    job: &Job<'_>,
    from: &[*const u8],
    outputs: Range<usize>,
    column: Column,
) {
    let mut output = outputs.start;
    while output < outputs.end {
        let size = group_size::<V>(outputs.end - output);
        let (factors, to) = (job.coefficients.row(output).as_ptr(), &job.to[output..]);
        let factors = (factors, job.coefficients.stride());
        // SAFETY: as for the job.
        unsafe {
            match size {
                4.. => plain_tile::<V, 4, W, FULL>(from, factors, to, column, job.add),
                2.. => plain_tile::<V, 2, W, FULL>(from, factors, to, column, job.add),
                _ => plain_tile::<V, 1, W, FULL>(from, factors, to, column, job.add),
            }
        }
        output += size;
    }
}

/// As [`tile`]: the coefficient of source s and output o is read at `factors + o * stride + s`.
#[inline(always)]
unsafe fn plain_tile<V: Lanes, const O: usize, const W: usize, const FULL: bool>(
    from: &[*const u8],
    (factors, stride): (*const u8, usize),
    to: &[*mut u8],
    column: Column,
    add: bool,
) {
    // SAFETY: as for the job; there is a coefficient for each source and output.
    unsafe {
        let mut sums = [[V::zero(); W]; O];
        for (source, &x) in from.iter().enumerate() {
            let x = load::<V, W, FULL>(x.add(column.load), column.width);
            for (output, sums) in sums.iter_mut().enumerate() {
                let factor = factors.wrapping_add(output.wrapping_mul(stride));
                let f = V::factor_of(*factor.wrapping_add(source));
                for (sum, &x) in sums.iter_mut().zip(&x) {
                    *sum = V::mul_add(*sum, x, f);
                }
            }
        }
        for (sums, to) in sums.into_iter().zip(to) {
            emit::<V, W>(sums, to.add(column.store), column, add);
        }
    }
}

#[inline(always)]
unsafe fn load<V: Lanes, const W: usize, const FULL: bool>(
    from: *const u8,
    width: usize,
) -> [V::Source; W] {
    // A loop, since the compiler may leave `array::from_fn` a call, which then passes the registers through memory.
    // SAFETY: `W` registers, or `width` bytes, can be read.
    unsafe {
        let mut column = [V::source(V::zero()); W];
        for (index, part) in column.iter_mut().enumerate() {
            let at = index * V::BYTES;
            let from = from.wrapping_add(at);
            let whole = FULL || index + 1 < W;
            *part = V::source(if whole {
                V::load(from)
            } else {
                V::load_part(from, width - at)
            });
        }
        column
    }
}

/// Stores a finished column of one output.
#[inline(always)]
unsafe fn emit<V: Lanes, const W: usize>(
    sums: [V::Vector; W],
    to: *mut u8,
    column: Column,
    add: bool,
) {
    let last = (W - 1) * V::BYTES;
    // SAFETY: `width` bytes can be written.
    unsafe {
        if column.width == W * V::BYTES {
            for (index, sum) in sums.into_iter().enumerate() {
                V::put(sum, to.add(index * V::BYTES), add);
            }
        } else if V::MASKED && column.width > last {
            for (index, sum) in sums.into_iter().enumerate().take(W - 1) {
                V::put(sum, to.add(index * V::BYTES), add);
            }
            V::put_part(sums[W - 1], to.add(last), column.width - last, add);
        } else {
            let mut bytes = [0; 128];
            for (index, sum) in sums.into_iter().enumerate() {
                V::store(bytes.as_mut_ptr().add(index * V::BYTES), sum);
            }
            for index in 0..column.width {
                let new = *bytes.as_ptr().add(column.skip + index);
                *to.add(index) = if add { *to.add(index) ^ new } else { new };
            }
        }
    }
}
