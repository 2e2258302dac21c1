//! Network interfaces of the present namespace.

use std::fmt;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice};

use crate::error::{Error, NEEDS_NET_ADMIN, Result};
use crate::raw::{self, Offload, Query};

/// A network interface as it was when it was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its number, never 0.
    pub index: u32,
    /// Largest packet in octets, the link's own header not counted.
    pub mtu: usize,
    /// Its link-layer address; zero where the link has none (TUN).
    pub hardware: [u8; 6],
    /// Its first IPv4 address.
    pub ipv4: Option<Ipv4Addr>,
    /// Whether it is turned on.
    pub up: bool,
    /// Whether it is on and has a carrier: until then frames are lost without a word.
    pub running: bool,
}

impl Interface {
    /// The interface called `name`, in the namespace of the calling thread.
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

    /// The name of the interface with this number.
    pub fn name_of(index: u32) -> Result<String> {
        let on = format!("number {index}");
        let socket = any_socket(&on)?;
        netdevice::index_to_name(&socket, index)
            .map_err(|error| Error::new("use an interface", error).on(&on))
    }

    /// The address to which its network broadcasts, if it has an IPv4 address.
    pub fn broadcast(&self) -> Result<Option<Ipv4Addr>> {
        let socket = any_socket(&self.name)?;
        Ok(raw::interface_address(socket.as_fd(), &self.name, true).ok())
    }

    /// Turns off all offloads that split, join or leave unfinished the packets which pass, so that a packet socket
    /// sees what would be on a wire. What the device does not have is left alone.
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

/// Requests about interfaces go through a socket of their namespace, of whatever kind.
fn any_socket(name: &str) -> Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    rustix::net::socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)
        .map_err(|error| Error::new("ask about the interface", error).on(name))
}
