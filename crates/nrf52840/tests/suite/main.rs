//! The driver against Nordic's description of the registers and against the model of the chip.

mod addresses;
mod timing;
