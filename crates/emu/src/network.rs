//! The hosts: one network namespace each, with one interface, an address, and routes.
//!
//! Nothing is mounted or named in the file system. The namespaces and interfaces live as long as this value and the
//! programs in them, so they vanish with the process, however it ends.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use chappe_core::Address;
use chappe_sys::namespace::NetworkNamespace;
use chappe_sys::{Interface, Links, Result, wireless};

use crate::interface::{INTERFACE, MTU_MAX};
use crate::port::Port;

/// How a host's interface is connected to the emulator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Joint {
    /// A veth pair with a packet socket: many frames per system call, and no privilege on the host.
    #[default]
    Veth,
    /// A TAP device, for kernels without veth. Needs permission to open /dev/net/tun.
    Tap,
}

/// The configuration of one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// The link-layer address of its radio and its interface.
    pub address: Address,
    /// The IPv4 address of its interface.
    pub ipv4: Ipv4Addr,
    /// Static routes: destination host and next hop.
    pub routes: Vec<(Ipv4Addr, Ipv4Addr)>,
}

impl Host {
    /// Host number `node`, from 0, with the address 10.17.0.1 and up, without routes. A [`Shape::prefix`] of 16 has all of them.
    pub fn numbered(node: u16) -> Host {
        let [high, low] = node.wrapping_add(1).to_be_bytes();
        Host {
            address: Address::node(node),
            ipv4: [10, 17, high, low].into(),
            routes: Vec::new(),
        }
    }
}

/// Configuration that all hosts share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Prefix length of the hosts' addresses, in bits.
    pub prefix: u8,
    /// The interfaces' MTU in octets, at most 2400.
    pub mtu: usize,
    /// Whether hosts forward packets (`ip_forward`).
    pub forwards: bool,
    /// How the interfaces are connected to the emulator.
    pub joint: Joint,
}

/// The hosts' namespaces and the emulator's ends of their interfaces.
#[derive(Debug)]
pub struct Network {
    pub(crate) hosts: Vec<NetworkNamespace>,
    pub(crate) ports: Vec<Port>,
    pub(crate) mtu: usize,
}

/// The longest wait for an interface to come up.
const PATIENCE: Duration = Duration::from_secs(10);

/// After how many ms a host repeats a request of ARP, and how many it sends. A request is a broadcast, which no radio repeats. The
/// kernel's usual second would delay the first packets over a lossy hop by that much; the requests take three seconds as usual.
const ARP: (u64, u32) = (100, 30);

/// Kernel parameters of every host. A relay forwards packets through the interface they came in by. The kernel would
/// then send an ICMP redirect, but the sender cannot reach the next hop directly.
const PARAMETERS: [(&str, &str); 5] = [
    ("net/ipv4/conf/all/send_redirects", "0"),
    ("net/ipv4/conf/all/accept_redirects", "0"),
    ("net/ipv4/conf/default/send_redirects", "0"),
    ("net/ipv4/conf/default/accept_redirects", "0"),
    ("net/ipv4/conf/all/rp_filter", "0"),
];

impl Network {
    /// Creates all hosts. Needs CAP_NET_ADMIN and CAP_SYS_ADMIN over the current namespaces, which
    /// [`isolate`](chappe_sys::namespace::isolate) provides.
    pub fn make(hosts: &[Host], shape: Shape) -> Result<Network> {
        // The near ends get a separate namespace, so that the interface names of two networks do not clash.
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

    /// The number of hosts.
    pub fn len(&self) -> usize {
        self.hosts.len()
    }

    /// Whether there are no hosts.
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    /// The namespace of host `number`.
    pub fn host(&self, number: usize) -> Option<&NetworkNamespace> {
        self.hosts.get(number)
    }
}

/// Configures the interface and brings it up.
fn raise(host: &Host, prefix: u8, mtu: u32) -> Result<()> {
    let links = Links::open()?;
    links.set_hardware(INTERFACE, host.address.to_eui48())?;
    links.set_mtu(INTERFACE, mtu)?;
    // Programs recognise a shared channel by this alias (`wireless::is_radio`).
    links.set_alias(INTERFACE, &format!("{}, emulated", wireless::ALIAS))?;
    links.add_address(INTERFACE, host.ipv4, prefix)?;
    Interface::find(INTERFACE)?.offloads_off()?;
    let (repeat_ms, requests) = ARP;
    links.set_arp(INTERFACE, repeat_ms, requests)?;
    links.up(INTERFACE)
}

/// Waits until the interface carries frames, then adds the routes over it.
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
