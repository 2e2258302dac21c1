//! Sockets that carry frames over UDP or Ethernet.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chappe_core::Class;

use crate::error::{Error, Result};
use crate::frames::{BATCH, Endpoint, Run};
use crate::raw;

/// Requested size of the kernel's receive queue in octets: some 40 ms of a 1 Gbit/s network.
const RECEIVE_BUFFER: i32 = 4 << 20;

/// The EtherType of an 802.1Q tag.
pub const VLAN: u16 = 0x8100;

/// The memory of a socket (asm-generic/socket.h), since Linux 4.12.
const SO_MEMINFO: i32 = 55;

/// A non-blocking UDP or packet socket, created by [`udp::open`](crate::udp::open), [`udp::bind`](crate::udp::bind) or
/// [`packet::open`](crate::packet::open).
#[derive(Debug)]
pub struct Socket {
    pub(crate) fd: OwnedFd,
    pub(crate) kind: Kind,
    pub(crate) interface: String,
    /// EtherType and interface number of a packet socket.
    pub(crate) link: (u16, u32),
    /// The class that the socket's options are set to.
    pub(crate) class: Option<Class>,
    /// Whether frames carry their priority in a tag.
    pub(crate) tags: bool,
}

/// The layer below, which decides how a class becomes a priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Ipv4,
    Ipv6,
    Packet,
}

/// The frames of one call of [`Socket::receive`]. The caller keeps and reuses the buffers.
#[derive(Debug)]
pub struct Received {
    buffer: Vec<u8>,
    slot: usize,
    heard: Vec<Option<raw::Heard>>,
    /// When they were read, as time since 1970.
    read_at: Duration,
}

/// The longest age of a frame that is believed: a queue of [`RECEIVE_BUFFER`] octets holds little more at some Mbit/s. What looks older
/// arrived before the system's clock was set.
const AGE_MOST: Duration = Duration::from_secs(2);

impl Received {
    /// Buffers for [`BATCH`] frames of up to `frame_max` octets.
    pub fn new(frame_max: usize) -> Received {
        Received {
            buffer: vec![0; BATCH * frame_max.max(1)],
            slot: frame_max.max(1),
            heard: Vec::with_capacity(BATCH),
            read_at: Duration::ZERO,
        }
    }

    /// Sender and octets of the frames of the latest call, in order of arrival; `None` for a frame longer than
    /// `frame_max`.
    pub fn iter(&self) -> impl Iterator<Item = Option<(Endpoint, &[u8])>> {
        let aged = self.iter_aged();
        aged.map(|heard| heard.map(|(from, octets, _)| (from, octets)))
    }

    /// The octets of the frames of the latest call with the priority of the tag that the kernel has removed from each, if there was one
    /// ([`Socket::read_tags`]).
    pub fn iter_tagged(&self) -> impl Iterator<Item = Option<(&[u8], Option<u8>)>> {
        let heard = self.heard.iter().zip(self.buffer.chunks_exact(self.slot));
        heard.map(|(heard, slot)| {
            let heard = (*heard)?;
            let priority = heard.tag.map(|tag| (tag >> 13) as u8);
            Some((slot.get(..heard.len)?, priority))
        })
    }

    /// The same with the time for which each frame had waited to be read: nothing unless the socket has stamps
    /// ([`Socket::stamp_received`]). Of frames that the kernel has coalesced, the age of one.
    pub fn iter_aged(&self) -> impl Iterator<Item = Option<(Endpoint, &[u8], Duration)>> {
        let slots = self.buffer.chunks_exact(self.slot);
        self.heard.iter().zip(slots).flat_map(|(heard, slot)| {
            let (len, segment) = heard.map_or((0, 0), |heard| (heard.len, heard.segment));
            let octets = slot.get(..len).unwrap_or_default();
            // An empty frame and a frame that did not fit are one entry each.
            let count = len.div_ceil(segment.max(1)).max(1);
            let age = heard.and_then(|heard| self.read_at.checked_sub(heard.stamp?));
            let age = age.filter(|age| *age <= AGE_MOST).unwrap_or_default();
            (0..count).map(move |place| {
                let from = (*heard)?.from;
                let rest = octets.get(place * segment..)?;
                Some((from, rest.get(..segment).unwrap_or(rest), age))
            })
        })
    }
}

impl Socket {
    /// Receives up to [`BATCH`] frames without waiting; returns how many, 0 if there are none.
    pub fn receive(&self, into: &mut Received) -> Result<usize> {
        into.heard.clear();
        let (slot, heard) = (into.slot, &mut into.heard);
        match raw::receive_many(self.fd.as_fd(), &mut into.buffer, slot, heard) {
            Ok(()) => {
                let read_at = SystemTime::now().duration_since(UNIX_EPOCH);
                into.read_at = read_at.unwrap_or_default();
                Ok(into.heard.len())
            }
            Err(error) if retry(&error) => Ok(0),
            Err(error) => Err(self.failed("receive", error)),
        }
    }

    /// Sends the first [`BATCH`] of `frames` without waiting; returns how many the kernel took, 0 if its queue is full. An
    /// error concerns the first frame: none was taken.
    pub fn send<'a>(&self, frames: impl Iterator<Item = (&'a [u8], Endpoint)>) -> Result<usize> {
        self.send_runs(frames.map(|(octets, to)| Run {
            octets,
            segment: octets.len(),
            to,
        }))
    }

    /// Like [`send`](Self::send), for the first [`BATCH`] of `runs`. An error about a run of several datagrams usually means
    /// that this kernel or interface cannot segment them: send them one by one.
    pub fn send_runs<'a>(&self, runs: impl Iterator<Item = Run<'a>>) -> Result<usize> {
        let runs = runs.map(|run| Run {
            to: self.written(run.to),
            ..run
        });
        let tag = self.tag();
        let sent = match &tag {
            Some(tag) => raw::send_runs(self.fd.as_fd(), runs, (VLAN, self.link.1), tag),
            None => raw::send_runs(self.fd.as_fd(), runs, self.link, &[]),
        };
        match sent {
            Ok(sent) => Ok(sent),
            Err(error) if retry(&error) => Ok(0),
            Err(error) => Err(self.failed("send", error)),
        }
    }

    /// What stands between the EtherType of a tag and the payload: priority and VLAN 0, and the payload's EtherType. `None` for frames
    /// of priority 0, which need no tag.
    fn tag(&self) -> Option<[u8; 4]> {
        let priority = user_priority(self.class.filter(|_| self.tags)?);
        let [high, low] = self.link.0.to_be_bytes();
        (priority > 0).then_some([priority << 5, 0, high, low])
    }

    /// Later frames carry the priority of their class in an 802.1Q tag of VLAN 0 as well: for an interface that leads to a radio and is
    /// none, since SO_PRIORITY does not leave the host. The tag's four octets are no part of the MTU, and Linux removes it on arrival.
    /// Does nothing for UDP, whose traffic class says the same, nor for whole frames.
    pub fn tag_priorities(&mut self) {
        self.tags = self.kind == Kind::Packet;
    }

    /// An address as this socket takes it: those of IPv4 as mapped ones, if it has both families.
    fn written(&self, to: Endpoint) -> Endpoint {
        match (self.kind, to) {
            (Kind::Ipv6, Endpoint::Udp(SocketAddr::V4(to))) => {
                Endpoint::Udp((to.ip().to_ipv6_mapped(), to.port()).into())
            }
            (_, to) => to,
        }
    }

    /// Asks the kernel to coalesce datagrams of one sender (UDP_GRO). [`Received`] separates them again, and needs slots of
    /// 65,536 octets then. Returns false if the kernel cannot, which changes nothing else.
    pub fn join_received(&self) -> bool {
        let on = 1i32.to_ne_bytes();
        self.kind != Kind::Packet
            && raw::set_option(self.fd.as_fd(), libc::SOL_UDP, libc::UDP_GRO, &on).is_ok()
    }

    /// Asks the kernel to stamp frames on arrival (SO_TIMESTAMPNS), for [`Received::iter_aged`]. Returns false if it cannot, which
    /// changes nothing else.
    pub fn stamp_received(&self) -> bool {
        let on = 1i32.to_ne_bytes();
        let name = libc::SO_TIMESTAMPNS;
        raw::set_option(self.fd.as_fd(), libc::SOL_SOCKET, name, &on).is_ok()
    }

    /// Asks the kernel for the 802.1Q tags that it removes from frames before a packet socket reads them (PACKET_AUXDATA), for
    /// [`Received::iter_tagged`]. Returns false if it cannot, which changes nothing else.
    pub fn read_tags(&self) -> bool {
        let on = 1i32.to_ne_bytes();
        self.kind == Kind::Packet
            && raw::set_option(self.fd.as_fd(), libc::SOL_PACKET, libc::PACKET_AUXDATA, &on).is_ok()
    }

    /// The number of frames that a full receive queue has lost since the last call. Always 0 for UDP sockets, whose losses
    /// the kernel counts elsewhere.
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

    /// The number of frames that a full receive queue has lost since the socket was opened, modulo 2^32. `None` if the kernel
    /// does not say (before Linux 4.12).
    pub fn lost_in_queue(&self) -> Option<u32> {
        // Nine numbers (linux/sock_diag.h, SK_MEMINFO_VARS); the last is SK_MEMINFO_DROPS.
        const DROPS: usize = 8;
        let mut numbers = [0; 4 * (DROPS + 1)];
        let name = SO_MEMINFO;
        let read = raw::get_option(self.fd.as_fd(), libc::SOL_SOCKET, name, &mut numbers);
        let whole = read.is_ok_and(|read| read == numbers.len());
        let drops = numbers.last_chunk().filter(|_| whole);
        drops.map(|drops| u32::from_ne_bytes(*drops))
    }

    /// Sets the priority of later frames to that of `class`.
    ///
    /// 802.11 takes the user priority from SO_PRIORITY 256 to 263 (packet sockets) or from the top three bits of the
    /// traffic class (IP). The queueing discipline takes SO_PRIORITY modulo 16. The values of [`user_priority`] have the
    /// same order in all three.
    pub fn set_class(&mut self, class: Class) -> Result<()> {
        if self.class == Some(class) {
            return Ok(());
        }
        let up = i32::from(user_priority(class));
        // The traffic class first: the kernel derives a priority from it, which the next option overrides.
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

    /// Requests a receive queue that holds some bursts.
    pub(crate) fn widen(&self) {
        let size = RECEIVE_BUFFER.to_ne_bytes();
        for name in [libc::SO_RCVBUFFORCE, libc::SO_RCVBUF] {
            // The first needs CAP_NET_ADMIN; the second is capped at net.core.rmem_max. Either is good enough.
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

/// The class whose access category sends frames of an 802.1D user priority, in the same table: 1 and 2 have AC_BK, 0 and 3 AC_BE, 4 and 5
/// AC_VI, 6 and 7 AC_VO. Higher numbers, which the table does not have, count as 7.
pub fn class_of(user_priority: u8) -> Class {
    match user_priority {
        1 | 2 => Class::Background,
        0 | 3 => Class::Data,
        4 | 5 => Class::Urgent,
        _ => Class::Control,
    }
}

fn retry(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, UdpSocket};
    use std::time::{Duration, Instant};

    /// Goal: a frame's age is the time since it arrived, also beside the size of coalesced ones, and nothing without stamps.
    #[test]
    fn frames_have_the_age_since_they_arrived() {
        for stamped in [true, false] {
            let socket = crate::udp::bind("127.0.0.1:0".parse().unwrap()).unwrap();
            let address = rustix::net::getsockname(&socket.fd).unwrap();
            let address = SocketAddr::try_from(address).unwrap();
            assert!(!stamped || socket.stamp_received() && socket.join_received());
            let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
            let mut received = super::Received::new(1 << 16);
            let begun = Instant::now();
            // The kernel starts to stamp frames a moment after it is asked, if no other socket had asked.
            while stamped && begun.elapsed() < Duration::from_secs(5) {
                sender.send_to(&[7; 10], address).unwrap();
                std::thread::sleep(Duration::from_millis(5));
                assert_eq!(socket.receive(&mut received).unwrap(), 1);
                let (_, _, age) = received.iter_aged().next().unwrap().unwrap();
                if age >= Duration::from_millis(4) {
                    break;
                }
            }
            let earliest = Instant::now();
            sender.send_to(&[7; 100], address).unwrap();
            let latest = Instant::now();
            std::thread::sleep(Duration::from_millis(30));
            let least = latest.elapsed();
            assert_eq!(socket.receive(&mut received).unwrap(), 1);
            let most = earliest.elapsed();
            let (_, octets, age) = received.iter_aged().next().unwrap().unwrap();
            assert_eq!(octets.len(), 100);
            // The system's clock may be slewed meanwhile.
            let slewed = Duration::from_millis(1);
            let expected = match stamped {
                true => least.saturating_sub(slewed)..=most + slewed,
                false => Duration::ZERO..=Duration::ZERO,
            };
            assert!(expected.contains(&age), "{age:?} {expected:?}");
        }
    }

    /// Goal: the kernel's count of frames lost in a full receive queue is read right. Method: more datagrams than any queue holds,
    /// and the difference to those that can be read.
    #[test]
    fn frames_lost_in_the_queue_are_counted() {
        const SENT: u32 = 40_000;
        let socket = crate::udp::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = rustix::net::getsockname(&socket.fd).unwrap();
        let address = SocketAddr::try_from(address).unwrap();
        assert_eq!(socket.lost_in_queue(), Some(0));
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..SENT {
            sender.send_to(&[7; 1000], address).unwrap();
        }
        let mut received = super::Received::new(1000);
        let mut read = 0;
        loop {
            match socket.receive(&mut received).unwrap() {
                0 => break,
                count => read += count as u32,
            }
        }
        assert!(read < SENT);
        assert_eq!(socket.lost_in_queue(), Some(SENT - read));
    }
}
