//! The frames of one system call: how many, in runs to one destination, and their endpoints.

use std::fmt;
use std::net::SocketAddr;

/// Largest number of frames in one system call.
pub const BATCH: usize = 32;

/// The source or destination of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Endpoint {
    /// An IP address and a UDP port.
    Udp(SocketAddr),
    /// A link-layer address on the interface's link.
    Ethernet([u8; 6]),
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Udp(address) => address.fmt(f),
            Endpoint::Ethernet([a, b, c, d, e, g]) => {
                write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
            }
        }
    }
}

/// Datagrams to one destination that the kernel handles as one until the last moment (UDP segmentation offload). All have
/// `segment` octets, except the last, which may be shorter. Only UDP allows several: at most 64 (UDP_MAX_SEGMENTS of
/// kernels before 6.0) and 65,000 octets, which fit an IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run<'a> {
    /// The datagrams, one after the other.
    pub octets: &'a [u8],
    /// Octets of each datagram. For a single datagram: the length of `octets`, or more.
    pub segment: usize,
    /// The destination of all datagrams.
    pub to: Endpoint,
}

impl Run<'_> {
    /// Largest number of datagrams in a run.
    pub const COUNT: usize = 64;
    /// Largest number of octets in a run.
    pub const LEN: usize = 65_000;
}
