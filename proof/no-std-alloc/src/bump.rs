//! An allocator without an operating system: one block, from front to back, nothing given back.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

/// Octets that can be handed out.
const MEMORY: usize = 1 << 20;

struct Bump {
    memory: UnsafeCell<[u8; MEMORY]>,
    used: AtomicUsize,
}

#[global_allocator]
static BUMP: Bump = Bump {
    memory: UnsafeCell::new([0; MEMORY]),
    used: AtomicUsize::new(0),
};

// SAFETY: `used` is moved atomically, and each octet of `memory` is handed out once.
unsafe impl Sync for Bump {}

// SAFETY: `alloc` gives ranges that lie inside `memory`, are aligned as asked, and never overlap.
unsafe impl GlobalAlloc for Bump {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let memory: *mut u8 = self.memory.get().cast();
        let mut start = 0;
        let taken = self
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                let address = memory.addr().checked_add(used)?;
                let aligned = address.checked_next_multiple_of(layout.align())?;
                start = aligned - memory.addr();
                let end = start.checked_add(layout.size())?;
                (end <= MEMORY).then_some(end)
            });
        match taken {
            Ok(_) => memory.wrapping_add(start),
            Err(_) => ptr::null_mut(),
        }
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}
