//! The gateway's plan for one transfer, by variant.

use chappe_core::{Purpose, Seed};
use chappe_lab::run::RunError;
use chappe_p3::baseline::pip;
use chappe_p3::config::{LAST_STAGE_THRESHOLD, LINK_THRESHOLD};
use chappe_p3::plan::{HOPS_MAX, RELAYS_MAX};
use chappe_p3::planner::{
    LinkGraph, PathSet, Wish, best_path, choose_length, depth_first_path_set, pipeline,
    with_extra_nodes,
};
use chappe_p3::{ChannelOrder, Plan, Wanted};
use chappe_scenario::format::LinkKnowledge;

use super::plan::{P3, Variant};
use super::prepare::Knowledge;

/// Part of a run's seed that decides the gateway's random choices.
const PLANNING: u64 = 0x706c_616e_6e69_6e67;

/// The session of a run's only transfer. Nodes refuse sessions that are not later than their last; these have none.
const SESSION: u32 = 1;

/// Lengths tried beyond the hop distance (specified as three).
const EXTRA_HOPS: usize = 3;

/// The route of a transfer.
#[derive(Clone, Debug)]
pub struct Route {
    /// The plan that the gateway floods.
    pub plan: Plan,
    /// The number of node-distinct paths (the paper's M); relays per stage in the improved variant.
    pub paths: usize,
}

/// Plans a transfer from `source` to `destination`. The result is `None` if the links that measure as good do not connect
/// them, or, for the channel-aware baseline, if no path works with any order of the channels.
///
/// All variants of one seed find the same paths and draw the same channels.
pub fn route(
    with: &P3,
    known: &Knowledge,
    (seed, source, destination): (u64, usize, usize),
    packets: u32,
) -> Result<Option<Route>, RunError> {
    let ratios = &known.ratios;
    let default = with.config.flood_channel;
    let seed = Seed(seed).child(PLANNING);
    let mut random = seed.stream(Purpose::Topology);
    // Drawn first and by all variants, so that the same seed gives all of them the same channels and paths.
    let channels = ChannelOrder::random(&mut random);
    let graph = LinkGraph::from_prr(ratios.nodes(), LINK_THRESHOLD, |a, b| {
        ratios.get(default, a, b)
    });
    //= p3 IV-C.2: the largest set of node-distinct paths of one length, by a depth-first search
    let found = choose_length(
        &graph,
        source,
        destination,
        with.paths,
        EXTRA_HOPS,
        |hops| {
            fitting(
                depth_first_path_set(&graph, source, destination, hops, &mut random),
                hops,
            )
        },
    );
    let Some((_, found)) =
        found.filter(|(hops, found)| *hops <= usize::from(HOPS_MAX) && !found.paths.is_empty())
    else {
        return Ok(None);
    };
    let mut wanted = Wanted {
        transfer: 1,
        payload: with.payload,
        source: source as u16,
        destination: destination as u16,
        channels,
    };
    let profile = &with.config.profile;
    let plan = match with.variant {
        Variant::Paper => Plan::from_paths(
            wanted,
            profile,
            &found.paths,
            &mut random,
            LAST_STAGE_THRESHOLD,
            |relay| ratios.get(default, relay.into(), destination),
        ),
        Variant::Pip => {
            let path = random.below(found.paths.len() as u64) as usize;
            pip::plan(wanted, profile, &found.paths[path], &mut random)
        }
        Variant::PipAware => {
            let choice = best_path(&found, source, destination, packets, |channel, from, to| {
                ratios.get(channel, from, to)
            });
            let Some(choice) = choice else {
                return Ok(None);
            };
            wanted.channels = choice.channels;
            pip::plan(wanted, profile, &found.paths[choice.path], &mut random)
        }
        Variant::Improved => return learned(with, known, (source, destination), packets),
    };
    let mut plan =
        plan.map_err(|error| RunError::Defect(format!("a plan over found paths: {error}")))?;
    if with.extra_nodes {
        let to_end = |relay: u16| ratios.get(default, relay.into(), destination);
        plan = with_extra_nodes(&plan, &graph, LAST_STAGE_THRESHOLD, to_end);
    }
    Ok(Some(Route {
        plan,
        paths: found.paths.len(),
    }))
}

/// The improved variant's plan: the stages and channels with the highest expected delivery.
fn learned(
    with: &P3,
    known: &Knowledge,
    (source, destination): (usize, usize),
    packets: u32,
) -> Result<Option<Route>, RunError> {
    let wish = Wish {
        packets,
        beacons: match with.knowledge {
            LinkKnowledge::Probed => with.measurement.beacons,
            // True ratios have no sampling error: as if very many beacons had been counted.
            LinkKnowledge::True => u32::MAX >> 8,
        },
        ..Wish::default()
    };
    let Some(found) = pipeline(&known.ratios, source, destination, &with.config, &wish) else {
        return Ok(None);
    };
    let wanted = Wanted {
        transfer: 1,
        payload: with.payload,
        source: source as u16,
        destination: destination as u16,
        channels: found.channels,
    };
    let plan = found
        .plan(wanted, &with.config, SESSION)
        .map_err(|error| RunError::Defect(format!("a plan over found stages: {error}")))?;
    let stages = u32::from(plan.hops()).saturating_sub(1).max(1);
    Ok(Some(Route {
        paths: (plan.relays().len() as u32).div_ceil(stages) as usize,
        plan,
    }))
}

/// Drops the paths whose relays one PLAN frame has no room for.
fn fitting(mut found: PathSet, hops: usize) -> PathSet {
    let most = RELAYS_MAX / hops.saturating_sub(1).max(1);
    found.paths.truncate(most);
    found
}
