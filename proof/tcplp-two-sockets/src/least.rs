//! A start without a console, so that nothing formats text, and a use of what moves and compares memory.

use core::hint::black_box;
use core::panic::PanicInfo;

unsafe extern "C" {
    fn stack_top();
}

/// The first words of memory: the stack's top, then where to begin.
#[used]
#[unsafe(link_section = ".vectors")]
static VECTORS: [unsafe extern "C" fn(); 2] = [stack_top, start];

#[unsafe(no_mangle)]
unsafe extern "C" fn start() {
    let (mut one, mut other) = (black_box([1u8; 64]), black_box([2u8; 64]));
    let len = black_box(64);
    if let (Some(one), Some(other)) = (one.get_mut(..len), other.get_mut(..len)) {
        one.copy_from_slice(other);
        one.copy_within(..len / 2, len / 2);
        other.fill(black_box(3));
        black_box(one == other);
    }
    crate::program::work();
    loop {}
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {}
}
