//! The ends of a transfer between which the gateway finds a route of the wanted shape.

use chappe_core::{Purpose, Seed};
use chappe_lab::run::RunError;
use chappe_p3::config::{LINK_THRESHOLD, PATHS_WANTED};
use chappe_p3::planner::LinkGraph;
use chappe_scenario::Plan;

use super::plan::P3;
use super::prepare::{Prepared, prepare};
use super::route::{Route, route};

/// Part of a route's seed that draws its ends.
const ENDS: u64 = 0x656e_6473;
/// Pairs of ends that are tried before another network is drawn.
const PAIRS: usize = 200;
/// Whether a route is like the paper's.
//= p3 V: routes of two to six hops with at least six node-distinct paths
pub fn fits_paper(found: &Route) -> bool {
    found.paths >= PATHS_WANTED && (2..=6).contains(&found.plan.hops())
}

/// The first of `networks` networks of a seed in which the gateway finds a route that `fits`, and the number of pairs of
/// nodes that were tried. The network's transfer is between the ends of that route.
pub fn ends_for(
    plan: &Plan,
    seed: u64,
    with: &P3,
    networks: u64,
    fits: &dyn Fn(&Route) -> bool,
) -> Result<Option<(Prepared, usize)>, RunError> {
    let mut looked = 0;
    for network in 0..networks {
        let here = match network {
            0 => seed,
            _ => Seed(seed).child(network).0,
        };
        let mut prepared = prepare(plan.network(here)?);
        let known = prepared.learn(with);
        let nodes = known.ratios.nodes();
        let graph = LinkGraph::from_prr(nodes, LINK_THRESHOLD, |a, b| {
            known.ratios.get(with.config.flood_channel, a, b)
        });
        let mut random = Seed(here).child(ENDS).stream(Purpose::Topology);
        let mut node = || random.below(nodes as u64) as usize;
        for _ in 0..PAIRS {
            let (source, destination) = (node(), node());
            let distance = graph.distances(source)[destination];
            // Planning is the costly part, so the distance is checked first.
            if !distance.is_some_and(|hops| (2..=6).contains(&hops)) {
                continue;
            }
            looked += 1;
            let found = route(with, &known, (here, source, destination), 500)?;
            if found.as_ref().is_some_and(fits) {
                let transfer = &mut prepared.network.transfers[0];
                (transfer.source, transfer.receivers) = (source, vec![destination]);
                return Ok(Some((prepared, looked)));
            }
        }
    }
    Ok(None)
}
