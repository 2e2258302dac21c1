//! P³'s roles for the nRF52840: relay, source and destination of a pipeline of two hops, and a room in which five of them run on
//! models of the chip.

#![no_std]

mod object;
mod roles;
pub mod room;

pub use object::Numbers;
pub use roles::{
    DESTINATION, Fixed, Links, MEMORY, OBJECT, RELAYS_MAX, Role, SOURCE, ahead, config, gateway,
    given, prepare, relay, source, surveyor,
};
