//! Routes to networks behind other nodes, in the kernel's main table, where the configuration asks for it.

use std::collections::BTreeSet;

use chappe_core::Instant;
use chappe_sys::Links;

use crate::node::Node;
use crate::packet::Net;

/// The routing protocol number of exported routes: babeld has 42 (rtnetlink.h), and this one is free.
const PROTOCOL: u8 = 94;
/// The kernel's metric of exported routes: behind those that the administrator adds (0) and babeld's (0), so that the mesh is
/// what remains.
const METRIC: u32 = 1024;

/// The routes that are in the kernel now.
#[derive(Debug)]
pub struct Exports {
    device: String,
    links: Links,
    there: BTreeSet<Net>,
    /// The kernel's last refusal.
    pub refused: Option<String>,
}

impl Exports {
    /// Nothing is exported yet.
    pub fn new(device: &str, links: Links) -> Exports {
        Exports {
            device: device.into(),
            links,
            there: BTreeSet::new(),
            refused: None,
        }
    }

    /// Adds and removes routes, so that the kernel has those to the networks behind reachable nodes.
    pub fn follow(&mut self, node: &Node, now: Instant) {
        let own = node.config().behind.clone();
        let reachable = node
            .announced(now)
            .filter(|(to, _)| node.router().distance(*to).is_some());
        let wanted: BTreeSet<Net> = reachable
            .flat_map(|(_, nets)| nets.iter().copied())
            .filter(|net| !own.contains(net))
            .collect();
        let gone: Vec<Net> = self.there.difference(&wanted).copied().collect();
        for net in gone {
            self.remove(net);
        }
        for net in wanted {
            if self.there.contains(&net) {
                continue;
            }
            match self.links.add_device_route(
                &self.device,
                (net.address, net.prefix),
                PROTOCOL,
                METRIC,
            ) {
                Ok(()) => {
                    self.there.insert(net);
                }
                Err(error) => self.refused = Some(error.to_string()),
            }
        }
    }

    /// Removes all of them.
    pub fn withdraw(&mut self) {
        for net in std::mem::take(&mut self.there) {
            self.remove(net);
        }
    }

    fn remove(&mut self, net: Net) {
        self.there.remove(&net);
        let removed = self.links.remove_device_route(
            &self.device,
            (net.address, net.prefix),
            PROTOCOL,
            METRIC,
        );
        if let Err(error) = removed {
            self.refused = Some(error.to_string());
        }
    }
}
