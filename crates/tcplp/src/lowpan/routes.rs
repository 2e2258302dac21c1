//! Next hops: the routing interface, and static routes.

use core::net::Ipv6Addr;

use chappe_core::Address;
use chappe_wire::dot15d4::Node;

/// The next step of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// To this host; at a border router also everything outside the mesh.
    Here,
    /// To this neighbour, which forwards it or is its destination.
    Via(Address),
    /// There is no route: the packet is dropped.
    Nowhere,
}

/// Routes for unicast destinations. The interface handles multicast itself.
pub trait Routes {
    /// The route of a packet to `destination`.
    fn route(&self, destination: Ipv6Addr) -> Route;

    /// Whether a neighbour sleeps and polls for its frames. It may then have two frames in the MAC, so that the first can
    /// announce the second (frame pending bit).
    fn is_sleepy(&self, _neighbour: Address) -> bool {
        false
    }
}

/// The node whose 16-bit number is in the interface identifier of `address` (RFC 6282 3.2.2); `None` for others.
pub fn node_of(address: Ipv6Addr) -> Option<Address> {
    match address.octets() {
        [_, _, _, _, _, _, _, _, 0, 0, 0, 0xff, 0xfe, 0, high, low] => {
            let number = u16::from_be_bytes([high, low]);
            Some(Node::Short(number).address()).filter(|node| !node.is_broadcast())
        }
        _ => None,
    }
}

/// Whether two addresses share their first 64 bits.
pub(super) fn same_network(a: Ipv6Addr, b: Ipv6Addr) -> bool {
    u128::from(a) >> 64 == u128::from(b) >> 64
}

/// A leaf: sends everything that is not its own to its parent.
#[derive(Clone, Copy, Debug)]
pub struct Leaf {
    /// The leaf's own link-layer address.
    pub node: Address,
    /// Its parent's link-layer address.
    pub parent: Address,
}

impl Routes for Leaf {
    fn route(&self, destination: Ipv6Addr) -> Route {
        match node_of(destination) {
            Some(node) if node == self.node => Route::Here,
            _ => Route::Via(self.parent),
        }
    }
}

/// Static routes: next hops for up to `N` nodes, and a default.
#[derive(Clone, Copy, Debug)]
pub struct Table<const N: usize> {
    node: Address,
    prefix: Ipv6Addr,
    entries: [Option<(Address, Address)>; N],
    sleepy: [Option<Address>; N],
    otherwise: Route,
}

impl<const N: usize> Table<N> {
    /// A table for `node` of the mesh `prefix`. Destinations outside, and nodes without an entry, take `otherwise`.
    pub fn new(node: Address, prefix: Ipv6Addr, otherwise: Route) -> Table<N> {
        Table {
            node,
            prefix,
            entries: [None; N],
            sleepy: [None; N],
            otherwise,
        }
    }

    /// Adds a route: packets to `node` go to `next`. False if the table is full.
    pub fn add(&mut self, node: Address, next: Address) -> bool {
        let old = |entry: &&mut Option<(Address, Address)>| matches!(entry, Some((known, _)) if *known == node);
        if let Some(entry) = self.entries.iter_mut().find(old) {
            *entry = Some((node, next));
            return true;
        }
        match self.entries.iter_mut().find(|entry| entry.is_none()) {
            Some(entry) => {
                *entry = Some((node, next));
                true
            }
            None => false,
        }
    }

    /// Adds a sleepy child, which is a neighbour. False if the table is full.
    pub fn add_child(&mut self, child: Address) -> bool {
        let place = self.sleepy.iter_mut().find(|place| place.is_none());
        match place {
            Some(place) => *place = Some(child),
            None => return false,
        }
        self.add(child, child)
    }
}

impl<const N: usize> Routes for Table<N> {
    fn route(&self, destination: Ipv6Addr) -> Route {
        let local = destination.is_unicast_link_local();
        let node = node_of(destination).filter(|_| local || same_network(destination, self.prefix));
        match node {
            Some(node) if node == self.node => Route::Here,
            // A link-local destination can only be a neighbour.
            Some(node) if local => Route::Via(node),
            Some(node) => self
                .entries
                .iter()
                .flatten()
                .find(|(known, _)| *known == node)
                .map_or(self.otherwise, |(_, next)| Route::Via(*next)),
            None => self.otherwise,
        }
    }

    fn is_sleepy(&self, neighbour: Address) -> bool {
        self.sleepy.contains(&Some(neighbour))
    }
}
