//! The bare board: start, timer, console.

use core::arch::asm;
use core::fmt;
use core::panic::PanicInfo;

unsafe extern "C" {
    static mut data_begin: u32;
    static mut data_end: u32;
    static data_source: u32;
    static mut bss_begin: u32;
    static mut bss_end: u32;
    fn stack_top();
}

/// The first words of memory: the stack's top, then where to begin, then where faults go.
#[used]
#[unsafe(link_section = ".vectors")]
static VECTORS: [unsafe extern "C" fn(); 16] = {
    let mut vectors: [unsafe extern "C" fn(); 16] = [fault; 16];
    vectors[0] = stack_top;
    vectors[1] = start;
    vectors
};

/// Where the processor begins.
#[unsafe(no_mangle)]
unsafe extern "C" fn start() {
    // SAFETY: the linker script gives the bounds of .data, its copy and .bss, all aligned to words, and nothing uses
    // them yet.
    unsafe {
        let (mut to, mut from) = (&raw mut data_begin, &raw const data_source);
        while to < &raw mut data_end {
            to.write_volatile(from.read_volatile());
            (to, from) = (to.add(1), from.add(1));
        }
        let mut to = &raw mut bss_begin;
        while to < &raw mut bss_end {
            to.write_volatile(0);
            to = to.add(1);
        }
    }
    crate::program::run();
    exit(true);
}

unsafe extern "C" fn fault() {
    exit(false);
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    let _ = fmt::Write::write_fmt(&mut Console, format_args!("{info}\n"));
    exit(false);
}

/// A call to whoever holds the debugger's end: QEMU.
fn call(operation: u32, argument: usize) {
    // SAFETY: semihosting calls read memory only; each caller below passes what the call's description asks for.
    unsafe {
        asm!("bkpt 0xab", inout("r0") operation => _, in("r1") argument, options(nostack));
    }
}

/// Ends the program: SYS_EXIT with the reason ADP_Stopped_ApplicationExit, or ADP_Stopped_RunTimeErrorUnknown.
fn exit(well: bool) -> ! {
    call(0x18, if well { 0x20026 } else { 0x20023 });
    loop {}
}

/// Text to QEMU's console.
pub struct Console;

impl fmt::Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut room = [0u8; 64];
        for part in text.as_bytes().chunks(room.len() - 1) {
            room[..part.len()].copy_from_slice(part);
            room[part.len()] = 0;
            // SYS_WRITE0: a string that ends in zero.
            call(0x04, room.as_ptr() as usize);
        }
        Ok(())
    }
}

/// The processor's own timer, which counts down from 2^24 - 1.
pub mod timer {
    const CONTROL: *mut u32 = 0xe000_e010 as *mut u32;
    const RELOAD: *mut u32 = 0xe000_e014 as *mut u32;
    const VALUE: *mut u32 = 0xe000_e018 as *mut u32;
    const MASK: u32 = 0x00ff_ffff;

    pub fn start() {
        // SAFETY: the SysTick registers of every Cortex-M (ARMv7-M manual, B3.3); no interrupt is enabled.
        unsafe {
            RELOAD.write_volatile(MASK);
            VALUE.write_volatile(0);
            CONTROL.write_volatile(0b101);
        }
    }

    pub fn now() -> u32 {
        // SAFETY: as above; reading the value changes nothing that is used.
        unsafe { VALUE.read_volatile() & MASK }
    }

    /// Ticks since an earlier [`now`], less than 2^24.
    pub fn since(earlier: u32) -> u64 {
        u64::from(earlier.wrapping_sub(now()) & MASK)
    }
}
