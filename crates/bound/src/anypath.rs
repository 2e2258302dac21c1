//! Expected anypath transmissions: the single-receiver bound of one collision domain, in closed form.

use crate::network::Network;

/// How much the whole network must transmit to bring one packet to one receiver.
#[derive(Clone, Debug, PartialEq)]
pub struct Anypath {
    /// Seconds of airtime per packet from each node to the receiver; infinite where no chain of
    /// links leads there.
    pub airtime_s: Vec<f64>,
    /// Nodes by rising airtime, the receiver first, without those that cannot reach it.
    pub order: Vec<usize>,
}

/// The shortest anypaths to `receiver`: for every node the airtime
///
/// D_i = (a_i + sum over k of p_ik * prod over m < k of (1 - p_im) * D_k) / b_i(K)
///
/// where K holds the neighbours closer than i, closest first, and of those that hear a frame the
/// closest goes on. Dijkstra's order finds all D_i in O(n^2): settling a node offers it as one more
/// forwarder to all that are farther away (Laufer, Dubois-Ferrière, Kleinrock, "Multirate anypath
/// routing in wireless mesh networks", INFOCOM 2009).
///
/// If all nodes share one collision domain, 1 / D_s frames/s is exactly the largest rate from s to
/// the receiver with any routing and any coding: D is the optimal dual of the flow problem.
pub fn anypath(network: &Network, receiver: usize) -> Anypath {
    let nodes = network.nodes();
    // Per node: what reaching the settled neighbours costs so far, and the chance to miss them all.
    let mut weighted = vec![0.0; nodes];
    let mut missed = vec![1.0; nodes];
    let mut airtime_s = vec![f64::INFINITY; nodes];
    let mut open = vec![true; nodes];
    let mut order = Vec::with_capacity(nodes);
    airtime_s[receiver] = 0.0;
    let closest = |airtime_s: &[f64], open: &[bool]| {
        (0..nodes)
            .filter(|&node| open[node] && airtime_s[node].is_finite())
            .min_by(|&a, &b| airtime_s[a].total_cmp(&airtime_s[b]))
    };
    while let Some(settled) = closest(&airtime_s, &open) {
        open[settled] = false;
        order.push(settled);
        for node in (0..nodes).filter(|&node| open[node]) {
            let p = network.delivery(node, settled);
            if p > 0.0 {
                weighted[node] += missed[node] * p * airtime_s[settled];
                missed[node] *= 1.0 - p;
                let heard = 1.0 - missed[node];
                let offer = (network.airtime_s(node) + weighted[node]) / heard;
                // A link of 1e-17 rounds to "never heard".
                if heard > 0.0 {
                    airtime_s[node] = offer;
                }
            }
        }
    }
    Anypath { airtime_s, order }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// s reaches r1 and r2 with 1/2 each, the relays reach t with 1: D = (1 + 3/4 * 1) / (3/4).
    #[test]
    fn a_diamond_by_hand() {
        let mut delivery = vec![0.0; 16];
        for (from, to, p) in [(0, 1, 0.5), (0, 2, 0.5), (1, 3, 1.0), (2, 3, 1.0)] {
            delivery[from * 4 + to] = p;
        }
        let network = Network::new(delivery, vec![1.0; 4], 1, &[true; 16]).unwrap();
        let found = anypath(&network, 3);
        assert!((found.airtime_s[0] - 7.0 / 3.0).abs() < 1e-12);
        assert_eq!(found.order, [3, 1, 2, 0]);
        assert!(anypath(&network, 0).airtime_s[3].is_infinite());
    }
}
