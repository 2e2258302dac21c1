//! Builds only if the rooms below the protocols need neither an operating system nor an allocator.

#![no_std]

use core::panic::PanicInfo;
use chappe_core::{Mode, Purpose, Rate, Seed};

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {}
}

#[unsafe(no_mangle)]
pub extern "C" fn chappe_proof(seed: u64) -> u64 {
    let mut random = Seed(seed).stream(Purpose::Node(1));
    let octets = random.below(1500) as usize;
    Mode::long(Rate::Dsss2).airtime(octets).nanos() + (random.exponential() * 10.0) as u64
}
