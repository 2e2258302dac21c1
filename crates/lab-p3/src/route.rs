//! The gateway's plan for one transfer, by variant.

use chappe_core::{Purpose, Seed, Stream};
use chappe_lab::run::RunError;
use chappe_p3::baseline::pip;
use chappe_p3::config::{LAST_STAGE_THRESHOLD, LINK_THRESHOLD};
use chappe_p3::plan::{PAPER_HOPS_MAX, RELAYS_MAX};
use chappe_p3::planner::{
    LinkGraph, Links, PathSet, Wish, best_path, choose_length, depth_first_path_set, pipeline,
    with_extra_nodes,
};
use chappe_p3::{ChannelOrder, Config, Plan, Wanted};
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

/// Plans a transfer from `source` to `destination`. The result is `None` if there is no way for this variant:
///
/// - P³ and PIP plan on channel 26, by links that measure as good there;
/// - PIP with the best channels also takes paths of links that are good on one of the other channels, if channel 26 has
///   none, and a path must work with one of the orders of the channels;
/// - the improved variant plans on all channels.
///
/// All variants of one seed find the same paths on channel 26 and draw the same channels.
pub fn route(
    with: &P3,
    known: &Knowledge,
    (seed, source, destination): (u64, usize, usize),
    packets: u32,
) -> Result<Option<Route>, RunError> {
    if with.variant == Variant::Improved {
        return learned(with, known, (source, destination), packets);
    }
    let ratios = &known.ratios;
    let default = with.config.flood_channel;
    let seed = Seed(seed).child(PLANNING);
    let mut random = seed.stream(Purpose::Topology);
    // Drawn first and by all variants, so that the same seed gives all of them the same channels and paths.
    let channels = ChannelOrder::random(&mut random);
    let graph = LinkGraph::from_prr(ratios.nodes(), LINK_THRESHOLD, |a, b| {
        ratios.get(default, a, b)
    });
    let found = paths(with, &graph, (source, destination), &mut random);
    let mut wanted = Wanted {
        transfer: 1,
        payload: with.payload,
        source: source as u16,
        destination: destination as u16,
        channels,
    };
    let profile = &with.config.profile;
    let best = |found: &PathSet| {
        best_path(found, source, destination, packets, |channel, from, to| {
            ratios.get(channel, from, to)
        })
    };
    let (plan, found) = match (with.variant, found) {
        (Variant::PipAware, found) => {
            let mut chosen = found.and_then(|found| Some((best(&found)?, found)));
            if chosen.is_none() {
                let any =
                    LinkGraph::from_prr(ratios.nodes(), LINK_THRESHOLD, |a, b| ratios.best(a, b));
                let found = paths(with, &any, (source, destination), &mut random);
                chosen = found.and_then(|found| Some((best(&found)?, found)));
            }
            let Some((choice, found)) = chosen else {
                return Ok(None);
            };
            wanted.channels = choice.channels;
            let plan = pip::plan(wanted, profile, &found.paths[choice.path], &mut random);
            (plan, found)
        }
        (_, None) => return Ok(None),
        (Variant::Pip, Some(found)) => {
            let path = random.below(found.paths.len() as u64) as usize;
            let plan = pip::plan(wanted, profile, &found.paths[path], &mut random);
            (plan, found)
        }
        (Variant::Paper | Variant::Improved, Some(found)) => {
            let plan = Plan::from_paths(
                wanted,
                profile,
                &found.paths,
                &mut random,
                LAST_STAGE_THRESHOLD,
                |relay| ratios.get(default, relay.into(), destination),
            );
            (plan, found)
        }
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

/// The paper's paths through a graph of good links; `None` if there are none that a plan can name.
fn paths(
    with: &P3,
    graph: &LinkGraph,
    (source, destination): (usize, usize),
    random: &mut Stream,
) -> Option<PathSet> {
    //= p3 IV-C.2: the largest set of node-distinct paths of one length, by a depth-first search
    let found = choose_length(graph, source, destination, with.paths, EXTRA_HOPS, |hops| {
        fitting(
            depth_first_path_set(graph, source, destination, hops, random),
            hops,
        )
    });
    let nameable = |(hops, found): &(usize, PathSet)| {
        *hops <= usize::from(PAPER_HOPS_MAX) && !found.paths.is_empty()
    };
    found.filter(nameable).map(|(_, found)| found)
}

/// What the improved variant's planner is asked for.
pub(super) fn wish(with: &P3, packets: u32) -> Wish {
    Wish {
        packets,
        beacons: match with.knowledge {
            LinkKnowledge::Probed => with.measurement.beacons,
            // True ratios have no sampling error: as if very many beacons had been counted.
            LinkKnowledge::True => u32::MAX >> 8,
        },
        ..Wish::default()
    }
}

/// The terms of a plan between two ends; the planner chooses the channels.
pub(super) fn wanted(with: &P3, source: usize, destination: usize) -> Wanted {
    Wanted {
        transfer: 1,
        payload: with.payload,
        source: source as u16,
        destination: destination as u16,
        channels: ChannelOrder::default(),
    }
}

/// The plan of the stages and channels with the highest expected delivery; `None` if there is no way.
pub(super) fn planned(
    links: &impl Links,
    wanted: Wanted,
    config: &Config,
    wish: &Wish,
) -> Result<Option<Plan>, RunError> {
    let (source, destination) = (wanted.source.into(), wanted.destination.into());
    let Some(found) = pipeline(links, source, destination, config, wish) else {
        return Ok(None);
    };
    let plan = found.plan(wanted, config, SESSION);
    let defect = |error| RunError::Defect(format!("a plan over found stages: {error}"));
    plan.map(Some).map_err(defect)
}

/// The improved variant's plan.
fn learned(
    with: &P3,
    known: &Knowledge,
    (source, destination): (usize, usize),
    packets: u32,
) -> Result<Option<Route>, RunError> {
    let (wanted, wish) = (wanted(with, source, destination), wish(with, packets));
    let Some(plan) = planned(&known.ratios, wanted, &with.config, &wish)? else {
        return Ok(None);
    };
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
