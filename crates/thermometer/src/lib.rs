//! A thermometer with HTTP and CoAP on TCP and UDP over 802.15.4: the tasks of the program, and the memory of its node.

#![no_std]
#![cfg_attr(not(test), deny(clippy::unwrap_used))]
#![cfg_attr(not(test), deny(clippy::expect_used))]
#![cfg_attr(not(test), deny(clippy::panic))]

mod client;
mod coap;
mod http;
mod memory;
mod reading;

use chappe_mote::{Clock, Stack};
use embassy_futures::join::join;

pub use client::{Visit, visit};
pub use memory::{Memory, Node, PREFIX, Setup, addresses, node};
pub use reading::{Reading, Rising, Sensor};

/// The thermometer's tasks. Run them beside [`chappe_mote::Runner`].
pub async fn serve<K: Clock>(stack: &Stack<'_, K>, sensor: &impl Sensor) {
    join(http::serve(stack, sensor), coap::serve(stack, sensor)).await;
}
