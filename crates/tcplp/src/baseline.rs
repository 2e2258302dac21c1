//! What TCPlp is compared with: CoAP with its two timers, without confirmation, and a TCP of one segment.
//!
//! State machines without I/O, as everything here: a datagram or a segment goes in, one comes out, and a deadline.

pub mod coap;
pub mod one_segment;
