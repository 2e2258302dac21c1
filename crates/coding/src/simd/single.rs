//! One output: the sender's and the relay's way.

use core::mem::MaybeUninit;

use super::lanes::{Aligned, Lanes};
use crate::rows::MAX_ROWS;

/// One output of any length: long strips, so that each coefficient is loaded few times.
#[inline(always)]
pub(super) unsafe fn combine_one<V: Lanes>(
    factors: &[u8],
    from: &[*const u8],
    (to, len, add): (*mut u8, usize, bool),
) {
    // SAFETY: there is a pointer for each factor.
    let from = |source: usize| unsafe { *from.get_unchecked(source) };
    let mut at = 0;
    let mut prepared = MaybeUninit::<Aligned<[u64; MAX_ROWS]>>::uninit();
    let prepared = prepared.as_mut_ptr().cast::<V::Prepared>();
    // SAFETY: source and destination are valid for `len` bytes, and strips end within them.
    unsafe {
        if !V::DIRECT {
            V::prepare((factors.as_ptr(), 0), factors.len(), 1, prepared);
        }
        let factors = (factors, prepared.cast_const());
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
    (factors, prepared): (&[u8], *const V::Prepared),
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
        let pairs = if V::PAIRED { factors.len() / 2 } else { 0 };
        for pair in 0..pairs {
            let f = V::factor(prepared.wrapping_add(2 * pair));
            let g = V::factor(prepared.wrapping_add(2 * pair + 1));
            let (x, y) = (from(2 * pair), from(2 * pair + 1));
            for (index, sum) in sums.iter_mut().enumerate() {
                *sum = V::mul_add_pair(*sum, (load(x, index), f), (load(y, index), g));
            }
        }
        for (source, &factor) in factors.iter().enumerate().skip(2 * pairs) {
            let f = if V::DIRECT {
                V::factor_of(factor)
            } else {
                V::factor(prepared.wrapping_add(source))
            };
            let x = from(source);
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
