//! Medium 2: the simulator's radios in real time, behind network interfaces.
//!
//! Each node of a simulated network gets a network namespace with one interface, `radio0`. Frames that programs send
//! there (the kernel's TCP, iperf3, a routing daemon) contend for the simulated air. They are lost, repeated,
//! acknowledged and received as in the simulator, but in real time.
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
//! | [`Bridge`] | a link node that carries a host's Ethernet frames over any MAC |
//! | [`Station`] | a radio node with a bridge: a MAC under one, or a protocol that carries packets itself |
//! | [`stations()`] | a simulator of stations that have the same MAC |
//! | [`Network`] | the hosts: namespaces, interfaces, addresses, routes |
//! | [`Emulator`] | the loop that keeps the simulated air in step with the clock |
//! | [`Lateness`] | how late the loop was; a run that was too late is invalid |
//! | [`Path`], [`Line`] | two hosts with a lossy path between them that is described by a few numbers instead of radios |
//!
//! ```no_run
//! use chappe_core::{Duration, Rate, Seed};
//! use chappe_emu::{Bridge, Emulator, Host, Joint, Network, Shape, stations};
//! use chappe_mac::dot11::{Config, Dot11};
//! use chappe_sim::{Matrix, Medium};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! chappe_sys::namespace::isolate()?; // First thing in main: no root needed after it.
//! let medium = Medium::matrix(&Matrix::silent(2).with_link(0, 1, 0.9))?;
//! let config = Config::dot11b(Rate::Cck11);
//! let mtu = Bridge::mtu_of(config.caps().frame_max);
//! let simulator = stations(medium, mtu, Seed(1), |address, random| {
//!     Dot11::new(config, address, random)
//! })?;
//! let shape = Shape { prefix: 16, mtu, forwards: false, joint: Joint::Veth };
//! let network = Network::make(&[Host::numbered(0), Host::numbered(1)], shape)?;
//! let mut emulator = Emulator::new(simulator, network)?;
//! let end = emulator.clock().now() + Duration::from_secs(10);
//! emulator.run(Some(end))?; // Meanwhile: ping 10.17.0.2 in emulator.host(0).
//! println!("99 % of turns within {}", emulator.lateness().quantile(0.99));
//! # Ok(())
//! # }
//! ```
//!
//! **Not emulated:** back-pressure from the radio to a program's socket, since neither veth nor TAP has it (frames wait
//! in the bridge's queue instead, and are counted if it is full); 802.11 addresses other than the station's own; VLANs.
//!
//! **Architecture invariant:** this crate knows radios, links and the trait of a MAC ([`chappe_core::Mac`]), but no
//! particular MAC and no protocol.

#![forbid(unsafe_code)]

mod bridge;
mod emulator;
mod ethernet;
mod interface;
mod lateness;
mod line;
mod network;
mod path;
mod port;
mod ring;
mod stations;

pub use bridge::{Bridge, BridgeCounters, Lost, Station};
pub use emulator::{Emulator, Ending};
pub use interface::INTERFACE;
pub use lateness::Lateness;
pub use line::{ADDRESSES, Carried, Line};
pub use network::{Host, Joint, Network, Shape};
pub use path::{Confirm, Crossing, Fates, Path};
pub use ring::Ring;
pub use stations::stations;
