//! Shared by the tests of this crate: IPv6 packets, a host with sockets, a bad network between two hosts, and the stack
//! that scripts run against.

#![allow(dead_code)]

pub mod host;
pub mod ip;
pub mod mote;
pub mod network;
pub mod ours;
