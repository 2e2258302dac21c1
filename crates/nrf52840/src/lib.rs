//! A driver for the 802.15.4 radio of the nRF52840, and a model of its registers to try programs without the chip.
//!
//! Sources: nRF52840 Product Specification 1.7 (PS), chapters RADIO, TIMER, PPI and ECB.
//!
//! | type | what |
//! |---|---|
//! | [`Driver`] | the radio: requests in, events out, without waiting |
//! | [`Station`] | a node that owns its radio, such as P³'s, on the driver, without tasks |
//! | [`Board`] | the driver shared by tasks: a [`Radio`](chappe_mote::Radio) and a [`Clock`](chappe_mote::Clock) |
//! | [`encrypt`] | a block by the chip's AES |
//! | [`Registers`] | how the driver reaches the chip |
//! | [`model::Chip`] | the chip's registers in memory, in virtual time |
//!
//! ```
//! use core::cell::RefCell;
//! use chappe_core::{Channel, RadioRequest};
//! use chappe_nrf52840::{Config, Driver, model::Chip};
//!
//! let chip = RefCell::new(Chip::new());
//! let mut driver = Driver::new(&chip, Config::STANDARD);
//! driver.request(RadioRequest::Tune(Channel(26)), &[]);
//! chip.borrow_mut().advance(100_000);
//! assert!(chip.borrow().is_listening(Channel(26)));
//! ```
//!
//! The driver uses TIMER3 and the PPI channels 0 to 4. It starts frames by hardware, so a late interrupt does not move them.
//! **It has not met a radio yet**: it was only run against the model.

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

mod board;
mod cipher;
mod driver;
pub mod model;
mod registers;
mod station;

pub use board::Board;
pub use cipher::encrypt;
pub use driver::{CAPS, Config, Driver, RX_RAMP, Seen};
pub use registers::{Buffer, Registers, ecb, radio, timer};
pub use registers::{PPI, ppi_event, ppi_task};
pub use station::Station;
