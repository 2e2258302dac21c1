//! Socket options and packet socket addresses.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::check;

/// setsockopt; `value` is what the option's manual page calls optval.
pub(crate) fn set_option(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: &[u8],
) -> io::Result<()> {
    let len = value.len() as libc::socklen_t;
    // SAFETY: the kernel reads `len` octets from a slice that outlives the call, and writes none.
    let result =
        unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, value.as_ptr().cast(), len) };
    check(result).map(drop)
}

/// getsockopt; returns how many octets of `value` the kernel wrote.
pub(crate) fn get_option(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: &mut [u8],
) -> io::Result<usize> {
    let mut len = value.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` octets to a slice that is that long and borrowed mutably.
    let result = unsafe {
        let value = value.as_mut_ptr().cast();
        libc::getsockopt(fd.as_raw_fd(), level, name, value, &raw mut len)
    };
    check(result).map(|_| len as usize)
}

/// Binds a packet socket to one interface and one EtherType.
pub(crate) fn bind_packet(fd: BorrowedFd<'_>, ether_type: u16, index: u32) -> io::Result<()> {
    let address = link_address(ether_type, index, None);
    let len = mem::size_of_val(&address) as libc::socklen_t;
    // SAFETY: `address` is a whole sockaddr_ll that outlives the call.
    let result = unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), len) };
    check(result).map(drop)
}

/// A packet socket address (packet(7)).
pub(super) fn link_address(ether_type: u16, index: u32, to: Option<[u8; 6]>) -> libc::sockaddr_ll {
    let mut octets = [0; 8];
    if let Some(to) = to {
        octets[..6].copy_from_slice(&to);
    }
    libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: ether_type.to_be(),
        sll_ifindex: index as i32,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: if to.is_some() { 6 } else { 0 },
        sll_addr: octets,
    }
}
