//! Access to the chip: registers, buffers, interrupts, random numbers, the temperature.

use core::cell::UnsafeCell;
use core::task::Waker;

use chappe_nrf52840::{Buffer, Registers};
use chappe_thermometer::{Reading, Sensor};
use embassy_sync::waitqueue::AtomicWaker;
use nrf_pac::{CLOCK, RNG, TEMP, interrupt};

/// The task that drives the radio.
static RUNNER: AtomicWaker = AtomicWaker::new();

/// A frame's memory, which the radio reads and writes by itself.
#[repr(align(4))]
struct Frame(UnsafeCell<[u8; 128]>);

// SAFETY: `Chip` is taken once, and it alone touches the frames while the radio does not.
unsafe impl Sync for Frame {}

static TRANSMIT: Frame = Frame(UnsafeCell::new([0; 128]));
static RECEIVE: Frame = Frame(UnsafeCell::new([0; 128]));

/// RADIO, TIMER3 and PPI.
pub struct Chip(());

impl Chip {
    /// Takes the peripherals. Call it once.
    pub fn take() -> Chip {
        Chip(())
    }

    fn frame(&self, buffer: Buffer) -> *mut [u8; 128] {
        match buffer {
            Buffer::Transmit => TRANSMIT.0.get(),
            Buffer::Receive => RECEIVE.0.get(),
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

    fn load(&self, buffer: Buffer, to: &mut [u8]) {
        let from = self.frame(buffer).cast::<u8>();
        for (at, octet) in to.iter_mut().enumerate().take(128) {
            // SAFETY: `at` lies in the buffer. Volatile, because the radio writes it behind the compiler's back.
            *octet = unsafe { from.add(at).read_volatile() };
        }
    }

    fn store(&mut self, buffer: Buffer, from: &[u8]) {
        let to = self.frame(buffer).cast::<u8>();
        for (at, &octet) in from.iter().enumerate().take(128) {
            // SAFETY: as above.
            unsafe { to.add(at).write_volatile(octet) };
        }
    }

    fn wake_at_interrupt(&mut self, waker: &Waker) {
        RUNNER.register(waker);
        // SAFETY: the handlers below only mask their interrupts and wake a task.
        unsafe {
            cortex_m::peripheral::NVIC::unmask(nrf_pac::Interrupt::RADIO);
            cortex_m::peripheral::NVIC::unmask(nrf_pac::Interrupt::TIMER3);
        }
    }
}

/// The events stay set until the driver has read them, so the interrupts are masked until then.
#[interrupt]
fn RADIO() {
    cortex_m::peripheral::NVIC::mask(nrf_pac::Interrupt::RADIO);
    RUNNER.wake();
}

#[interrupt]
fn TIMER3() {
    cortex_m::peripheral::NVIC::mask(nrf_pac::Interrupt::TIMER3);
    RUNNER.wake();
}

/// Starts the crystal, which the radio needs, and waits for it (PS, CLOCK: 0.36 ms).
pub fn start_clock() {
    CLOCK.tasks_hfclkstart().write_value(1);
    while CLOCK.events_hfclkstarted().read() == 0 {}
}

/// 16 octets of noise from the chip's generator, with its bias correction.
pub fn random() -> [u8; 16] {
    RNG.config().write(|config| config.set_dercen(true));
    RNG.tasks_start().write_value(1);
    let octets = core::array::from_fn(|_| {
        RNG.events_valrdy().write_value(0);
        while RNG.events_valrdy().read() == 0 {}
        RNG.value().read().value()
    });
    RNG.tasks_stop().write_value(1);
    octets
}

/// The chip's own thermometer.
pub struct Element;

impl Sensor for Element {
    fn read(&self) -> Reading {
        TEMP.events_datardy().write_value(0);
        TEMP.tasks_start().write_value(1);
        // 36 us (PS, TEMP).
        while TEMP.events_datardy().read() == 0 {}
        // Quarters of a degree.
        Reading(TEMP.temp().read() as i32 * 25)
    }
}
