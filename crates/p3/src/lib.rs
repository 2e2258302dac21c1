//! P³, a packet pipeline that keeps an 802.15.4 radio busy from end to end.
//!
//! Source: M. Doddavenkatappa and M. C. Chan, "P³: A Practical Packet Pipeline Using Synchronous
//! Transmissions for Wireless Sensor Networks", IPSN 2014. A source sends one packet per cycle. Relays stand in
//! stages between source and destination, and each stage has two groups: one receives while the other sends,
//! so that the source never waits. All relays of a group send the same bits at the same instant.
//!
//! So far this crate holds the [`planner`]: which relays stand in which stage. The state machines of source,
//! relay and destination follow; see the crate's README.

#![no_std]
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used))]

extern crate alloc;

pub mod planner;
