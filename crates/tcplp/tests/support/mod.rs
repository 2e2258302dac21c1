//! What the tests of this crate share: IPv6 packets, a host with sockets, a bad network between two hosts, and the
//! script runner.

#![allow(dead_code)]

pub mod host;
pub mod ip;
pub mod network;
pub mod script;
