//! A counter of allocations.
//!
//! ```
//! use chappe_testkit::allocation::{self, Counting};
//!
//! #[global_allocator]
//! static ALLOCATOR: Counting = Counting;
//!
//! let before = allocation::count();
//! let bytes = vec![7; 1000];
//! assert_eq!(allocation::count() - before, 1);
//! # drop(bytes);
//! ```
//!
//! A test that expects no allocation must also check that the counter counts. Otherwise it would pass without
//! `#[global_allocator]`.
#![allow(unsafe_code, reason = "an allocator can only be written with it")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, which counts the requests for memory of each thread. Growing a block counts as one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// Allocations of the calling thread since it began. Stays 0 where [`Counting`] is not the global allocator.
pub fn count() -> u64 {
    COUNT.with(Cell::get)
}

fn one_more() {
    COUNT.with(|count| count.set(count.get().wrapping_add(1)));
}

// SAFETY: every call goes to the system's allocator unchanged; the counter has no destructor and allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        one_more();
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        one_more();
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        one_more();
        // SAFETY: the caller keeps the contract.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract.
        unsafe { System.dealloc(block, layout) }
    }
}
