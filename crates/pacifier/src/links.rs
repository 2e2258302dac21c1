//! Delivery ratios from the ETX phase, and shortest paths over them.

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use crate::set::NodeSet;

/// Most nodes in one network: frames name nodes by one octet (pacifier V-B, footnote 5).
pub const NODES_MAX: usize = 256;

/// The delivery ratio of every directed link: the probability that a broadcast of one node reaches another.
///
/// Measured by the [`Prober`](crate::Prober) of each node, then made known to all of them
/// (pacifier IV-A). Every node of a run shares one `Links`.
#[derive(Clone, Debug, PartialEq)]
pub struct Links {
    nodes: usize,
    /// Row by row: `ratios[from * nodes + to]`.
    ratios: Vec<f64>,
}

/// Why a table of delivery ratios cannot be used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LinksError {
    /// No node, or more than [`NODES_MAX`].
    Nodes {
        /// How many were given.
        given: usize,
    },
    /// The table does not have one entry for each ordered pair of nodes.
    Shape {
        /// How many entries were given.
        given: usize,
        /// How many entries are needed: nodes times nodes.
        needed: usize,
    },
    /// A ratio that is not a number from 0 to 1.
    Ratio {
        /// The transmitter of the link.
        from: u16,
        /// The receiver of the link.
        to: u16,
        /// The ratio given for it.
        ratio: f64,
    },
}

/// Shortest paths between one root and every node, as one tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Paths {
    root: u16,
    cost: Vec<f64>,
    hops: Vec<u16>,
    next: Vec<Option<u16>>,
}

impl Links {
    /// Delivery ratios of `nodes` nodes, row by row: entry `from * nodes + to`. The diagonal is ignored.
    pub fn new(nodes: usize, ratios: Vec<f64>) -> Result<Links, LinksError> {
        if nodes == 0 || nodes > NODES_MAX {
            return Err(LinksError::Nodes { given: nodes });
        }
        if ratios.len() != nodes * nodes {
            let (given, needed) = (ratios.len(), nodes * nodes);
            return Err(LinksError::Shape { given, needed });
        }
        let bad = ratios
            .iter()
            .position(|ratio| !(0.0..=1.0).contains(ratio))
            .filter(|place| place / nodes != place % nodes);
        if let Some(place) = bad {
            let (from, to) = ((place / nodes) as u16, (place % nodes) as u16);
            let ratio = ratios.get(place).copied().unwrap_or(f64::NAN);
            return Err(LinksError::Ratio { from, to, ratio });
        }
        Ok(Links { nodes, ratios })
    }

    /// As [`new`](Self::new), asking `ratio(from, to)` for every pair of different nodes.
    pub fn measured(
        nodes: usize,
        mut ratio: impl FnMut(u16, u16) -> f64,
    ) -> Result<Links, LinksError> {
        if nodes > NODES_MAX {
            return Err(LinksError::Nodes { given: nodes });
        }
        let pairs = (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from as u16, to as u16)));
        let ratios = pairs
            .map(|(from, to)| if from == to { 0.0 } else { ratio(from, to) })
            .collect();
        Links::new(nodes, ratios)
    }

    /// The number of nodes; they are numbered from 0.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Whether a node of this number exists.
    pub fn has(&self, node: u16) -> bool {
        usize::from(node) < self.nodes
    }

    /// The delivery ratio from one node to another, 0 to 1; 0 to itself and for unknown nodes.
    pub fn ratio(&self, from: u16, to: u16) -> f64 {
        if from == to || !self.has(from) || !self.has(to) {
            return 0.0;
        }
        let place = usize::from(from) * self.nodes + usize::from(to);
        self.ratios.get(place).copied().unwrap_or(0.0)
    }

    /// Shortest paths from `source` to every node.
    ///
    /// The cost of a link is 1/p in the direction of the data. The paper does not say whether its ETX counts
    /// the way back too; data are broadcast and never confirmed by the MAC, and its credits (eqs. 1 to 4)
    /// know the forward loss only.
    pub fn etx_paths(&self, source: u16) -> Paths {
        self.shortest(source, |near, far| self.ratio(near, far))
    }

    /// Shortest paths from `source` over these nodes only.
    pub fn etx_paths_among(&self, source: u16, nodes: &NodeSet) -> Paths {
        self.shortest(source, |near, far| {
            match (near == source || nodes.contains(near)) && nodes.contains(far) {
                true => self.ratio(near, far),
                false => 0.0,
            }
        })
    }

    /// Shortest paths from every node to `destination`, with the same cost: MORE's order of nodes.
    pub fn etx_to(&self, destination: u16) -> Paths {
        self.shortest(destination, |near, far| self.ratio(far, near))
    }

    /// The paths that ACKs take from every node to `source`.
    ///
    /// An ACK is unicast and the MAC confirms it, so the cost of a link is 1/(p there * p back): ETX as
    /// De Couto et al. (MobiCom 2003) define it.
    pub fn ack_paths(&self, source: u16) -> Paths {
        self.shortest(source, |near, far| {
            self.ratio(near, far) * self.ratio(far, near)
        })
    }

    /// Dijkstra in O(n^2). `ratio(near, far)` is the delivery ratio of the link between a node and one that
    /// is farther from the root.
    ///
    /// Fewer hops decide between equal costs, then the smaller number of the neighbour on the path: a path must not
    /// depend on the order of a loop.
    fn shortest(&self, root: u16, ratio: impl Fn(u16, u16) -> f64) -> Paths {
        let mut paths = Paths {
            root,
            cost: vec![f64::INFINITY; self.nodes],
            hops: vec![u16::MAX; self.nodes],
            next: vec![None; self.nodes],
        };
        paths.improve(root, 0.0, 0, None);
        let mut open = vec![true; self.nodes];
        while let Some(near) = paths.nearest(&open) {
            if let Some(flag) = open.get_mut(usize::from(near)) {
                *flag = false;
            }
            let (cost, hops) = (paths.cost(near), paths.hops_or_max(near).saturating_add(1));
            for far in (0..self.nodes as u16).filter(|&far| far != near) {
                let ratio = ratio(near, far);
                if ratio > 0.0 && open.get(usize::from(far)) == Some(&true) {
                    paths.improve(far, cost + 1.0 / ratio, hops, Some(near));
                }
            }
        }
        paths
    }
}

impl Paths {
    /// The node that all paths start or end at.
    pub fn root(&self) -> u16 {
        self.root
    }

    /// The length of the path, in expected transmissions; infinite if there is none.
    pub fn cost(&self, node: u16) -> f64 {
        let cost = self.cost.get(usize::from(node)).copied();
        cost.unwrap_or(f64::INFINITY)
    }

    /// Whether there is a path.
    pub fn reaches(&self, node: u16) -> bool {
        self.cost(node).is_finite()
    }

    /// The neighbour on the path that is one hop nearer to the root; `None` at the root and without a path.
    pub fn next(&self, node: u16) -> Option<u16> {
        self.next.get(usize::from(node)).copied().flatten()
    }

    /// The number of hops, if there is a path.
    pub fn hops(&self, node: u16) -> Option<u16> {
        self.reaches(node).then(|| self.hops_or_max(node))
    }

    /// The order in which nodes are processed and listed: by cost, equal costs by number.
    pub fn order(&self, a: u16, b: u16) -> core::cmp::Ordering {
        self.cost(a).total_cmp(&self.cost(b)).then(a.cmp(&b))
    }

    fn hops_or_max(&self, node: u16) -> u16 {
        let hops = self.hops.get(usize::from(node)).copied();
        hops.unwrap_or(u16::MAX)
    }

    fn improve(&mut self, node: u16, cost: f64, hops: u16, next: Option<u16>) {
        let old = (self.hops_or_max(node), self.next(node));
        let better =
            cost < self.cost(node) || (cost == self.cost(node) && (hops, next) < (old.0, old.1));
        if !better {
            return;
        }
        let place = usize::from(node);
        if let (Some(c), Some(h), Some(n)) = (
            self.cost.get_mut(place),
            self.hops.get_mut(place),
            self.next.get_mut(place),
        ) {
            (*c, *h, *n) = (cost, hops, next);
        }
    }

    fn nearest(&self, open: &[bool]) -> Option<u16> {
        let mut best = None;
        for (node, (&cost, &open)) in self.cost.iter().zip(open).enumerate() {
            if open && cost.is_finite() && best.is_none_or(|(least, _)| cost < least) {
                best = Some((cost, node as u16));
            }
        }
        best.map(|(_, node)| node)
    }
}

impl fmt::Display for LinksError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinksError::Nodes { given } => {
                write!(f, "{given} nodes given, 1 to {NODES_MAX} allowed")
            }
            LinksError::Shape { given, needed } => {
                write!(f, "{given} delivery ratios given, {needed} needed")
            }
            LinksError::Ratio { from, to, ratio } => {
                write!(
                    f,
                    "the delivery ratio from {from} to {to} is {ratio}, not between 0 and 1"
                )
            }
        }
    }
}

impl core::error::Error for LinksError {}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Links with these delivery ratios, and no others.
    pub(crate) fn links(nodes: usize, known: &[(u16, u16, f64)]) -> Links {
        Links::measured(nodes, |from, to| {
            let found = known.iter().find(|&&(a, b, _)| (a, b) == (from, to));
            found.map_or(0.0, |&(_, _, ratio)| ratio)
        })
        .unwrap()
    }

    #[test]
    fn paths_follow_the_direction_of_the_data() {
        // 0 -> 1 -> 2 is good forward and useless backward; 0 -> 2 directly is poor.
        let links = links(
            3,
            &[
                (0, 1, 0.5),
                (1, 2, 0.5),
                (0, 2, 0.2),
                (1, 0, 0.1),
                (2, 0, 0.2),
                (2, 1, 0.1),
            ],
        );
        let forward = links.etx_paths(0);
        assert_eq!((forward.cost(2), forward.next(2)), (4.0, Some(1)));
        assert_eq!(forward.hops(2), Some(2));
        let to = links.etx_to(2);
        assert_eq!((to.cost(0), to.next(0)), (4.0, Some(1)));
        let acks = links.ack_paths(0);
        assert_eq!(acks.next(2), Some(0), "1/(0.2*0.2) = 25 < 2/(0.5*0.1) = 40");
    }

    #[test]
    fn equal_costs_go_by_hops_then_by_number() {
        // 0 -> 3 by 1 or by 2 at the same cost; 0 -> 4 directly or over 1 at the same cost.
        let known = [
            (0, 2, 0.5),
            (2, 3, 0.5),
            (0, 1, 0.5),
            (1, 3, 0.5),
            (0, 4, 0.25),
            (1, 4, 0.5),
        ];
        let paths = links(5, &known).etx_paths(0);
        assert_eq!(paths.next(3), Some(1));
        assert_eq!(paths.next(4), Some(0));
        // Fewer hops count for more than the smaller number: 2 -> 0 directly, not over 1.
        let paths = links(3, &[(2, 0, 0.25), (2, 1, 0.5), (1, 0, 0.5)]).etx_paths(2);
        assert_eq!(
            (paths.cost(0), paths.next(0), paths.hops(0)),
            (4.0, Some(2), Some(1))
        );
    }

    #[test]
    fn unknown_and_unreachable_nodes_have_no_path() {
        let paths = links(3, &[(0, 1, 1.0)]).etx_paths(0);
        assert!(!paths.reaches(2) && !paths.reaches(9));
        assert_eq!(
            (paths.next(0), paths.next(2), paths.hops(2)),
            (None, None, None)
        );
        assert_eq!(links(3, &[(0, 1, 1.0)]).ratio(7, 0), 0.0);
    }

    #[test]
    fn bad_tables_are_refused() {
        assert_eq!(Links::new(0, vec![]), Err(LinksError::Nodes { given: 0 }));
        assert_eq!(
            Links::new(2, vec![0.0; 3]),
            Err(LinksError::Shape {
                given: 3,
                needed: 4
            })
        );
        assert!(matches!(
            Links::new(2, vec![0.0, f64::NAN, 0.0, 0.0]),
            Err(LinksError::Ratio { from: 0, to: 1, .. })
        ));
        assert!(Links::new(2, vec![0.0, 1.5, 0.0, 0.0]).is_err());
        assert!(Links::new(2, vec![9.0, 1.0, 0.0, 9.0]).is_ok());
    }
}
