//! The loop of a program with one node: no interrupt has a handler, the processor sleeps until one is pending.

use core::task::Waker;

use chappe_core::RadioNode;
use chappe_nrf52840::{Registers, Station};
use cortex_m::peripheral::{NVIC, SCB};
use nrf_pac::Interrupt;

/// SEVONPEND of the System Control Register: an interrupt that becomes pending ends WFE, though it is masked (ARMv7-M, B3.2.7).
const SEVONPEND: u32 = 1 << 4;

/// Nothing waits for the radio but the loop.
pub fn at_interrupt(_: &Waker) {}

/// Turns the node at each interrupt, until `done`.
pub fn turn_until<N: RadioNode, R: Registers>(
    station: &mut Station<N, R>,
    mut done: impl FnMut(&N) -> bool,
) {
    // SAFETY: a register of the processor that nothing else uses; it changes when the processor wakes, and nothing else.
    unsafe { (*SCB::PTR).scr.modify(|bits| bits | SEVONPEND) };
    while !done(station.node()) {
        // Before the turns: what comes during the last one makes it pending again.
        NVIC::unpend(Interrupt::RADIO);
        NVIC::unpend(Interrupt::TIMER3);
        while station.turn() {}
        cortex_m::asm::wfe();
    }
}
