//! Packet sockets: frames of one EtherType on one interface, without IP.

use std::os::fd::AsFd;

use rustix::net::{AddressFamily, Protocol, RawProtocol, SocketFlags, SocketType};

use crate::Interface;
use crate::error::{Error, NEEDS_NET_RAW, Result};
use crate::frames::Endpoint;
use crate::raw;
use crate::socket::{Kind, Socket};

pub use crate::socket::VLAN;

/// Local Experimental EtherType 1 (IEEE 802-2014, 9.2.4).
pub const LOCAL_EXPERIMENTAL: u16 = 0x88b5;

/// Every EtherType, for [`Framing::Whole`] (linux/if_ether.h, ETH_P_ALL).
pub const ALL: u16 = 0x0003;

/// The broadcast address of Ethernet and 802.11.
pub const BROADCAST: Endpoint = Endpoint::Ethernet([0xff; 6]);

/// PACKET_IGNORE_OUTGOING (linux/if_packet.h), since Linux 4.20.
const IGNORE_OUTGOING: i32 = 23;

/// Which part of a frame the program reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// The payload: the kernel adds and removes the link-layer header. Short payloads arrive with Ethernet's padding to
    /// 46 octets.
    Payload,
    /// The whole frame: link-layer header and payload.
    Whole,
}

/// Opens a socket for frames of `ether_type` on `interface`. It does not receive the host's own frames. Needs
/// CAP_NET_RAW.
pub fn open(interface: &Interface, ether_type: u16, framing: Framing) -> Result<Socket> {
    let what = "open a packet socket";
    let refused = |error: std::io::Error| {
        Error::new(what, error)
            .on(&interface.name)
            .needs(NEEDS_NET_RAW)
    };
    let shape = match framing {
        Framing::Payload => SocketType::DGRAM,
        Framing::Whole => SocketType::RAW,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    // Protocol 0 receives nothing until the socket is bound, so no frame of another interface gets in.
    let none: Option<Protocol> = RawProtocol::new(0).map(Protocol::from_raw);
    let fd = rustix::net::socket_with(AddressFamily::PACKET, shape, flags, none)
        .map_err(|error| refused(error.into()))?;
    // Before Linux 4.20 the host's own frames come back; readers recognise them by their sender.
    let _ = raw::set_option(
        fd.as_fd(),
        libc::SOL_PACKET,
        IGNORE_OUTGOING,
        &1i32.to_ne_bytes(),
    );
    raw::bind_packet(fd.as_fd(), ether_type, interface.index).map_err(refused)?;
    let socket = Socket {
        fd,
        kind: Kind::Packet,
        interface: interface.name.clone(),
        link: (ether_type, interface.index),
        class: None,
        tags: false,
    };
    socket.widen();
    Ok(socket)
}
