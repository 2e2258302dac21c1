//! Sockets that carry frames, one interface each, whatever is below them.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use chappe_core::Class;

use crate::error::{Error, Result};
use crate::raw;

/// Most frames that go through one system call.
pub const BATCH: usize = 32;

/// Octets asked of the kernel for its receive queue: some 40 ms of a 1 Gbit/s network.
const RECEIVE_BUFFER: i32 = 4 << 20;

/// Where a frame comes from or goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Endpoint {
    /// A UDP socket.
    Udp(SocketAddr),
    /// A station on the interface's link.
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

/// Datagrams to one place that pass the kernel's layers as one: each of `segment` octets but the last, which may be shorter. Several
/// on UDP only: at most 64 of them (UDP_MAX_SEGMENTS of kernels before 6.0) and 65,000 octets, which is what an IP packet
/// holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run<'a> {
    /// The datagrams, one behind the other.
    pub octets: &'a [u8],
    /// Octets of each. One datagram: as many as `octets` has, or more.
    pub segment: usize,
    /// Where they go.
    pub to: Endpoint,
}

impl Run<'_> {
    /// Most datagrams of a run.
    pub const COUNT: usize = 64;
    /// Most octets of a run.
    pub const LEN: usize = 65_000;
}

/// A UDP or packet socket that is bound to one interface and never waits. Made by [`udp`](crate::udp::open) and
/// [`packet`](crate::packet::open).
#[derive(Debug)]
pub struct Socket {
    pub(crate) fd: OwnedFd,
    pub(crate) kind: Kind,
    pub(crate) interface: String,
    /// EtherType and interface number of a packet socket.
    pub(crate) link: (u16, u32),
    /// What the socket's options say at present.
    pub(crate) class: Option<Class>,
}

/// What is below, which decides how a class becomes a priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Ipv4,
    Ipv6,
    Packet,
}

/// Frames that [`Socket::receive`] took in one call. Kept by the caller and used again.
#[derive(Debug)]
pub struct Received {
    buffer: Vec<u8>,
    slot: usize,
    heard: Vec<Option<raw::Heard>>,
}

impl Received {
    /// Room for [`BATCH`] frames of up to `frame_max` octets.
    pub fn new(frame_max: usize) -> Received {
        Received {
            buffer: vec![0; BATCH * frame_max.max(1)],
            slot: frame_max.max(1),
            heard: Vec::with_capacity(BATCH),
        }
    }

    /// The frames of the latest call in the order of arrival: sender and octets, or `None` for one that was
    /// longer than `frame_max`.
    pub fn iter(&self) -> impl Iterator<Item = Option<(Endpoint, &[u8])>> {
        let slots = self.buffer.chunks_exact(self.slot);
        self.heard.iter().zip(slots).flat_map(|(heard, slot)| {
            let (len, segment) = heard.map_or((0, 0), |heard| (heard.len, heard.segment));
            let octets = slot.get(..len).unwrap_or_default();
            // An empty frame, or none, is one entry as well.
            let count = len.div_ceil(segment.max(1)).max(1);
            (0..count).map(move |place| {
                let from = (*heard)?.from;
                let rest = octets.get(place * segment..)?;
                Some((from, rest.get(..segment).unwrap_or(rest)))
            })
        })
    }
}

impl Socket {
    /// Takes up to [`BATCH`] frames that have arrived; returns how many, 0 when there are none.
    pub fn receive(&self, into: &mut Received) -> Result<usize> {
        into.heard.clear();
        let (slot, heard) = (into.slot, &mut into.heard);
        match raw::receive_many(self.fd.as_fd(), &mut into.buffer, slot, heard) {
            Ok(()) => Ok(into.heard.len()),
            Err(error) if retry(&error) => Ok(0),
            Err(error) => Err(self.failed("receive", error)),
        }
    }

    /// Hands the first [`BATCH`] of `frames` to the kernel; returns how many it took, 0 when its queue is full. An
    /// error is about the first frame: none was taken.
    pub fn send<'a>(&self, frames: impl Iterator<Item = (&'a [u8], Endpoint)>) -> Result<usize> {
        self.send_runs(frames.map(|(octets, to)| Run {
            octets,
            segment: octets.len(),
            to,
        }))
    }

    /// Like [`send`](Self::send), with the first [`BATCH`] of `runs`. An error about a run of several datagrams says that this kernel or
    /// interface cannot cut them, as a rule: send them one by one.
    pub fn send_runs<'a>(&self, runs: impl Iterator<Item = Run<'a>>) -> Result<usize> {
        match raw::send_runs(self.fd.as_fd(), runs, self.link) {
            Ok(sent) => Ok(sent),
            Err(error) if retry(&error) => Ok(0),
            Err(error) => Err(self.failed("send", error)),
        }
    }

    /// Asks the kernel to join datagrams of one sender before it hands them over; [`Received`] takes them apart again, and
    /// must have slots of 65,536 octets then. False where the kernel cannot, which changes nothing else.
    pub fn join_received(&self) -> bool {
        let on = 1i32.to_ne_bytes();
        self.kind != Kind::Packet
            && raw::set_option(self.fd.as_fd(), libc::SOL_UDP, libc::UDP_GRO, &on).is_ok()
    }

    /// How many frames were lost since the last call because the receive queue was full. Packet sockets only; 0 for
    /// others, whose losses the kernel counts elsewhere.
    pub fn overflowed(&self) -> u64 {
        // struct tpacket_stats: packets, and of these the drops; reading sets both to zero (packet(7)).
        let mut counts = [0; 8];
        let name = libc::PACKET_STATISTICS;
        let read = raw::get_option(self.fd.as_fd(), libc::SOL_PACKET, name, &mut counts);
        match (self.kind, read, counts) {
            (Kind::Packet, Ok(8), [_, _, _, _, drops @ ..]) => u32::from_ne_bytes(drops).into(),
            _ => 0,
        }
    }

    /// Sends the frames to come with the priority of `class`.
    ///
    /// 802.11 takes the user priority from SO_PRIORITY 256 to 263 (packet sockets) or from the top three bits of
    /// the traffic class (IP); the queueing discipline takes SO_PRIORITY modulo 16. [`user_priority`] means the
    /// same to all three.
    pub fn set_class(&mut self, class: Class) -> Result<()> {
        if self.class == Some(class) {
            return Ok(());
        }
        let up = i32::from(user_priority(class));
        // The traffic class first: the kernel derives a priority from it, and the next option sets our own.
        let traffic_class = up << 5;
        let options = match self.kind {
            Kind::Ipv4 => [
                Some((libc::IPPROTO_IP, libc::IP_TOS, traffic_class)),
                Some((libc::SOL_SOCKET, libc::SO_PRIORITY, up)),
            ],
            Kind::Ipv6 => [
                Some((libc::IPPROTO_IPV6, libc::IPV6_TCLASS, traffic_class)),
                Some((libc::SOL_SOCKET, libc::SO_PRIORITY, up)),
            ],
            Kind::Packet => [None, Some((libc::SOL_SOCKET, libc::SO_PRIORITY, 256 + up))],
        };
        for (level, name, value) in options.into_iter().flatten() {
            raw::set_option(self.fd.as_fd(), level, name, &value.to_ne_bytes())
                .map_err(|error| self.failed("set the priority of frames", error))?;
        }
        self.class = Some(class);
        Ok(())
    }

    /// Asks for a receive queue that holds some bursts; gets as much as an ordinary user may have at least.
    pub(crate) fn widen(&self) {
        let size = RECEIVE_BUFFER.to_ne_bytes();
        for name in [libc::SO_RCVBUFFORCE, libc::SO_RCVBUF] {
            // Refused to ordinary users; the second is cut to net.core.rmem_max. Either is good enough.
            if raw::set_option(self.fd.as_fd(), libc::SOL_SOCKET, name, &size).is_ok() {
                return;
            }
        }
    }

    fn failed(&self, what: &str, error: io::Error) -> Error {
        Error::new(what, error).on(&self.interface)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The 802.1D user priority of a class: 6 is 802.11e's AC_VO, 4 AC_VI, 0 AC_BE, 2 AC_BK (IEEE 802.11-2020, table
/// 10-1). `pfifo_fast` has 6 in its first band, 4 and 0 in its second, 2 in its third.
pub fn user_priority(class: Class) -> u8 {
    match class {
        Class::Control => 6,
        Class::Urgent => 4,
        Class::Data => 0,
        Class::Background => 2,
    }
}

fn retry(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
