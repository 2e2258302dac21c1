//! Requests about interfaces (netdevice(7)), their offloads, and TUN devices.

use std::ffi::c_ulong;
use std::io;
use std::mem;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::check;

/// A property of an interface that the kernel answers with a number or six octets.
#[derive(Clone, Copy)]
pub(crate) enum Query {
    /// Its MTU in octets.
    Mtu,
    /// The flags of the interface (IFF_...).
    Flags,
    /// Its link-layer address, the first six octets in the low 48 bits.
    Hardware,
}

/// An offload that segments or coalesces packets or leaves checksums to hardware (ethtool).
///
/// The numbers are the commands ETHTOOL_SRXCSUM, STXCSUM, SSG, STSO, SGSO and SGRO of linux/ethtool.h.
#[derive(Clone, Copy)]
#[repr(u32)]
pub(crate) enum Offload {
    ReceiveChecksum = 0x15,
    TransmitChecksum = 0x17,
    ScatterGather = 0x19,
    TcpSegmentation = 0x1f,
    Segmentation = 0x24,
    Joining = 0x2c,
}

impl Offload {
    /// All of them, in an order in which none depends on one already turned off.
    pub(crate) const ALL: [Offload; 6] = [
        Offload::TcpSegmentation,
        Offload::Segmentation,
        Offload::Joining,
        Offload::ScatterGather,
        Offload::TransmitChecksum,
        Offload::ReceiveChecksum,
    ];
}

/// A property of the interface `name`; `socket` is any socket of its namespace.
pub(crate) fn interface_number(
    socket: BorrowedFd<'_>,
    name: &str,
    query: Query,
) -> io::Result<u64> {
    let code = match query {
        Query::Mtu => libc::SIOCGIFMTU,
        Query::Flags => libc::SIOCGIFFLAGS,
        Query::Hardware => libc::SIOCGIFHWADDR,
    };
    let mut request = request_for(name)?;
    ask(socket, code, &mut request)?;
    // SAFETY: the kernel filled the field that belongs to the request, and all of them are plain numbers.
    Ok(unsafe {
        match query {
            Query::Mtu => request.ifr_ifru.ifru_mtu.max(0) as u64,
            Query::Flags => u64::from(request.ifr_ifru.ifru_flags as u16),
            Query::Hardware => {
                let data = request.ifr_ifru.ifru_hwaddr.sa_data;
                data.iter()
                    .take(6)
                    .fold(0, |value, &octet| value << 8 | u64::from(octet as u8))
            }
        }
    })
}

/// The interface's IPv4 address, or its broadcast address.
pub(crate) fn interface_address(
    socket: BorrowedFd<'_>,
    name: &str,
    broadcast: bool,
) -> io::Result<Ipv4Addr> {
    let code = if broadcast {
        libc::SIOCGIFBRDADDR
    } else {
        libc::SIOCGIFADDR
    };
    let mut request = request_for(name)?;
    ask(socket, code, &mut request)?;
    // SAFETY: for an AF_INET socket the answer is a sockaddr_in, which stands in sa_data as port and address.
    let data = unsafe { request.ifr_ifru.ifru_addr.sa_data };
    let [_, _, a, b, c, d, ..] = data.map(|octet| octet as u8);
    Ok(Ipv4Addr::new(a, b, c, d))
}

/// Turns one offload off. What the device does not know is refused with EOPNOTSUPP.
pub(crate) fn set_offload(
    socket: BorrowedFd<'_>,
    name: &str,
    offload: Offload,
    on: bool,
) -> io::Result<()> {
    /// The kernel's `struct ethtool_value`.
    #[repr(C)]
    struct Value {
        command: u32,
        data: u32,
    }
    let mut value = Value {
        command: offload as u32,
        data: u32::from(on),
    };
    let mut request = request_for(name)?;
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    ask(socket, libc::SIOCETHTOOL as c_ulong, &mut request)
}

/// Attaches `fd` (an open /dev/net/tun) to the device `name`, in which `%d` becomes a number; returns the final name.
/// `header`: whether each packet has a `virtio_net_hdr` of 10 octets before it.
pub(crate) fn attach_tun(
    fd: BorrowedFd<'_>,
    name: &str,
    tap: bool,
    header: bool,
) -> io::Result<String> {
    let kind = if tap { libc::IFF_TAP } else { libc::IFF_TUN };
    let kind = kind | if header { libc::IFF_VNET_HDR } else { 0 };
    let mut request = request_for(name)?;
    request.ifr_ifru.ifru_flags = (kind | libc::IFF_NO_PI) as i16;
    ask(fd, libc::TUNSETIFF as c_ulong, &mut request)?;
    let octets = request.ifr_name.iter().map(|&octet| octet as u8);
    let octets: Vec<u8> = octets.take_while(|&octet| octet != 0).collect();
    Ok(String::from_utf8_lossy(&octets).into_owned())
}

/// Sets the offloads that the reader of a TUN device accepts (`libc::TUN_F_CSUM` and similar).
pub(crate) fn set_tun_offload(fd: BorrowedFd<'_>, what: u32) -> io::Result<()> {
    // SAFETY: this code takes its argument as a number and touches no memory of ours.
    let result = unsafe {
        libc::ioctl(
            fd.as_raw_fd(),
            libc::TUNSETOFFLOAD as _,
            c_ulong::from(what),
        )
    };
    check(result).map(drop)
}

fn ask(fd: BorrowedFd<'_>, code: c_ulong, request: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: each code used here takes an ifreq, which outlives the call; a pointer inside it (ethtool) points to
    // a value of the caller's that does too.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), code as _, &raw mut *request) };
    check(result).map(drop)
}

fn request_for(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: all-zero octets are a valid ifreq.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    if name.is_empty() || name.len() >= request.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (place, &octet) in request.ifr_name.iter_mut().zip(name.as_bytes()) {
        *place = octet as libc::c_char;
    }
    Ok(request)
}
