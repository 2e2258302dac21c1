//! Chappe's interface to Linux: sockets, TUN and TAP, namespaces, interfaces, one event loop, the monotonic clock.
//!
//! ```
//! use chappe_sys::{Clock, EventLoop, Interface, Ready, Received, packet};
//!
//! # fn main() -> chappe_sys::Result<()> {
//! let lo = Interface::find("lo")?;
//! let socket = match packet::open(&lo, packet::LOCAL_EXPERIMENTAL, packet::Framing::Payload) {
//!     Ok(socket) => socket,
//!     Err(error) => return Ok(println!("{error}")), // ... it needs CAP_NET_RAW: run as root, ...
//! };
//! let (mut events, mut frames) = (EventLoop::new(Clock::start())?, Received::new(lo.mtu));
//! events.add(&socket, 0)?;
//! socket.send([(&b"anybody?"[..], packet::BROADCAST)].into_iter())?;
//! # events.set_deadline(Some(chappe_core::Instant::from_millis(200)))?;
//! let mut ready = Vec::new();
//! events.wait(&mut ready)?;
//! # if ready == [Ready::Deadline] { return Ok(()) } // The loopback interface is down.
//! assert_eq!(ready, [Ready::Readable(0)]);
//! assert_eq!(socket.receive(&mut frames)?, 1);
//! # Ok(())
//! # }
//! ```
//!
//! | module | what it provides |
//! |---|---|
//! | [`udp`] [`packet`] | a [`Socket`] on one interface: many frames per system call, a priority for each class |
//! | [`tun`] | TUN and TAP devices |
//! | [`namespace`] | network namespaces; [`namespace::isolate`] creates them without root |
//! | [`process`] | programs in a namespace: start, watch, end, and find leftovers |
//! | [`Links`] | veth pairs, bridges, addresses, routes, up and down |
//! | [`Interface`] | index, MTU, addresses; switching offloads off |
//! | [`wireless`] | which interfaces lead to radios; the coverage class of 802.11 cards |
//! | [`Folder`] | names in folders: given without replacing a file, looked up without following links |
//! | [`write_new`] | files that are whole or absent |
//! | [`memory`] | how much memory this process may have |
//! | [`EventLoop`] [`Clock`] | one wait for descriptors, a deadline and signals |
//! | [`ability`] | what this machine and user can do, with a reason and a remedy |
//!
//! Every descriptor is an `OwnedFd`, so dropping a value cleans up. Every [`Error`] says what failed, on which
//! interface, what the kernel reported, and what to do if that is known.
//!
//! **Architecture invariant:** this is the one crate that talks to the operating system. Its `unsafe` code is in `raw/`,
//! which holds nothing but the system calls that rustix lacks.

mod clock;
mod error;
mod event_loop;
mod folder;
mod frames;
mod interface;
mod links;
mod memory;
mod netlink;
mod new_file;
mod raw;
mod socket;

pub mod ability;
pub mod namespace;
pub mod packet;
pub mod process;
pub mod tun;
pub mod udp;
pub mod wireless;

pub use clock::{Clock, thread_time};
pub use error::{Error, Result};
pub use event_loop::{EventLoop, Ready, Signal};
pub use folder::{Folder, Named};
pub use frames::{BATCH, Endpoint, Run};
pub use interface::Interface;
pub use links::Links;
pub use memory::memory;
pub use new_file::write_new;
pub use socket::{Received, Socket, class_of, user_priority};

/// Lets the end of a TCP connection look like a break to the other end: a reset instead of a FIN (SO_LINGER of zero, socket(7)).
pub fn reset_on_close(socket: impl std::os::fd::AsFd) -> Result<()> {
    rustix::net::sockopt::set_socket_linger(socket, Some(std::time::Duration::ZERO))
        .map_err(|error| Error::new("set how a connection ends", error))
}

/// Sets the congestion control of one TCP socket, such as `cubic`. Without CAP_NET_ADMIN, only those listed in
/// `/proc/sys/net/ipv4/tcp_allowed_congestion_control` are allowed.
pub fn set_congestion(socket: impl std::os::fd::AsFd, name: &str) -> Result<()> {
    raw::set_option(
        socket.as_fd(),
        libc::IPPROTO_TCP,
        libc::TCP_CONGESTION,
        name.as_bytes(),
    )
    .map_err(|error| Error::new(format!("use the congestion control {name}"), error))
}

/// Sets the traffic class of an IPv4 socket, from which 802.11 takes the access category: 0x80 (CS4) has AC_VI.
pub fn set_traffic_class(socket: impl std::os::fd::AsFd, class: u8) -> Result<()> {
    let class = i32::from(class).to_ne_bytes();
    raw::set_option(socket.as_fd(), libc::IPPROTO_IP, libc::IP_TOS, &class)
        .map_err(|error| Error::new("set the traffic class of a socket", error))
}

/// Sets a kernel parameter of the current namespaces, such as `net/ipv6/conf/lln0/accept_ra`.
pub fn set_parameter(name: &str, value: &str) -> Result<()> {
    let path = format!("/proc/sys/{name}");
    std::fs::write(&path, value).map_err(|error| {
        Error::new("set a kernel parameter", error)
            .on(&path)
            .needs("/proc/sys must be writable; containers often mount it read-only")
    })
}

/// An unpredictable random number from the kernel's generator.
pub fn random_u64() -> Result<u64> {
    let mut octets = [0; 8];
    rustix::rand::getrandom(&mut octets[..], rustix::rand::GetRandomFlags::empty())
        .map_err(|error| Error::new("draw a random number", error))?;
    Ok(u64::from_ne_bytes(octets))
}

/// 32 unpredictable octets from the kernel's generator: a secret key, or the seed of a generator.
pub fn random_key() -> Result<[u8; 32]> {
    let mut octets = [0; 32];
    for eight in octets.chunks_exact_mut(8) {
        eight.copy_from_slice(&random_u64()?.to_ne_bytes());
    }
    Ok(octets)
}
