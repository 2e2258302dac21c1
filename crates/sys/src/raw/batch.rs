//! Many frames in one system call.

use std::io;
use std::mem;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use super::check;
use super::options::link_address;
use crate::socket::{BATCH, Endpoint};

/// Receives up to [`BATCH`] frames without waiting: frame `i` goes to `buffer[i * slot..]`. `heard` gets its length
/// and sender for each, `None` for one that did not fit or whose sender is of no known kind.
pub(crate) fn receive_many(
    fd: BorrowedFd<'_>,
    buffer: &mut [u8],
    slot: usize,
    heard: &mut Vec<Option<(usize, Endpoint)>>,
) -> io::Result<()> {
    // SAFETY: all-zero octets are a valid value of these C structs (null pointers, zero lengths).
    let mut names: [libc::sockaddr_storage; BATCH] = unsafe { mem::zeroed() };
    // SAFETY: as above.
    let mut parts: [libc::iovec; BATCH] = unsafe { mem::zeroed() };
    // SAFETY: as above.
    let mut headers: [libc::mmsghdr; BATCH] = unsafe { mem::zeroed() };
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
        count = i + 1;
    }
    // SAFETY: the first `count` headers point to one part and one name each, all of which outlive the call; the
    // parts cover disjoint pieces of `buffer`, which is borrowed mutably.
    let result = unsafe {
        let first = headers.as_mut_ptr();
        libc::recvmmsg(
            fd.as_raw_fd(),
            first,
            count as u32,
            libc::MSG_DONTWAIT,
            ptr::null_mut(),
        )
    };
    let received = check(result)? as usize;
    for (header, name) in headers.iter().zip(&names).take(received) {
        let whole = header.msg_hdr.msg_flags & libc::MSG_TRUNC == 0;
        let from = endpoint(name).filter(|_| whole);
        heard.push(from.map(|from| (header.msg_len as usize, from)));
    }
    Ok(())
}

/// Sends up to [`BATCH`] frames without waiting and returns how many the kernel took.
pub(crate) fn send_many<'a>(
    fd: BorrowedFd<'_>,
    frames: impl Iterator<Item = (&'a [u8], Endpoint)>,
    link: (u16, u32),
) -> io::Result<usize> {
    // SAFETY: all-zero octets are a valid value of these C structs (null pointers, zero lengths).
    let mut names: [libc::sockaddr_storage; BATCH] = unsafe { mem::zeroed() };
    // SAFETY: as above.
    let mut parts: [libc::iovec; BATCH] = unsafe { mem::zeroed() };
    // SAFETY: as above.
    let mut headers: [libc::mmsghdr; BATCH] = unsafe { mem::zeroed() };
    let mut count = 0;
    for (i, (frame, to)) in frames.take(BATCH).enumerate() {
        parts[i] = libc::iovec {
            iov_base: frame.as_ptr().cast_mut().cast(),
            iov_len: frame.len(),
        };
        headers[i].msg_hdr.msg_namelen = write_name(&mut names[i], to, link);
        headers[i].msg_hdr.msg_name = (&raw mut names[i]).cast();
        headers[i].msg_hdr.msg_iov = &raw mut parts[i];
        headers[i].msg_hdr.msg_iovlen = 1;
        count = i + 1;
    }
    // SAFETY: the first `count` headers point to one part and one name each, all of which outlive the call; the
    // kernel only reads the frames.
    let result = unsafe {
        let first = headers.as_mut_ptr();
        libc::sendmmsg(fd.as_raw_fd(), first, count as u32, libc::MSG_DONTWAIT)
    };
    check(result).map(|sent| sent as usize)
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
            let from = SocketAddrV6::new(ip, port, from.sin6_flowinfo, scope);
            Some(Endpoint::Udp(SocketAddr::V6(from)))
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
    fn addresses_survive_the_kernels_form() {
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
