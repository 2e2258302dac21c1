//! The vector kernels, and the only unsafe code of the crate.
//!
//! One engine, written once over the trait [`Lanes`], is compiled for each instruction set. It
//! multiplies in one of two ways. With GFNI, a coefficient is an 8 x 8 bit matrix in a 64-bit
//! lane and one affine instruction multiplies a whole register by it. Without, a product is the
//! sum of two 16-entry table look-ups, one for each half of the byte, done by a byte shuffle.
//!
//! Packets are worked off in columns two registers wide. All outputs of a column are computed
//! before the next column, so that the sources come from the first-level cache from the second
//! group of outputs on; the outputs of a group stay in registers until all sources are summed.
#![allow(unsafe_code)]

use core::mem::MaybeUninit;

use crate::field::{AFFINE, AFFINE_BYTES, NIBBLES};
use crate::kernel::Path;
use crate::rows::{MAX_ROWS, Rows, RowsMut};

/// One multiplication of packets by a matrix, as the engine sees it.
struct Job<'a> {
    /// Row by row, one row per destination.
    coefficients: &'a [u8],
    from: &'a [*const u8],
    to: &'a [*mut u8],
    len: usize,
    /// Add to the destination instead of replacing it.
    add: bool,
    /// Sources and destinations are the same packets.
    in_place: bool,
}

/// Calls the engine compiled for `$path`. On `Path`s of other processor families it does nothing:
/// [`Kernel`](crate::Kernel) cannot hold them.
macro_rules! dispatch {
    ($path:expr, $function:ident($($argument:expr),*)) => {
        // SAFETY: `Kernel` holds a path only after `supports` found its instructions, and all
        // callers below pass pointers into live slices of the lengths that they state.
        unsafe {
            match $path {
                #[cfg(target_arch = "x86_64")]
                Path::Ssse3 => x86::ssse3::$function($($argument),*),
                #[cfg(target_arch = "x86_64")]
                Path::Avx2 => x86::avx2::$function($($argument),*),
                #[cfg(target_arch = "x86_64")]
                Path::Gfni256 => x86::gfni256::$function($($argument),*),
                #[cfg(target_arch = "x86_64")]
                Path::Gfni512 => x86::gfni512::$function($($argument),*),
                #[cfg(target_arch = "aarch64")]
                Path::Neon => arm::neon::$function($($argument),*),
                _ => Default::default(),
            }
        }
    };
}

/// As [`crate::portable::combine`].
pub(crate) fn combine(
    path: Path,
    coefficients: &[u8],
    from: &Rows<'_>,
    to: &mut RowsMut<'_>,
    add: bool,
) {
    let len = from.row_len();
    if len == 0 {
        return;
    }
    let mut sources = Pointers::new();
    let from = sources.fill_from(from);
    if to.count() == 1 {
        let start = to.start(0).unwrap_or_default();
        let to = to.data_mut()[start..].as_mut_ptr();
        dispatch!(path, combine_one(coefficients, from, (to, len, add)));
        return;
    }
    let mut targets = Pointers::new();
    let to = targets.fill_mut(to);
    let job = Job {
        coefficients,
        from,
        to,
        len,
        add,
        in_place: false,
    };
    dispatch!(path, combine(&job));
}

/// As [`crate::portable::combine_in_place`].
pub(crate) fn combine_in_place(path: Path, coefficients: &[u8], rows: &mut RowsMut<'_>) {
    let len = rows.row_len();
    let (mut sources, mut targets) = (Pointers::new(), Pointers::new());
    let to = targets.fill_mut(rows);
    let from = sources.fill(to.len(), |index| to[index].cast_const());
    let job = Job {
        coefficients,
        from,
        to,
        len,
        add: false,
        in_place: true,
    };
    dispatch!(path, combine(&job));
}

/// As [`crate::portable::reduce`].
pub(crate) fn reduce(path: Path, factors: &[u8], rows: &[u8], to: &mut [u8]) {
    if to.is_empty() {
        return;
    }
    let factors = &factors[..factors.len().min(rows.len() / to.len())];
    let (from, len, to) = (rows.as_ptr(), to.len(), to.as_mut_ptr());
    dispatch!(path, reduce(factors, from, len, to));
}

/// Inserts a vector into a basis in one go, if its rows have a length that registers fit well;
/// otherwise gives `None` and does nothing.
///
/// `rows` holds a row for each of `pivots`, at least twice as long as `vector`, and one more, to
/// which the vector is added before it is reduced. The answer is the new pivot, if the vector is
/// innovative; only then do the rows change.
pub(crate) fn insert(
    path: Path,
    vector: &[u8],
    pivots: &[u8],
    rows: &mut [u8],
) -> Option<Option<u8>> {
    let len = basis_row(vector, pivots, rows)?;
    let rows = rows.as_mut_ptr();
    dispatch!(path, insert(vector, pivots, rows, len))
}

/// The answer that [`insert`] would give.
pub(crate) fn probe(path: Path, vector: &[u8], pivots: &[u8], rows: &[u8]) -> Option<Option<u8>> {
    let len = basis_row(vector, pivots, rows)?;
    let rows = rows.as_ptr();
    dispatch!(path, probe(vector, pivots, rows, len))
}

/// The length of a basis row, after a check that a vector and the pivots fit it.
fn basis_row(vector: &[u8], pivots: &[u8], rows: &[u8]) -> Option<usize> {
    let len = rows.len() / (pivots.len() + 1);
    let last = pivots
        .iter()
        .fold(0, |last, &pivot| last.max(usize::from(pivot)));
    (last < vector.len() && vector.len() <= len / 2).then_some(len)
}

/// As [`crate::portable::scale`].
pub(crate) fn scale(path: Path, factor: u8, data: &mut [u8]) {
    let (len, data) = (data.len(), data.as_mut_ptr());
    dispatch!(path, scale(factor, data, len));
}

/// As [`crate::portable::eliminate`].
pub(crate) fn eliminate(path: Path, rows: &mut [u8], column: usize, pivot: &[u8]) {
    if column >= pivot.len() {
        return;
    }
    let count = rows.len() / pivot.len();
    let (rows, len, pivot) = (rows.as_mut_ptr(), pivot.len(), pivot.as_ptr());
    dispatch!(path, eliminate(rows, count, len, column, pivot));
}

/// The starts of up to [`MAX_ROWS`] packets. Only what is used is ever written: clearing the rest
/// would push packets out of the first-level cache.
struct Pointers<T>([MaybeUninit<T>; MAX_ROWS]);

impl<T> Pointers<T> {
    fn new() -> Self {
        Self([const { MaybeUninit::uninit() }; MAX_ROWS])
    }

    fn fill(&mut self, count: usize, pointer: impl Fn(usize) -> T) -> &[T] {
        for (index, slot) in self.0.iter_mut().enumerate().take(count) {
            slot.write(pointer(index));
        }
        let filled = &self.0[..count];
        // SAFETY: the loop has written the first `count` slots, or the line above has panicked.
        unsafe { &*(core::ptr::from_ref(filled) as *const [T]) }
    }
}

impl Pointers<*const u8> {
    fn fill_from(&mut self, rows: &Rows<'_>) -> &[*const u8] {
        let (data, stride) = (rows.data().as_ptr(), rows.stride());
        match rows.selection() {
            None => self.fill(rows.count(), |index| data.wrapping_add(index * stride)),
            Some(list) => self.fill(list.len(), |index| {
                data.wrapping_add(usize::from(list[index]) * stride)
            }),
        }
    }
}

impl Pointers<*mut u8> {
    /// All are derived from one pointer to the buffer.
    fn fill_mut(&mut self, rows: &mut RowsMut<'_>) -> &[*mut u8] {
        let data = rows.data_mut().as_mut_ptr();
        self.fill(rows.count(), |index| {
            data.wrapping_add(rows.start(index).unwrap_or_default())
        })
    }
}

/// Whether this processor and operating system can run the path.
pub(crate) fn supports(path: Path) -> bool {
    match path {
        Path::Portable => true,
        #[cfg(target_arch = "x86_64")]
        path => x86::supported() & x86::bit(path) != 0,
        #[cfg(target_arch = "aarch64")]
        Path::Neon => cfg!(target_feature = "neon"),
        #[allow(unreachable_patterns)]
        _ => false,
    }
}

/// The fastest path of this processor.
pub(crate) fn best() -> Path {
    const FASTEST_FIRST: [Path; 5] = [
        Path::Gfni512,
        Path::Gfni256,
        Path::Avx2,
        Path::Ssse3,
        Path::Neon,
    ];
    FASTEST_FIRST
        .into_iter()
        .find(|&path| supports(path))
        .unwrap_or(Path::Portable)
}

/// A register of bytes and how to multiply it.
///
/// # Safety
///
/// All functions need the instructions of the implementing type. Loads and stores need pointers
/// valid for [`BYTES`](Self::BYTES), or for the stated number of bytes.
trait Lanes: Sized {
    /// Bytes in a register.
    const BYTES: usize;
    /// Outputs in a group: two accumulators for each must fit the register file.
    const OUTPUTS: usize;
    /// Loads and stores of part of a register are cheap.
    const MASKED: bool;
    /// Products of two sources are added to a sum in one go.
    const PAIRED: bool;
    /// A register.
    type Vector: Copy;
    /// A register of source bytes, ready to be multiplied.
    type Source: Copy;
    /// A coefficient in registers.
    type Factor: Copy;
    /// A coefficient in memory: what [`factor`](Self::factor) loads fastest.
    type Prepared: Copy;

    unsafe fn zero() -> Self::Vector;
    unsafe fn load(from: *const u8) -> Self::Vector;
    unsafe fn store(to: *mut u8, vector: Self::Vector);
    unsafe fn xor(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    unsafe fn source(vector: Self::Vector) -> Self::Source;
    unsafe fn factor(prepared: *const Self::Prepared) -> Self::Factor;
    unsafe fn prepared(coefficient: u8) -> Self::Prepared;
    unsafe fn mul(source: Self::Source, factor: Self::Factor) -> Self::Vector;

    /// The first `count` bytes (0 to `BYTES`), and zeros.
    #[inline(always)]
    unsafe fn load_part(from: *const u8, count: usize) -> Self::Vector {
        let mut bytes = [0; 64];
        // SAFETY: `from` is valid for `count` bytes, `bytes` for `BYTES`, at most 64.
        unsafe {
            core::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), count.min(Self::BYTES));
            Self::load(bytes.as_ptr())
        }
    }

    /// Stores the first `count` bytes (0 to `BYTES`).
    #[inline(always)]
    unsafe fn store_part(to: *mut u8, count: usize, vector: Self::Vector) {
        let mut bytes = [0; 64];
        // SAFETY: as above.
        unsafe {
            Self::store(bytes.as_mut_ptr(), vector);
            core::ptr::copy_nonoverlapping(bytes.as_ptr(), to, count.min(Self::BYTES));
        }
    }

    #[inline(always)]
    unsafe fn factor_of(coefficient: u8) -> Self::Factor {
        // SAFETY: the pointer is to a live local.
        unsafe {
            let prepared = Self::prepared(coefficient);
            Self::factor(&raw const prepared)
        }
    }

    /// `sum + x * f`.
    #[inline(always)]
    unsafe fn mul_add(sum: Self::Vector, x: Self::Source, f: Self::Factor) -> Self::Vector {
        // SAFETY: the caller has the instructions.
        unsafe { Self::xor(sum, Self::mul(x, f)) }
    }

    /// `sum + x * f + y * g`.
    #[inline(always)]
    unsafe fn mul_add_pair(
        sum: Self::Vector,
        (x, f): (Self::Source, Self::Factor),
        (y, g): (Self::Source, Self::Factor),
    ) -> Self::Vector {
        // SAFETY: the caller has the instructions.
        unsafe { Self::mul_add(Self::mul_add(sum, x, f), y, g) }
    }

    /// Prepares the coefficients of a group of outputs: that of source s and output o is read at
    /// `coefficients + o * sources + s` and written at `into + s * outputs + o`. `into` has room
    /// for a multiple of 8 sources.
    #[inline(always)]
    unsafe fn prepare(
        coefficients: *const u8,
        sources: usize,
        outputs: usize,
        into: *mut Self::Prepared,
    ) {
        // SAFETY: passed on to the caller.
        unsafe { prepare_by_table::<Self>(coefficients, sources, outputs, into) }
    }
}

/// One coefficient after the other.
#[inline(always)]
unsafe fn prepare_by_table<V: Lanes>(
    coefficients: *const u8,
    sources: usize,
    outputs: usize,
    into: *mut V::Prepared,
) {
    for output in 0..outputs {
        for source in 0..sources {
            // SAFETY: both offsets are inside the matrix that the caller describes.
            unsafe {
                let coefficient = *coefficients.add(output * sources + source);
                *into.add(source * outputs + output) = V::prepared(coefficient);
            }
        }
    }
}

/// The engine. Every function is inlined into one that has the instructions of its `Lanes`.
mod engine {
    use super::{Job, Lanes, MAX_ROWS, MaybeUninit};
    use crate::basis::leading;

    /// Coefficients prepared at a time; at least 8 outputs of [`MAX_ROWS`] sources.
    const PREPARED: usize = 8 * MAX_ROWS;

    /// Aligned so that no register straddles a cache line.
    #[repr(align(64))]
    struct Aligned<T>(T);

    /// Where the sources of a column are, and which part of what is loaded is new.
    #[derive(Clone, Copy)]
    struct Column {
        /// Offset of the loads in each source.
        load: usize,
        /// Offset of the stores in each destination.
        store: usize,
        /// Leading bytes of the result that are not stored: another column has them.
        skip: usize,
        /// Bytes to store.
        width: usize,
    }

    /// One output.
    #[inline(always)]
    pub(super) unsafe fn combine_one<V: Lanes>(
        factors: &[u8],
        from: &[*const u8],
        to: (*mut u8, usize, bool),
    ) {
        // SAFETY: the pointers are valid for the length in `to`, and there is one for each factor.
        unsafe { single::<V>(factors, |source| *from.get_unchecked(source), to) }
    }

    /// Many outputs: column by column, group by group.
    #[inline(always)]
    pub(super) unsafe fn combine<V: Lanes>(job: &Job<'_>) {
        let mut prepared = MaybeUninit::<Aligned<[u64; PREPARED]>>::uninit();
        let prepared = prepared.as_mut_ptr().cast::<V::Prepared>();
        let sources = job.from.len();
        // Outputs whose coefficients fit the buffer: a multiple of 8, and at least 8.
        let block = (PREPARED / sources.next_multiple_of(8)) & !7;
        let short = !V::MASKED && job.len < 2 * V::BYTES;
        if job.in_place || short {
            for at in (0..job.len).step_by(2 * V::BYTES) {
                // SAFETY: as for the job.
                unsafe { packed_column::<V>(job, at, block, prepared) };
            }
            return;
        }
        for first in (0..job.to.len()).step_by(block) {
            let outputs = first..job.to.len().min(first + block);
            // SAFETY: as for the job; `prepared` has room for the block.
            unsafe {
                prepare_block::<V>(job, outputs.clone(), prepared);
                let mut at = 0;
                while at + 2 * V::BYTES <= job.len {
                    let column = Column {
                        load: at,
                        store: at,
                        skip: 0,
                        width: 2 * V::BYTES,
                    };
                    groups::<V, true>(job, job.from, outputs.clone(), column, prepared);
                    at += 2 * V::BYTES;
                }
                let width = job.len - at;
                if width == 0 {
                } else if V::MASKED {
                    let column = Column {
                        load: at,
                        store: at,
                        skip: 0,
                        width,
                    };
                    groups::<V, false>(job, job.from, outputs, column, prepared);
                } else {
                    let skip = 2 * V::BYTES - width;
                    let column = Column {
                        load: at - skip,
                        store: at,
                        skip,
                        width,
                    };
                    groups::<V, true>(job, job.from, outputs, column, prepared);
                }
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
                let row = pack.add(index * 2 * V::BYTES);
                if width == 2 * V::BYTES {
                    V::store(row, V::load(source.add(at)));
                    V::store(row.add(V::BYTES), V::load(source.add(at + V::BYTES)));
                    *from = row;
                    continue;
                }
                let second = width.saturating_sub(V::BYTES);
                V::store(row, V::load_part(source.add(at), width.min(V::BYTES)));
                let rest = V::load_part(source.add(at + width - second), second);
                V::store(row.add(V::BYTES), rest);
                *from = row;
            }
            let column = Column {
                load: 0,
                store: at,
                skip: 0,
                width,
            };
            for first in (0..job.to.len()).step_by(block) {
                let outputs = first..job.to.len().min(first + block);
                if at == 0 || job.to.len() > block {
                    prepare_block::<V>(job, outputs.clone(), prepared);
                }
                groups::<V, true>(job, &from[..job.from.len()], outputs, column, prepared);
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
        outputs: core::ops::Range<usize>,
        prepared: *mut V::Prepared,
    ) {
        let sources = job.from.len();
        let mut output = outputs.start;
        let mut into = prepared;
        while output < outputs.end {
            let size = group_size::<V>(outputs.end - output);
            // SAFETY: the matrix has a row of `sources` coefficients for each output.
            unsafe {
                let coefficients = job.coefficients.as_ptr().add(output * sources);
                V::prepare(coefficients, sources, size, into);
                into = into.add(sources.next_multiple_of(8) * size);
            }
            output += size;
        }
    }

    /// All outputs of one column.
    #[inline(always)]
    unsafe fn groups<V: Lanes, const FULL: bool>(
        job: &Job<'_>,
        from: &[*const u8],
        outputs: core::ops::Range<usize>,
        column: Column,
        prepared: *const V::Prepared,
    ) {
        let mut to = &job.to[outputs];
        let mut prepared = prepared;
        while !to.is_empty() {
            let size = group_size::<V>(to.len());
            // SAFETY: as for the job.
            unsafe {
                match size {
                    8 => tile::<V, 8, FULL>(from, prepared, to, column, job.add),
                    4 => tile::<V, 4, FULL>(from, prepared, to, column, job.add),
                    2 => tile::<V, 2, FULL>(from, prepared, to, column, job.add),
                    _ => tile::<V, 1, FULL>(from, prepared, to, column, job.add),
                }
                prepared = prepared.add(from.len().next_multiple_of(8) * size);
            }
            to = &to[size..];
        }
    }

    /// `O` outputs of one column: the inner loop. Unless `FULL`, only the column's width is read.
    #[inline(always)]
    unsafe fn tile<V: Lanes, const O: usize, const FULL: bool>(
        from: &[*const u8],
        prepared: *const V::Prepared,
        to: &[*mut u8],
        column: Column,
        add: bool,
    ) {
        // SAFETY: as for the job; `prepared` holds `O` coefficients for each source.
        unsafe {
            let mut sums = [[V::zero(); 2]; O];
            let (pairs, last) = from.as_chunks::<2>();
            let (pairs, last) = if V::PAIRED {
                (pairs, last)
            } else {
                (&[][..], from)
            };
            let mut factors = prepared;
            for &[x, y] in pairs {
                let x = load_pair::<V, FULL>(x.add(column.load), column.width);
                let y = load_pair::<V, FULL>(y.add(column.load), column.width);
                for (output, sum) in sums.iter_mut().enumerate() {
                    let f = V::factor(factors.add(output));
                    let g = V::factor(factors.add(O + output));
                    sum[0] = V::mul_add_pair(sum[0], (x[0], f), (y[0], g));
                    sum[1] = V::mul_add_pair(sum[1], (x[1], f), (y[1], g));
                }
                factors = factors.add(2 * O);
            }
            for &x in last {
                let x = load_pair::<V, FULL>(x.add(column.load), column.width);
                for (output, sum) in sums.iter_mut().enumerate() {
                    let f = V::factor(factors.add(output));
                    *sum = [V::mul_add(sum[0], x[0], f), V::mul_add(sum[1], x[1], f)];
                }
                factors = factors.add(O);
            }
            for (sum, to) in sums.into_iter().zip(to) {
                emit::<V>(sum, to.add(column.store), column, add);
            }
        }
    }

    #[inline(always)]
    unsafe fn load_pair<V: Lanes, const FULL: bool>(
        from: *const u8,
        width: usize,
    ) -> [V::Source; 2] {
        // SAFETY: two registers, or `width` bytes, can be read.
        unsafe {
            if FULL {
                return [
                    V::source(V::load(from)),
                    V::source(V::load(from.add(V::BYTES))),
                ];
            }
            let first = width.min(V::BYTES);
            [
                V::source(V::load_part(from, first)),
                V::source(V::load_part(from.wrapping_add(first), width - first)),
            ]
        }
    }

    /// Stores a finished column of one output.
    #[inline(always)]
    unsafe fn emit<V: Lanes>(sum: [V::Vector; 2], to: *mut u8, column: Column, add: bool) {
        // SAFETY: `width` bytes can be written.
        unsafe {
            if column.width == 2 * V::BYTES {
                put::<V>(sum[0], to, add);
                put::<V>(sum[1], to.add(V::BYTES), add);
                return;
            }
            if V::MASKED && column.skip == 0 {
                let first = column.width.min(V::BYTES);
                put_part::<V>(sum[0], to, first, add);
                put_part::<V>(sum[1], to.add(first), column.width - first, add);
                return;
            }
            let mut bytes = [0; 128];
            V::store(bytes.as_mut_ptr(), sum[0]);
            V::store(bytes.as_mut_ptr().add(V::BYTES), sum[1]);
            for index in 0..column.width {
                let new = *bytes.as_ptr().add(column.skip + index);
                *to.add(index) = if add { *to.add(index) ^ new } else { new };
            }
        }
    }

    #[inline(always)]
    unsafe fn put<V: Lanes>(sum: V::Vector, to: *mut u8, add: bool) {
        // SAFETY: one register can be read and written.
        unsafe { V::store(to, if add { V::xor(sum, V::load(to)) } else { sum }) }
    }

    #[inline(always)]
    unsafe fn put_part<V: Lanes>(sum: V::Vector, to: *mut u8, count: usize, add: bool) {
        // SAFETY: `count` bytes can be read and written.
        unsafe {
            let sum = if add {
                V::xor(sum, V::load_part(to, count))
            } else {
                sum
            };
            V::store_part(to, count, sum);
        }
    }

    /// One output: long strips, so that each coefficient is loaded few times.
    #[inline(always)]
    unsafe fn single<V: Lanes>(
        factors: &[u8],
        from: impl Fn(usize) -> *const u8 + Copy,
        (to, len, add): (*mut u8, usize, bool),
    ) {
        let mut at = 0;
        let mut prepared = MaybeUninit::<Aligned<[u64; MAX_ROWS]>>::uninit();
        let prepared = prepared.as_mut_ptr().cast::<V::Prepared>();
        // SAFETY: source and destination are valid for `len` bytes, and strips end within them.
        unsafe {
            V::prepare(factors.as_ptr(), factors.len(), 1, prepared);
            let factors = core::slice::from_raw_parts(prepared, factors.len());
            macro_rules! strip {
                ($width:literal, $bytes:expr) => {
                    strip::<V, $width>(factors, |i| from(i).add(at), to.add(at), $bytes, add)
                };
            }
            if V::MASKED {
                while len - at >= 12 * V::BYTES {
                    strip!(12, 12 * V::BYTES);
                    at += 12 * V::BYTES;
                }
                let rest = len - at;
                match rest.div_ceil(V::BYTES) {
                    0 => {}
                    1 => strip!(1, rest),
                    2 => strip!(2, rest),
                    3 => strip!(3, rest),
                    4 => strip!(4, rest),
                    5 => strip!(5, rest),
                    6 => strip!(6, rest),
                    7 => strip!(7, rest),
                    8 => strip!(8, rest),
                    9 => strip!(9, rest),
                    10 => strip!(10, rest),
                    11 => strip!(11, rest),
                    _ => strip!(12, rest),
                }
                return;
            }
            while len - at >= 8 * V::BYTES {
                strip!(8, 8 * V::BYTES);
                at += 8 * V::BYTES;
            }
            if len - at >= 4 * V::BYTES {
                strip!(4, 4 * V::BYTES);
                at += 4 * V::BYTES;
            }
            if len - at >= 2 * V::BYTES {
                strip!(2, 2 * V::BYTES);
                at += 2 * V::BYTES;
            }
            if len - at >= V::BYTES {
                strip!(1, V::BYTES);
                at += V::BYTES;
            }
            let rest = len - at;
            if rest > 0 && len >= V::BYTES {
                // A full register that ends with the packet; its first bytes are done already.
                let mut window = [0; 64];
                let from = |source| from(source).add(len - V::BYTES);
                strip::<V, 1>(factors, from, window.as_mut_ptr(), V::BYTES, false);
                for index in 0..rest {
                    let new = *window.as_ptr().add(V::BYTES - rest + index);
                    let to = to.add(at + index);
                    *to = if add { *to ^ new } else { new };
                }
            } else if rest > 0 {
                strip!(1, rest);
            }
        }
    }

    /// `W` registers of one output, of which the last may be partial: `bytes` in all.
    #[inline(always)]
    unsafe fn strip<V: Lanes, const W: usize>(
        factors: &[V::Prepared],
        from: impl Fn(usize) -> *const u8,
        to: *mut u8,
        bytes: usize,
        add: bool,
    ) {
        let last = bytes - (W - 1) * V::BYTES;
        // SAFETY: `bytes` bytes can be read from each source and written.
        unsafe {
            let load = |from: *const u8, index: usize| {
                let from = from.add(index * V::BYTES);
                let whole = index < W - 1 || last == V::BYTES;
                V::source(if whole {
                    V::load(from)
                } else {
                    V::load_part(from, last)
                })
            };
            let mut sums = [V::zero(); W];
            let (pairs, odd) = factors.as_chunks::<2>();
            let (pairs, odd) = if V::PAIRED {
                (pairs, odd)
            } else {
                (&[][..], factors)
            };
            for (pair, [f, g]) in pairs.iter().enumerate() {
                let (f, g) = (V::factor(f), V::factor(g));
                let (x, y) = (from(2 * pair), from(2 * pair + 1));
                for (index, sum) in sums.iter_mut().enumerate() {
                    *sum = V::mul_add_pair(*sum, (load(x, index), f), (load(y, index), g));
                }
            }
            for (source, f) in odd.iter().enumerate() {
                let f = V::factor(f);
                let x = from(2 * pairs.len() + source);
                for (index, sum) in sums.iter_mut().enumerate() {
                    *sum = V::mul_add(*sum, load(x, index), f);
                }
            }
            for (index, sum) in sums.into_iter().enumerate() {
                let to = to.add(index * V::BYTES);
                if index < W - 1 || last == V::BYTES {
                    put::<V>(sum, to, add);
                } else {
                    put_part::<V>(sum, to, last, add);
                }
            }
        }
    }

    /// Adds the combination of rows that lie `len` bytes apart.
    #[inline(always)]
    pub(super) unsafe fn reduce<V: Lanes>(
        factors: &[u8],
        rows: *const u8,
        len: usize,
        to: *mut u8,
    ) {
        // SAFETY: there is a row of `len` bytes for each factor.
        unsafe { single::<V>(factors, |index| rows.add(index * len), (to, len, true)) }
    }

    /// Inserts a vector into a basis whose rows are `W` registers long: see [`super::insert`].
    #[inline(always)]
    pub(super) unsafe fn insert<V: Lanes, const W: usize>(
        vector: &[u8],
        pivots: &[u8],
        rows: *mut u8,
    ) -> Option<u8> {
        let len = W * V::BYTES;
        // SAFETY: there is one row more than pivots, of `len` bytes, which is more than any pivot.
        unsafe {
            let (sums, (pivot, value)) = residue::<V, W>(vector, pivots, rows)?;
            let inverse = V::factor_of(crate::field::inv(value)?);
            let sums = sums.map(|sum| V::mul(V::source(sum), inverse));
            let new = rows.add(pivots.len() * len);
            for (at, sum) in sums.into_iter().enumerate() {
                V::store(new.add(at * V::BYTES), sum);
            }
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

    /// A vector less its part in the span of a basis, with its first entry that is not zero.
    #[inline(always)]
    pub(super) unsafe fn residue<V: Lanes, const W: usize>(
        vector: &[u8],
        pivots: &[u8],
        rows: *const u8,
    ) -> Option<([V::Vector; W], (u8, u8))> {
        let len = W * V::BYTES;
        // SAFETY: there is one row more than pivots, of `len` bytes, and the pivots are indices
        // of the vector, which is at most half as long as a row.
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
            let factor = |pivot: u8| V::factor_of(*vector.get_unchecked(usize::from(pivot)));
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
            let mut reduced = Aligned([0u8; 64 * 4]);
            for (at, &sum) in sums.iter().enumerate() {
                V::store(reduced.0.as_mut_ptr().add(at * V::BYTES), sum);
            }
            let first = leading(reduced.0.get_unchecked(..vector.len()))?;
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
}

/// Compiles the engine for one kind of lanes.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! compile {
    ($name:ident, $lanes:ty, $features:literal) => {
        pub(super) mod $name {
            use super::super::{Job, engine};
            use super::*;

            #[target_feature(enable = $features)]
            pub(crate) unsafe fn combine(job: &Job<'_>) {
                // SAFETY: passed on to the caller.
                unsafe { engine::combine::<$lanes>(job) }
            }

            #[target_feature(enable = $features)]
            pub(crate) unsafe fn combine_one(
                factors: &[u8],
                from: &[*const u8],
                to: (*mut u8, usize, bool),
            ) {
                // SAFETY: passed on to the caller.
                unsafe { engine::combine_one::<$lanes>(factors, from, to) }
            }

            #[target_feature(enable = $features)]
            pub(crate) unsafe fn reduce(factors: &[u8], rows: *const u8, len: usize, to: *mut u8) {
                // SAFETY: passed on to the caller.
                unsafe { engine::reduce::<$lanes>(factors, rows, len, to) }
            }

            #[target_feature(enable = $features)]
            pub(crate) unsafe fn insert(
                vector: &[u8],
                pivots: &[u8],
                rows: *mut u8,
                len: usize,
            ) -> Option<Option<u8>> {
                // SAFETY: passed on to the caller.
                unsafe {
                    Some(
                        match len / <$lanes>::BYTES * usize::from(len % <$lanes>::BYTES == 0) {
                            1 => engine::insert::<$lanes, 1>(vector, pivots, rows),
                            2 => engine::insert::<$lanes, 2>(vector, pivots, rows),
                            4 => engine::insert::<$lanes, 4>(vector, pivots, rows),
                            _ => return None,
                        },
                    )
                }
            }

            #[target_feature(enable = $features)]
            pub(crate) unsafe fn probe(
                vector: &[u8],
                pivots: &[u8],
                rows: *const u8,
                len: usize,
            ) -> Option<Option<u8>> {
                // SAFETY: passed on to the caller.
                let first = unsafe {
                    match len / <$lanes>::BYTES * usize::from(len % <$lanes>::BYTES == 0) {
                        1 => engine::residue::<$lanes, 1>(vector, pivots, rows).map(|r| r.1),
                        2 => engine::residue::<$lanes, 2>(vector, pivots, rows).map(|r| r.1),
                        4 => engine::residue::<$lanes, 4>(vector, pivots, rows).map(|r| r.1),
                        _ => return None,
                    }
                };
                Some(first.map(|(pivot, _)| pivot))
            }

            #[target_feature(enable = $features)]
            pub(crate) unsafe fn scale(factor: u8, data: *mut u8, len: usize) {
                // SAFETY: passed on to the caller.
                unsafe { engine::scale::<$lanes>(factor, data, len) }
            }

            #[target_feature(enable = $features)]
            pub(crate) unsafe fn eliminate(
                rows: *mut u8,
                count: usize,
                len: usize,
                column: usize,
                pivot: *const u8,
            ) {
                // SAFETY: passed on to the caller.
                unsafe { engine::eliminate::<$lanes>(rows, count, len, column, pivot) }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use core::arch::x86_64::*;
    use core::sync::atomic::{AtomicU8, Ordering};

    use super::{AFFINE, AFFINE_BYTES, Lanes, NIBBLES, Path, prepare_by_table};

    /// Set in the answer of [`supported`] once the processor has been asked.
    const ASKED: u8 = 1 << 7;

    pub(super) const fn bit(path: Path) -> u8 {
        match path {
            Path::Ssse3 => 1,
            Path::Avx2 => 2,
            Path::Gfni256 => 4,
            Path::Gfni512 => 8,
            Path::Portable | Path::Neon => 0,
        }
    }

    /// The [`bit`]s of the paths that work here.
    pub(super) fn supported() -> u8 {
        static SUPPORTED: AtomicU8 = AtomicU8::new(0);
        let known = SUPPORTED.load(Ordering::Relaxed);
        if known != 0 {
            return known;
        }
        let found = ask() | ASKED;
        SUPPORTED.store(found, Ordering::Relaxed);
        found
    }

    /// Asks the processor what it can do, and by XCR0 which registers the operating system saves.
    /// Bit numbers: Intel SDM volume 2A, CPUID; volume 1, XCR0.
    #[cold]
    fn ask() -> u8 {
        let all = |word: u32, bits: &[u32]| bits.iter().all(|bit| word >> bit & 1 == 1);
        if __cpuid(0).eax < 7 {
            return 0;
        }
        let one = __cpuid(1).ecx;
        let seven = __cpuid_count(7, 0);
        let mut found = 0;
        if all(one, &[9]) {
            found |= bit(Path::Ssse3);
        }
        let osxsave = all(one, &[26, 27, 28]);
        // SAFETY: OSXSAVE (bit 27) says that XGETBV exists and is enabled.
        let saved = if osxsave { unsafe { xcr0() } } else { 0 };
        let gfni = all(seven.ecx, &[8]);
        if all(saved, &[1, 2]) && all(seven.ebx, &[5]) {
            found |= bit(Path::Avx2);
            if gfni {
                found |= bit(Path::Gfni256);
            }
            // F, DQ, BW, VL; VBMI.
            let avx512 = all(seven.ebx, &[16, 17, 30, 31]) && all(seven.ecx, &[1]);
            if gfni && avx512 && all(saved, &[5, 6, 7]) {
                found |= bit(Path::Gfni512);
            }
        }
        found
    }

    #[target_feature(enable = "xsave")]
    unsafe fn xcr0() -> u32 {
        // SAFETY: the caller knows that the instruction is enabled.
        unsafe { _xgetbv(0) as u32 }
    }

    /// Two shuffles look up the products of the low and the high half of each byte.
    macro_rules! shuffle_lanes {
        ($name:ident, $vector:ty, $bytes:literal, $load:ident, $store:ident, $set1:ident, $zero:ident,
         $and:ident, $xor:ident, $shift:ident, $shuffle:ident, $table:expr) => {
            pub(super) struct $name;

            impl Lanes for $name {
                const BYTES: usize = $bytes;
                const OUTPUTS: usize = 4;
                const MASKED: bool = false;
                const PAIRED: bool = false;
                type Vector = $vector;
                type Source = ($vector, $vector);
                type Factor = ($vector, $vector);
                type Prepared = u8;

                #[inline(always)]
                unsafe fn zero() -> $vector {
                    // SAFETY: the caller has the instructions, here and below.
                    unsafe { $zero() }
                }
                #[inline(always)]
                unsafe fn load(from: *const u8) -> $vector {
                    // SAFETY: a whole register can be read.
                    unsafe { $load(from.cast()) }
                }
                #[inline(always)]
                unsafe fn store(to: *mut u8, vector: $vector) {
                    // SAFETY: a whole register can be written.
                    unsafe { $store(to.cast(), vector) }
                }
                #[inline(always)]
                unsafe fn xor(a: $vector, b: $vector) -> $vector {
                    // SAFETY: see `zero`.
                    unsafe { $xor(a, b) }
                }
                #[inline(always)]
                unsafe fn source(vector: $vector) -> Self::Source {
                    // SAFETY: see `zero`.
                    unsafe {
                        let half = $set1(15);
                        ($and(vector, half), $and($shift::<4>(vector), half))
                    }
                }
                #[inline(always)]
                unsafe fn prepared(coefficient: u8) -> u8 {
                    coefficient
                }
                #[inline(always)]
                unsafe fn factor(prepared: *const u8) -> Self::Factor {
                    // SAFETY: each entry of the table is two halves of 16 bytes.
                    unsafe {
                        let halves = NIBBLES.0.as_ptr().add((*prepared).into()).cast::<__m128i>();
                        ($table(halves), $table(halves.add(1)))
                    }
                }
                #[inline(always)]
                unsafe fn mul(x: Self::Source, f: Self::Factor) -> $vector {
                    // SAFETY: see `zero`.
                    unsafe { $xor($shuffle(f.0, x.0), $shuffle(f.1, x.1)) }
                }
            }
        };
    }

    shuffle_lanes!(
        Ssse3,
        __m128i,
        16,
        _mm_loadu_si128,
        _mm_storeu_si128,
        _mm_set1_epi8,
        _mm_setzero_si128,
        _mm_and_si128,
        _mm_xor_si128,
        _mm_srli_epi64,
        _mm_shuffle_epi8,
        |half| _mm_load_si128(half)
    );
    shuffle_lanes!(
        Avx2,
        __m256i,
        32,
        _mm256_loadu_si256,
        _mm256_storeu_si256,
        _mm256_set1_epi8,
        _mm256_setzero_si256,
        _mm256_and_si256,
        _mm256_xor_si256,
        _mm256_srli_epi64,
        _mm256_shuffle_epi8,
        |half| _mm256_broadcastsi128_si256(_mm_load_si128(half))
    );
    compile!(ssse3, Ssse3, "ssse3");
    compile!(avx2, Avx2, "avx2");

    /// The affine instruction on 32-byte registers.
    pub(super) struct Gfni256;

    impl Lanes for Gfni256 {
        const BYTES: usize = 32;
        const OUTPUTS: usize = 4;
        const MASKED: bool = false;
        const PAIRED: bool = false;
        type Vector = __m256i;
        type Source = __m256i;
        type Factor = __m256i;
        type Prepared = u64;

        #[inline(always)]
        unsafe fn zero() -> __m256i {
            // SAFETY: the caller has the instructions, here and below.
            unsafe { _mm256_setzero_si256() }
        }
        #[inline(always)]
        unsafe fn load(from: *const u8) -> __m256i {
            // SAFETY: a whole register can be read.
            unsafe { _mm256_loadu_si256(from.cast()) }
        }
        #[inline(always)]
        unsafe fn store(to: *mut u8, vector: __m256i) {
            // SAFETY: a whole register can be written.
            unsafe { _mm256_storeu_si256(to.cast(), vector) }
        }
        #[inline(always)]
        unsafe fn xor(a: __m256i, b: __m256i) -> __m256i {
            // SAFETY: see `zero`.
            unsafe { _mm256_xor_si256(a, b) }
        }
        #[inline(always)]
        unsafe fn source(vector: __m256i) -> __m256i {
            vector
        }
        #[inline(always)]
        unsafe fn prepared(coefficient: u8) -> u64 {
            AFFINE[usize::from(coefficient)]
        }
        #[inline(always)]
        unsafe fn factor(prepared: *const u64) -> __m256i {
            // SAFETY: the pointer is valid.
            unsafe { _mm256_set1_epi64x(prepared.read().cast_signed()) }
        }
        #[inline(always)]
        unsafe fn mul(x: __m256i, f: __m256i) -> __m256i {
            // SAFETY: see `zero`.
            unsafe { _mm256_gf2p8affine_epi64_epi8::<0>(x, f) }
        }
    }
    compile!(gfni256, Gfni256, "avx2,gfni");

    /// The affine instruction on 64-byte registers.
    pub(super) struct Gfni512;

    impl Lanes for Gfni512 {
        const BYTES: usize = 64;
        const OUTPUTS: usize = 8;
        const MASKED: bool = true;
        const PAIRED: bool = true;
        type Vector = __m512i;
        type Source = __m512i;
        type Factor = __m512i;
        type Prepared = u64;

        #[inline(always)]
        unsafe fn zero() -> __m512i {
            // SAFETY: the caller has the instructions, here and below.
            unsafe { _mm512_setzero_si512() }
        }
        #[inline(always)]
        unsafe fn load(from: *const u8) -> __m512i {
            // SAFETY: a whole register can be read.
            unsafe { _mm512_loadu_si512(from.cast()) }
        }
        #[inline(always)]
        unsafe fn store(to: *mut u8, vector: __m512i) {
            // SAFETY: a whole register can be written.
            unsafe { _mm512_storeu_si512(to.cast(), vector) }
        }
        #[inline(always)]
        unsafe fn load_part(from: *const u8, count: usize) -> __m512i {
            // SAFETY: bytes that the mask leaves out are not touched.
            unsafe { _mm512_maskz_loadu_epi8(_bzhi_u64(u64::MAX, count as u32), from.cast()) }
        }
        #[inline(always)]
        unsafe fn store_part(to: *mut u8, count: usize, vector: __m512i) {
            // SAFETY: bytes that the mask leaves out are not touched.
            unsafe {
                _mm512_mask_storeu_epi8(to.cast(), _bzhi_u64(u64::MAX, count as u32), vector);
            }
        }
        #[inline(always)]
        unsafe fn xor(a: __m512i, b: __m512i) -> __m512i {
            // SAFETY: see `zero`.
            unsafe { _mm512_xor_si512(a, b) }
        }
        #[inline(always)]
        unsafe fn source(vector: __m512i) -> __m512i {
            vector
        }
        #[inline(always)]
        unsafe fn prepared(coefficient: u8) -> u64 {
            AFFINE[usize::from(coefficient)]
        }
        #[inline(always)]
        unsafe fn factor(prepared: *const u64) -> __m512i {
            // SAFETY: the pointer is valid.
            unsafe { _mm512_set1_epi64(prepared.read().cast_signed()) }
        }
        #[inline(always)]
        unsafe fn mul(x: __m512i, f: __m512i) -> __m512i {
            // SAFETY: see `zero`.
            unsafe { _mm512_gf2p8affine_epi64_epi8::<0>(x, f) }
        }
        /// Eight sources and eight outputs at a time, by the affine instruction itself.
        #[inline(always)]
        unsafe fn prepare(coefficients: *const u8, sources: usize, outputs: usize, into: *mut u64) {
            // SAFETY: rows of `sources` coefficients are read, and `into` has room for a multiple
            // of 8 sources.
            unsafe {
                let by_bytes = _mm512_loadu_si512(AFFINE_BYTES.as_ptr().cast());
                let transpose = _mm512_loadu_si512(TRANSPOSE.as_ptr().cast());
                // The matrices of eight coefficients. Lane p of the product is byte p of each.
                let matrices = |eight: u64| {
                    let eight = _mm512_set1_epi64(eight.cast_signed());
                    let bytes = _mm512_gf2p8affine_epi64_epi8::<0>(eight, by_bytes);
                    _mm512_permutexvar_epi8(transpose, bytes)
                };
                if outputs == 1 {
                    for source in (0..sources).step_by(8) {
                        let from = coefficients.add(source);
                        let eight = matrices(up_to_eight(from, sources - source));
                        _mm512_storeu_si512(into.add(source).cast(), eight);
                    }
                    return;
                }
                if outputs != 8 {
                    return prepare_by_table::<Self>(coefficients, sources, outputs, into);
                }
                for source in (0..sources).step_by(8) {
                    let mut block = [0u64; 8];
                    for (output, row) in block.iter_mut().enumerate() {
                        let from = coefficients.add(output * sources + source);
                        *row = up_to_eight(from, sources - source);
                    }
                    // Lane s of `columns` holds the eight outputs' coefficients of source s.
                    let rows = _mm512_loadu_si512(block.as_ptr().cast());
                    let columns = _mm512_permutexvar_epi8(transpose, rows);
                    let mut lanes = [0u64; 8];
                    _mm512_storeu_si512(lanes.as_mut_ptr().cast(), columns);
                    for (index, &lane) in lanes.iter().enumerate() {
                        let into = into.add((source + index) * 8);
                        _mm512_storeu_si512(into.cast(), matrices(lane));
                    }
                }
            }
        }

        #[inline(always)]
        unsafe fn mul_add_pair(
            sum: __m512i,
            (x, f): (__m512i, __m512i),
            (y, g): (__m512i, __m512i),
        ) -> __m512i {
            // SAFETY: see `zero`. 0x96 is the truth table of a three-way exclusive or.
            unsafe { _mm512_ternarylogic_epi64::<0x96>(sum, Self::mul(x, f), Self::mul(y, g)) }
        }
    }
    /// The bytes at `from`, of which there are `count`, as a little-endian word.
    #[inline(always)]
    unsafe fn up_to_eight(from: *const u8, count: usize) -> u64 {
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

    compile!(
        gfni512,
        Gfni512,
        "avx512f,avx512dq,avx512bw,avx512vl,avx512vbmi,gfni,bmi2"
    );
}

#[cfg(target_arch = "aarch64")]
mod arm {
    use core::arch::aarch64::*;

    use super::{Lanes, NIBBLES};

    /// Two table look-ups of 16 bytes, as in the shuffle kernels of x86.
    pub(super) struct Neon;

    impl Lanes for Neon {
        const BYTES: usize = 16;
        const OUTPUTS: usize = 4;
        const MASKED: bool = false;
        const PAIRED: bool = false;
        type Vector = uint8x16_t;
        type Source = (uint8x16_t, uint8x16_t);
        type Factor = (uint8x16_t, uint8x16_t);
        type Prepared = u8;

        #[inline(always)]
        unsafe fn zero() -> uint8x16_t {
            // SAFETY: the caller has the instructions, here and below.
            unsafe { vdupq_n_u8(0) }
        }
        #[inline(always)]
        unsafe fn load(from: *const u8) -> uint8x16_t {
            // SAFETY: a whole register can be read.
            unsafe { vld1q_u8(from) }
        }
        #[inline(always)]
        unsafe fn store(to: *mut u8, vector: uint8x16_t) {
            // SAFETY: a whole register can be written.
            unsafe { vst1q_u8(to, vector) }
        }
        #[inline(always)]
        unsafe fn xor(a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
            // SAFETY: see `zero`.
            unsafe { veorq_u8(a, b) }
        }
        #[inline(always)]
        unsafe fn source(vector: uint8x16_t) -> Self::Source {
            // SAFETY: see `zero`.
            unsafe { (vandq_u8(vector, vdupq_n_u8(15)), vshrq_n_u8::<4>(vector)) }
        }
        #[inline(always)]
        unsafe fn prepared(coefficient: u8) -> u8 {
            coefficient
        }
        #[inline(always)]
        unsafe fn factor(prepared: *const u8) -> Self::Factor {
            // SAFETY: each entry of the table is two halves of 16 bytes.
            unsafe {
                let halves = NIBBLES.0.as_ptr().add((*prepared).into()).cast::<u8>();
                (vld1q_u8(halves), vld1q_u8(halves.add(16)))
            }
        }
        #[inline(always)]
        unsafe fn mul(x: Self::Source, f: Self::Factor) -> uint8x16_t {
            // SAFETY: see `zero`.
            unsafe { veorq_u8(vqtbl1q_u8(f.0, x.0), vqtbl1q_u8(f.1, x.1)) }
        }
    }
    compile!(neon, Neon, "neon");
}
