//! The sockets of a tunnel: that of its address, and one for each interface that a path leaves through.
//!
//! A socket that is bound to an interface sends through it whatever the routing table prefers, so each uplink needs only its own
//! default route, of any metric. Interfaces come and go: a modem that was unplugged gets a new number. Their sockets are opened
//! again when they are there.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use chappe_sys::{Endpoint, EventLoop, Interface, Socket, udp};

use super::outbox::Outbox;
use super::{SOCKET, UnmatchedTraffic};
use crate::carrier::Carrier;

/// All sockets; the first is that of the tunnel's address.
pub(super) struct Sockets {
    ways: Vec<Way>,
    /// Whether UDP segmentation offload works here, as far as is known.
    pub segments: bool,
    joins: bool,
    pub last_refusal: Option<String>,
}

/// One socket with what is on its way to it.
struct Way {
    socket: Option<Socket>,
    /// The interface that it is bound to, with its number when it was.
    interface: Option<(String, u32)>,
    outbox: Outbox,
}

impl Sockets {
    /// The tunnel's own socket. `joins`: whether the kernel may coalesce datagrams.
    pub fn new(own: Socket, segments: bool, joins: bool) -> Sockets {
        let way = Way {
            socket: Some(own),
            interface: None,
            outbox: Outbox::default(),
        };
        Sockets {
            ways: vec![way],
            segments,
            joins,
            last_refusal: None,
        }
    }

    /// The socket for an interface; that of the tunnel without one. It is opened by the next [`refresh`](Self::refresh).
    pub fn through(&mut self, interface: Option<&str>) -> usize {
        let Some(name) = interface else {
            return 0;
        };
        let named = |way: &Way| way.interface.as_ref().is_some_and(|own| own.0 == name);
        if let Some(known) = self.ways.iter().position(named) {
            return known;
        }
        self.ways.push(Way {
            socket: None,
            interface: Some((name.to_owned(), 0)),
            outbox: Outbox::default(),
        });
        self.ways.len() - 1
    }

    /// Opens the sockets of interfaces that have appeared, or that are other ones than before.
    pub fn refresh(&mut self, carrier: &Carrier, events: &EventLoop) -> chappe_sys::Result<()> {
        let Carrier::Udp(own) = carrier else {
            return Ok(());
        };
        let any: SocketAddr = match own {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        for (number, way) in self.ways.iter_mut().enumerate() {
            let Some((name, index)) = &mut way.interface else {
                continue;
            };
            let found = Interface::find(name).ok();
            if found.as_ref().map_or(0, |found| found.index) == *index {
                continue;
            }
            if let Some(old) = way.socket.take() {
                events.remove(&old)?;
            }
            *index = 0;
            let Some(found) = found else {
                continue;
            };
            match udp::bind_through(&found, any) {
                Ok(socket) => {
                    if self.joins {
                        let _ = socket.join_received();
                    }
                    socket.stamp_received();
                    events.add(&socket, SOCKET + number as u64)?;
                    (way.socket, *index) = (Some(socket), found.index);
                }
                Err(error) => self.last_refusal = Some(error.to_string()),
            }
        }
        Ok(())
    }

    /// A socket, unless its interface is not there.
    pub fn get(&self, number: usize) -> Option<&Socket> {
        self.ways.get(number)?.socket.as_ref()
    }

    /// Closes a socket whose interface has gone. The tunnel's own cannot be replaced.
    pub fn close(&mut self, number: usize, events: &EventLoop) -> bool {
        let Some(way) = self.ways.get_mut(number).filter(|_| number > 0) else {
            return false;
        };
        if let Some(old) = way.socket.take() {
            let _ = events.remove(&old);
        }
        if let Some((_, index)) = &mut way.interface {
            *index = 0;
        }
        true
    }

    /// Where datagrams for a socket are collected.
    pub fn outbox(&mut self, number: usize) -> &mut Outbox {
        let number = number.min(self.ways.len() - 1);
        &mut self.ways[number].outbox
    }

    /// Dispatches a full outbox, so that the longest datagram fits.
    pub fn make_room(
        &mut self,
        number: usize,
        counts: &mut UnmatchedTraffic,
    ) -> chappe_sys::Result<()> {
        match self.outbox(number).is_full() {
            true => self.dispatch_one(number, counts),
            false => Ok(()),
        }
    }

    /// Adds the datagram of `len` octets that stands in the room of an outbox.
    pub fn add(&mut self, number: usize, len: usize, to: Endpoint) {
        let segments = self.segments;
        self.outbox(number).add(len, to, segments);
    }

    /// Adds a datagram to an outbox with room.
    pub fn put(&mut self, number: usize, datagram: &[u8], to: Endpoint) {
        if let Some(room) = self.outbox(number).room().get_mut(..datagram.len()) {
            room.copy_from_slice(datagram);
            self.add(number, datagram.len(), to);
        }
    }

    /// Hands all outboxes to the kernel. The recovery treats what cannot leave like any loss. The error is that of the tunnel's
    /// own interface when it has gone.
    pub fn dispatch(&mut self, counts: &mut UnmatchedTraffic) -> chappe_sys::Result<()> {
        for number in 0..self.ways.len() {
            self.dispatch_one(number, counts)?;
        }
        Ok(())
    }

    /// The datagrams of a run that the kernel cannot segment go one by one.
    pub fn dispatch_one(
        &mut self,
        number: usize,
        counts: &mut UnmatchedTraffic,
    ) -> chappe_sys::Result<()> {
        let Some(way) = self.ways.get_mut(number) else {
            return Ok(());
        };
        let outbox = &mut way.outbox;
        let Some(socket) = &way.socket else {
            counts.refused += outbox.datagrams();
            outbox.clear();
            return Ok(());
        };
        let mut cut = false;
        while !outbox.is_empty() {
            match socket.send_runs(outbox.runs()) {
                Ok(0) => {
                    counts.socket_full += outbox.datagrams();
                    outbox.clear();
                }
                Ok(sent) => {
                    // Accepted one by one but not as a run: this interface or kernel cannot segment.
                    self.segments &= !cut;
                    outbox.pass(sent);
                }
                Err(error) if error.is_gone() && number == 0 => return Err(error),
                Err(_) if outbox.cut_first() => cut = true,
                Err(error) => {
                    counts.refused += 1;
                    self.last_refusal = Some(error.to_string());
                    outbox.pass(1);
                }
            }
        }
        outbox.clear();
        Ok(())
    }
}
