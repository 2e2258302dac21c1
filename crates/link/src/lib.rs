//! A tunnel between hosts that hides the packet loss of the path between them: the library of `chappe link`.
//!
//! Each host has a TUN device. The packets that its kernel sends through the device travel to the peer in sealed frames
//! over UDP or Ethernet. [`chappe_wildnet::Link`] recovers lost frames by retransmission or by coded repairs, whichever
//! meets the service of the packet's class at the lower cost. Kernel TCP runs through the tunnel unmodified and sees
//! delay instead of loss.
//!
//! A [`Peer`] does no I/O, so a program can drive two of them in virtual time:
//!
//! ```
//! use chappe_core::{Bitrate, Duration, Instant};
//! use chappe_link::classify::Net;
//! use chappe_link::{BULK, Key, Peer, PeerConfig};
//! use chappe_sys::Endpoint;
//!
//! let [here, there] = ["192.0.2.1:1795", "192.0.2.7:1795"].map(|at| Endpoint::Udp(at.parse().unwrap()));
//! let peer = |to, life| {
//!     let config = PeerConfig {
//!         name: "other".into(),
//!         key: Key::new([7; 32]),
//!         endpoint: Some(to),
//!         networks: vec![Net { address: [0, 0, 0, 0].into(), prefix: 0 }],
//!         datagram_max: 1472,
//!         below: 42, // Ethernet, IP and UDP
//!         rate: Some(Bitrate(6_000_000)),
//!         services: [BULK; 4],
//!         queue: Duration::from_millis(100),
//!     };
//!     let mut number = life; // A real program draws unpredictable numbers.
//!     Peer::new(config, 0, life, Box::new(move || { number += 1; number })).unwrap()
//! };
//! let (mut ours, mut theirs) = (peer(there, 1000), peer(here, 2000));
//! ours.offer(Instant::ZERO, 1, 0, b"a packet");
//! let (mut now, mut datagram, mut packet) = (Instant::ZERO, [0; 2048], [0; 9000]);
//! let delivered = loop {
//!     // Hello, answer, then the sealed frame with the packet.
//!     while let Some((len, _)) = ours.poll(now, &mut datagram) {
//!         theirs.handle(now, here, &mut datagram[..len]);
//!     }
//!     while let Some((len, _)) = theirs.poll(now, &mut datagram) {
//!         ours.handle(now, there, &mut datagram[..len]);
//!     }
//!     if let Some(len) = theirs.deliver(&mut packet) {
//!         break len;
//!     }
//!     now += Duration::from_millis(1);
//! };
//! assert_eq!(packet[..delivered], *b"a packet");
//! ```
//!
//! | part | what it does |
//! |---|---|
//! | [`Tunnel`] | the process: TUN device, socket, peers, one event loop |
//! | [`Peer`] | one peer: sessions, recovery, queues, pace; no I/O |
//! | [`Carrier`] | UDP or Ethernet, and what each costs |
//! | [`Key`] | the secret that two hosts share, from which all session keys are derived |
//! | [`classify`] | class, flow and addresses of a packet |
//! | [`Judgement`] | whether the 802.11 card towards a peer waits long enough for the distance |
//! | [`Status`] | the state of each peer as text, JSON or Prometheus metrics |
//!
//! **Architecture invariant:** a datagram that is not authentic changes nothing but a counter.

#![forbid(unsafe_code)]

mod carrier;
pub mod classify;
mod coverage;
mod hints;
mod pace;
mod packing;
mod path_mtu;
mod peer;
mod session;
mod status;
mod tunnel;

pub use carrier::Carrier;
pub use coverage::{Egress, Judgement, Verdict};
pub use peer::{BULK, Goodput, PEERS_MAX, Peer, PeerConfig, PeerCounters, State};
pub use session::{Key, VERSION};
pub use status::Status;
pub use tunnel::{Ending, Tunnel, TunnelConfig};
