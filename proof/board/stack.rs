//! How deep the stack of a bare board has become: its unused part holds a mark.

/// What unused stack holds.
const PAINT: u32 = 0x5aa5_c33c;

unsafe extern "C" {
    static mut bss_end: u32;
    fn stack_top();
}

/// Fills the stack below this function with the mark.
#[inline(never)]
pub fn paint() {
    let marker = 0u32;
    // Room for this function itself.
    let top = (&raw const marker as usize) - 256;
    let mut at = &raw mut bss_end;
    while (at as usize) < top {
        // SAFETY: between the end of .bss and the stack pointer nothing is stored yet; there is no heap.
        unsafe {
            at.write_volatile(PAINT);
            at = at.add(1);
        }
    }
}

/// The most that the stack has held, in octets, if [`paint`] came first.
#[inline(never)]
pub fn used() -> usize {
    let mut at = &raw const bss_end;
    // SAFETY: as in `paint`; the loop ends where this function's own frame has written, at the latest.
    while unsafe { at.read_volatile() } == PAINT {
        // SAFETY: the word after one that is below the stack pointer is in RAM too.
        at = unsafe { at.add(1) };
    }
    (stack_top as *const () as usize).saturating_sub(at as usize)
}
