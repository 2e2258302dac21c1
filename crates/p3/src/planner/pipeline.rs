//! The stages, groups, channels and senders that deliver most: the improved variant's planner.
//!
//! P³ does not depend on paths. It needs disjoint sets of relays, one per stage and group, such that each set receives
//! what the one before it sends. So this planner predicts the share of packets that arrives ([`Prediction`]), searches for
//! the sets and the order of channels with the greatest share ([`Search`]), and takes the length and the number of groups
//! with which the object arrives first. It draws no random numbers, so equal measurements give equal plans.

use alloc::vec::Vec;

use super::chain::Prediction;
use super::graph::LinkGraph;
use super::links::{Links, Tables};
use super::price::{Terms, cycles};
use super::search::{ANSWERED, Search, Shape};
use super::ways::Ways;
use super::wish::Wish;
use crate::channels::ChannelOrder;
use crate::config::Config;
use crate::part::ImprovedPart;
use crate::plan::{Plan, PlanError, Stages, Wanted, relays_max};
use crate::sizes::{GROUPS_MAX, HOPS_MAX};
use crate::timing::flood_slots;

/// A pipeline and its expected performance.
#[derive(Clone, Debug, PartialEq)]
pub struct Pipeline {
    /// Hops from source to destination.
    pub hops: u8,
    /// Groups of relays that take turns, 1 to 3.
    pub groups: u8,
    /// The channels of the stages.
    pub channels: ChannelOrder,
    /// The relays, with their stages and groups.
    pub parts: Vec<ImprovedPart>,
    /// The expected delivery and answers.
    pub prediction: Prediction,
    /// Combinations to send after the packets of a segment.
    pub repair: u8,
    /// Payload bits per second of an object of [`Wish::packets`] packets, set-up included.
    pub goodput_bps: f64,
}

impl Pipeline {
    /// The plan for a transfer; the channels of `wanted` are replaced by the pipeline's.
    pub fn plan(&self, wanted: Wanted, config: &Config, session: u32) -> Result<Plan, PlanError> {
        let channels = self.channels;
        let wanted = Wanted { channels, ..wanted };
        let stages = Stages {
            hops: self.hops,
            groups: self.groups,
            parts: &self.parts,
            repair: self.repair,
            session,
        };
        Plan::from_stages(wanted, config, stages)
    }
}

/// The pipeline from `source` to `destination` with the greatest predicted goodput; `None` if there is no way.
///
/// It looks at ways of the hop distance and of up to [`Wish::extra_hops`] more, until a longer one cannot or does not
/// help. Where no way of good links exists, worse ones will do.
pub fn pipeline(
    links: &impl Links,
    source: usize,
    destination: usize,
    config: &Config,
    wish: &Wish,
) -> Option<Pipeline> {
    let tables = Tables::new(links, wish);
    USABLE.into_iter().find_map(|least| {
        let graph = LinkGraph::from_prr(tables.nodes(), least, |a, b| tables.both_ways(a, b));
        over(&tables, &graph, (source, destination), config, wish)
    })
}

/// A link worth considering works both ways with this probability on one of the channels; with the second one where links
/// like these do not connect the two ends.
const USABLE: [f64; 2] = [0.7, 0.35];
/// Predicted delivery from which on no longer way is tried: it only costs set-up and energy.
const ENOUGH: f64 = 0.99;
/// Lengths without a better pipeline after which the search ends, and the gain that counts as better.
const FRUITLESS: usize = 2;
const GAIN: f64 = 1.005;

fn over(
    tables: &Tables,
    graph: &LinkGraph,
    (source, destination): (usize, usize),
    config: &Config,
    wish: &Wish,
) -> Option<Pipeline> {
    let (from, to) = (graph.distances(source), graph.distances(destination));
    let distance = from.get(destination).copied().flatten()?;
    let groups_max = wish.groups_max.clamp(1, GROUPS_MAX);
    let room = relays_max(tables.nodes());
    let mut ways = Ways::new(tables, graph, (source, destination));
    let mut best: Option<Pipeline> = None;
    let mut fruitless = 0;
    for hops in distance..=distance + wish.extra_hops {
        if hops > usize::from(HOPS_MAX) || hops == 0 || fruitless > FRUITLESS {
            break;
        }
        let before = best.as_ref().map_or(0.0, |best| best.goodput_bps);
        for groups in (1..=groups_max).rev() {
            let places = (hops - 1) * usize::from(groups);
            let ideal = rated(hops, groups, places, Prediction::PERFECT, config, wish).0;
            let beaten = best.as_ref().is_some_and(|best| ideal <= best.goodput_bps);
            if places > room || beaten {
                continue;
            }
            let relays = (room / places.max(1)).clamp(1, wish.relays_max.max(1));
            let shape = Shape {
                hops,
                groups: usize::from(groups),
                relays,
                turn: turn(hops, groups, config) / f64::from(wish.packets.max(1)),
            };
            let ends = (source, destination);
            let search = Search::new(tables, ends, shape, wish, (&from, &to));
            let Some(mut search) = search else { continue };
            if !search.run(&mut ways) {
                continue;
            }
            let (parts, prediction) = search.result();
            let (goodput_bps, repair) = rated(hops, groups, parts.len(), prediction, config, wish);
            let better = best
                .as_ref()
                .is_none_or(|best| goodput_bps > best.goodput_bps);
            if better && prediction.delivered > 0.0 && goodput_bps > 0.0 {
                best = Some(Pipeline {
                    hops: hops as u8,
                    groups,
                    channels: search.channels(),
                    parts,
                    prediction,
                    repair,
                    goodput_bps,
                });
            }
        }
        let Some(best) = &best else { continue };
        let answered = best.prediction.answered >= ANSWERED;
        if best.prediction.delivered > ENOUGH && answered && best.groups == groups_max {
            break;
        }
        // Where even the best is poor a way may need several hops more before it gets better.
        let poor = best.prediction.delivered < POOR;
        fruitless = match best.goodput_bps > before * GAIN {
            true => 0,
            false if poor => fruitless,
            false => fruitless + 1,
        };
    }
    best
}

/// Predicted delivery below which all lengths are tried.
const POOR: f64 = 0.8;

/// The goodput in bits per second of such a pipeline with this prediction, and the combinations after a segment.
fn rated(
    hops: usize,
    groups: u8,
    relays: usize,
    prediction: Prediction,
    config: &Config,
    wish: &Wish,
) -> (f64, u8) {
    let (payload, profile) = (config.payload_max(), &config.profile);
    let cycle = config.cycle(payload, groups).as_secs_f64();
    let hop = profile.slot(payload + config.overhead()).as_secs_f64();
    let terms = Terms {
        packets: f64::from(wish.packets),
        segment: f64::from(config.segment),
        turn: turn(hops, groups, config),
        single: 2.0 * hop.max(cycle) / cycle,
        is_single: groups == 1,
    };
    let (cycles, repair) = cycles(&terms, &prediction);
    let slot = profile.flood_slot(PLAN_LEN + relays * RELAY_LEN);
    let flood = slot * flood_slots(hops as u8, config.flood_repeats) + config.start_guard;
    let time = flood.as_secs_f64() + cycle * cycles + hops as f64 * hop;
    (terms.packets * payload as f64 * 8.0 / time, repair)
}

/// A turn in cycles: the question to the end, and a short answer back.
fn turn(hops: usize, groups: u8, config: &Config) -> f64 {
    let (payload, profile) = (config.payload_max(), &config.profile);
    let hop = profile.slot(payload + config.overhead()).as_secs_f64();
    let answer = profile.slot(20).as_secs_f64();
    let cycle = config.cycle(payload, groups).as_secs_f64();
    hops as f64 * (hop + answer) / cycle + f64::from(groups)
}

/// Octets of a plan's frame without its relays, and of a relay where a network has some hundred nodes.
const PLAN_LEN: usize = 30;
const RELAY_LEN: usize = 1;
