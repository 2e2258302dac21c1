//! The network of a bound: plain tables of numbers.

use crate::error::Error;
use crate::graph::Graph;

/// A network of half-duplex radios on one channel, as long-run averages.
///
/// Losses are independent between the receivers of one frame. Only averages matter (Lun, Médard,
/// Koetter, Effros, "On coding for reliable communication over packet networks", 2008), so fading
/// that is fast compared with a transfer is covered by its mean.
#[derive(Clone, Debug)]
pub struct Network {
    delivery: Vec<f64>,
    airtime_s: Vec<f64>,
    gap_s: f64,
    payload_bytes: u32,
    sensing: Vec<f64>,
    senses: Graph,
}

/// Two nodes count as neighbours of the sensing graph if each senses more than this share of the
/// other's frames.
const SENSES: f64 = 0.99;

impl Network {
    /// A checked network of `airtime_s.len()` nodes.
    ///
    /// * `delivery`: row-major matrix, entry `i * nodes + j` is the probability that node j receives
    ///   a frame of node i when nothing else is on the air. The diagonal is ignored.
    /// * `airtime_s`: seconds that one frame of node i is on the air. For a bound that no MAC can
    ///   beat, give the *minimum*: preamble + bits / rate. What carrier-sense MACs leave between
    ///   frames of different senders is [`Network::with_gap`]; without it the gap is 0.
    /// * `payload_bytes`: useful bytes in a frame, without any header.
    /// * `sensing`: row-major matrix, entry `i * nodes + j` is the probability that node j senses a
    ///   frame of node i alone on the air, so that a carrier-sense MAC at j does not begin another
    ///   before it ends. Too high a probability can make a carrier-sense bound too low; too low
    ///   a one only makes it looser. Without fading 1 or 0. The diagonal is ignored.
    pub fn new(
        delivery: Vec<f64>,
        airtime_s: Vec<f64>,
        payload_bytes: u32,
        sensing: Vec<f64>,
    ) -> Result<Network, Error> {
        let nodes = airtime_s.len();
        if nodes == 0 {
            return Err(Error::NoNodes);
        }
        check_shape("delivery", delivery.len(), nodes)?;
        check_shape("sensing", sensing.len(), nodes)?;
        for (node, &value) in airtime_s.iter().enumerate() {
            if !(value > 0.0 && value.is_finite()) {
                return Err(Error::Quantity {
                    what: "airtime",
                    node,
                    value,
                });
            }
        }
        let mut graph = Graph::new(nodes);
        for from in 0..nodes {
            for to in (0..nodes).filter(|&to| to != from) {
                for (table, of) in [(&delivery, "delivery"), (&sensing, "sensing")] {
                    let value = table[from * nodes + to];
                    if !(0.0..=1.0).contains(&value) {
                        return Err(Error::Probability {
                            of,
                            from,
                            to,
                            value,
                        });
                    }
                }
                if sensing[from * nodes + to].min(sensing[to * nodes + from]) > SENSES {
                    graph.connect(from, to);
                }
            }
        }
        Ok(Network {
            delivery,
            airtime_s,
            gap_s: 0.0,
            payload_bytes,
            sensing,
            senses: graph,
        })
    }

    /// The same network where at least `gap_s` seconds pass between a frame's end and the next frame
    /// of any node that sensed it, or of the same sender: DIFS, without back-off. Not negative.
    pub fn with_gap(mut self, gap_s: f64) -> Result<Network, Error> {
        if !(gap_s >= 0.0 && gap_s.is_finite()) {
            return Err(Error::Gap { value: gap_s });
        }
        self.gap_s = gap_s;
        Ok(self)
    }

    /// Number of nodes; they are called `0..nodes`.
    pub fn nodes(&self) -> usize {
        self.airtime_s.len()
    }

    /// Probability that `to` receives a frame of `from`; 0 for a node and itself.
    pub fn delivery(&self, from: usize, to: usize) -> f64 {
        if from == to {
            0.0
        } else {
            self.delivery[from * self.nodes() + to]
        }
    }

    /// Seconds that one frame of `node` is on the air.
    pub fn airtime_s(&self, node: usize) -> f64 {
        self.airtime_s[node]
    }

    /// Seconds that one frame of `node` keeps others from the channel: its airtime and the gap.
    pub fn channel_s(&self, node: usize) -> f64 {
        self.airtime_s[node] + self.gap_s
    }

    /// Probability that `to` senses a frame of `from`; 1 for a node and itself.
    pub fn sensing(&self, from: usize, to: usize) -> f64 {
        if from == to {
            1.0
        } else {
            self.sensing[from * self.nodes() + to]
        }
    }

    /// Useful bits in one frame.
    pub fn payload_bits(&self) -> f64 {
        f64::from(self.payload_bytes) * 8.0
    }

    /// Which pairs of nodes practically always sense each other: both ways above 0.99.
    pub fn senses(&self) -> &Graph {
        &self.senses
    }

    /// The same network without links below `p`.
    ///
    /// A bound computed on the result holds only for protocols that make no use of such links:
    /// without them a bound can be lower than what the full network carries.
    pub fn without_links_below(mut self, p: f64) -> Network {
        for entry in &mut self.delivery {
            if *entry < p {
                *entry = 0.0;
            }
        }
        self
    }

    /// Probability that at least one node of `set` receives a frame of `from`: b_i(K) in the model.
    pub fn reach(&self, from: usize, set: impl IntoIterator<Item = usize>) -> f64 {
        let missed: f64 = set
            .into_iter()
            .map(|to| 1.0 - self.delivery(from, to))
            .product();
        1.0 - missed
    }

    /// Whether any sensing probability is neither 0 nor 1.
    pub(crate) fn fades(&self) -> bool {
        let nodes = self.nodes();
        (0..nodes * nodes).any(|pair| {
            let q = self.sensing(pair / nodes, pair % nodes);
            q > 0.0 && q < 1.0
        })
    }

    /// Pairs that sense each other more often than not.
    pub(crate) fn mostly_senses(&self) -> Graph {
        let mut graph = Graph::new(self.nodes());
        for a in 0..self.nodes() {
            (0..a)
                .filter(|&b| self.sensing(a, b).min(self.sensing(b, a)) > 0.5)
                .for_each(|b| graph.connect(a, b));
        }
        graph
    }

    pub(crate) fn check_node(&self, node: usize) -> Result<(), Error> {
        let nodes = self.nodes();
        if node < nodes {
            Ok(())
        } else {
            Err(Error::NoSuchNode { node, nodes })
        }
    }

    pub(crate) fn check_multicast(&self, source: usize, receivers: &[usize]) -> Result<(), Error> {
        self.check_node(source)?;
        if receivers.is_empty() {
            return Err(Error::NoReceivers);
        }
        for (index, &node) in receivers.iter().enumerate() {
            self.check_node(node)?;
            if node == source || receivers[..index].contains(&node) {
                return Err(Error::BadReceiver { node });
            }
        }
        Ok(())
    }

    /// True where some chain of links with p > 0 leads from `source`.
    pub(crate) fn reachable_from(&self, source: usize) -> Vec<bool> {
        let mut seen = vec![false; self.nodes()];
        let mut open = vec![source];
        seen[source] = true;
        while let Some(from) = open.pop() {
            for (to, seen) in seen.iter_mut().enumerate() {
                if !*seen && self.delivery(from, to) > 0.0 {
                    *seen = true;
                    open.push(to);
                }
            }
        }
        seen
    }
}

fn check_shape(table: &'static str, got: usize, nodes: usize) -> Result<(), Error> {
    let expected = nodes * nodes;
    if got == expected {
        Ok(())
    } else {
        Err(Error::Shape {
            table,
            expected,
            got,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(p: f64) -> Result<Network, Error> {
        Network::new(vec![0.0, p, p, 0.0], vec![0.001; 2], 1000, vec![0.0; 4])
    }

    #[test]
    fn nonsense_is_refused_with_the_numbers() {
        assert_eq!(
            pair(1.5).unwrap_err(),
            Error::Probability {
                of: "delivery",
                from: 0,
                to: 1,
                value: 1.5
            }
        );
        assert!(pair(f64::NAN).is_err());
        let refused = Network::new(
            vec![0.0; 4],
            vec![0.001; 2],
            1000,
            vec![0.0, 0.5, -0.5, 0.0],
        );
        assert_eq!(
            refused.unwrap_err(),
            Error::Probability {
                of: "sensing",
                from: 1,
                to: 0,
                value: -0.5
            }
        );
        let refused = pair(0.5).unwrap().with_gap(f64::NAN);
        assert!(matches!(refused.unwrap_err(), Error::Gap { .. }));
        let still = Network::new(vec![0.0; 4], vec![0.001, 0.0], 1000, vec![0.0; 4]);
        assert_eq!(
            still.unwrap_err(),
            Error::Quantity {
                what: "airtime",
                node: 1,
                value: 0.0
            }
        );
        let short = Network::new(vec![0.0; 3], vec![0.001; 2], 1000, vec![0.0; 4]);
        assert_eq!(
            short.unwrap_err().to_string(),
            "table `delivery` has 3 entries, expected 4"
        );
    }

    /// One way is not enough to keep two apart, and 0.99 is not above 0.99.
    #[test]
    fn neighbours_sense_each_other_both_ways() {
        let graph = |a, b| {
            let sensing = vec![0.0, a, b, 0.0];
            Network::new(vec![0.0; 4], vec![0.001; 2], 1000, sensing).unwrap()
        };
        assert!(graph(0.991, 1.0).senses().adjacent(0, 1));
        assert!(!graph(0.99, 1.0).senses().adjacent(0, 1));
        assert!(!graph(1.0, 0.99).senses().adjacent(0, 1));
    }

    #[test]
    fn the_diagonal_is_ignored() {
        let network = Network::new(
            vec![7.0, 0.5, 0.5, f64::NAN],
            vec![0.001; 2],
            1000,
            vec![1.0; 4],
        )
        .unwrap();
        assert_eq!(network.delivery(0, 0), 0.0);
        assert!(!network.senses().adjacent(0, 0));
    }

    #[test]
    fn receivers_are_checked() {
        let network = pair(0.5).unwrap();
        assert_eq!(network.check_multicast(0, &[]), Err(Error::NoReceivers));
        assert_eq!(
            network.check_multicast(0, &[0]),
            Err(Error::BadReceiver { node: 0 })
        );
        assert_eq!(
            network.check_multicast(0, &[1, 1]),
            Err(Error::BadReceiver { node: 1 })
        );
        assert_eq!(
            network.check_multicast(0, &[2]),
            Err(Error::NoSuchNode { node: 2, nodes: 2 })
        );
    }
}
