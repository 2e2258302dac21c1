//! One output: the sender's and the relay's way.

use core::mem::MaybeUninit;

use super::lanes::{Aligned, Lanes};
use crate::rows::MAX_ROWS;

/// One output of any length.
#[inline(always)]
pub(super) unsafe fn combine_one<V: Lanes>(
    factors: &[u8],
    from: &[*const u8],
    to: (*mut u8, usize, bool),
) {
    let count = factors.len();
    // SAFETY: passed on to the caller; there is a pointer for each factor.
    unsafe {
        let from = |source: usize| *from.get_unchecked(source);
        if V::DIRECT {
            let factors = core::slice::from_raw_parts(factors.as_ptr().cast::<Byte>(), count);
            return strips::<V, Byte>(factors, from, to);
        }
        let mut prepared = MaybeUninit::<Aligned<[u64; MAX_ROWS]>>::uninit();
        let prepared = prepared.as_mut_ptr().cast::<V::Prepared>();
        V::prepare((factors.as_ptr(), 0), count, 1, prepared);
        let factors = core::slice::from_raw_parts(prepared.cast::<Ready<V>>(), count);
        strips::<V, Ready<V>>(factors, from, to);
    }
}

/// A coefficient in memory.
trait Coefficient<V: Lanes> {
    unsafe fn factor(&self) -> V::Factor;
}

/// A coefficient as it came, for lanes that take it [so](Lanes::DIRECT).
#[repr(transparent)]
struct Byte(u8);

impl<V: Lanes> Coefficient<V> for Byte {
    #[inline(always)]
    unsafe fn factor(&self) -> V::Factor {
        // SAFETY: passed on to the caller.
        unsafe { V::factor_of(self.0) }
    }
}

/// A coefficient that was prepared in a block.
#[repr(transparent)]
struct Ready<V: Lanes>(V::Prepared);

impl<V: Lanes> Coefficient<V> for Ready<V> {
    #[inline(always)]
    unsafe fn factor(&self) -> V::Factor {
        // SAFETY: passed on to the caller.
        unsafe { V::factor(&raw const self.0) }
    }
}

/// Long strips, so that each coefficient is loaded few times.
#[inline(always)]
unsafe fn strips<V: Lanes, C: Coefficient<V>>(
    factors: &[C],
    from: impl Fn(usize) -> *const u8 + Copy,
    (to, len, add): (*mut u8, usize, bool),
) {
    let mut at = 0;
    // SAFETY: source and destination are valid for `len` bytes, and strips end within them.
    unsafe {
        macro_rules! strip {
            ($width:literal, $bytes:expr) => {
                strip::<V, C, $width>(factors, |i| from(i).add(at), to.add(at), $bytes, add)
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
            strip::<V, C, 1>(factors, from, window.as_mut_ptr(), V::BYTES, false);
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
unsafe fn strip<V: Lanes, C: Coefficient<V>, const W: usize>(
    factors: &[C],
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
            let (f, g) = (f.factor(), g.factor());
            let (x, y) = (from(2 * pair), from(2 * pair + 1));
            for (index, sum) in sums.iter_mut().enumerate() {
                *sum = V::mul_add_pair(*sum, (load(x, index), f), (load(y, index), g));
            }
        }
        for (source, f) in odd.iter().enumerate() {
            let f = f.factor();
            let x = from(2 * pairs.len() + source);
            for (index, sum) in sums.iter_mut().enumerate() {
                *sum = V::mul_add(*sum, load(x, index), f);
            }
        }
        for (index, sum) in sums.into_iter().enumerate() {
            let to = to.add(index * V::BYTES);
            if index < W - 1 || last == V::BYTES {
                V::put(sum, to, add);
            } else {
                V::put_part(sum, to, last, add);
            }
        }
    }
}
