//! What the tests of this crate share: IPv6 packets, a host with sockets, a bad network between two hosts, and the
//! stack that scripts are played to.

#![allow(dead_code)]

pub mod host;
pub mod ip;
pub mod mote;
pub mod network;
pub mod ours;
