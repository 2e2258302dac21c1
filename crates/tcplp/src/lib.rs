//! TCPlp: full-scale TCP for low-power radios (S. Kumar, M. P. Andersen, H.-S. Kim, D. E. Culler,
//! "Performant TCP for Low-Power Wireless Networks", NSDI 2020), without I/O and without allocation.
//!
//! [`tcp`] is the transport: one state machine, the same in the simulator, behind a TUN device and in firmware.

#![no_std]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)
)]

pub mod tcp;
