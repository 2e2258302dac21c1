//! The registers of AArch64.

use core::arch::aarch64::*;

use super::compile::compile;
use super::lanes::Lanes;
use crate::field::NIBBLES;

/// The instruction sets, slowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Path {
    Neon,
}

impl Path {
    pub(crate) const ALL: [Self; 1] = [Self::Neon];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Neon => "neon",
        }
    }

    /// The path for rows of that length.
    pub(crate) fn for_rows(self, _len: usize) -> Self {
        self
    }

    /// Whether its lanes have [products](Lanes::PRODUCTS).
    pub(crate) const fn has_products(self) -> bool {
        false
    }

    /// Every AArch64 target has NEON unless it was built for a kernel without vector registers.
    pub(crate) fn is_supported(self) -> bool {
        cfg!(target_feature = "neon")
    }
}

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
