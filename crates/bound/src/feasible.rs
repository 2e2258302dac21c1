//! Turns a solver's answer into flows and transmissions that violate no constraint.

use crate::flows::{Flows, by_sender};
use crate::hyperarc::{Share, transmissions_needed};
use crate::maxflow::Arcs;
use crate::network::Network;

/// Transmissions (frames/s) that carry `flows` almost whole: each node's are raised by as much as its
/// flows need, but at most by the part `raise` (and a bit of the mean, for nodes that should rest).
///
/// An answer whose program lacks many rows promises more flow than its transmissions carry. Sending
/// more costs airtime evenly; cutting the flows can close a whole path. The caller tries both.
pub(crate) fn raised(
    network: &Network,
    transmissions: &[f64],
    flows: &Flows,
    raise: f64,
) -> Vec<f64> {
    let mean = transmissions.iter().sum::<f64>() / transmissions.len() as f64;
    let mut needed = vec![0.0f64; transmissions.len()];
    for flows in flows {
        for (from, range) in by_sender(flows) {
            let shares: Vec<Share> = (flows[range].iter())
                .map(|&(_, to, value)| Share {
                    p: network.delivery(from, to),
                    value,
                })
                .collect();
            needed[from] = needed[from].max(transmissions_needed(&shares));
        }
    }
    (transmissions.iter().zip(needed))
        .map(|(&z, needed)| needed.clamp(z, z * (1.0 + raise) + mean * raise * 0.1))
        .collect()
}

/// Flows within what `transmissions` carry: each cut to what its link delivers, then all flows of a
/// node shrunk until no set of neighbours gets more than z b(K).
pub(crate) fn cut(network: &Network, transmissions: &[f64], flows: &Flows) -> Flows {
    let mut flows = flows.clone();
    for flows in &mut flows {
        for (from, range) in by_sender(flows) {
            let z = transmissions[from];
            for entry in &mut flows[range.clone()] {
                entry.2 = entry.2.min(z * network.delivery(from, entry.1));
            }
            let shares: Vec<Share> = (flows[range.clone()].iter())
                .map(|&(_, to, value)| Share {
                    p: network.delivery(from, to),
                    value,
                })
                .collect();
            let needed = transmissions_needed(&shares);
            if needed > z {
                flows[range]
                    .iter_mut()
                    .for_each(|entry| entry.2 *= z / needed);
            }
        }
    }
    flows
}

/// The largest rate that reaches the receiver within `flows`, found exactly: so after [`cut`] it
/// is a lower bound of the true capacity whatever the solver did, up to rounding of doubles.
pub(crate) fn carried_fps(
    network: &Network,
    source: usize,
    receiver: usize,
    flows: &[(usize, usize, f64)],
) -> f64 {
    let mut arcs = Arcs::new(network.nodes());
    let widest = flows.iter().map(|flow| flow.2).fold(0.0, f64::max);
    flows
        .iter()
        .for_each(|&(from, to, flow)| arcs.add(from, to, flow));
    arcs.max_flow(source, receiver, 1e-13 * widest)
}
