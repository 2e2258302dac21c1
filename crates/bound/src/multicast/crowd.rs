//! Many receivers: the bound of those that decide it, and a check of all others.
//!
//! The program grows with links times receivers. But on transmissions that serve the farthest receivers, most others get as much. So the
//! program begins with a few receivers and takes in those that its own answer would leave behind.

use super::{Bound, Options, multicast_above};
use crate::anypath::anypath;
use crate::error::Error;
use crate::fluid::max_flow;
use crate::medium::Medium;
use crate::network::Network;
use crate::order;

/// Up to this number all receivers are in the program from the start.
const ALL_AT_ONCE: usize = 12;
/// How many receivers are taken in at a time.
const STEP: usize = 6;
/// By what part [`max_flow`] may be above the true flow.
const FLOW_ERROR: f64 = 1e-6;

/// As [`super::multicast`], for checked receivers.
///
/// The bound is valid after every step, and tight once no receiver is left behind. It stays less tight when [`Options::work_max`] ends the
/// computation.
pub(super) fn multicast(
    network: &Network,
    source: usize,
    receivers: &[usize],
    options: &Options,
) -> Result<Bound, Error> {
    let reachable = network.reachable_from(source);
    let all_reached = receivers.iter().all(|&receiver| reachable[receiver]);
    // Where receiving takes a radio's time, every receiver has its part in the program.
    let free = matches!(
        options.medium,
        Medium::CarrierSense | Medium::IndependentSets
    );
    if receivers.len() <= ALL_AT_ONCE || !all_reached || !free {
        return multicast_above(network, source, receivers, options, 0.0);
    }
    let mut waiting = farthest_first(network, source, receivers);
    let mut taken: Vec<usize> = waiting.drain(..STEP).collect();
    let mut work = 0;
    loop {
        let few: Vec<usize> = taken.iter().map(|&place| receivers[place]).collect();
        let left = Options {
            work_max: options.work_max.saturating_sub(work),
            ..options.clone()
        };
        let mut bound = multicast_above(network, source, &few, &left, 0.0)?;
        work += bound.work;
        let tight = bound.rate_fps * (1.0 - options.gap);
        let mut reached = bound.rate_fps;
        let mut behind = Vec::new();
        if work < options.work_max {
            for &place in &waiting {
                let flow = max_flow(network, &bound.transmissions, source, receivers[place])?;
                if flow < tight {
                    behind.push((flow, place));
                }
                reached = (flow * (1.0 - FLOW_ERROR)).min(reached);
            }
        } else {
            // The others were not looked at, so no rate is known to reach them.
            reached = 0.0;
        }
        if behind.is_empty() {
            bound.work = work;
            bound.rate_fps = reached;
            let mut bound = for_all(bound, &taken, receivers);
            bound.certified_fps = bound.certificate.bound_fps(network);
            return Ok(bound);
        }
        order::rising(&mut behind, |&(flow, _)| flow);
        behind.truncate(STEP);
        waiting.retain(|place| !behind.iter().any(|(_, other)| other == place));
        taken.extend(behind.into_iter().map(|(_, place)| place));
    }
}

/// Places in `receivers`, by falling airtime that a packet needs at least.
fn farthest_first(network: &Network, source: usize, receivers: &[usize]) -> Vec<usize> {
    let mut places: Vec<(f64, usize)> = (receivers.iter().enumerate())
        .map(|(place, &receiver)| (anypath(network, receiver).airtime_s[source], place))
        .collect();
    order::falling(&mut places, |&(airtime, _)| airtime);
    places.into_iter().map(|(_, place)| place).collect()
}

/// The bound of the receivers at some places as one of all. Its proof says nothing of the others.
fn for_all(mut bound: Bound, taken: &[usize], receivers: &[usize]) -> Bound {
    let mut potentials = vec![vec![0.0; bound.transmissions.len()]; receivers.len()];
    for (&place, potential) in taken.iter().zip(bound.certificate.potentials) {
        potentials[place] = potential;
    }
    bound.certificate.potentials = potentials;
    bound.certificate.receivers = receivers.to_vec();
    bound
}
