//! A full-scale TCP that fits on a mote: RFC 9293 and the mechanisms for lossy paths, as a value without I/O.
//!
//! A [`Socket`] is one connection. It owns a few numbers; both buffers, the list of out-of-order ranges and the table of
//! segments in flight are lent by the caller ([`Memory`]). A [`Listener`] is four octets. The [front page](crate) shows two
//! sockets that talk to each other.
//!
//! | file | holds |
//! |---|---|
//! | `socket` `state` | the connection's fields and the application's calls; its states |
//! | `input` `ack` | incoming segments; acknowledgements at the sender |
//! | `output` `deadlines` `timers` | outgoing segments; expired deadlines; the timers |
//! | `loss` `recovery` `sack` `rack` `flight` | loss: response, phases, detection by count and by time, the scoreboard |
//! | `rtt` `congestion` | the retransmission timeout; the congestion window |
//! | `send_buffer` `reassembly` `ring` | the two buffers |
//! | `listen` `cookie` `isn` `flow` `segment` `config` `info` | LISTEN, SYN cookies, initial sequence numbers, the four-tuple, the wire format, parameters, a snapshot |
//! | `bits` `seq` `clock` | flags, sequence numbers and times in few octets |
//!
//! **Architecture invariants:** nothing here allocates, reads a clock or panics on input from the network. Sequence
//! numbers have no order ([`Seq`]). Work per segment is bounded by the size of the lent tables.
//!
//! `inline(never)` marks the functions whose copies the compiler would otherwise spread although that costs flash
//! (`cargo xtask sizes`).

mod ack;
mod bits;
mod clock;
mod config;
pub mod congestion;
mod cookie;
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
pub use info::{Gauges, TcpInfo};
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
