//! Routes over a mesh of routers with leaves, as in Thread: every router knows a next hop to every other router, and a
//! leaf's address contains its parent's number.
//!
//! A 16-bit address is `router id << 10 | child id` (Thread's RLOC16); a router's own has child id 0. Next hops
//! follow from link costs: the path with the smallest sum.

use core::net::Ipv6Addr;

use chappe_core::Address;

use super::routes::same_network;
use super::{Route, Routes, node_of};

/// Bits of the child id in an address.
const CHILD_BITS: u16 = 10;

/// The address of a router, or of its `child`-th child (from 1).
pub const fn address(router: u8, child: u16) -> Address {
    Address::node((router as u16) << CHILD_BITS | child & ((1 << CHILD_BITS) - 1))
}

/// The next hops of router `me`: for each destination, the neighbour on the cheapest path.
///
/// `costs[a][b]` is the cost of a frame from `a` to `b`, 0 for no link; Thread takes 1, 2 and 4 for good, fair and poor
/// links (16 and more is none). Bellman-Ford; ties go to the smaller number, so that all nodes agree.
pub fn next_hops<const N: usize>(costs: &[[u8; N]; N], me: usize) -> [Option<u8>; N] {
    let far = u16::MAX;
    let mut distance = [far; N];
    let mut next = [None; N];
    if let Some(own) = distance.get_mut(me) {
        *own = 0;
    }
    // Paths have at most N - 1 links and costs are positive, so N rounds suffice.
    for _ in 0..N {
        for (from, row) in costs.iter().enumerate() {
            let (Some(&so_far), hop) = (distance.get(from), next.get(from).copied().flatten())
            else {
                continue;
            };
            if so_far == far {
                continue;
            }
            for (to, &cost) in row.iter().enumerate() {
                let sum = so_far.saturating_add(u16::from(cost));
                let (Some(best), Some(place)) = (distance.get_mut(to), next.get_mut(to)) else {
                    continue;
                };
                if cost > 0 && sum < *best {
                    *best = sum;
                    *place = if from == me { Some(to as u8) } else { hop };
                }
            }
        }
    }
    next
}

/// A router of the mesh, with up to `ROUTERS` routers and up to `CHILDREN` sleepy children.
#[derive(Clone, Copy, Debug)]
pub struct Mesh<const ROUTERS: usize, const CHILDREN: usize> {
    /// This node's link-layer address.
    node: Address,
    /// This router's number, or that of a leaf's parent.
    me: u8,
    prefix: Ipv6Addr,
    next: [Option<u8>; ROUTERS],
    children: [Option<Address>; CHILDREN],
    /// The router that leads out of the mesh.
    border: u8,
}

impl<const ROUTERS: usize, const CHILDREN: usize> Mesh<ROUTERS, CHILDREN> {
    /// Router `me` of the mesh `prefix`, whose border router is `border`.
    pub fn new(me: u8, prefix: Ipv6Addr, border: u8, costs: &[[u8; ROUTERS]; ROUTERS]) -> Self {
        Mesh {
            node: address(me, 0),
            me,
            prefix,
            next: next_hops(costs, usize::from(me)),
            children: [None; CHILDREN],
            border,
        }
    }

    /// A leaf: child `child` of router `parent`, to which it sends everything that is not its own.
    pub const fn leaf(parent: u8, child: u16, prefix: Ipv6Addr) -> Self {
        Mesh {
            node: address(parent, child),
            me: parent,
            prefix,
            next: [None; ROUTERS],
            children: [None; CHILDREN],
            border: parent,
        }
    }

    /// Adds a sleepy child. False if there is no room.
    pub fn add_child(&mut self, child: Address) -> bool {
        match self.children.iter_mut().find(|place| place.is_none()) {
            Some(place) => {
                *place = Some(child);
                true
            }
            None => false,
        }
    }

    fn towards(&self, router: u8) -> Route {
        match self.next.get(usize::from(router)).copied().flatten() {
            Some(next) => Route::Via(address(next, 0)),
            None => Route::Nowhere,
        }
    }
}

impl<const ROUTERS: usize, const CHILDREN: usize> Routes for Mesh<ROUTERS, CHILDREN> {
    fn route(&self, destination: Ipv6Addr) -> Route {
        let local = destination.is_unicast_link_local();
        let parent = address(self.me, 0);
        if self.node != parent {
            return match node_of(destination) == Some(self.node) {
                true => Route::Here,
                false => Route::Via(parent),
            };
        }
        let inside = local || same_network(destination, self.prefix);
        let Some(node) = node_of(destination).filter(|_| inside) else {
            return match self.border == self.me {
                true => Route::Here,
                false => self.towards(self.border),
            };
        };
        let number = node.node_number().unwrap_or_default();
        let router = (number >> CHILD_BITS) as u8;
        if node == self.node {
            Route::Here
        } else if local || (router == self.me && self.children.contains(&Some(node))) {
            Route::Via(node)
        } else if router == self.me {
            Route::Nowhere
        } else {
            self.towards(router)
        }
    }

    fn is_sleepy(&self, neighbour: Address) -> bool {
        self.children.contains(&Some(neighbour))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four routers: 0 - 1 - 2 - 3 good links, and a poor one 0 - 3 that costs more than the way round by one.
    const COSTS: [[u8; 4]; 4] = [[0, 1, 0, 4], [1, 0, 1, 0], [0, 1, 0, 1], [4, 0, 1, 0]];

    #[test]
    fn the_cheapest_path_wins() {
        assert_eq!(next_hops(&COSTS, 0), [None, Some(1), Some(1), Some(1)]);
        assert_eq!(next_hops(&COSTS, 3), [Some(2), Some(2), Some(2), None]);
        let mut apart = COSTS;
        apart[1][2] = 0;
        assert_eq!(next_hops(&apart, 0), [None, Some(1), Some(3), Some(3)]);
    }

    #[test]
    fn addresses_name_their_router() {
        let prefix = "fd00::".parse().unwrap();
        let mut mesh = Mesh::<4, 2>::new(1, prefix, 0, &COSTS);
        assert!(mesh.add_child(address(1, 5)));
        let to = |node: Address| {
            let number = node.node_number().unwrap();
            let address = std::format!("fd00::ff:fe00:{number:x}").parse();
            mesh.route(address.unwrap())
        };
        assert_eq!(to(address(1, 0)), Route::Here);
        assert_eq!(to(address(1, 5)), Route::Via(address(1, 5)));
        assert_eq!(to(address(1, 6)), Route::Nowhere);
        assert_eq!(to(address(3, 9)), Route::Via(address(2, 0)));
        assert_eq!(
            mesh.route("2001:db8::1".parse().unwrap()),
            Route::Via(address(0, 0))
        );
    }

    extern crate std;
}
