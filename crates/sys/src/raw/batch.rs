//! Many frames in one system call.

use std::io;
use std::mem;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;
use std::time::Duration;

use super::check;
use super::options::link_address;
use crate::frames::{BATCH, Endpoint, Run};

/// The C libraries disagree about the type: `i32` in glibc, `u32` in musl.
#[allow(clippy::unnecessary_cast, reason = "of one type only in one library")]
const FLAGS: Flags = libc::MSG_DONTWAIT as Flags;
#[cfg(target_env = "musl")]
type Flags = u32;
#[cfg(not(target_env = "musl"))]
type Flags = i32;

/// Room for control messages in octets: the segment size (4), or what is known of a frame (20), a stamp (16) and the headers.
const CONTROL: usize = 80;

/// Room for control messages, aligned as their headers must be.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Control([u8; CONTROL]);

/// The contents of one receive slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heard {
    /// Octets in all, and of each datagram but the last; equal if the kernel has coalesced nothing.
    pub len: usize,
    pub segment: usize,
    pub from: Endpoint,
    /// When it arrived, as time since 1970, if the socket has stamps.
    pub stamp: Option<Duration>,
    /// The control field of the 802.1Q tag that the kernel has removed, if the socket asks for it.
    pub tag: Option<u16>,
}

/// What control messages say of a frame.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    /// The size of datagrams that the kernel has coalesced (udp(7), UDP_GRO).
    segment: Option<usize>,
    /// When the frame arrived (socket(7), SO_TIMESTAMPNS).
    stamp: Option<Duration>,
    /// The control field of a tag (packet(7), PACKET_AUXDATA).
    tag: Option<u16>,
}

/// Receives up to [`BATCH`] frames without waiting. Frame `i` goes to `buffer[i * slot..]`. `heard` gets its length
/// and sender for each, `None` for one that did not fit or whose sender is of no known kind.
pub(crate) fn receive_many(
    fd: BorrowedFd<'_>,
    buffer: &mut [u8],
    slot: usize,
    heard: &mut Vec<Option<Heard>>,
) -> io::Result<()> {
    // SAFETY: all-zero octets are a valid value of these C structs (null pointers, zero lengths).
    let mut names: [libc::sockaddr_storage; BATCH] = unsafe { mem::zeroed() };
    // SAFETY: as above.
    let mut parts: [libc::iovec; BATCH] = unsafe { mem::zeroed() };
    // SAFETY: as above.
    let mut headers: [libc::mmsghdr; BATCH] = unsafe { mem::zeroed() };
    let mut controls = [Control([0; CONTROL]); BATCH];
    let mut count = 0;
    for (i, room) in buffer.chunks_exact_mut(slot.max(1)).take(BATCH).enumerate() {
        parts[i] = libc::iovec {
            iov_base: room.as_mut_ptr().cast(),
            iov_len: room.len(),
        };
        headers[i].msg_hdr.msg_name = (&raw mut names[i]).cast();
        headers[i].msg_hdr.msg_namelen = mem::size_of::<libc::sockaddr_storage>() as u32;
        headers[i].msg_hdr.msg_iov = &raw mut parts[i];
        headers[i].msg_hdr.msg_iovlen = 1;
        headers[i].msg_hdr.msg_control = (&raw mut controls[i]).cast();
        headers[i].msg_hdr.msg_controllen = CONTROL as _;
        count = i + 1;
    }
    // SAFETY: the first `count` headers point to one part, one name and one room for control messages each, all of
    // which outlive the call; the parts cover disjoint pieces of `buffer`, which is borrowed mutably.
    let result = unsafe {
        let first = headers.as_mut_ptr();
        libc::recvmmsg(fd.as_raw_fd(), first, count as u32, FLAGS, ptr::null_mut())
    };
    let received = check(result)? as usize;
    for (header, name) in headers.iter().zip(&names).take(received) {
        let whole = header.msg_hdr.msg_flags & libc::MSG_TRUNC == 0;
        let from = endpoint(name).filter(|_| whole);
        let len = header.msg_len as usize;
        let told = control(&header.msg_hdr);
        let segment = told.segment.unwrap_or(len);
        heard.push(from.map(|from| Heard {
            len,
            segment,
            from,
            stamp: told.stamp,
            tag: told.tag,
        }));
    }
    Ok(())
}

/// What the kernel says of a frame besides its sender.
fn control(header: &libc::msghdr) -> Told {
    let mut told = Told::default();
    // SAFETY: the header is one that recvmmsg has filled: msg_control points to msg_controllen octets of whole control
    // messages in a room that is still there; CMSG_FIRSTHDR gives the first of them or null.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(header) };
    // SAFETY: not null, so a whole control message of that room.
    while let Some(message) = unsafe { next.as_ref() } {
        match (message.cmsg_level, message.cmsg_type) {
            (libc::SOL_UDP, libc::UDP_GRO) => {
                let size: Option<libc::c_int> = value(message);
                let size = size.and_then(|size| usize::try_from(size).ok());
                told.segment = size.filter(|&size| size > 0);
            }
            (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS) => {
                // struct timespec, whose fields have 32 bits with some kernels and libraries.
                let short = || value(message).map(|time: [i32; 2]| time.map(i64::from));
                let time: Option<[i64; 2]> = value(message).or_else(short);
                told.stamp = time.and_then(|[seconds, nanos]| {
                    let seconds = u64::try_from(seconds).ok()?;
                    Some(Duration::new(seconds, u32::try_from(nanos).ok()?))
                });
            }
            (libc::SOL_PACKET, libc::PACKET_AUXDATA) => {
                // struct tpacket_auxdata: status, two lengths, and four short fields of which the third is the tag's.
                let words: Option<[u32; 3]> = value(message);
                let fields: Option<[u16; 10]> = value(message);
                let valid = words.is_some_and(|[status, ..]| status & VLAN_VALID != 0);
                told.tag = fields.filter(|_| valid).map(|fields| fields[8]);
            }
            _ => {}
        }
        // SAFETY: as for the first; the next message or null.
        next = unsafe { libc::CMSG_NXTHDR(header, message) };
    }
    told
}

/// TP_STATUS_VLAN_VALID (linux/if_packet.h): the frame had a tag.
const VLAN_VALID: u32 = 1 << 4;

/// The value of a control message, if it is long enough for one.
#[allow(clippy::unnecessary_cast, reason = "the length is `u32` in musl")]
fn value<T: Copy>(message: &libc::cmsghdr) -> Option<T> {
    // SAFETY: this only computes a length.
    let room = unsafe { libc::CMSG_LEN(mem::size_of::<T>() as u32) } as usize;
    if (message.cmsg_len as usize) < room {
        return None;
    }
    // SAFETY: the message is long enough for the value, which may stand at any address, and callers ask for integers only.
    Some(unsafe { ptr::read_unaligned(libc::CMSG_DATA(message).cast::<T>()) })
}

/// Sends up to [`BATCH`] runs without waiting and returns how many the kernel took. A run of several datagrams passes its layers
/// as one and is cut behind them (udp(7), UDP_SEGMENT). `head` stands before the octets of each run.
pub(crate) fn send_runs<'a>(
    fd: BorrowedFd<'_>,
    runs: impl Iterator<Item = Run<'a>>,
    link: (u16, u32),
    head: &[u8],
) -> io::Result<usize> {
    // SAFETY: all-zero octets are a valid value of these C structs (null pointers, zero lengths).
    let mut names: [libc::sockaddr_storage; BATCH] = unsafe { mem::zeroed() };
    // SAFETY: as above.
    let mut parts: [[libc::iovec; 2]; BATCH] = unsafe { mem::zeroed() };
    // SAFETY: as above.
    let mut headers: [libc::mmsghdr; BATCH] = unsafe { mem::zeroed() };
    let mut controls = [Control([0; CONTROL]); BATCH];
    let mut count = 0;
    for (i, run) in runs.take(BATCH).enumerate() {
        parts[i] = [head, run.octets].map(|octets| libc::iovec {
            iov_base: octets.as_ptr().cast_mut().cast(),
            iov_len: octets.len(),
        });
        let header = &mut headers[i].msg_hdr;
        header.msg_namelen = write_name(&mut names[i], run.to, link);
        header.msg_name = (&raw mut names[i]).cast();
        // Most frames have no head, and the kernel checks each part.
        let written = &mut parts[i][usize::from(head.is_empty())..];
        header.msg_iov = written.as_mut_ptr();
        header.msg_iovlen = written.len() as _;
        if run.octets.len() > run.segment {
            // A longer one than any datagram is refused by the kernel.
            let size = u16::try_from(run.segment).unwrap_or(u16::MAX);
            cut(header, &mut controls[i], size);
        }
        count = i + 1;
    }
    // SAFETY: the first `count` headers point to two parts, one name and maybe one room with a control message each, all of
    // which outlive the call; the kernel only reads them and the frames.
    let result = unsafe {
        let first = headers.as_mut_ptr();
        libc::sendmmsg(fd.as_raw_fd(), first, count as u32, FLAGS)
    };
    check(result).map(|sent| sent as usize)
}

/// Asks for datagrams of `size` octets each, by a control message in a room that must outlive the header's use.
fn cut(header: &mut libc::msghdr, control: &mut Control, size: u16) {
    // SAFETY: these only compute lengths.
    let (space, len) = unsafe { (libc::CMSG_SPACE(2), libc::CMSG_LEN(2)) };
    header.msg_control = ptr::from_mut(control).cast();
    header.msg_controllen = space as _;
    // SAFETY: the room is aligned for a control message's header and longer than `space`, so the first header lies in it
    // whole, with two octets behind it.
    unsafe {
        let first = libc::CMSG_FIRSTHDR(ptr::from_ref(header));
        (*first).cmsg_level = libc::SOL_UDP;
        (*first).cmsg_type = libc::UDP_SEGMENT;
        (*first).cmsg_len = len as _;
        ptr::write_unaligned(libc::CMSG_DATA(first).cast::<u16>(), size);
    }
}

/// Writes a socket address of the endpoint's kind and returns its length.
fn write_name(
    name: &mut libc::sockaddr_storage,
    to: Endpoint,
    (ether_type, index): (u16, u32),
) -> u32 {
    fn put<T>(name: &mut libc::sockaddr_storage, value: T) -> u32 {
        const { assert!(mem::size_of::<T>() <= mem::size_of::<libc::sockaddr_storage>()) };
        // SAFETY: sockaddr_storage is made to hold any socket address: large enough (checked above) and aligned.
        unsafe { ptr::write(ptr::from_mut(name).cast::<T>(), value) };
        mem::size_of::<T>() as u32
    }
    match to {
        Endpoint::Ethernet(octets) => put(name, link_address(ether_type, index, Some(octets))),
        Endpoint::Udp(SocketAddr::V4(to)) => put(
            name,
            libc::sockaddr_in {
                sin_family: libc::AF_INET as u16,
                sin_port: to.port().to_be(),
                sin_addr: libc::in_addr {
                    s_addr: u32::from_ne_bytes(to.ip().octets()),
                },
                sin_zero: [0; 8],
            },
        ),
        Endpoint::Udp(SocketAddr::V6(to)) => put(
            name,
            libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as u16,
                sin6_port: to.port().to_be(),
                sin6_flowinfo: to.flowinfo(),
                sin6_addr: libc::in6_addr {
                    s6_addr: to.ip().octets(),
                },
                sin6_scope_id: to.scope_id(),
            },
        ),
    }
}

/// Reads a socket address that the kernel wrote.
fn endpoint(name: &libc::sockaddr_storage) -> Option<Endpoint> {
    fn get<T: Copy>(name: &libc::sockaddr_storage) -> T {
        const { assert!(mem::size_of::<T>() <= mem::size_of::<libc::sockaddr_storage>()) };
        // SAFETY: the storage is initialised, at least as large as any socket address and aligned for all.
        unsafe { *ptr::from_ref(name).cast::<T>() }
    }
    match i32::from(name.ss_family) {
        libc::AF_INET => {
            let from: libc::sockaddr_in = get(name);
            let ip = Ipv4Addr::from(from.sin_addr.s_addr.to_ne_bytes());
            let from = SocketAddrV4::new(ip, u16::from_be(from.sin_port));
            Some(Endpoint::Udp(SocketAddr::V4(from)))
        }
        libc::AF_INET6 => {
            let from: libc::sockaddr_in6 = get(name);
            let ip = Ipv6Addr::from(from.sin6_addr.s6_addr);
            let (port, scope) = (u16::from_be(from.sin6_port), from.sin6_scope_id);
            // A socket of both families shows IPv4 hosts as mapped addresses.
            Some(Endpoint::Udp(match ip.to_ipv4_mapped() {
                Some(ip) => SocketAddr::V4(SocketAddrV4::new(ip, port)),
                None => SocketAddr::V6(SocketAddrV6::new(ip, port, from.sin6_flowinfo, scope)),
            }))
        }
        libc::AF_PACKET => {
            let from: libc::sockaddr_ll = get(name);
            let [a, b, c, d, e, f, ..] = from.sll_addr;
            (from.sll_halen == 6).then_some(Endpoint::Ethernet([a, b, c, d, e, f]))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn socket_addresses_round_trip() {
        let v4 = "192.0.2.7:4711".parse().map(Endpoint::Udp);
        let v6 = SocketAddrV6::new("fe80::1".parse().unwrap(), 4711, 0, 3);
        let all = [
            v4.unwrap(),
            Endpoint::Udp(v6.into()),
            Endpoint::Ethernet([2, 0, 0, 0, 1, 7]),
        ];
        for to in all {
            // SAFETY: all-zero octets are a valid sockaddr_storage.
            let mut name = unsafe { mem::zeroed() };
            assert!(write_name(&mut name, to, (0x88b5, 1)) >= 16);
            assert_eq!(endpoint(&name), Some(to));
        }
    }
}
