//! What the interrupts of radio and timer wake: the task that drives the radio.

use core::task::Waker;

use cortex_m::peripheral::NVIC;
use embassy_sync::waitqueue::AtomicWaker;
use nrf_pac::interrupt;

static RUNNER: AtomicWaker = AtomicWaker::new();

/// Wakes the task at the next interrupt. Interrupts are masked until then.
pub fn at_interrupt(waker: &Waker) {
    RUNNER.register(waker);
    // SAFETY: the handlers below only mask their interrupts and wake a task.
    unsafe {
        NVIC::unmask(nrf_pac::Interrupt::RADIO);
        NVIC::unmask(nrf_pac::Interrupt::TIMER3);
    }
}

/// The events stay set until the driver has read them, so the interrupts are masked until then.
#[interrupt]
fn RADIO() {
    NVIC::mask(nrf_pac::Interrupt::RADIO);
    RUNNER.wake();
}

#[interrupt]
fn TIMER3() {
    NVIC::mask(nrf_pac::Interrupt::TIMER3);
    RUNNER.wake();
}
