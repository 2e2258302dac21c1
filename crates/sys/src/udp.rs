//! UDP sockets for one interface: broadcast, multicast and unicast.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, sockopt};

use crate::Interface;
use crate::error::{Error, NEEDS_NET_RAW, Result};
use crate::frames::Endpoint;
use crate::raw;
use crate::socket::{Kind, Socket};

/// Where a frame to all nodes goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// The IPv4 limited broadcast address, 255.255.255.255. Needs an IPv4 address on the interface.
    Broadcast,
    /// An IPv4 multicast group; 224.0.0.0/24 is link-local.
    Ipv4(Ipv4Addr),
    /// An IPv6 multicast group; ff02::/16 is link-local. Needs no configured address.
    Ipv6(Ipv6Addr),
}

/// Opens a socket on `port` that sends and receives only on `interface`. Returns it with the endpoint of the group. It
/// does not receive the host's own multicasts, but it may receive its own broadcasts.
pub fn open(interface: &Interface, port: u16, group: Group) -> Result<(Socket, Endpoint)> {
    let failed = |what: &'static str| {
        move |error: rustix::io::Errno| Error::new(what, error).on(&interface.name)
    };
    let (family, kind) = match group {
        Group::Ipv6(_) => (AddressFamily::INET6, Kind::Ipv6),
        _ => (AddressFamily::INET, Kind::Ipv4),
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd = rustix::net::socket_with(family, SocketType::DGRAM, flags, Some(ipproto::UDP))
        .map_err(failed("open a UDP socket"))?;
    // Binding to the device keeps out frames of other interfaces. Since Linux 5.7 it needs no privilege the first time.
    to_device(&fd, interface)?;
    sockopt::set_socket_reuseaddr(&fd, true).map_err(failed("share the port"))?;
    let to = join(&fd, interface, port, group).map_err(failed("join the group"))?;
    let any: SocketAddr = match kind {
        Kind::Ipv6 => (Ipv6Addr::UNSPECIFIED, port).into(),
        _ => (Ipv4Addr::UNSPECIFIED, port).into(),
    };
    rustix::net::bind(&fd, &any).map_err(failed("take the UDP port"))?;
    let socket = Socket {
        fd,
        kind,
        interface: interface.name.clone(),
        link: (0, interface.index),
        class: None,
        tags: false,
    };
    socket.widen();
    Ok((socket, Endpoint::Udp(to)))
}

/// Opens a socket like [`bind`] that sends and receives only through `interface`, whatever the routes of other interfaces say. It
/// still needs a route there. Since Linux 5.7 no privilege is needed.
pub fn bind_through(interface: &Interface, address: SocketAddr) -> Result<Socket> {
    bind_to(address, Some(interface))
}

/// Opens a socket for datagrams from and to any host, bound to `address` (port 0: any free port). Bound to `[::]` it serves IPv4
/// as well.
pub fn bind(address: SocketAddr) -> Result<Socket> {
    bind_to(address, None)
}

fn bind_to(address: SocketAddr, through: Option<&Interface>) -> Result<Socket> {
    let failed = |what: &'static str, error: rustix::io::Errno| {
        Error::new(what, error).on(&address.to_string())
    };
    let (family, kind) = match address {
        SocketAddr::V4(_) => (AddressFamily::INET, Kind::Ipv4),
        SocketAddr::V6(_) => (AddressFamily::INET6, Kind::Ipv6),
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd = rustix::net::socket_with(family, SocketType::DGRAM, flags, Some(ipproto::UDP))
        .map_err(|error| Error::new("open a UDP socket", error))?;
    if address.ip() == Ipv6Addr::UNSPECIFIED {
        sockopt::set_ipv6_v6only(&fd, false)
            .map_err(|error| failed("serve both families", error))?;
    }
    if let Some(interface) = through {
        to_device(&fd, interface)?;
    }
    rustix::net::bind(&fd, &address).map_err(|error| failed("take the UDP port", error))?;
    let socket = Socket {
        fd,
        kind,
        interface: address.to_string(),
        link: (0, 0),
        class: None,
        tags: false,
    };
    socket.widen();
    Ok(socket)
}

fn to_device(fd: &OwnedFd, interface: &Interface) -> Result<()> {
    let device = interface.name.as_bytes();
    let bound = raw::set_option(fd.as_fd(), libc::SOL_SOCKET, libc::SO_BINDTODEVICE, device);
    bound.map_err(|error| {
        Error::new("bind a socket", error)
            .on(&interface.name)
            .needs(NEEDS_NET_RAW)
    })
}

fn join(
    fd: &OwnedFd,
    interface: &Interface,
    port: u16,
    group: Group,
) -> rustix::io::Result<SocketAddr> {
    let index = interface.index;
    match group {
        Group::Broadcast => {
            sockopt::set_socket_broadcast(fd, true)?;
            Ok((Ipv4Addr::BROADCAST, port).into())
        }
        Group::Ipv4(group) => {
            sockopt::set_ip_add_membership_with_ifindex(fd, &group, &Ipv4Addr::UNSPECIFIED, index)?;
            sockopt::set_ip_multicast_if_with_ifindex(fd, &group, &Ipv4Addr::UNSPECIFIED, index)?;
            sockopt::set_ip_multicast_loop(fd, false)?;
            Ok((group, port).into())
        }
        Group::Ipv6(group) => {
            sockopt::set_ipv6_v6only(fd, true)?;
            sockopt::set_ipv6_add_membership(fd, &group, index)?;
            sockopt::set_ipv6_multicast_if(fd, index)?;
            sockopt::set_ipv6_multicast_loop(fd, false)?;
            Ok(std::net::SocketAddrV6::new(group, port, 0, index).into())
        }
    }
}
