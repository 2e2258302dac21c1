//! TCPlp: full-scale TCP for low-power radios (S. Kumar, M. P. Andersen, H.-S. Kim, D. E. Culler,
//! "Performant TCP for Low-Power Wireless Networks", NSDI 2020), without I/O and without allocation.
//!
//! | module | what |
//! |---|---|
//! | [`tcp`] | the transport |
//! | [`host`] | TCP, UDP and ping under one application |
//! | [`baseline`] | what TCPlp is compared with: CoAP, CoCoA, one-segment TCP |
//! | [`lowpan`] | IPv6 over 802.15.4: compression, fragments, forwarding, queues |
//!
//! [`tcp`] is the transport: one state machine, the same in the simulator, behind a TUN device and in firmware.

#![no_std]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic
    )
)]

pub mod baseline;
pub mod host;
pub mod lowpan;
pub mod tcp;
