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
    let airtimes: Vec<f64> = (0..network.nodes())
        .map(|node| network.channel_s(node))
        .collect();
    let (airtime_s, order) = priced(network, receiver, &airtimes, |_, _| 0.0);
    Anypath { airtime_s, order }
}

/// Shortest anypaths when a transmission of node i costs `cost[i]` and handing a packet from i to j
/// another `toll(i, j)`; the distances, and the nodes by rising distance.
///
/// A distance is the largest h with E\[max over the j that hear of (h - h_j - toll)+\] <= cost: the
/// best potential that these prices pay for.
pub(crate) fn priced(
    network: &Network,
    receiver: usize,
    cost: &[f64],
    toll: impl Fn(usize, usize) -> f64,
) -> (Vec<f64>, Vec<usize>) {
    let nodes = network.nodes();
    let mut distance = vec![f64::INFINITY; nodes];
    let mut open = vec![true; nodes];
    let mut order = Vec::with_capacity(nodes);
    // Per node the (level, probability) of every settled neighbour, by rising level.
    let mut offers: Vec<Vec<(f64, f64)>> = vec![Vec::new(); nodes];
    distance[receiver] = 0.0;
    let closest = |distance: &[f64], open: &[bool]| {
        (0..nodes)
            .filter(|&node| open[node] && distance[node].is_finite())
            .min_by(|&a, &b| distance[a].total_cmp(&distance[b]))
    };
    while let Some(settled) = closest(&distance, &open) {
        open[settled] = false;
        order.push(settled);
        for node in (0..nodes).filter(|&node| open[node]) {
            let p = network.delivery(node, settled);
            let level = distance[settled] + toll(node, settled);
            if p > 0.0 && level < distance[node] {
                let list = &mut offers[node];
                list.insert(list.partition_point(|offer| offer.0 <= level), (level, p));
                distance[node] = cheapest(cost[node], list).max(distance[settled]);
            }
        }
    }
    (distance, order)
}

/// Least expected cost to hand a packet to one of the offers, of which the lowest that hears takes it.
fn cheapest(cost: f64, offers: &[(f64, f64)]) -> f64 {
    let (mut spent, mut missed, mut heard) = (cost, 1.0, 0.0);
    let mut least = f64::INFINITY;
    for &(level, p) in offers {
        if level >= least {
            break;
        }
        spent += missed * p * level;
        heard += missed * p;
        missed *= 1.0 - p;
        least = spent / heard;
    }
    least
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
        let network = Network::new(delivery, vec![1.0; 4], 1, vec![1.0; 16]).unwrap();
        let found = anypath(&network, 3);
        assert!((found.airtime_s[0] - 7.0 / 3.0).abs() < 1e-12);
        assert_eq!(found.order, [3, 1, 2, 0]);
        assert!(anypath(&network, 0).airtime_s[3].is_infinite());
    }
}
