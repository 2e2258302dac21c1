//! A port: one interface, and the socket through which frames pass.

use chappe_core::{Address, Caps, Duration};
use chappe_sys::udp::Group;
use chappe_sys::{Endpoint, Error, Interface, Result, Socket, packet, udp, wireless};

use crate::echo::ECHO;
use crate::frame::{ALL, HEADER, TAG};

/// The encapsulation of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// UDP on one interface. Needs no privilege. Broadcast needs an IPv4 address.
    Udp {
        /// The UDP port, the same on all nodes.
        port: u16,
        /// Where a broadcast goes: the subnet's broadcast address or a multicast group.
        group: Group,
    },
    /// Ethernet frames of a separate EtherType, without IP. Needs CAP_NET_RAW.
    Packet {
        /// The EtherType, the same on all nodes.
        ether_type: u16,
    },
}

impl Carrier {
    /// UDP broadcast on port 1794, the year of the first telegraph line.
    pub const UDP: Carrier = Carrier::Udp {
        port: 1794,
        group: Group::Broadcast,
    };
    /// Ethernet frames of the first local experimental EtherType (IEEE 802).
    pub const PACKET: Carrier = Carrier::Packet {
        ether_type: packet::LOCAL_EXPERIMENTAL,
    };
}

/// An open port of a node.
#[derive(Debug)]
pub struct Port {
    pub(crate) socket: Socket,
    pub(crate) broadcast: Endpoint,
    /// Octets of the IP and UDP headers; 0 for a packet socket.
    pub(crate) overhead: usize,
    interface: Interface,
    address: Address,
    /// Largest IP packet, or payload of an Ethernet frame, that is sent in octets.
    mtu: usize,
}

impl Port {
    /// Opens `interface` (by name, in the calling thread's namespace) for the node `address`. It must be an address of
    /// [`Address::node`], since a frame has 16 bits for a node. Fails if there is no such interface, if the carrier needs
    /// an address or a privilege that is missing, or if the port is in use.
    pub fn open(interface: &str, address: Address, carrier: Carrier) -> Result<Port> {
        let interface = Interface::find(interface)?;
        if address.node_number().is_none_or(|number| number >= ALL) {
            let why = "a link address must be a node number from 0 to 65279";
            return Err(Error::invalid("open a link", why));
        }
        let (socket, broadcast, overhead) = match carrier {
            Carrier::Udp { port, group } => {
                let (socket, broadcast) = udp::open(&interface, port, group)?;
                let ip = if matches!(group, Group::Ipv6(_)) {
                    40
                } else {
                    20
                };
                (socket, broadcast, ip + 8)
            }
            Carrier::Packet { ether_type } => {
                let mut socket = packet::open(&interface, ether_type, packet::Framing::Payload)?;
                if wireless::leads_to_radio(&interface.name) {
                    socket.tag_priorities();
                }
                (socket, packet::BROADCAST, 0)
            }
        };
        Ok(Port {
            socket,
            broadcast,
            overhead,
            mtu: interface.mtu,
            interface,
            address,
        })
    }

    /// Sends no longer packets than an interface of this MTU, for neighbours whose interfaces have a smaller one than this. Longer
    /// frames are still received. Does not raise the MTU.
    pub fn limit(self, mtu: usize) -> Port {
        Port {
            mtu: self.mtu.min(mtu),
            ..self
        }
    }

    /// Largest IP packet, or payload of an Ethernet frame, that is sent in octets.
    pub fn mtu(&self) -> usize {
        self.mtu
    }

    /// The capabilities of the link.
    ///
    /// A broadcast is reported as sent when the kernel has taken it, which is before it is on the air, so
    /// `confirms_broadcast` is false. Unicast frames to other nodes are dropped, so `overhears` is false.
    pub fn caps(&self) -> Caps {
        Caps {
            frame_max: self.frame_max(),
            schedules: false,
            start_error: Duration::ZERO,
            reports_power: false,
            overhears: false,
            confirms_broadcast: false,
            hastens: false,
        }
    }

    /// The interface, as found when the port was opened.
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    /// The address of the node on this port.
    pub fn address(&self) -> Address {
        self.address
    }

    /// Largest SDU that is sent, in octets: what the MTU leaves, bounded by the 16-bit length field.
    pub(crate) fn frame_max(&self) -> usize {
        self.left_of(self.mtu)
    }

    /// Largest SDU that may be received in octets.
    pub(crate) fn received_max(&self) -> usize {
        self.left_of(self.interface.mtu)
    }

    fn left_of(&self, mtu: usize) -> usize {
        let headers = self.overhead + HEADER + ECHO + TAG;
        mtu.saturating_sub(headers)
            .min(usize::from(u16::MAX) - headers)
    }
}
