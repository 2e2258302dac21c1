//! Whom to hand a packet.

use core::net::Ipv6Addr;

use chappe_core::Address;
use chappe_wire::dot15d4::Node;

/// Where a packet goes from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// To this host; at a border router also whatever lies outside the mesh.
    Here,
    /// To this neighbour.
    Via(Address),
    /// Nobody knows.
    Nowhere,
}

/// Decides for each unicast destination. Groups are the interface's business.
pub trait Routes {
    /// Where a packet to `destination` goes.
    fn route(&self, destination: Ipv6Addr) -> Route;

    /// Whether a neighbour sleeps and fetches its frames: it may have two of them in the MAC, so that the first can
    /// announce the second.
    fn is_sleepy(&self, _neighbour: Address) -> bool {
        false
    }
}

/// The node that an address with the interface identifier of a numbered node belongs to.
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

/// A leaf: what is not its own goes to its parent.
#[derive(Clone, Copy, Debug)]
pub struct Leaf {
    /// Its own node.
    pub node: Address,
    /// Its parent.
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

/// Routes by hand: next hops of single nodes, and one for the rest.
#[derive(Clone, Copy, Debug)]
pub struct Table<const N: usize> {
    node: Address,
    prefix: Ipv6Addr,
    entries: [Option<(Address, Address)>; N],
    sleepy: [Option<Address>; N],
    otherwise: Route,
}

impl<const N: usize> Table<N> {
    /// A table for `node` of the mesh `prefix`. What lies outside, and nodes without an entry, go `otherwise`.
    pub fn new(node: Address, prefix: Ipv6Addr, otherwise: Route) -> Table<N> {
        Table {
            node,
            prefix,
            entries: [None; N],
            sleepy: [None; N],
            otherwise,
        }
    }

    /// Packets to `node` go to `next`. False if the table is full.
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

    /// A child that sleeps: a neighbour of its own. False if the table is full.
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
            // A link-local destination is a neighbour or nobody.
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
