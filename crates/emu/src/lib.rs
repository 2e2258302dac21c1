//! Medium 2: the simulator's radios in real time, behind network interfaces.
//!
//! Each node of a simulated network gets a network namespace with one interface, `radio0`. What a program sends there
//! (the kernel's own TCP, iperf3, a routing daemon) contends for the simulated air, is lost, repeated, acknowledged
//! and received as in the simulator; only the time is the clock's.
//!
//! ```text
//!   namespace 0        namespace 1                       programs, kernel, `radio0`
//!       | veth             | veth                        or TAP
//!     Port               Port                            packet sockets
//!   ----|------------------|---------- Emulator -------  the loop: clock, lateness
//!     Bridge             Bridge                          a LinkNode: frames in, frames out, a queue
//!      MAC                MAC                            any `core::Mac`, in `OverMac`
//!       '----- simulated air -----'                      chappe-sim
//! ```
//!
//! | type | what |
//! |---|---|
//! | [`Bridge`] | what sits on a MAC in place of a protocol: a host's interface |
//! | [`Station`] | a radio node with a bridge: any MAC under one, or a protocol of its own |
//! | [`Network`] | namespaces, interfaces, addresses, routes |
//! | [`Emulator`] | the loop; runs programs' time and the air's side by side |
//! | [`Lateness`] | how late it was; a run that was too late is worth nothing |
//!
//! **What is not emulated:** back-pressure from the radio to a program's socket, since neither veth nor TAP has it
//! (frames wait in the bridge's queue instead, and are counted when it is full); 802.11 addresses other than the
//! station's own; VLAN tags.
//!
//! **Architecture invariant:** this crate knows radios, links and the shape of a MAC ([`chappe_core::Mac`]), but no
//! particular MAC and no protocol.

#![forbid(unsafe_code)]

mod bridge;
mod emulator;
mod ethernet;
mod interface;
mod lateness;
mod network;
mod port;
mod ring;

pub use bridge::{Bridge, BridgeCounters, Lost, Station};
pub use emulator::{Emulator, Ending};
pub use interface::INTERFACE;
pub use lateness::Lateness;
pub use network::{Host, Joint, Network, Shape};
pub use ring::Ring;
