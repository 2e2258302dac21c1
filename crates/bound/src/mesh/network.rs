//! Links, flows, and conflicts between links.

use crate::error::Error;
use crate::graph::Graph;

/// One direction of a radio link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeshLink {
    /// The node that transmits on the link.
    pub from: usize,
    /// The node that receives on the link.
    pub to: usize,
    /// Payload in bit/s when the link has the channel for itself all the time: what the MAC carries on a single link,
    /// over its expected number of transmissions.
    pub rate_bps: f64,
}

/// Traffic from one node to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeshFlow {
    /// The node where the flow begins.
    pub source: usize,
    /// The node where the flow ends.
    pub sink: usize,
}

/// When two links cannot be on at the same time. Links with a node in common never can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// Only if they have a node in common: the node-exclusive model.
    NodeExclusive,
    /// If a sender of one disturbs the receiver of the other: no acknowledgements.
    DataOnly,
    /// If any end of one disturbs any end of the other: data and acknowledgements, or carrier sense.
    Symmetric,
}

/// A mesh: links and their conflict graph.
#[derive(Clone, Debug)]
pub struct Mesh {
    nodes: usize,
    links: Vec<MeshLink>,
    conflicts: Graph,
}

impl Mesh {
    /// A mesh of checked links; `disturbs(a, b)`: whether a transmission of node a disturbs node b.
    pub fn new(
        nodes: usize,
        links: Vec<MeshLink>,
        conflict: Conflict,
        disturbs: impl Fn(usize, usize) -> bool,
    ) -> Result<Mesh, Error> {
        let mut conflicts = Graph::new(links.len());
        for (b, other) in links.iter().enumerate() {
            for (a, link) in links[..b].iter().enumerate() {
                if conflict.holds(link, other, &disturbs) {
                    conflicts.connect(a, b);
                }
            }
        }
        Mesh::with_conflicts(nodes, links, conflicts)
    }

    /// A mesh with a conflict graph over the links' places in the list. Links that share a node should be connected
    /// in it; otherwise the bound is for nodes that can use several links at once.
    pub fn with_conflicts(
        nodes: usize,
        links: Vec<MeshLink>,
        conflicts: Graph,
    ) -> Result<Mesh, Error> {
        if nodes == 0 {
            return Err(Error::NoNodes);
        }
        if conflicts.vertices() != links.len() {
            return Err(Error::Shape {
                table: "conflicts",
                expected: links.len(),
                got: conflicts.vertices(),
            });
        }
        for (number, link) in links.iter().enumerate() {
            for node in [link.from, link.to] {
                if node >= nodes {
                    return Err(Error::NoSuchNode { node, nodes });
                }
            }
            if link.from == link.to {
                return Err(Error::LoopLink {
                    link: number,
                    node: link.from,
                });
            }
            if !(link.rate_bps > 0.0 && link.rate_bps.is_finite()) {
                return Err(Error::LinkRate {
                    link: number,
                    value: link.rate_bps,
                });
            }
        }
        Ok(Mesh {
            nodes,
            links,
            conflicts,
        })
    }

    /// Number of nodes; they are called `0..nodes`.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// The links, in the order in which they were given.
    pub fn links(&self) -> &[MeshLink] {
        &self.links
    }

    /// The conflict graph: links that exclude each other are adjacent.
    pub fn conflicts(&self) -> &Graph {
        &self.conflicts
    }

    /// The fastest link's rate: the unit of the linear programs.
    pub(super) fn unit_bps(&self) -> f64 {
        (self.links.iter().map(|link| link.rate_bps)).fold(f64::MIN_POSITIVE, f64::max)
    }

    /// Refuses flows that name unknown nodes or cannot reach their sink.
    pub(super) fn check(&self, flows: &[MeshFlow]) -> Result<(), Error> {
        if flows.is_empty() {
            return Err(Error::NoFlows);
        }
        for &MeshFlow { source, sink } in flows {
            for node in [source, sink] {
                if node >= self.nodes {
                    return Err(Error::NoSuchNode {
                        node,
                        nodes: self.nodes,
                    });
                }
            }
            if source == sink || !self.reaches(source, sink) {
                return Err(Error::NoRoute { source, sink });
            }
        }
        Ok(())
    }

    fn reaches(&self, source: usize, sink: usize) -> bool {
        let mut seen = vec![false; self.nodes];
        let mut open = vec![source];
        seen[source] = true;
        while let Some(node) = open.pop() {
            for link in self.links.iter().filter(|link| link.from == node) {
                if !std::mem::replace(&mut seen[link.to], true) {
                    open.push(link.to);
                }
            }
        }
        seen[sink]
    }
}

impl Conflict {
    fn holds(self, a: &MeshLink, b: &MeshLink, disturbs: &impl Fn(usize, usize) -> bool) -> bool {
        let shared = [a.from, a.to]
            .iter()
            .any(|end| [b.from, b.to].contains(end));
        let any = |pairs: &[(usize, usize)]| pairs.iter().any(|&(from, to)| disturbs(from, to));
        shared
            || match self {
                Conflict::NodeExclusive => false,
                Conflict::DataOnly => any(&[(a.from, b.to), (b.from, a.to)]),
                Conflict::Symmetric => any(&[
                    (a.from, b.to),
                    (b.from, a.to),
                    (a.from, b.from),
                    (b.from, a.from),
                    (a.to, b.to),
                    (b.to, a.to),
                    (a.to, b.from),
                    (b.to, a.from),
                ]),
            }
    }
}
