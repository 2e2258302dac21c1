//! The hosts: a network namespace each, with one interface, an address, and routes.
//!
//! Nothing is mounted and nothing has a name in the file system: the namespaces and interfaces live as long as this
//! value and the programs in them, and so vanish with the process, however it ends.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use chappe_core::Address;
use chappe_sys::namespace::NetworkNamespace;
use chappe_sys::{Interface, Links, Result, wireless};

use crate::interface::{INTERFACE, MTU_MAX};
use crate::port::Port;

/// How a host's interface is joined to the emulator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Joint {
    /// A veth pair with a packet socket: many frames to a system call, and no privilege on the host.
    #[default]
    Veth,
    /// A TAP device: for kernels without veth. Needs the right to open /dev/net/tun.
    Tap,
}

/// One host, before it is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its radio's and its interface's address.
    pub address: Address,
    /// Its IPv4 address.
    pub ipv4: Ipv4Addr,
    /// Which host is reached over which neighbour.
    pub routes: Vec<(Ipv4Addr, Ipv4Addr)>,
}

/// What all hosts share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// How many bits of their addresses are those of the network.
    pub prefix: u8,
    /// Largest packet in octets.
    pub mtu: usize,
    /// Whether they hand on packets for others.
    pub forwards: bool,
    /// What joins them to the emulator.
    pub joint: Joint,
}

/// The hosts' namespaces and the emulator's ends of their interfaces.
#[derive(Debug)]
pub struct Network {
    pub(crate) hosts: Vec<NetworkNamespace>,
    pub(crate) ports: Vec<Port>,
    pub(crate) mtu: usize,
}

/// How long an interface may take to come up.
const PATIENCE: Duration = Duration::from_secs(10);

/// Kernel parameters of every host. A relay sends out what came in by the same interface, which is no reason to tell
/// the sender of a shorter way: it cannot hear whom we can.
const PARAMETERS: [(&str, &str); 5] = [
    ("net/ipv4/conf/all/send_redirects", "0"),
    ("net/ipv4/conf/all/accept_redirects", "0"),
    ("net/ipv4/conf/default/send_redirects", "0"),
    ("net/ipv4/conf/default/accept_redirects", "0"),
    ("net/ipv4/conf/all/rp_filter", "0"),
];

impl Network {
    /// Makes all hosts. Needs CAP_NET_ADMIN and CAP_SYS_ADMIN over the present namespaces, which
    /// [`isolate`](chappe_sys::namespace::isolate) gives.
    pub fn make(hosts: &[Host], shape: Shape) -> Result<Network> {
        // The near ends stand in a namespace of their own, so that two networks of one process do not meet.
        let hub = NetworkNamespace::create()?;
        let mut network = Network {
            hosts: Vec::new(),
            ports: Vec::new(),
            mtu: shape.mtu.min(MTU_MAX),
        };
        let mtu = network.mtu as u32;
        for (number, host) in hosts.iter().enumerate() {
            let namespace = NetworkNamespace::create()?;
            for (name, value) in PARAMETERS {
                namespace.set_parameter(name, value)?;
            }
            let forwards = if shape.forwards { "1" } else { "0" };
            namespace.set_parameter("net/ipv4/ip_forward", forwards)?;
            let port = match shape.joint {
                Joint::Veth => hub.run(|| Port::veth(number, &namespace, mtu))??,
                Joint::Tap => namespace.run(Port::tap)??,
            };
            namespace.run(|| raise(host, shape.prefix, mtu))??;
            network.hosts.push(namespace);
            network.ports.push(port);
        }
        for (namespace, host) in network.hosts.iter().zip(hosts) {
            namespace.run(|| settle(host))??;
        }
        Ok(network)
    }

    /// How many hosts there are.
    pub fn len(&self) -> usize {
        self.hosts.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    /// The namespace of host `number`.
    pub fn host(&self, number: usize) -> Option<&NetworkNamespace> {
        self.hosts.get(number)
    }
}

/// Gives the interface what it needs and turns it on.
fn raise(host: &Host, prefix: u8, mtu: u32) -> Result<()> {
    let links = Links::open()?;
    links.set_hardware(INTERFACE, host.address.to_eui48())?;
    links.set_mtu(INTERFACE, mtu)?;
    // Who sends here takes airtime of the others: programs that care can know.
    links.set_alias(INTERFACE, &format!("{}, emulated", wireless::ALIAS))?;
    links.add_address(INTERFACE, host.ipv4, prefix)?;
    Interface::find(INTERFACE)?.offloads_off()?;
    links.up(INTERFACE)
}

/// Waits until the interface carries frames, and adds the routes over it.
fn settle(host: &Host) -> Result<()> {
    let end = Instant::now() + PATIENCE;
    while !Interface::find(INTERFACE)?.running && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(2));
    }
    let links = Links::open()?;
    host.routes
        .iter()
        .try_for_each(|&(to, via)| links.add_route(INTERFACE, (to, 32), via))
}
