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
//! use chappe_link::{BULK, Gate, IDLE_KEEPALIVE, PROTOCOL, Peer, PeerConfig, Secret};
//! use chappe_sys::Endpoint;
//!
//! let [here, there] = ["192.0.2.1:1795", "192.0.2.7:1795"].map(|at| Endpoint::Udp(at.parse().unwrap()));
//! // A real program draws keys, lives and seeds from the operating system.
//! let keys = [1, 2].map(|fill| Secret::new([fill; 32]));
//! let mut gates = [0, 1].map(|host| Gate::new(PROTOCOL, keys[host].clone(), [3; 32]));
//! let peer = |to, host: usize| {
//!     let config = PeerConfig {
//!         name: "other".into(),
//!         public: keys[1 - host].public(),
//!         psk: None,
//!         endpoint: Some(to),
//!         networks: vec![Net { address: [0, 0, 0, 0].into(), prefix: 0 }],
//!         datagram_max: 1472,
//!         below: 42, // Ethernet, IP and UDP
//!         rate: Some(Bitrate(6_000_000)),
//!         services: [BULK; 4],
//!         queue: Duration::from_millis(100),
//!         keepalive: IDLE_KEEPALIVE,
//!         paths: Vec::new(),
//!     };
//!     Peer::new(config, &gates[host], 0, host as u64, [4 + host as u8; 32]).unwrap()
//! };
//! let (mut ours, mut theirs) = (peer(there, 0), peer(here, 1));
//! ours.offer(Instant::ZERO, 1, 0, b"a packet");
//! let (mut now, mut datagram, mut packet) = (Instant::ZERO, [0; 2048], [0; 9000]);
//! let delivered = loop {
//!     // Call, answer, then the sealed frame with the packet.
//!     while let Some((len, _)) = ours.poll(now, &mut datagram) {
//!         let _ = theirs.handle(now, &mut gates[1], here, &mut datagram[..len], &mut [0; 256]);
//!     }
//!     while let Some((len, _)) = theirs.poll(now, &mut datagram) {
//!         let _ = ours.handle(now, &mut gates[0], there, &mut datagram[..len], &mut [0; 256]);
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
//! | [`Secret`], [`Public`], [`Psk`], [`Gate`] | keys, and which datagrams are worth more than a hash (`chappe-session`) |
//! | [`classify`] | class, flow and addresses of a packet |
//! | [`Judgement`] | whether the 802.11 card towards a peer waits long enough for the distance |
//! | [`introduction`] | how a third host brings two together that are both behind address translators |
//! | [`Status`] | the state of each peer as text, JSON or Prometheus metrics |
//!
//! **Architecture invariant:** a datagram that is not authentic changes nothing but a counter.

#![forbid(unsafe_code)]

mod carrier;
pub mod classify;
mod coverage;
mod hints;
pub mod introduction;
mod pace;
mod packing;
mod path_mtu;
mod peer;
mod status;
mod streams;
mod tunnel;

pub use carrier::Carrier;
pub use chappe_session::{Gate, Psk, Public, Secret};
pub use coverage::{Egress, Judgement, Verdict};
pub use peer::{
    BULK, Goodput, IDLE_KEEPALIVE, PEERS_MAX, PathConfig, Peer, PeerConfig, PeerCounters, State,
};
pub use status::{PathStatus, PeerStatus, Status};
pub use streams::{ADDRESSES_MAX, StreamCounters, StreamsConfig};
pub use tunnel::{Ending, Tunnel, TunnelConfig, usual_memory};

/// The protocol on the wire.
pub const PROTOCOL: chappe_session::Protocol = chappe_session::Protocol {
    name: "chappe link",
    version: VERSION,
};
/// The version of the protocol on the wire.
pub const VERSION: u8 = 6;
