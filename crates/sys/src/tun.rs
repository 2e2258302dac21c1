//! TUN and TAP: a network interface whose other end is this program.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::error::{Error, NEEDS_NET_ADMIN, Result};
use crate::raw;

/// What passes through the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// IP packets.
    Tun,
    /// Ethernet frames.
    Tap,
}

/// An open TUN or TAP device that never waits. The interface goes away with it.
#[derive(Debug)]
pub struct Tun {
    fd: OwnedFd,
    name: String,
    /// Whether a header stands before each packet.
    header: bool,
}

/// Segments of TCP that travel as one packet: whoever has the packet may cut it, or let a card or another host do so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Joined {
    /// Which kind, as `virtio_net_hdr` has it: 1 TCP over IPv4, 4 over IPv6, and 0x80 with either if it carries CWR.
    pub kind: u8,
    /// Octets of payload of each segment but the last.
    pub segment: u16,
}

/// `struct virtio_net_hdr` (linux/virtio_net.h): flags, kind, length of the headers, segment, where the checksum begins and
/// where it goes from there.
const HEADER: usize = 10;
const NEEDS_CHECKSUM: u8 = 1;
/// Octets from the front of TCP's header to its checksum.
const TCP_CHECKSUM: u16 = 16;

impl Tun {
    /// Makes an interface called `name`; `%d` in it becomes the first free number. It is down at first.
    pub fn create(name: &str, kind: Kind) -> Result<Tun> {
        Tun::make(name, kind, false)
    }

    /// Makes a TUN interface whose host may hand over [`Joined`] packets, once [`join`](Self::join) has been asked for.
    pub fn create_joining(name: &str) -> Result<Tun> {
        Tun::make(name, Kind::Tun, true)
    }

    fn make(name: &str, kind: Kind, header: bool) -> Result<Tun> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let fd = rustix::fs::open("/dev/net/tun", flags, Mode::empty()).map_err(|error| {
            let error = Error::new("open /dev/net/tun", error);
            match error.os().raw_os_error() {
                Some(libc::ENOENT) => error.remedy("load the module: `modprobe tun`"),
                Some(libc::EACCES) => error.remedy(
                    "this user may not open it: run as root, or `chmod 666 /dev/net/tun` as most systems have it (a device \
                     needs CAP_NET_ADMIN all the same)",
                ),
                _ => error.needs(NEEDS_NET_ADMIN),
            }
        })?;
        let name =
            raw::attach_tun(fd.as_fd(), name, kind == Kind::Tap, header).map_err(|error| {
                let error = Error::new("create a TUN device", error).on(name);
                match error.os().raw_os_error() {
                    Some(libc::EBUSY) => error
                        .remedy("another program has this device; stop it or choose another name"),
                    _ => error.needs(NEEDS_NET_ADMIN),
                }
            })?;
        Ok(Tun { fd, name, header })
    }

    /// Whether the host may leave segments of TCP joined, and their checksums to us, from now on. Only for an interface of
    /// [`create_joining`](Self::create_joining).
    pub fn join(&self, joined: bool) -> Result<()> {
        let what = match joined && self.header {
            true => libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6,
            false => 0,
        };
        raw::set_tun_offload(self.fd.as_fd(), what)
            .map_err(|error| Error::new("let the host join segments", error).on(&self.name))
    }

    /// Like [`receive`](Self::receive), for an interface of [`create_joining`](Self::create_joining): `packet` must have 10 octets more
    /// than the longest packet, 65,546 at most. The packet stands at its front afterwards.
    pub fn receive_joined(&self, packet: &mut [u8]) -> Result<Option<(usize, Option<Joined>)>> {
        let Some(len) = self.receive(packet)? else {
            return Ok(None);
        };
        let Some(header) = packet.get(..len).and_then(<[u8]>::first_chunk::<HEADER>) else {
            return Ok(Some((0, None)));
        };
        let [flags, kind, _, _, s0, s1, start0, start1, place0, place1] = *header;
        let number = |a, b| u16::from_ne_bytes([a, b]);
        packet.copy_within(HEADER..len, 0);
        let len = len - HEADER;
        if kind != 0 {
            let segment = number(s0, s1);
            return Ok(Some((len, Some(Joined { kind, segment }))));
        }
        if flags & NEEDS_CHECKSUM != 0
            && let Some(packet) = packet.get_mut(..len)
        {
            complete(
                packet,
                number(start0, start1).into(),
                number(place0, place1).into(),
            );
        }
        Ok(Some((len, None)))
    }

    /// Like [`send`](Self::send), for an interface of [`create_joining`](Self::create_joining).
    pub fn send_joined(&self, packet: &[u8], joined: Option<Joined>) -> Result<bool> {
        let mut header = [0; HEADER];
        if let Some(joined) = joined {
            let Some((ip, all)) = lengths(packet) else {
                return Ok(true);
            };
            (header[0], header[1]) = (NEEDS_CHECKSUM, joined.kind);
            let numbers = [all, joined.segment, ip, TCP_CHECKSUM];
            for (place, number) in header[2..].chunks_exact_mut(2).zip(numbers) {
                place.copy_from_slice(&number.to_ne_bytes());
            }
        }
        let parts = [
            std::io::IoSlice::new(&header),
            std::io::IoSlice::new(packet),
        ];
        match rustix::io::writev(&self.fd, &parts) {
            Ok(_) => Ok(true),
            Err(Errno::AGAIN | Errno::INTR | Errno::NOBUFS) => Ok(false),
            // What the peer calls joined and the kernel does not take is dropped, as a router would.
            Err(Errno::INVAL) if joined.is_some() => Ok(true),
            Err(error) => Err(Error::new("write a packet", error).on(&self.name)),
        }
    }

    /// The interface's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The next packet that the host sent through the interface, written to the front of `packet`; `None` when
    /// there is none. What does not fit is cut off.
    pub fn receive(&self, packet: &mut [u8]) -> Result<Option<usize>> {
        match rustix::io::read(&self.fd, packet) {
            Ok(len) => Ok(Some(len)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(Error::new("read a packet", error).on(&self.name)),
        }
    }

    /// Gives a packet to the host as if it had arrived on the interface; false when the host has no room.
    pub fn send(&self, packet: &[u8]) -> Result<bool> {
        match rustix::io::write(&self.fd, packet) {
            Ok(_) => Ok(true),
            Err(Errno::AGAIN | Errno::INTR | Errno::NOBUFS) => Ok(false),
            Err(error) => Err(Error::new("write a packet", error).on(&self.name)),
        }
    }
}

/// Octets of IP's header, and of it and TCP's; `None` for what is not TCP.
fn lengths(packet: &[u8]) -> Option<(u16, u16)> {
    let (ip, protocol) = match packet.first()? {
        first if first >> 4 == 4 => (usize::from(first & 15) * 4, *packet.get(9)?),
        first if first >> 4 == 6 => (40, *packet.get(6)?),
        _ => return None,
    };
    let all = ip + usize::from(packet.get(ip + 12)? >> 4) * 4;
    (protocol == 6 && all <= packet.len()).then_some((ip as u16, all as u16))
}

/// Completes a checksum that the host has left to its card: the sum (RFC 1071) from `start` on, which holds that of
/// the addresses already, goes `place` octets behind `start`.
fn complete(packet: &mut [u8], start: usize, place: usize) {
    let words = packet.get(start..).unwrap_or_default().chunks(2);
    let mut sum: u64 = words
        .map(|word| {
            u64::from(u16::from_be_bytes([
                word[0],
                word.get(1).copied().unwrap_or(0),
            ]))
        })
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    // Zero means that there is none, to UDP; the other zero means the same to all.
    let check = match !(sum as u16) {
        0 => 0xffff,
        check => check,
    };
    if let Some(to) = packet.get_mut(start + place..start + place + 2) {
        to.copy_from_slice(&check.to_be_bytes());
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
