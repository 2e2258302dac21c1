//! One end of a link: an interface, and how frames pass through it.

use chappe_core::{Address, Caps, Duration};
use chappe_sys::udp::Group;
use chappe_sys::{Endpoint, Error, Interface, Result, Socket, packet, udp};

use crate::frame::{EVERYBODY, HEADER, TAG};

/// What carries the frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// UDP on one interface. Needs no privilege; broadcast needs an IPv4 address.
    Udp {
        /// The port, the same on all nodes.
        port: u16,
        /// To whom a broadcast goes.
        group: Group,
    },
    /// Frames of an EtherType of their own, without IP. Needs CAP_NET_RAW.
    Packet {
        /// The EtherType, the same on all nodes.
        ether_type: u16,
    },
}

impl Carrier {
    /// UDP broadcast on port 1794, the year of the first telegraph line; take another where that is in use.
    pub const UDP: Carrier = Carrier::Udp {
        port: 1794,
        group: Group::Broadcast,
    };
    /// Packets of the EtherType that IEEE 802 leaves to experiments.
    pub const PACKET: Carrier = Carrier::Packet {
        ether_type: packet::LOCAL_EXPERIMENTAL,
    };
}

/// An open end of a link.
#[derive(Debug)]
pub struct Port {
    pub(crate) socket: Socket,
    pub(crate) everybody: Endpoint,
    /// Octets of IP and UDP.
    pub(crate) overhead: usize,
    interface: Interface,
    address: Address,
}

impl Port {
    /// Opens `interface` (by name, in the calling thread's namespace) for the node `address`, which must be one of
    /// [`Address::node`]: frames name nodes by 16 bits.
    pub fn open(interface: &str, address: Address, carrier: Carrier) -> Result<Port> {
        let interface = Interface::find(interface)?;
        if address
            .node_number()
            .is_none_or(|number| number == EVERYBODY)
        {
            let why = "a link address must be a node number from 0 to 65534";
            return Err(Error::invalid("open a link", why));
        }
        let (socket, everybody, overhead) = match carrier {
            Carrier::Udp { port, group } => {
                let (socket, everybody) = udp::open(&interface, port, group)?;
                let ip = if matches!(group, Group::Ipv6(_)) {
                    40
                } else {
                    20
                };
                (socket, everybody, ip + 8)
            }
            Carrier::Packet { ether_type } => {
                let socket = packet::open(&interface, ether_type, packet::Framing::Payload)?;
                (socket, packet::BROADCAST, 0)
            }
        };
        Ok(Port {
            socket,
            everybody,
            overhead,
            interface,
            address,
        })
    }

    /// What the link can do.
    ///
    /// A broadcast is reported as sent when the kernel took it, which is not yet on the air, so
    /// `confirms_broadcast` is false. Frames to others are not handed up.
    pub fn caps(&self) -> Caps {
        Caps {
            frame_max: self.frame_max(),
            schedules: false,
            start_error: Duration::ZERO,
            reports_power: false,
            overhears: false,
            confirms_broadcast: false,
        }
    }

    /// The interface as it was when the port was opened.
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    /// The node's own address.
    pub fn address(&self) -> Address {
        self.address
    }

    /// Largest SDU: what the MTU leaves, and what a length of 16 bits can say.
    pub(crate) fn frame_max(&self) -> usize {
        let headers = self.overhead + HEADER + TAG;
        self.interface
            .mtu
            .saturating_sub(headers)
            .min(usize::from(u16::MAX) - headers)
    }
}
