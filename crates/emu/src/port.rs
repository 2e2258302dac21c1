//! The emulator's end of a host's interface.

use std::os::fd::{AsFd, BorrowedFd};

use chappe_sys::namespace::NetworkNamespace;
use chappe_sys::tun::{Kind, Tun};
use chappe_sys::{BATCH, Interface, Links, Received, Result, Socket, packet};

use crate::bridge::Bridge;
use crate::ethernet::{HEADER, TAG};
use crate::interface::{INTERFACE, MTU_MAX};

/// Sends and receives the Ethernet frames of one host.
#[derive(Debug)]
pub(crate) enum Port {
    /// A packet socket on the near end of a veth pair.
    Veth(Socket),
    /// A TAP device in the host's namespace.
    Tap(Tun),
}

impl Port {
    /// Creates a pair between the current namespace and that of host `number`, whose end stays down.
    pub(crate) fn veth(number: usize, host: &NetworkNamespace, mtu: u32) -> Result<Port> {
        let (links, name) = (Links::open()?, format!("p{number}"));
        links.veth(&name, INTERFACE, host)?;
        links.set_mtu(&name, mtu)?;
        let near = Interface::find(&name)?;
        near.offloads_off()?;
        links.up(&name)?;
        let socket = packet::open(&near, packet::ALL, packet::Framing::Whole)?;
        // The kernel removes priority tags.
        socket.read_tags();
        Ok(Port::Veth(socket))
    }

    /// Creates a TAP device in the current namespace, still down.
    pub(crate) fn tap() -> Result<Port> {
        Tun::create(INTERFACE, Kind::Tap).map(Port::Tap)
    }

    /// Passes up to [`BATCH`] frames from the host to `bridge`; returns how many there were.
    pub(crate) fn receive(&self, into: &mut Received, bridge: &mut Bridge) -> Result<usize> {
        match self {
            Port::Veth(socket) => {
                let count = socket.receive(into)?;
                for frame in into.iter_tagged() {
                    // A frame that did not fit the slot exceeds every MTU. The bridge counts the empty frame as strange.
                    let (octets, priority) = frame.unwrap_or_default();
                    bridge.offer_with(octets, priority);
                }
                Ok(count)
            }
            Port::Tap(tap) => {
                let mut frame = [0; HEADER + TAG + MTU_MAX];
                for count in 0..BATCH {
                    match tap.receive(&mut frame)? {
                        Some(len) => bridge.offer(&frame[..len]),
                        None => return Ok(count),
                    };
                }
                Ok(BATCH)
            }
        }
    }

    /// Delivers the bridge's received frames to the host.
    pub(crate) fn send(&self, bridge: &mut Bridge) {
        while bridge.has_arrived() {
            let sent = match self {
                Port::Veth(socket) => {
                    let frames = bridge.arrived().map(|frame| (frame, packet::BROADCAST));
                    socket.send(frames)
                }
                Port::Tap(tap) => bridge.arrived().next().map_or(Ok(0), |frame| {
                    let taken = tap.send(frame)?;
                    Ok(usize::from(taken))
                }),
            };
            match sent {
                Ok(count @ 1..) => bridge.taken(count),
                // The host's interface is down or out of memory: a real card would lose the frame too.
                Ok(0) | Err(_) => bridge.refused(),
            }
        }
    }

    /// Frames from the host that the kernel lost since the last call.
    pub(crate) fn overflowed(&self) -> u64 {
        match self {
            Port::Veth(socket) => socket.overflowed(),
            Port::Tap(_) => 0,
        }
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Port::Veth(socket) => socket.as_fd(),
            Port::Tap(tap) => tap.as_fd(),
        }
    }
}
