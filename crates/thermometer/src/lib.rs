//! A thermometer with HTTP and CoAP on TCP and UDP over 802.15.4: the tasks of the program, and the memory of its node.
//!
//! A sensor of a program's own, and the node that serves it, here with a clock of the simulator:
//!
//! ```
//! use chappe_mote::{Air, Stack};
//! use chappe_thermometer::{Memory, Reading, Sensor, Setup, addresses, node, serve};
//!
//! struct Cellar;
//! impl Sensor for Cellar {
//!     fn read(&self) -> Reading {
//!         Reading(1225) // hundredths of a degree
//!     }
//! }
//!
//! // Node 1, whose parent is node 0. The secret keys the choice of sequence numbers and ports.
//! let setup = Setup::new(1, 0, [7; 16]);
//! let mut memory = Memory::new();
//! let (mut mote, local) = node::<(), 0>(&mut memory, &setup, ());
//! let stack = Stack::new(&mut mote, local, Air::leak().clock());
//! // A program polls this future, and that of a `Runner` beside it, for as long as it runs.
//! let task = serve(&stack, &Cellar);
//! assert_eq!(format!("{}", Cellar.read()), "12.25");
//! assert_eq!(addresses(1).0.segments()[..4], setup.prefix.segments()[..4]);
//! # drop(task);
//! ```

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
