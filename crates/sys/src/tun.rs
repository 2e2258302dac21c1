//! TUN and TAP devices: network interfaces whose other end is this program.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::error::{Error, NEEDS_NET_ADMIN, Result};
use crate::raw;

/// The kind of packets that pass through the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// IP packets without a link-layer header.
    Tun,
    /// Ethernet frames with their header.
    Tap,
}

/// An open, non-blocking TUN or TAP device. Dropping it removes the interface.
#[derive(Debug)]
pub struct Tun {
    fd: OwnedFd,
    name: String,
    /// Whether each packet has a `virtio_net_hdr` before it.
    header: bool,
}

/// Describes a packet of coalesced TCP segments (TSO, GRO), which must be segmented before it leaves on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Joined {
    /// The `gso_type` of `virtio_net_hdr`: 1 TCP over IPv4, 4 TCP over IPv6, plus 0x80 if a segment carries CWR.
    pub kind: u8,
    /// Octets of payload of each segment except the last.
    pub segment: u16,
}

/// Octets of `struct virtio_net_hdr` (linux/virtio_net.h): flags, kind, length of the headers, segment size, start of the
/// checksum, and the offset of the checksum field from there.
const HEADER: usize = 10;
const NEEDS_CHECKSUM: u8 = 1;
/// Offset of the checksum field in the TCP header.
const TCP_CHECKSUM: u16 = 16;

impl Tun {
    /// Creates an interface `name`, in which `%d` becomes the first free number. It is down. Needs CAP_NET_ADMIN.
    pub fn create(name: &str, kind: Kind) -> Result<Tun> {
        Tun::make(name, kind, false)
    }

    /// Creates a TUN interface on which the host may pass [`Joined`] packets, once [`join`](Self::join) allows it.
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
                    "run as root, or allow this user to open it: `chmod 666 /dev/net/tun`, the default of most systems \
                    (creating a device still needs CAP_NET_ADMIN)",
                ),
                _ => error.needs(NEEDS_NET_ADMIN),
            }
        })?;
        let name =
            raw::attach_tun(fd.as_fd(), name, kind == Kind::Tap, header).map_err(|error| {
                let error = Error::new("create a TUN device", error).on(name);
                match error.os().raw_os_error() {
                    Some(libc::EBUSY) => error.remedy(
                        "another program uses this device: stop it, or choose another name",
                    ),
                    _ => error.needs(NEEDS_NET_ADMIN),
                }
            })?;
        Ok(Tun { fd, name, header })
    }

    /// Sets whether the host may pass coalesced TCP segments and unfinished checksums from now on. Only for an interface
    /// created by [`create_joining`](Self::create_joining).
    pub fn join(&self, joined: bool) -> Result<()> {
        let what = match joined && self.header {
            true => libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6,
            false => 0,
        };
        raw::set_tun_offload(self.fd.as_fd(), what)
            .map_err(|error| Error::new("let the host join segments", error).on(&self.name))
    }

    /// Like [`receive`](Self::receive), for an interface created by [`create_joining`](Self::create_joining). `packet` needs
    /// 10 octets more than the longest packet, 65,546 in all. Checksums that the host left open are completed.
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

    /// Like [`send`](Self::send), for an interface created by [`create_joining`](Self::create_joining).
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
            // The peer's description of the segments is wrong. The packet is dropped, as a router would drop it.
            Err(Errno::INVAL) if joined.is_some() => Ok(true),
            Err(error) => Err(Error::new("write a packet", error).on(&self.name)),
        }
    }

    /// The name of the interface.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads the next packet that the host sent through the interface into `packet`; `None` if there is none. A packet that
    /// does not fit is truncated.
    pub fn receive(&self, packet: &mut [u8]) -> Result<Option<usize>> {
        match rustix::io::read(&self.fd, packet) {
            Ok(len) => Ok(Some(len)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(Error::new("read a packet", error).on(&self.name)),
        }
    }

    /// Passes a packet to the host as if it had arrived on the interface. Returns false if the host has no room.
    pub fn send(&self, packet: &[u8]) -> Result<bool> {
        match rustix::io::write(&self.fd, packet) {
            Ok(_) => Ok(true),
            Err(Errno::AGAIN | Errno::INTR | Errno::NOBUFS) => Ok(false),
            Err(error) => Err(Error::new("write a packet", error).on(&self.name)),
        }
    }
}

/// Octets of the IP header, and of IP and TCP headers together; `None` if the packet is not TCP.
fn lengths(packet: &[u8]) -> Option<(u16, u16)> {
    let (ip, protocol) = match packet.first()? {
        first if first >> 4 == 4 => (usize::from(first & 15) * 4, *packet.get(9)?),
        first if first >> 4 == 6 => (40, *packet.get(6)?),
        _ => return None,
    };
    let all = ip + usize::from(packet.get(ip + 12)? >> 4) * 4;
    (protocol == 6 && all <= packet.len()).then_some((ip as u16, all as u16))
}

/// Completes a checksum that the host left to its card. The host has put the sum of the pseudo-header into the field, so
/// the sum from `start` on (RFC 1071) is the whole checksum. The field is at `start + place`.
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
    // In UDP, zero means no checksum (RFC 768). 0xffff is the same number in one's complement.
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
