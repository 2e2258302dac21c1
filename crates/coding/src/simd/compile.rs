//! Turns the engine into functions for one instruction set.

/// Compiles the engine for one kind of lanes.
macro_rules! compile {
    ($name:ident, $lanes:ty, $features:literal) => {
        pub(in crate::simd) mod $name {
            use core::mem::MaybeUninit;
            use core::ops::Range;

            use super::super::{Job, many, single, span};
            use super::*;
            use crate::matrix::Matrix;

            #[target_feature(enable = $features)]
            pub(crate) unsafe fn combine(job: &Job<'_>) {
                // SAFETY: passed on to the caller.
                unsafe {
                    if many::needs_copies::<$lanes>(job) {
                        return combine_copies(job);
                    }
                    let mut prepared = MaybeUninit::uninit();
                    let mut done = 0;
                    while done < job.to.len() {
                        let outputs = many::prepare::<$lanes>(job, done, &mut prepared);
                        done = outputs.end;
                        if <$lanes>::PRODUCTS {
                            columns(job, outputs, &prepared);
                        } else {
                            many::columns::<$lanes>(job, outputs, &prepared);
                        }
                    }
                }
            }

            #[target_feature(enable = $features)]
            pub(crate) unsafe fn combine_product(job: &Job<'_>, left: Matrix<'_>) {
                if !<$lanes>::PRODUCTS {
                    return;
                }
                // SAFETY: passed on to the caller.
                unsafe {
                    let mut prepared = MaybeUninit::uninit();
                    let mut done = 0;
                    while done < job.to.len() {
                        let outputs =
                            many::prepare_product::<$lanes>(job, left, done, &mut prepared);
                        done = outputs.end;
                        columns(job, outputs, &prepared);
                    }
                }
            }

            // Compiled once where there are both.
            #[inline(never)]
            #[target_feature(enable = $features)]
            unsafe fn columns(
                job: &Job<'_>,
                outputs: Range<usize>,
                prepared: &MaybeUninit<many::Prepared>,
            ) {
                // SAFETY: passed on to the caller.
                unsafe { many::columns::<$lanes>(job, outputs, prepared) }
            }

            #[inline(never)]
            #[target_feature(enable = $features)]
            unsafe fn combine_copies(job: &Job<'_>) {
                // SAFETY: passed on to the caller.
                unsafe { many::combine_copies::<$lanes>(job) }
            }

            #[target_feature(enable = $features)]
            pub(crate) unsafe fn combine_one(
                factors: &[u8],
                from: &[*const u8],
                to: (*mut u8, usize, bool),
            ) {
                // SAFETY: passed on to the caller.
                unsafe { single::combine_one::<$lanes>(factors, from, to) }
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
                    Some(match registers(len) {
                        1 => span::insert::<$lanes, 1>(vector, pivots, rows, insert_stored),
                        2 => span::insert::<$lanes, 2>(vector, pivots, rows, insert_stored),
                        4 => span::insert::<$lanes, 4>(vector, pivots, rows, insert_stored),
                        _ => return None,
                    })
                }
            }

            /// Registers of a row, if it fills them.
            #[inline(always)]
            const fn registers(len: usize) -> usize {
                len / <$lanes>::BYTES * (len % <$lanes>::BYTES == 0) as usize
            }

            // A function of its own: there the compiler cannot join it with the insertion whose pivot was guessed.
            #[cold]
            #[inline(never)]
            #[target_feature(enable = $features)]
            unsafe fn insert_stored(rows: *mut u8, len: usize, count: usize, pivot: usize) {
                // SAFETY: passed on to the caller.
                unsafe {
                    match registers(len) {
                        1 => span::finish_stored::<$lanes, 1>(rows, count, pivot),
                        2 => span::finish_stored::<$lanes, 2>(rows, count, pivot),
                        _ => span::finish_stored::<$lanes, 4>(rows, count, pivot),
                    }
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
                unsafe {
                    Some(match registers(len) {
                        1 => span::probe::<$lanes, 1>(vector, pivots, rows),
                        2 => span::probe::<$lanes, 2>(vector, pivots, rows),
                        4 => span::probe::<$lanes, 4>(vector, pivots, rows),
                        _ => return None,
                    })
                }
            }

            #[target_feature(enable = $features)]
            pub(crate) unsafe fn scale(factor: u8, data: *mut u8, len: usize) {
                // SAFETY: passed on to the caller.
                unsafe { span::scale::<$lanes>(factor, data, len) }
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
                unsafe { span::eliminate::<$lanes>(rows, count, len, column, pivot) }
            }
        }
    };
}
pub(super) use compile;
