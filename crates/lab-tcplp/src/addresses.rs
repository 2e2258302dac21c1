//! The addresses of an experiment: the mesh's prefix, the host behind the border router, and the port that hosts listen on.

use std::net::Ipv6Addr;

use chappe_wire::sixlowpan::Context;

/// The prefix of all motes, a unique local address (RFC 4193).
pub const PREFIX: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xcafe, 0, 1, 0, 0, 0, 0);
/// The host behind the border router, in the prefix for documentation (RFC 3849).
pub const CLOUD: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
/// The port that every host listens on.
pub const PORT: u16 = 80;

/// [`PREFIX`] as RFC 6282's context 0, where nodes share one.
pub const CONTEXTS: [Context; 1] = [Context {
    id: 0,
    prefix: PREFIX,
    len: 64,
}];
