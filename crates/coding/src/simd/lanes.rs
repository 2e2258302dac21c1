//! The operations that the engine needs from an instruction set.

use core::mem::MaybeUninit;

/// Aligned so that no register straddles a cache line.
#[repr(align(64))]
pub(super) struct Aligned<T>(pub T);

/// A register of bytes and how to multiply it.
///
/// # Safety
///
/// All functions need the instructions of the implementing type. Loads and stores need pointers
/// valid for [`BYTES`](Self::BYTES), or for the stated number of bytes.
pub(super) trait Lanes: Sized {
    /// Bytes in a register.
    const BYTES: usize;
    /// Outputs in a group: [`WIDTH`](Self::WIDTH) accumulators for each must fit the register file.
    const OUTPUTS: usize;
    /// Registers in a column of many outputs: 2 or 4.
    const WIDTH: usize = 2;
    /// Coefficients need no preparation: [`factor_of`](Self::factor_of) is as fast as [`factor`](Self::factor).
    const DIRECT: bool = false;
    /// Only where many outputs are made they are prepared all the same, for one group of outputs at a time, since what is prepared is
    /// large.
    const EXPANDED: bool = false;
    /// Loads and stores of part of a register are cheap.
    const MASKED: bool;
    /// [`mul_add_pair`](Self::mul_add_pair) adds the products of two sources with one instruction.
    const PAIRED: bool;
    /// A vector register of [`BYTES`](Self::BYTES) bytes.
    type Vector: Copy;
    /// A register of source bytes, ready to be multiplied.
    type Source: Copy;
    /// A coefficient in registers.
    type Factor: Copy;
    /// A coefficient in memory, in the form that [`factor`](Self::factor) loads fastest.
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

    /// Stores a register, or adds it to what is there.
    #[inline(always)]
    unsafe fn put(sum: Self::Vector, to: *mut u8, add: bool) {
        // SAFETY: one register can be read and written.
        unsafe {
            Self::store(
                to,
                if add {
                    Self::xor(sum, Self::load(to))
                } else {
                    sum
                },
            )
        }
    }

    /// As [`put`](Self::put) for the first `count` bytes.
    #[inline(always)]
    unsafe fn put_part(sum: Self::Vector, to: *mut u8, count: usize, add: bool) {
        // SAFETY: `count` bytes can be read and written.
        unsafe {
            let sum = if add {
                Self::xor(sum, Self::load_part(to, count))
            } else {
                sum
            };
            Self::store_part(to, count, sum);
        }
    }

    /// A coefficient that was not prepared in a block.
    #[inline(always)]
    unsafe fn factor_of(coefficient: u8) -> Self::Factor {
        // SAFETY: the pointer is to a live local.
        unsafe {
            let prepared = Self::prepared(coefficient);
            Self::factor(&raw const prepared)
        }
    }

    /// Each octet of `sum + x * f` in the field.
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
    /// `coefficients + o * stride + s` and written at `into + s * outputs + o`. `into` has room
    /// for a multiple of 8 sources.
    #[inline(always)]
    unsafe fn prepare(
        coefficients: (*const u8, usize),
        sources: usize,
        outputs: usize,
        into: *mut Self::Prepared,
    ) {
        // SAFETY: passed on to the caller.
        unsafe { prepare_by_table::<Self>(coefficients, sources, outputs, into) }
    }

    /// A mask whose bit i is set if byte i is not zero.
    #[inline(always)]
    unsafe fn nonzero(vector: Self::Vector) -> u64 {
        let mut bytes = [0; 64];
        // SAFETY: `BYTES` is at most 64.
        unsafe { Self::store(bytes.as_mut_ptr(), vector) };
        let bits = bytes.iter().rev();
        bits.fold(0, |bits, &byte| bits << 1 | u64::from(byte != 0))
    }

    /// A row divided by its byte at `pivot`; zeros if that is zero. A row has 256 bytes at most.
    #[inline(always)]
    unsafe fn monic<const W: usize>(row: [Self::Vector; W], pivot: usize) -> [Self::Vector; W] {
        let mut row = row;
        let mut bytes = MaybeUninit::<Aligned<[u8; 256]>>::uninit();
        let bytes = bytes.as_mut_ptr().cast::<u8>();
        // SAFETY: the row has room, and the pivot is inside the row.
        unsafe {
            for (at, &part) in row.iter().enumerate() {
                Self::store(bytes.add(at * Self::BYTES), part);
            }
            let inverse = crate::field::inv(*bytes.add(pivot)).unwrap_or(0);
            let inverse = Self::factor_of(inverse);
            // A loop, since the compiler may leave `map` a call, which then passes the registers through memory.
            for part in &mut row {
                *part = Self::mul(Self::source(*part), inverse);
            }
            row
        }
    }

    /// Whether there is a [`prepare_product`](Self::prepare_product); the default does nothing.
    const PRODUCTS: bool = false;

    /// As [`prepare`](Self::prepare) for groups of eight outputs whose coefficients are the product of two matrices, each given
    /// by its start and the distance of its rows: `left` has a row of `inner` bytes for each output, `right` has `inner` rows of
    /// `sources` bytes.
    #[inline(always)]
    unsafe fn prepare_product(
        _left: (*const u8, usize),
        _right: (*const u8, usize),
        (_inner, _sources, _groups): (usize, usize, usize),
        _into: *mut Self::Prepared,
    ) {
    }
}

/// Prepares one coefficient after the other.
#[inline(always)]
pub(super) unsafe fn prepare_by_table<V: Lanes>(
    (coefficients, stride): (*const u8, usize),
    sources: usize,
    outputs: usize,
    into: *mut V::Prepared,
) {
    let mut into = into;
    for source in 0..sources {
        // Pointers that step: indices, which are checked for overflow, take twice as long.
        let mut from = coefficients.wrapping_add(source);
        for _ in 0..outputs {
            // SAFETY: both pointers are inside the matrices that the caller describes.
            unsafe {
                *into = V::prepared(*from);
                into = into.add(1);
            }
            from = from.wrapping_add(stride);
        }
    }
}
