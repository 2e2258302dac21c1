//! The paper's networks: one of six nodes, three in which flows starve, and one of 108 random nodes.

use chappe_core::{Mode, Purpose, Rate, Seed};
use chappe_sim::{Matrix, Medium, Position, Profile, topology};

use chappe_lab::run::RunError;

/// The mode of all data frames (Table I).
pub const MODE: Mode = Mode::long(Rate::Dsss2);
/// Node E of Figure 2 (A).
pub const E: usize = 4;
/// Octets of payload in a packet (Table I).
pub const PAYLOAD: usize = 200;

/// Nodes of Figure 6's network, and the side of its square in metres.
const NODES: usize = 108;
const SIDE_M: f64 = 1250.0;
/// The range of the radios in metres (Table I).
const RANGE_M: f64 = 250.0;
/// The largest number of topologies drawn for a seed.
const DRAWS: u64 = 20_000;
/// The number of sources in Figure 6.
pub const SOURCES: usize = 7;

/// A network of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PaperNetwork {
    /// Figure 2 (A): A sends to E, and D to F. Every node senses every other.
    Six {
        /// The only neighbour of F: [`E`], unless another reading of the figure is tried.
        beside: usize,
        /// Whether each link loses a share of its frames that is drawn from 0 to 0.6 (Figure 4).
        lossy: bool,
    },
    /// Figure 5 (A): A and C send to B and D; only B hears both.
    Asymmetry,
    /// Figure 5 (D): A and D send to B and C, which hear each other.
    Receivers,
    /// Figure 5 (G): A and C send to B.
    Hidden,
    /// Figure 6: seven sources, one sink.
    Large,
    /// The same with sources of at least this many hops.
    #[allow(dead_code, reason = "a reading that the example `readings` tries")]
    Beyond(u16),
}

/// A network of the paper with its flows.
#[derive(Clone, Debug)]
pub struct Scene {
    /// The medium between the nodes.
    pub medium: Medium,
    /// The source and sink of each flow.
    pub flows: Vec<(u16, u16)>,
    /// The distance in hops between source and sink of each flow.
    pub hops: Vec<u16>,
}

impl PaperNetwork {
    /// Creates the network of a seed.
    pub fn scene(self, seed: Seed) -> Result<Scene, RunError> {
        match self {
            PaperNetwork::Six { beside, lossy } => {
                small(&six(beside, lossy.then_some(seed)), &[(0, 4), (3, 5)])
            }
            PaperNetwork::Asymmetry => small(&chain(4), &[(0, 1), (2, 3)]),
            PaperNetwork::Receivers => small(&chain(4), &[(0, 1), (3, 2)]),
            PaperNetwork::Hidden => small(&chain(3), &[(0, 1), (2, 1)]),
            PaperNetwork::Large => large(seed, 1),
            PaperNetwork::Beyond(least) => large(seed, least),
        }
    }
}

/// Links A-D, D-E, A-B, B-C and C-E, and one of F. The printed figure does not show the links of F. Beside E, the fair share of
/// two flows fits the axis of Figure 4 best.
fn six(beside: usize, lossy: Option<Seed>) -> Matrix {
    let mut random = lossy.map(|seed| seed.stream(Purpose::Topology));
    let mut matrix = Matrix::silent(6);
    for (a, b) in [(0, 3), (3, 4), (0, 1), (1, 2), (2, 4), (beside, 5)] {
        let loss = random
            .as_mut()
            .map_or(0.0, |random| 0.6 * random.fraction());
        matrix = matrix.with_link(a, b, 1.0 - loss);
    }
    matrix.senses = vec![vec![true; 6]; 6];
    matrix
}

/// A row of nodes in which each node hears and senses only its neighbours.
fn chain(nodes: usize) -> Matrix {
    let links = 1..nodes;
    links.fold(Matrix::silent(nodes), |matrix, to| {
        matrix.with_link(to - 1, to, 1.0)
    })
}

fn small(matrix: &Matrix, flows: &[(u16, u16)]) -> Result<Scene, RunError> {
    let defect = |error: chappe_sim::Error| RunError::Defect(error.to_string());
    let medium = Medium::matrix(matrix).map_err(defect)?;
    let graph = Links::of(|a, b| matrix.prr[a][b] > 0.0, matrix.prr.len());
    let away = |&(from, to): &(u16, u16)| graph.hops(to.into())[usize::from(from)];
    Ok(Scene {
        medium,
        hops: flows.iter().map(away).collect(),
        flows: flows.to_vec(),
    })
}

/// The nodes that each node hears.
pub struct Links(Vec<Vec<usize>>);

impl Links {
    fn of(hears: impl Fn(usize, usize) -> bool, nodes: usize) -> Links {
        let others = |a: usize| (0..nodes).filter(|&b| a != b && hears(a, b)).collect();
        Links((0..nodes).map(others).collect())
    }

    /// The links between nodes at these positions, with the paper's range.
    pub fn at(places: &[Position]) -> Links {
        let near = |a: usize, b: usize| {
            let (a, b) = (places[a], places[b]);
            libm::hypot(a.x - b.x, a.y - b.y) <= RANGE_M
        };
        Links::of(near, places.len())
    }

    /// Hops from each node to `to`; `u16::MAX` if there is no path.
    pub fn hops(&self, to: usize) -> Vec<u16> {
        let mut hops = vec![u16::MAX; self.0.len()];
        let mut edge = vec![to];
        hops[to] = 0;
        while !edge.is_empty() {
            let mut next = Vec::new();
            for from in edge {
                for &node in &self.0[from] {
                    if hops[node] == u16::MAX {
                        hops[node] = hops[from] + 1;
                        next.push(node);
                    }
                }
            }
            edge = next;
        }
        hops
    }

    /// The mean number of neighbours.
    pub fn degree(&self) -> f64 {
        let ends: usize = self.0.iter().map(Vec::len).sum();
        ends as f64 / self.0.len() as f64
    }

    /// Hops between the two nodes that are farthest apart.
    pub fn diameter(&self) -> u16 {
        let farthest = |node| self.hops(node).into_iter().max();
        (0..self.0.len()).filter_map(farthest).max().unwrap_or(0)
    }
}

/// Draws positions until the network is like the paper's: connected, with a diameter of eight hops and at least twelve
/// neighbours on average. Uniform draws hardly ever give the paper's thirteen.
pub fn places(seed: Seed) -> Option<Vec<Position>> {
    let drawn = (0..DRAWS).map(|draw| topology::random(NODES, SIDE_M, SIDE_M, seed.child(draw)));
    let fits = |places: &Vec<Position>| {
        let links = Links::at(places);
        links.degree() >= 12.0 && links.diameter() == 8
    };
    drawn.into_iter().find(fits)
}

/// The sink is the node nearest to a corner. The sources are spread evenly over the distances from `least` hops on, farthest first.
fn large(seed: Seed, least: u16) -> Result<Scene, RunError> {
    let places = places(seed).ok_or_else(|| {
        RunError::Defect("no draw of positions is like the paper's network".into())
    })?;
    let profile = Profile::ns2_threshold();
    let medium = Medium::geometric(&places, &profile, seed);
    let medium = medium.map_err(|error| RunError::Defect(error.to_string()))?;
    let from_corner = |&node: &usize| {
        let place = places[node];
        (libm::hypot(place.x, place.y) * 1e3) as u64
    };
    let sink = (0..NODES).min_by_key(from_corner).unwrap_or(0);
    let hops = Links::at(&places).hops(sink);
    let mut order: Vec<usize> = (0..NODES).filter(|&node| hops[node] >= least).collect();
    order.sort_by_key(|&node| (std::cmp::Reverse(hops[node]), node));
    let sources = (0..SOURCES).map(|n| order[n * (order.len() - 1) / (SOURCES - 1)]);
    let sources: Vec<usize> = sources.collect();
    Ok(Scene {
        medium,
        flows: sources
            .iter()
            .map(|&node| (node as u16, sink as u16))
            .collect(),
        hops: sources.iter().map(|&node| hops[node]).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Flows, distances and degrees match the descriptions of the networks.
    #[test]
    fn networks_match_their_descriptions() {
        let six = PaperNetwork::Six {
            beside: E,
            lossy: false,
        }
        .scene(Seed(1))
        .unwrap();
        assert_eq!((six.flows, six.hops), (vec![(0, 4), (3, 5)], vec![2, 2]));
        let large = PaperNetwork::Large.scene(Seed(1)).unwrap();
        assert_eq!(large.medium.nodes(), NODES);
        assert!(large.hops.is_sorted_by(|a, b| a >= b) && large.hops[SOURCES - 1] == 1);
        assert!(large.hops[0] > 5 && large.hops[0] <= 8, "{:?}", large.hops);
        let links = Links::at(large.medium.positions());
        assert!(links.diameter() == 8 && links.degree() >= 12.0);
    }
}
