//! TUN and TAP: a network interface whose other end is this program.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::error::{Error, NEEDS_NET_ADMIN, Result};
use crate::raw;

/// What passes through the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// IP packets.
    Tun,
    /// Ethernet frames.
    Tap,
}

/// An open TUN or TAP device that never waits. The interface goes away with it.
#[derive(Debug)]
pub struct Tun {
    fd: OwnedFd,
    name: String,
}

impl Tun {
    /// Makes an interface called `name`; `%d` in it becomes the first free number. It is down at first.
    pub fn create(name: &str, kind: Kind) -> Result<Tun> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let fd = rustix::fs::open("/dev/net/tun", flags, Mode::empty()).map_err(|error| {
            let error = Error::new("open /dev/net/tun", error);
            match error.os().kind() {
                std::io::ErrorKind::NotFound => error.remedy("load the module: `modprobe tun`"),
                _ => error.needs(NEEDS_NET_ADMIN),
            }
        })?;
        let name = raw::attach_tun(fd.as_fd(), name, kind == Kind::Tap).map_err(|error| {
            Error::new("create a TUN device", error)
                .on(name)
                .needs(NEEDS_NET_ADMIN)
        })?;
        Ok(Tun { fd, name })
    }

    /// The interface's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The next packet that the host sent through the interface, written to the front of `packet`; `None` when
    /// there is none. What does not fit is cut off.
    pub fn receive(&self, packet: &mut [u8]) -> Result<Option<usize>> {
        match rustix::io::read(&self.fd, packet) {
            Ok(len) => Ok(Some(len)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(Error::new("read a packet", error).on(&self.name)),
        }
    }

    /// Gives a packet to the host as if it had arrived on the interface; false when the host has no room.
    pub fn send(&self, packet: &[u8]) -> Result<bool> {
        match rustix::io::write(&self.fd, packet) {
            Ok(_) => Ok(true),
            Err(Errno::AGAIN | Errno::INTR | Errno::NOBUFS) => Ok(false),
            Err(error) => Err(Error::new("write a packet", error).on(&self.name)),
        }
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
