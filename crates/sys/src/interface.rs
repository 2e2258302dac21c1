//! Network interfaces of the current namespace.

use std::fmt;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice};

use crate::error::{Error, NEEDS_NET_ADMIN, Result};
use crate::raw::{self, Offload, Query};

/// A snapshot of a network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The name of the interface.
    pub name: String,
    /// The interface index, never 0.
    pub index: u32,
    /// The MTU in octets, without the link-layer header.
    pub mtu: usize,
    /// The link-layer address; zero if the link has none (TUN).
    pub hardware: [u8; 6],
    /// The first IPv4 address.
    pub ipv4: Option<Ipv4Addr>,
    /// Whether the interface is up (IFF_UP).
    pub up: bool,
    /// Whether it is up and has a carrier (IFF_RUNNING). Until then the kernel drops frames without an error.
    pub running: bool,
}

impl Interface {
    /// Looks up the interface `name` in the namespace of the calling thread.
    pub fn find(name: &str) -> Result<Interface> {
        let socket = any_socket(name)?;
        let failed = |error| Error::new("use an interface", error).on(name);
        let index =
            netdevice::name_to_index(&socket, name).map_err(|error| failed(error.into()))?;
        let ask = |query| raw::interface_number(socket.as_fd(), name, query).map_err(failed);
        let [_, _, hardware @ ..] = ask(Query::Hardware)?.to_be_bytes();
        let flags = ask(Query::Flags)?;
        Ok(Interface {
            name: name.to_owned(),
            index,
            mtu: ask(Query::Mtu)? as usize,
            hardware,
            ipv4: raw::interface_address(socket.as_fd(), name, false).ok(),
            up: flags & libc::IFF_UP as u64 != 0,
            running: flags & libc::IFF_RUNNING as u64 != 0,
        })
    }

    /// All interfaces in the namespace of the calling thread, the loopback interface included.
    pub fn all() -> Result<Vec<Interface>> {
        let table = std::fs::read_to_string("/proc/thread-self/net/dev");
        let table = table.map_err(|error| Error::new("list interfaces", error))?;
        let names = table.lines().filter_map(|line| line.split_once(':'));
        // One that has gone meanwhile is left out.
        Ok(names
            .filter_map(|(name, _)| Interface::find(name.trim()).ok())
            .collect())
    }

    /// The name of the interface with this index.
    pub fn name_of(index: u32) -> Result<String> {
        let on = format!("number {index}");
        let socket = any_socket(&on)?;
        netdevice::index_to_name(&socket, index)
            .map_err(|error| Error::new("use an interface", error).on(&on))
    }

    /// The IPv4 broadcast address of its subnet, if it has an IPv4 address.
    pub fn broadcast(&self) -> Result<Option<Ipv4Addr>> {
        let socket = any_socket(&self.name)?;
        Ok(raw::interface_address(socket.as_fd(), &self.name, true).ok())
    }

    /// Turns off all offloads that segment, coalesce or leave checksums to hardware, so that a packet socket sees frames as
    /// they would be on a wire. Offloads that the device lacks are skipped.
    pub fn offloads_off(&self) -> Result<()> {
        let socket = any_socket(&self.name)?;
        for offload in Offload::ALL {
            match raw::set_offload(socket.as_fd(), &self.name, offload, false) {
                Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {}
                result => result.map_err(|error| {
                    Error::new("turn an offload off", error)
                        .on(&self.name)
                        .needs(NEEDS_NET_ADMIN)
                })?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (MTU {})", self.name, self.mtu)
    }
}

/// Interface requests go through any socket of the namespace.
fn any_socket(name: &str) -> Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    rustix::net::socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)
        .map_err(|error| Error::new("ask about the interface", error).on(name))
}
