//! The registers of x86-64.

use core::arch::x86_64::*;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU8, Ordering};

use super::compile::compile;
use super::lanes::{Lanes, prepare_by_table};
use super::matrices::{self, Columns, Matrices};
use crate::field::{AFFINE, IDENTITY, NIBBLES, RENAME};

/// Set in the result of [`supported`] once the processor was queried.
const ASKED: u8 = 1 << 7;

/// The instruction sets, slowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Path {
    Ssse3,
    Avx2,
    Avx512,
    Gfni256,
    Gfni512,
}

impl Path {
    pub(crate) const ALL: [Self; 5] = [
        Self::Ssse3,
        Self::Avx2,
        Self::Avx512,
        Self::Gfni256,
        Self::Gfni512,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ssse3 => "ssse3",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
            Self::Gfni256 => "gfni256",
            Self::Gfni512 => "gfni512",
        }
    }

    /// The path for rows of that length: half a wide register would be empty, and its tables take more instructions.
    pub(crate) fn for_rows(self, len: usize) -> Self {
        if matches!(self, Self::Avx512) && len <= Avx2::BYTES {
            Self::Avx2
        } else {
            self
        }
    }

    /// Whether its lanes have [products](Lanes::PRODUCTS).
    pub(crate) const fn has_products(self) -> bool {
        matches!(self, Self::Gfni512)
    }

    /// Whether this processor and operating system can run it.
    pub(crate) fn is_supported(self) -> bool {
        supported() & bit(self) != 0
    }
}

const fn bit(path: Path) -> u8 {
    match path {
        Path::Ssse3 => 1,
        Path::Avx2 => 2,
        Path::Gfni256 => 4,
        Path::Gfni512 => 8,
        Path::Avx512 => 16,
    }
}

/// The [`bit`]s of the paths that work on this processor. The query is cached: CPUID takes hundreds of cycles, and
/// racing threads find the same answer.
fn supported() -> u8 {
    static SUPPORTED: AtomicU8 = AtomicU8::new(0);
    let known = SUPPORTED.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    let found = ask() | ASKED;
    SUPPORTED.store(found, Ordering::Relaxed);
    found
}

/// Queries the processor's features, and by XCR0 the registers that the operating system saves.
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
    // SAFETY: OSXSAVE (bit 27) means that XGETBV exists and is enabled.
    let saved = if osxsave { unsafe { xcr0() } } else { 0 };
    let gfni = all(seven.ecx, &[8]);
    if all(saved, &[1, 2]) && all(seven.ebx, &[5]) {
        found |= bit(Path::Avx2);
        if gfni {
            found |= bit(Path::Gfni256);
        }
        // F, DQ, BW, VL, and BMI2, which makes the masks.
        let avx512 = all(seven.ebx, &[8, 16, 17, 30, 31]);
        if avx512 && all(saved, &[5, 6, 7]) {
            found |= bit(Path::Avx512);
            // VBMI.
            if gfni && all(seven.ecx, &[1]) {
                found |= bit(Path::Gfni512);
            }
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
     $and:ident, $xor:ident, $shift:ident, $shuffle:ident, $equal:ident, $bits:ident, $table:expr) => {
        pub(super) struct $name;

        impl Lanes for $name {
            const BYTES: usize = $bytes;
            const OUTPUTS: usize = 4;
            const DIRECT: bool = true;
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
            unsafe fn nonzero(vector: $vector) -> u64 {
                // SAFETY: see `zero`.
                let zeros = unsafe { $bits($equal(vector, $zero())) };
                // The mask has a bit for each byte, and the rest is zero.
                u64::from(!zeros.cast_unsigned()) & (u64::MAX >> (64 - $bytes))
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
    _mm_cmpeq_epi8,
    _mm_movemask_epi8,
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
    _mm256_cmpeq_epi8,
    _mm256_movemask_epi8,
    |half| _mm256_broadcastsi128_si256(_mm_load_si128(half))
);
compile!(ssse3, Ssse3, "ssse3");
compile!(avx2, Avx2, "avx2");

/// Table look-ups on 64-byte registers, for processors with AVX-512 but without GFNI.
pub(super) struct Avx512;

impl Lanes for Avx512 {
    const BYTES: usize = 64;
    const OUTPUTS: usize = 4;
    const WIDTH: usize = 4;
    const DIRECT: bool = true;
    const EXPANDED: bool = true;
    const MASKED: bool = true;
    const PAIRED: bool = false;
    type Vector = __m512i;
    type Source = (__m512i, __m512i);
    type Factor = (__m512i, __m512i);
    /// Both tables in every quarter of a register. Where AMD's cores load a quarter into all four, a shuffle takes part (measured on Zen
    /// 5), and shuffles are what the products wait for.
    type Prepared = (__m512i, __m512i);

    #[inline(always)]
    unsafe fn zero() -> __m512i {
        // SAFETY: the caller has the instructions, here and below.
        unsafe { Gfni512::zero() }
    }
    #[inline(always)]
    unsafe fn load(from: *const u8) -> __m512i {
        // SAFETY: a whole register can be read.
        unsafe { Gfni512::load(from) }
    }
    #[inline(always)]
    unsafe fn store(to: *mut u8, vector: __m512i) {
        // SAFETY: a whole register can be written.
        unsafe { Gfni512::store(to, vector) }
    }
    #[inline(always)]
    unsafe fn load_part(from: *const u8, count: usize) -> __m512i {
        // SAFETY: `count` bytes can be read; masks need no GFNI.
        unsafe { Gfni512::load_part(from, count) }
    }
    #[inline(always)]
    unsafe fn store_part(to: *mut u8, count: usize, vector: __m512i) {
        // SAFETY: `count` bytes can be written; masks need no GFNI.
        unsafe { Gfni512::store_part(to, count, vector) }
    }
    #[inline(always)]
    unsafe fn xor(a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: see `zero`.
        unsafe { Gfni512::xor(a, b) }
    }
    #[inline(always)]
    unsafe fn source(vector: __m512i) -> Self::Source {
        // SAFETY: see `zero`.
        unsafe {
            let half = _mm512_set1_epi8(15);
            let high = _mm512_and_si512(_mm512_srli_epi64::<4>(vector), half);
            (_mm512_and_si512(vector, half), high)
        }
    }
    #[inline(always)]
    unsafe fn prepared(coefficient: u8) -> Self::Prepared {
        // SAFETY: see `zero`.
        unsafe { Self::factor_of(coefficient) }
    }
    #[inline(always)]
    unsafe fn factor(prepared: *const Self::Prepared) -> Self::Factor {
        // SAFETY: the pointer is valid.
        unsafe { prepared.read() }
    }
    #[inline(always)]
    unsafe fn mul(x: Self::Source, f: Self::Factor) -> __m512i {
        // SAFETY: see `zero`.
        unsafe { _mm512_xor_si512(_mm512_shuffle_epi8(f.0, x.0), _mm512_shuffle_epi8(f.1, x.1)) }
    }
    #[inline(always)]
    unsafe fn factor_of(coefficient: u8) -> Self::Factor {
        // SAFETY: each entry of the table is two halves of 16 bytes.
        unsafe {
            let halves = NIBBLES.0[usize::from(coefficient)]
                .as_ptr()
                .cast::<__m128i>();
            let spread = |half| _mm512_broadcast_i32x4(_mm_load_si128(half));
            (spread(halves), spread(halves.add(1)))
        }
    }
    #[inline(always)]
    unsafe fn nonzero(vector: __m512i) -> u64 {
        // SAFETY: see `zero`.
        unsafe { Gfni512::nonzero(vector) }
    }
    #[inline(always)]
    unsafe fn mul_add(sum: __m512i, x: Self::Source, f: Self::Factor) -> __m512i {
        // SAFETY: see `zero`. 0x96 is the truth table of a three-way exclusive or.
        unsafe {
            let (low, high) = (_mm512_shuffle_epi8(f.0, x.0), _mm512_shuffle_epi8(f.1, x.1));
            _mm512_ternarylogic_epi64::<0x96>(sum, low, high)
        }
    }
}
compile!(avx512, Avx512, "avx512f,avx512dq,avx512bw,avx512vl,bmi2");

/// The affine instruction on 32-byte registers.
pub(super) struct Gfni256;

impl Lanes for Gfni256 {
    const BYTES: usize = 32;
    const OUTPUTS: usize = 4;
    const DIRECT: bool = true;
    const MASKED: bool = false;
    const PAIRED: bool = false;
    type Vector = __m256i;
    type Source = __m256i;
    type Factor = __m256i;
    type Prepared = u8;

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
    unsafe fn prepared(coefficient: u8) -> u8 {
        coefficient
    }
    #[inline(always)]
    unsafe fn factor(prepared: *const u8) -> __m256i {
        // SAFETY: the pointer is valid.
        unsafe { _mm256_set1_epi64x(AFFINE[usize::from(*prepared)].cast_signed()) }
    }
    #[inline(always)]
    unsafe fn nonzero(vector: __m256i) -> u64 {
        // SAFETY: see `zero`.
        unsafe { Avx2::nonzero(vector) }
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
    /// Eight outputs at a time, by the affine instruction itself.
    #[inline(always)]
    unsafe fn prepare(
        (coefficients, stride): (*const u8, usize),
        sources: usize,
        outputs: usize,
        into: *mut u64,
    ) {
        // SAFETY: rows of `sources` coefficients are read, and `into` has room for a multiple
        // of 8 sources.
        unsafe {
            let made = Matrices::of_field();
            match outputs {
                1 => {
                    for source in (0..sources).step_by(8) {
                        let from = coefficients.add(source);
                        let eight = matrices::up_to_eight(from, sources - source);
                        let eight = made.by(_mm512_set1_epi64(eight.cast_signed()));
                        _mm512_storeu_si512(into.add(source).cast(), eight);
                    }
                }
                8 => {
                    let mut columns = MaybeUninit::<Columns>::uninit();
                    let columns = columns.as_mut_ptr().cast::<u64>();
                    matrices::transpose((coefficients, stride), sources, columns, None);
                    made.of_columns(columns, sources, into);
                }
                _ => prepare_by_table::<Self>((coefficients, stride), sources, outputs, into),
            }
        }
    }

    #[inline(always)]
    unsafe fn nonzero(vector: __m512i) -> u64 {
        // SAFETY: see `zero`.
        unsafe { _mm512_test_epi8_mask(vector, vector) }
    }

    /// In registers, and in the field of AES, for whose inverses there is an instruction.
    #[inline(always)]
    unsafe fn monic<const W: usize>(row: [__m512i; W], pivot: usize) -> [__m512i; W] {
        // SAFETY: see `zero`.
        unsafe {
            let matrix = |word: u64| _mm512_set1_epi64(word.cast_signed());
            let rename = matrix(RENAME);
            // Pivots lie in the first half of a row.
            let part = if W > 2 && pivot >= 64 { row[1] } else { row[0] };
            let entry = _mm512_permutexvar_epi8(_mm512_set1_epi8(pivot as i8), part);
            let entry = _mm512_gf2p8affine_epi64_epi8::<0>(entry, rename);
            let inverse = _mm512_gf2p8affineinv_epi64_epi8::<0>(entry, matrix(IDENTITY));
            let mut row = row;
            for part in &mut row {
                *part = _mm512_gf2p8affine_epi64_epi8::<0>(*part, rename);
                *part = _mm512_gf2p8mul_epi8(*part, inverse);
                *part = _mm512_gf2p8affine_epi64_epi8::<0>(*part, rename);
            }
            row
        }
    }

    const PRODUCTS: bool = true;

    /// By bytes, in the field of AES: the factors of this product need no matrices, only those of its result.
    #[inline(always)]
    unsafe fn prepare_product(
        left: (*const u8, usize),
        right: (*const u8, usize),
        (inner, sources, groups): (usize, usize, usize),
        into: *mut u64,
    ) {
        // SAFETY: passed on to the caller.
        unsafe { matrices::product(left, right, (inner, sources, groups), into) }
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

compile!(
    gfni512,
    Gfni512,
    "avx512f,avx512dq,avx512bw,avx512vl,avx512vbmi,gfni,bmi2"
);
