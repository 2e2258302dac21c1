//! A mesh router for Linux hosts: the library of `chappe mesh`.
//!
//! Each host has a TUN device. Packets that its kernel sends through the device travel over other nodes of the mesh to the
//! node behind which their address lies. [`chappe_dpclo::Router`] finds routes, keeps a queue for each destination and tells
//! prices of airtime; this crate adds what a host needs: recovery of lost frames, queues for flows, addresses, a process.
//!
//! A [`Node`](node::Node) does no I/O, so a program can drive several in virtual time:
//!
//! ```
//! use chappe_core::{Address, Arrival, Bitrate, Duration, Instant, LinkEvent, LinkNode, Seed};
//! use chappe_mesh::air::Air;
//! use chappe_mesh::node::Node;
//! use chappe_mesh::packet::Net;
//! use chappe_mesh::settings::{Hop, NodeConfig};
//!
//! let node = |number| {
//!     let config = NodeConfig {
//!         number,
//!         networks: vec![Net::parse("10.77.0.0/16").unwrap()],
//!         behind: Vec::new(),
//!         air: Air::dot11b(Bitrate(11_000_000)),
//!         hop: Hop::Broadcast,
//!         size: 2,
//!         mtu: 1400,
//!         groups: false,
//!         video: false,
//!     };
//!     Node::new(config, 2242, Instant::ZERO, Seed(number.into()), 0).unwrap()
//! };
//! let mut nodes = [node(1), node(2)];
//! // An IPv4 packet from 10.77.0.1 to 10.77.0.2.
//! let mut packet = [0; 40];
//! (packet[0], packet[15], packet[19]) = (0x45, 1, 2);
//! packet[12..15].copy_from_slice(&[10, 77, 0]);
//! packet[16..19].copy_from_slice(&[10, 77, 0]);
//! let (mut now, mut frame, mut received) = (Instant::ZERO, [0; 2242], [0; 1400]);
//! let len = loop {
//!     now += Duration::from_millis(1);
//!     assert!(now < Instant::from_millis(5000));
//!     for from in 0..2 {
//!         nodes[from].handle_timeout(now);
//!         let allowed = nodes[from].pending();
//!         if let Some(send) = nodes[from].poll_link(now, allowed, &mut frame) {
//!             let from_address = Address::node(from as u16 + 1);
//!             let sdu = &frame[..send.len];
//!             let arrival = Arrival { from: from_address, to: Address::BROADCAST, sdu, power: None };
//!             nodes[1 - from].handle_link(now, LinkEvent::Received(arrival));
//!         }
//!     }
//!     if now == Instant::from_millis(3000) {
//!         nodes[0].offer(now, &packet);
//!     }
//!     if let Some(len) = nodes[1].deliver(&mut received) {
//!         break len;
//!     }
//! };
//! assert_eq!(received[..len], packet);
//! ```
//!
//! | part | what it does |
//! |---|---|
//! | [`daemon`] | the process: TUN device, interfaces, sealed frames (`chappe-live`), one event loop |
//! | [`node`] | one node without I/O: the host above, the router in the middle, the link below |
//! | [`recovery`] | frames are repeated until their neighbour acknowledges them |
//! | [`air`] | what a frame costs on the channel, and when the next may follow |
//! | [`host`] | a queue for each flow, controlled delay, marks before drops |
//! | [`announce`] | networks behind nodes, told to the whole mesh |
//! | [`receipts`] | ends tell each other what has arrived, so that a relay that passes nothing on is left |
//! | [`warnings`] | an end that leaves a relay tells the relays that it uses instead |
//! | [`segments`] | TCP segments that pass the TUN device together |
//! | [`packet`] [`frame`] | packets of the host; frames of a link |
//! | [`settings`] | a node's configuration, and the router's that follows |
//! | [`status`] [`answers`] | the state as text, JSON, NetJSON, Prometheus; the socket that answers |
//!
//! **Architecture invariant:** a node does no I/O; only `daemon`, `answers` and `exports` touch the system.

#![forbid(unsafe_code)]

pub mod air;
pub mod announce;
pub mod answers;
pub mod daemon;
mod exports;
pub mod frame;
pub mod host;
pub mod node;
mod pace;
pub mod packet;
pub mod receipts;
pub mod recovery;
pub mod segments;
pub mod settings;
pub mod status;
pub mod warnings;
