//! TUN and TAP devices: network interfaces whose other end is this program.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use chappe_wire::checksum;
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

/// Describes a packet of coalesced TCP segments or datagrams (TSO, USO, GRO), which must be segmented before it leaves on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Joined {
    /// The `gso_type` of `virtio_net_hdr`: 1 TCP over IPv4, 4 TCP over IPv6, 5 datagrams of UDP, plus 0x80 if a segment carries CWR.
    pub kind: u8,
    /// Octets of payload of each segment except the last.
    pub segment: u16,
}

/// What may pass an interface as one packet, both ways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Joins {
    /// Segments of a TCP connection.
    pub segments: bool,
    /// Datagrams of UDP (USO): Linux 6.2 and later.
    pub datagrams: bool,
}

/// What became of a packet that was given to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// The host has it.
    Taken,
    /// The host had no room.
    Full,
    /// The host takes no packet that is joined like this one. Its parts may pass one by one.
    Refused,
}

/// Octets of `struct virtio_net_hdr` (linux/virtio_net.h): flags, kind, length of the headers, segment size, start of the
/// checksum, and the offset of the checksum field from there.
const HEADER: usize = 10;
const NEEDS_CHECKSUM: u8 = 1;
/// Joined datagrams of UDP, over either IP (VIRTIO_NET_HDR_GSO_UDP_L4).
pub const DATAGRAMS: u8 = 5;
/// The protocol numbers of TCP and UDP, and the offsets of the checksum in their headers.
const TCP: (u8, u16) = (6, 16);
const UDP: (u8, u16) = (17, 6);
/// Octets of UDP's header.
const UDP_HEADER: usize = 8;
/// The host may pass joined datagrams of IPv4 and IPv6 (linux/if_tun.h, TUN_F_USO4 and TUN_F_USO6): the kernel takes both or none.
const USO: u32 = 0x20 | 0x40;
const TSO: u32 = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6;

impl Tun {
    /// Creates an interface `name`, in which `%d` becomes the first free number. It is down. Needs CAP_NET_ADMIN.
    pub fn create(name: &str, kind: Kind) -> Result<Tun> {
        Tun::make(name, kind, false)
    }

    /// Creates a TUN interface on which the host may pass [`Joined`] packets, once [`join`](Self::join) allows it. Where the kernel
    /// knows no headers that describe them, it is a plain one.
    pub fn create_joining(name: &str) -> Result<Tun> {
        match Tun::make(name, Kind::Tun, true) {
            Err(error) if error.os().raw_os_error() == Some(libc::EINVAL) => {
                Tun::make(name, Kind::Tun, false)
            }
            made => made,
        }
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
            true => TSO,
            false => 0,
        };
        raw::set_tun_offload(self.fd.as_fd(), what)
            .map_err(|error| Error::new("let the host join segments", error).on(&self.name))
    }

    /// Lets the host pass whatever this kernel can join: segments and datagrams, segments only, or nothing. Packets pass one by one
    /// where it refuses.
    pub fn join_all(&self) -> Joins {
        match self.header {
            true => agree(|what| raw::set_tun_offload(self.fd.as_fd(), what)),
            false => Joins::default(),
        }
    }

    /// Like [`receive`](Self::receive), for an interface created by [`create_joining`](Self::create_joining). `packet` needs
    /// 10 octets more than the longest packet, 65,546 in all. Checksums that the host left open are completed.
    pub fn receive_joined(&self, packet: &mut [u8]) -> Result<Option<(usize, Option<Joined>)>> {
        let Some(len) = self.receive(packet)? else {
            return Ok(None);
        };
        if !self.header {
            return Ok(Some((len, None)));
        }
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

    /// Like [`send`](Self::send), for an interface created by [`create_joining`](Self::create_joining). A joined packet that the host
    /// refuses is dropped, as a router would drop it: the peer's description of the segments is wrong.
    pub fn send_joined(&self, packet: &[u8], joined: Option<Joined>) -> Result<bool> {
        Ok(self.give(packet, joined)? != Given::Full)
    }

    /// Gives the host a packet, and says what became of it.
    pub fn give(&self, packet: &[u8], joined: Option<Joined>) -> Result<Given> {
        if !self.header {
            let refused = joined.is_some();
            return match !refused && self.send(packet)? {
                true => Ok(Given::Taken),
                false if refused => Ok(Given::Refused),
                false => Ok(Given::Full),
            };
        }
        let mut header = [0; HEADER];
        if let Some(joined) = joined {
            let Some((ip, all, checksum)) = lengths(packet, joined.kind) else {
                return Ok(Given::Refused);
            };
            (header[0], header[1]) = (NEEDS_CHECKSUM, joined.kind);
            let numbers = [all, joined.segment, ip, checksum];
            for (place, number) in header[2..].chunks_exact_mut(2).zip(numbers) {
                place.copy_from_slice(&number.to_ne_bytes());
            }
        }
        let parts = [
            std::io::IoSlice::new(&header),
            std::io::IoSlice::new(packet),
        ];
        match rustix::io::writev(&self.fd, &parts) {
            Ok(_) => Ok(Given::Taken),
            Err(Errno::AGAIN | Errno::INTR | Errno::NOBUFS) => Ok(Given::Full),
            Err(Errno::INVAL) if joined.is_some() => Ok(Given::Refused),
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

/// The offloads that a kernel takes, the most first.
fn agree(mut set: impl FnMut(u32) -> std::io::Result<()>) -> Joins {
    let all = Joins {
        segments: true,
        datagrams: true,
    };
    let segments = Joins {
        datagrams: false,
        ..all
    };
    let offers = [(TSO | USO, all), (TSO, segments), (0, Joins::default())];
    let taken = offers.into_iter().find(|(what, _)| set(*what).is_ok());
    taken.map_or(Joins::default(), |(_, joins)| joins)
}

/// Octets of the IP header, and of IP and the next header together, and the offset of the checksum there; `None` if the packet is not
/// of a kind's protocol.
fn lengths(packet: &[u8], kind: u8) -> Option<(u16, u16, u16)> {
    let (ip, protocol) = match packet.first()? {
        first if first >> 4 == 4 => (usize::from(first & 15) * 4, *packet.get(9)?),
        first if first >> 4 == 6 => (40, *packet.get(6)?),
        _ => return None,
    };
    let datagrams = kind == DATAGRAMS;
    let (number, checksum) = if datagrams { UDP } else { TCP };
    let next = match datagrams {
        true => UDP_HEADER,
        false => usize::from(packet.get(ip + 12)? >> 4) * 4,
    };
    let all = ip + next;
    let fits = protocol == number && all <= packet.len();
    fits.then_some((ip as u16, all as u16, checksum))
}

/// Completes a checksum that the host left to its card. The host has put the sum of the pseudo-header into the field, so
/// the sum from `start` on (RFC 1071) is the whole checksum. The field is at `start + place`.
fn complete(packet: &mut [u8], start: usize, place: usize) {
    let sum = checksum::sum(packet.get(start..).unwrap_or_default());
    // In UDP, zero means no checksum (RFC 768). 0xffff is the same number in one's complement.
    let check = match !sum {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a kernel that refuses an offload gets less, and packets one by one at last. Method: kernels that know none, some or all of
    /// the flags, and refuse a set with an unknown one, as Linux does.
    #[test]
    fn a_kernel_that_refuses_gets_less() {
        let knows = |known: u32| {
            let mut asked = Vec::new();
            let joins = agree(|what| {
                asked.push(what);
                match what & !known {
                    0 => Ok(()),
                    _ => Err(std::io::Error::from_raw_os_error(libc::EINVAL)),
                }
            });
            (joins.segments, joins.datagrams, asked.len())
        };
        assert_eq!(knows(TSO | USO), (true, true, 1));
        assert_eq!(knows(TSO | 0x20), (true, false, 2));
        assert_eq!(knows(TSO), (true, false, 2));
        assert_eq!(knows(libc::TUN_F_CSUM), (false, false, 3));
        let never = agree(|_| Err(std::io::Error::from_raw_os_error(libc::ENOTTY)));
        assert_eq!(never, Joins::default());
    }

    /// Goal: what the host left open is right afterwards. Method: datagrams of odd and even length, with the sum of the pseudo header in
    /// the field, as the host has it.
    #[test]
    fn open_checksums_are_completed() {
        for len in [0, 1, 7, 1200, 1201] {
            let mut packet = vec![0x45; 28];
            packet.extend((0..len).map(|octet| octet as u8));
            let pseudo: u16 = 0x1234;
            packet[26..28].copy_from_slice(&pseudo.to_be_bytes());
            let right = !checksum::sum(&packet[20..]);
            complete(&mut packet, 20, 6);
            assert_eq!(packet[26..28], right.to_be_bytes(), "{len}");
            let whole = checksum::sum(&packet[20..]);
            assert_eq!(checksum::fold([whole, pseudo]), 0xffff, "{len}");
        }
    }
}
