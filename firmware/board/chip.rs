//! Access to the chip: registers, buffers, the crystal. Each program says in its module `wake` what an interrupt
//! of the radio wakes.

use core::cell::UnsafeCell;
use core::ptr::copy_nonoverlapping;
use core::sync::atomic::{Ordering, compiler_fence};
use core::task::Waker;

use chappe_nrf52840::{Buffer, Registers};
use nrf_pac::{CLOCK, NVMC};

/// Memory that a peripheral reads and writes by itself.
#[repr(align(4))]
struct Frame(UnsafeCell<[u8; 128]>);

// SAFETY: there is one processor, no interrupt's handler touches the frames, and a driver touches one only while the
// peripheral does not.
unsafe impl Sync for Frame {}

static TRANSMIT: Frame = Frame(UnsafeCell::new([0; 128]));
static NEXT: Frame = Frame(UnsafeCell::new([0; 128]));
static RECEIVE: Frame = Frame(UnsafeCell::new([0; 128]));
static CIPHER: Frame = Frame(UnsafeCell::new([0; 128]));

/// RADIO, TIMER3, PPI and ECB.
pub struct Chip(());

impl Chip {
    /// Takes the peripherals: once for the driver, and for each call of `encrypt`, which uses none that the driver uses.
    pub fn take() -> Chip {
        Chip(())
    }

    fn frame(&self, buffer: Buffer) -> *mut [u8; 128] {
        match buffer {
            Buffer::Transmit => TRANSMIT.0.get(),
            Buffer::Next => NEXT.0.get(),
            Buffer::Receive => RECEIVE.0.get(),
            Buffer::Cipher => CIPHER.0.get(),
        }
    }
}

impl Registers for Chip {
    fn read(&mut self, address: u32) -> u32 {
        // SAFETY: the driver reads only registers of the peripherals that it owns, which are words.
        unsafe { (address as *const u32).read_volatile() }
    }

    fn write(&mut self, address: u32, value: u32) {
        // SAFETY: as above. What is written to PACKETPTR is the address of a static buffer.
        unsafe { (address as *mut u32).write_volatile(value) }
    }

    fn address(&self, buffer: Buffer) -> u32 {
        self.frame(buffer) as u32
    }

    fn load(&self, buffer: Buffer, at: usize, to: &mut [u8]) {
        let len = to.len().min(128usize.saturating_sub(at));
        compiler_fence(Ordering::SeqCst);
        // SAFETY: `at` and what follows lie in the buffer, and `to` is elsewhere. The fences keep the compiler from what a
        // peripheral writes behind its back.
        unsafe {
            copy_nonoverlapping(
                self.frame(buffer).cast::<u8>().add(at.min(128)),
                to.as_mut_ptr(),
                len,
            )
        };
        compiler_fence(Ordering::SeqCst);
    }

    fn store(&mut self, buffer: Buffer, at: usize, from: &[u8]) {
        let len = from.len().min(128usize.saturating_sub(at));
        compiler_fence(Ordering::SeqCst);
        // SAFETY: as above.
        unsafe {
            copy_nonoverlapping(
                from.as_ptr(),
                self.frame(buffer).cast::<u8>().add(at.min(128)),
                len,
            )
        };
        compiler_fence(Ordering::SeqCst);
    }

    fn wake_at_interrupt(&mut self, waker: &Waker) {
        super::wake::at_interrupt(waker);
    }
}

/// Starts the crystal, which the radio needs, and waits for it (PS, CLOCK: 0.36 ms). Turns the cache of the flash on, which is off
/// after a reset (PS, NVMC).
pub fn start_clock() {
    NVMC.icachecnf().write(|cache| cache.set_cacheen(true));
    CLOCK.tasks_hfclkstart().write_value(1);
    while CLOCK.events_hfclkstarted().read() == 0 {}
}
