//! The source's plan for the receivers that still lack a batch: which nodes forward, and how much.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::frame::octet;
use crate::links::{Links, Paths};
use crate::paper::config::Variant;
use crate::paper::credit::{self, Credit};
use crate::paper::header;
use crate::paper::more::{self, Belt};
use crate::set::NodeSet;
use crate::tree::Tree;

/// Makes plans for one source and its receivers.
#[derive(Clone, Debug)]
pub(crate) struct Planner {
    links: Arc<Links>,
    variant: Variant,
    source: u16,
    paths: Paths,
    /// MORE only: one for each receiver, computed once, since a belt depends on its own receiver only.
    belts: Vec<Belt>,
}

/// Forwarding nodes and credits for one set of receivers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    /// The forwarding nodes in the octets of a frame.
    pub forwarders: Vec<u8>,
    /// MORE only: the receivers in the octets of a frame.
    pub destinations: Vec<u8>,
    /// z_s: transmissions of the source for each packet.
    pub transmissions: f64,
    /// Forwarding nodes that are children of the source; empty for MORE, which does not pace itself.
    pub children: NodeSet,
    /// The sum of their credits.
    pub children_credit: f64,
    /// Their transmissions that one transmission of the source earns, on average: the sum of their credits, each times the
    /// probability that the child hears the source.
    pub triggered: f64,
}

impl Planner {
    pub fn new(links: Arc<Links>, variant: Variant, source: u16, receivers: NodeSet) -> Planner {
        let paths = links.etx_paths(source);
        let belts = match variant {
            Variant::More { prune } => receivers
                .iter()
                .filter_map(|receiver| Belt::new(&links, source, receiver, prune))
                .collect(),
            _ => Vec::new(),
        };
        Planner {
            links,
            variant,
            source,
            paths,
            belts,
        }
    }

    /// Receivers that pruning has cut off; never any with a tree.
    pub fn cut_off(&self) -> Vec<u16> {
        let broken = self.belts.iter().filter(|belt| !belt.connected());
        broken.map(|belt| belt.destination).collect()
    }

    /// The plan that serves `missing`.
    pub fn plan(&self, missing: &NodeSet) -> Plan {
        match self.variant {
            Variant::More { .. } => self.belt_plan(missing),
            Variant::Tree | Variant::TreeRl => self.tree_plan(missing, 1.0),
            Variant::Pacifier { knob } => self.tree_plan(missing, knob),
        }
    }

    //= pacifier II-A: belts that lead only to receivers that have the batch are dropped
    fn belt_plan(&self, missing: &NodeSet) -> Plan {
        let belts: Vec<&Belt> = self
            .belts
            .iter()
            .filter(|belt| missing.contains(belt.destination))
            .collect();
        let credits = more::credits(&self.links, self.source, &belts);
        let mut plan = Plan::listing(&credits);
        plan.destinations = missing.iter().map(octet).collect();
        plan
    }

    fn tree_plan(&self, missing: &NodeSet, knob: f64) -> Plan {
        let tree = Tree::new(&self.paths, missing.iter());
        let credits = credit::credits(&self.links, &tree, knob);
        let mut plan = Plan::listing(&credits);
        let children = tree
            .forwarders
            .first()
            .map_or(&[][..], |source| &source.children);
        for credit in credits
            .iter()
            .filter(|credit| children.contains(&credit.node))
        {
            plan.children.insert(credit.node);
            plan.children_credit += credit.credit;
            plan.triggered += credit.credit * self.links.ratio(self.source, credit.node);
        }
        plan
    }
}

impl Plan {
    /// The list for the frames, without the source, which is named in every frame anyway.
    fn listing(credits: &[Credit]) -> Plan {
        let mut plan = Plan::default();
        if let Some((source, others)) = credits.split_first() {
            plan.transmissions = source.transmissions;
            for credit in others {
                header::push_forwarder(&mut plan.forwarders, credit.node, credit.credit);
            }
        }
        plan
    }

    /// How many nodes forward, the source not counted.
    pub fn forwarder_count(&self) -> usize {
        self.forwarders.len() / header::FORWARDER
    }
}
