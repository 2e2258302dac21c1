//! A 6LoWPAN border router in front of a low-power network that is simulated in real time. The host's own `curl`, `ping`,
//! `iperf3` and CoAP clients talk to motes that run this project's TCP.
//!
//! ```text
//!   curl, ping -6, iperf3, aiocoap        programs of this host
//!   kernel: TCP, UDP, IPv6
//!   lln0 (TUN, MTU 1280)                  Border: the event loop
//!   Gateway                               a router: hop limit, ICMPv6 errors, ECN marks
//!   6LoWPAN | 802.15.4 CSMA-CA            the border's radio
//!   ~~~ simulated air, paced by the host's clock ~~~
//!   motes: relays, and hosts with HTTP, CoAP, iperf3
//! ```
//!
//! Everything but the TUN device works in virtual time too. A row of three nodes, and a ping from the host to the last one:
//!
//! ```
//! use chappe_border::Network;
//! use chappe_mac::dot15d4;
//! use chappe_sim::{AirTime, Matrix, Medium};
//! use chappe_tcplp::tcp;
//! use chappe_wire::icmpv6::Message;
//! use chappe_wire::ipv6::{HEADER_LEN, Header, next};
//!
//! let links = Matrix::silent(3).with_link(0, 1, 1.0).with_link(1, 2, 1.0);
//! let network = Network {
//!     medium: Medium::matrix(&links).unwrap(),
//!     seed: 1,
//!     faults: Vec::new(),
//!     border: 0,
//!     parents: vec![None, Some(0), Some(1)],
//!     mac: dot15d4::Config::HAMILTON,
//!     leaves: Vec::new(),
//!     contexts: true,
//!     short: true,
//!     pace: Vec::new(),
//!     tcp: tcp::Config { mss: 498, ..tcp::Config::STANDARD },
//!     leaf_ack_delay: tcp::Config::STANDARD.delayed_ack,
//!     window: 4,
//!     prefix: "fd00:1:2:3::".parse().unwrap(),
//!     reports: Vec::new(),
//!     thermometers: Vec::new(),
//! };
//! let mut simulator = network.simulator(()).unwrap();
//!
//! let (host, mote) = (network.kernel(), network.address(2));
//! let ping = Message::Echo { reply: false, id: 7, sequence: 1, data: b"hello" };
//! let mut packet = [0; HEADER_LEN + 13];
//! let header = Header {
//!     traffic_class: 0,
//!     flow_label: 0,
//!     payload_len: 13,
//!     next_header: next::ICMPV6,
//!     hop_limit: 64,
//!     source: host,
//!     destination: mote,
//! };
//! header.emit(&mut packet).unwrap();
//! ping.emit(host, mote, &mut packet[HEADER_LEN..]).unwrap();
//! simulator.with_node(0, |station, now| {
//!     station.with_gateway(now, |gateway| gateway.offer(now, &packet));
//! });
//!
//! simulator.run_until(AirTime::from_nanos(1_000_000_000));
//! let pong = simulator.node(0).gateway().unwrap().arrived().unwrap();
//! assert_eq!(Header::parse(pong).unwrap().source, mote);
//! ```
//!
//! In real time the same network stands behind a TUN device: `Border::open(network, "lln%d", ())?.run(None)?`.
//!
//! | type | what |
//! |---|---|
//! | [`Network`] | links, the routing tree, parameters; makes the simulator's nodes |
//! | [`Station`] | a node: the border router or a mote |
//! | [`Program`] | a leaf with the tasks of a board's program |
//! | [`Gateway`] | the border router's IP side |
//! | [`Border`] | the TUN device and the event loop |
//! | [`Status`] | counters and lateness, as text and as JSON |
//!
//! **Architecture invariant:** [`Gateway`] and [`Station`] do no I/O; only `daemon` touches the device.

#![forbid(unsafe_code)]

mod daemon;
mod gateway;
mod network;
mod program;
mod station;
mod status;
mod thinning;

pub use daemon::{Border, Ending, LATENESS_LIMIT};
pub use gateway::{Gateway, GatewayCounters, MTU};
pub use network::{Network, host_address};
pub use program::Program;
pub use station::{NODES_MAX, SOCKETS, Station};
pub use status::{Late, NodeStatus, Status};
