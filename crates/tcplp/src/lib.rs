//! TCPlp: full-scale TCP for low-power radios, without I/O and without allocation, after S. Kumar, M. P. Andersen, H.-S. Kim,
//! D. E. Culler, "Performant TCP for Low-Power Wireless Networks" (NSDI 2020).
//!
//! A [`Socket`](tcp::Socket) is a value. The caller passes segments and the time in, and takes segments and the next deadline
//! out, so the same code runs in firmware, behind a TUN device and in a simulator. Two sockets joined by hand, in virtual
//! time:
//!
//! ```
//! use chappe_core::Instant;
//! use chappe_tcplp::tcp::{
//!     Config, Endpoint, Local, Memory, NewReno, Range, Secret, Segment, Sent, Socket, State,
//! };
//!
//! /// A closed socket. All its memory is lent by the caller; firmware would use statics.
//! fn socket(local: &Local) -> Socket<'_> {
//!     let memory = Memory {
//!         send: vec![0; 1848].leak(),
//!         receive: vec![0; 1848].leak(),
//!         ranges: vec![Range::default(); 4].leak(),
//!         flight: vec![Sent::default(); 8].leak(),
//!     };
//!     Socket::new(local, memory, NewReno).unwrap()
//! }
//!
//! /// Carries all segments that `from` has to send to `to`. Returns whether there were any.
//! fn carry(now: Instant, from: &mut Socket<'_>, to: &mut Socket<'_>) -> bool {
//!     let (flow, mut wire, mut any) = (from.flow(), [0; 1280], false);
//!     while let Some(sent) = from.poll_segment(now, &mut wire) {
//!         let segment = Segment::parse_checked(&wire[..sent.len], &flow).unwrap();
//!         match to.state() {
//!             State::Closed => to.accept(now, flow.local, &segment).unwrap(),
//!             _ => drop(to.handle_segment(now, &segment, sent.ecn)),
//!         }
//!         any = true;
//!     }
//!     any
//! }
//!
//! let [here, there] = ["fd00::1", "fd00::2"].map(|address| Local {
//!     address: address.parse().unwrap(),
//!     secret: Secret::new([7; 16]), // from a true random source
//!     config: Config::STANDARD,
//! });
//! let (mut client, mut server) = (socket(&here), socket(&there));
//! let mut now = Instant::from_millis(1);
//!
//! client.connect(now, 50_000, Endpoint::new(there.address, 80)).unwrap();
//! client.write(b"hello");
//! while carry(now, &mut client, &mut server) | carry(now, &mut server, &mut client) {}
//! assert_eq!(server.state(), State::Established);
//! assert_eq!(server.readable().0, b"hello");
//! server.consume(5);
//!
//! client.close(now);
//! carry(now, &mut client, &mut server);
//! server.close(now);
//! while carry(now, &mut server, &mut client) | carry(now, &mut client, &mut server) {}
//! assert_eq!(server.state(), State::Closed);
//! assert_eq!(client.state(), State::TimeWait);
//!
//! now = client.poll_timeout().unwrap().at;
//! client.handle_timeout(now);
//! assert_eq!(client.state(), State::Closed);
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`tcp`] | the transport: sockets, listeners, segments, congestion control |
//! | [`lowpan`] | 6LoWPAN, IPv6 over 802.15.4: compression, fragments, forwarding, queues |
//! | [`host`] | TCP, UDP and ping below one application; the applications of motes and servers |
//! | [`coap`] | CoAP: client, server, blockwise transfer, CoCoA's timeouts |
//! | [`baseline`] | what TCPlp is compared with: applications over CoAP, TCP with one segment in flight |
//!
//! They build on each other from `tcp` and `coap` to `host`, and from there to `baseline`. [`lowpan::Interface`] carries any
//! [`HostNode`](chappe_core::HostNode), so TCP runs without 6LoWPAN and 6LoWPAN without TCP.

#![no_std]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic
    )
)]

pub mod baseline;
pub mod coap;
pub mod host;
pub mod lowpan;
pub mod tcp;
