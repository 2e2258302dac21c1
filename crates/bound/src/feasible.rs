//! From a solver's answer to a flow that breaks no constraint.

use crate::hyperarc::{Share, transmissions_needed};
use crate::master::by_sender;
use crate::maxflow::Arcs;
use crate::network::Network;

/// A rate in frames/s that `transmissions` carry to every receiver along the links of `flows`.
///
/// A solver's flows break constraints a little, and early in the computation a lot. Here each is cut
/// to what its link delivers, all flows of a node are shrunk until no set of neighbours gets more
/// than z b(K), and the largest flow through what is left is found exactly. So the result is a
/// lower bound of the true capacity whatever the solver did, up to rounding of doubles.
pub(crate) fn feasible_fps(
    network: &Network,
    source: usize,
    receivers: &[usize],
    transmissions: &[f64],
    flows: &[Vec<(usize, usize, f64)>],
) -> f64 {
    (receivers.iter().zip(flows))
        .map(|(&receiver, flows)| {
            carried_fps(network, source, receiver, transmissions, flows)
        })
        .fold(f64::INFINITY, f64::min)
}

fn carried_fps(
    network: &Network,
    source: usize,
    receiver: usize,
    transmissions: &[f64],
    flows: &[(usize, usize, f64)],
) -> f64 {
    let mut arcs = Arcs::new(network.nodes());
    let mut widest: f64 = 0.0;
    for (from, range) in by_sender(flows) {
        let z = transmissions[from];
        let shares: Vec<Share> = (flows[range.clone()].iter())
            .map(|&(_, to, flow)| {
                let p = network.delivery(from, to);
                Share { p, value: flow.min(z * p) }
            })
            .collect();
        let needed = transmissions_needed(&shares);
        let shrink = if needed > z { z / needed } else { 1.0 };
        for (share, &(_, to, _)) in shares.iter().zip(&flows[range]) {
            arcs.add(from, to, share.value * shrink);
            widest = widest.max(share.value);
        }
    }
    arcs.max_flow(source, receiver, 1e-13 * widest)
}
