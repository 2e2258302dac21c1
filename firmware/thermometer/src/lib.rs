//! A thermometer with HTTP and CoAP on TCP and UDP over 802.15.4: the tasks of the program, and a room with two of them on
//! models of the radio.

#![no_std]

mod client;
mod coap;
mod http;
mod memory;
mod reading;
pub mod room;

use chappe_mote::{Clock, Stack};
use embassy_futures::join::join;

pub use client::visit;
pub use memory::{Memory, Node, PREFIX, addresses, node};
pub use reading::{Reading, Sensor};

/// The thermometer's tasks. Run them beside [`chappe_mote::Runner`].
pub async fn serve<K: Clock>(stack: &Stack<'_, K>, sensor: &impl Sensor) {
    join(http::serve(stack, sensor), coap::serve(stack, sensor)).await;
}
