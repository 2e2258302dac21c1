//! A full-scale TCP that fits on a mote: RFC 9293 and what makes it work on lossy paths, as a value.
//!
//! A [`Socket`] is one connection. It owns nothing but a few numbers: both rings, the list of out-of-order ranges
//! and the table of segments in flight are lent by the caller ([`Memory`]). Time and segments go in; segments
//! and the next deadline come out. A [`Listener`] is four octets.
//!
//! ```
//! use chappe_core::Instant;
//! use chappe_tcplp::tcp::{Config, Ecn, Endpoint, Local, Memory, NewReno, Range, Secret, Segment, Sent, Socket, State};
//!
//! let secret = Secret::new([7; 16]); // from a real source of randomness
//! let [here, there] = ["fd00::1", "fd00::2"].map(|address| Local {
//!     address: address.parse().unwrap(),
//!     secret,
//!     config: Config::STANDARD,
//! });
//! let (mut s, mut r, mut o, mut f) = ([0; 1848], [0; 1848], [Range::default(); 4], [Sent::default(); 8]);
//! let memory = Memory { send: &mut s, receive: &mut r, ranges: &mut o, flight: &mut f };
//! let mut client = Socket::new(&here, memory, NewReno).unwrap();
//! let (mut s, mut r, mut o, mut f) = ([0; 1848], [0; 1848], [Range::default(); 4], [Sent::default(); 8]);
//! let memory = Memory { send: &mut s, receive: &mut r, ranges: &mut o, flight: &mut f };
//! let mut server = Socket::new(&there, memory, NewReno).unwrap();
//!
//! let now = Instant::from_millis(1);
//! let mut wire = [0; 1280];
//! client.connect(now, 50_000, Endpoint::new(there.address, 80)).unwrap();
//! let flow = client.flow();
//! client.write(b"hello");
//! let sent = client.poll_segment(now, &mut wire).unwrap();
//! let syn = Segment::parse_checked(&wire[..sent.len], &flow).unwrap();
//! server.accept(now, flow.local, &syn).unwrap();
//! while let Some(sent) = server.poll_segment(now, &mut wire) {
//!     let segment = Segment::parse_checked(&wire[..sent.len], &flow).unwrap();
//!     client.handle_segment(now, &segment, Ecn::NotCapable);
//! }
//! while let Some(sent) = client.poll_segment(now, &mut wire) {
//!     let segment = Segment::parse_checked(&wire[..sent.len], &flow).unwrap();
//!     server.handle_segment(now, &segment, sent.ecn);
//! }
//! assert_eq!(server.state(), State::Established);
//! assert_eq!(server.readable().0, b"hello");
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `socket` `state` | the connection's fields and what the application calls; its states |
//! | `input` `ack` | segments that arrive; what an acknowledgement means to the sender |
//! | `output` `deadlines` `timers` | segments that leave; deadlines that come; the timers |
//! | `recovery` `sack` `rack` `flight` | loss: its phases, the evidence, the score board |
//! | `rtt` `congestion` | the timeout; the window |
//! | `send_buffer` `reassembly` `ring` | the two rings |
//! | `listen` `isn` `flow` `segment` `config` `info` | LISTEN, first numbers, addresses, the wire, parameters, a snapshot |
//!
//! **Architecture invariants:** nothing here allocates, reads a clock or panics on what the network says. A
//! sequence number has no order ([`Seq`]). Work per segment is bounded by the size of the lent tables.

mod ack;
mod bits;
mod clock;
mod config;
pub mod congestion;
mod deadlines;
mod flight;
mod flow;
mod info;
mod input;
mod isn;
mod listen;
mod loss;
mod output;
mod rack;
mod reassembly;
mod recovery;
mod ring;
mod rtt;
mod sack;
pub mod segment;
mod send_buffer;
mod seq;
mod socket;
mod state;
mod timers;

pub use config::{Config, KeepAlive, Local};
pub use congestion::{Congestion, Few, NewReno, Unlimited};
pub use flight::Sent;
pub use flow::{Endpoint, Flow, PROTOCOL, Sum};
pub use info::TcpInfo;
pub use input::{Ecn, Verdict};
pub use isn::Secret;
pub use listen::{Heard, Listener};
pub use output::{Parts, Transmit};
pub use recovery::Phase;
pub use segment::{Flags, Malformed, Options, SackBlocks, Segment, Timestamps};
pub use seq::{Range, Seq};
pub use socket::{Counters, MSS_MIN, Memory, Socket, SocketError};
pub use state::{Failure, State};
pub use timers::Timer;
