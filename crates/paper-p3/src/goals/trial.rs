//! One network of a kind, its ends, and a transfer by each variant.

use std::sync::LazyLock;
use std::time::Instant;

use chappe_core::{Purpose, Seed};
use chappe_lab::carry::RunSpec;
use chappe_lab::run::{Meter, RunError};
use chappe_lab_p3::{Prepared, RADIO_WATTS, Variant, carry, check, prepare};
use chappe_p3::config::CHANNELS;
use chappe_p3::planner::{LinkGraph, largest_path_set};
use chappe_results::Run;
use chappe_scenario::Plan;
use serde::{Deserialize, Serialize};

use super::networks::Kind;
use crate::campaign::{LARGE, best};

/// A link of a way works in both directions with this ratio on one of the channels.
const GOOD: f64 = 0.9;
/// Flows that the search for two distinct ways may take.
const FLOWS: usize = 200;
/// Hops beyond the shortest way on which two distinct ways are looked for.
const SLACK: usize = 3;

/// The variants that are compared.
pub const VARIANTS: [Variant; 3] = [Variant::Paper, Variant::PipAware, Variant::Improved];

/// What the transfers over one network brought.
#[derive(Serialize, Deserialize)]
pub struct Trial {
    /// Whether any way of links that are good on one of the channels joins the ends.
    pub has_way: bool,
    /// Whether two of them have no node in common and one length, so that two groups can take turns.
    pub has_pipeline: bool,
    /// One for each of [`VARIANTS`].
    pub transfers: Vec<Transfer>,
    /// Goodput of a megabyte by the improved variant in kbit/s, where it was asked for.
    pub large: Option<f64>,
}

/// What one transfer brought, and what it cost.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Transfer {
    /// Goodput in kbit/s; zero where the object did not arrive.
    pub kbit: f64,
    /// The same with the measurement of the links in the time.
    pub kbit_measured: f64,
    /// Kilobytes that arrived; zero unless all of the object did.
    pub kilobytes: f64,
    /// Joules of the nodes on the way, and of all nodes during the measurement.
    pub joules: f64,
    /// Seconds of the simulated network's time.
    pub simulated: f64,
    /// Seconds of a processor that planning and simulating took.
    pub took: f64,
}

/// Seconds for which this thread has had a processor so far: on a busy machine the clock says nothing of our speed. Where the
/// system does not tell, the clock's.
fn worked() -> f64 {
    static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = told.and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
    nanos.map_or_else(|| BEGUN.elapsed().as_secs_f64(), |nanos| nanos * 1e-9)
}

/// Runs the transfers of all variants over the network of `seed`.
pub fn run(plan: &Plan, kind: &Kind, seed: u64, large: bool) -> Result<Trial, RunError> {
    let mut prepared = prepare(plan.network(seed)?);
    let (source, destination) = ends(kind, prepared.truth.nodes(), seed);
    let transfer = &mut prepared.network.transfers[0];
    (transfer.source, transfer.receivers) = (source, vec![destination]);
    let (has_way, has_pipeline) = ways(&prepared, source, destination);
    let mut transfers = Vec::new();
    for variant in VARIANTS {
        let begun = worked();
        let spec = RunSpec::plain(plan, &prepared.network);
        let run = carry(&best(variant), &prepared, spec, &Meter::default())?.run;
        let took = worked() - begun;
        check(&run)?;
        if run
            .flows
            .iter()
            .any(|flow| flow.complete && !flow.digest_ok)
        {
            return Err(RunError::Defect(format!("seed {seed}: a wrong copy")));
        }
        transfers.push(Transfer::of(&run, prepared.truth.nodes(), took));
    }
    let large = match large {
        true => Some(megabyte(plan, &mut prepared, seed)?),
        false => None,
    };
    Ok(Trial {
        has_way,
        has_pipeline,
        transfers,
        large,
    })
}

/// A megabyte over the same network, by the improved variant.
fn megabyte(plan: &Plan, prepared: &mut Prepared, seed: u64) -> Result<f64, RunError> {
    let mut octets = vec![0; LARGE as usize];
    Seed(seed).stream(Purpose::Traffic(0)).fill(&mut octets);
    prepared.network.transfers[0].object = octets.into();
    let spec = RunSpec::plain(plan, &prepared.network);
    let run = carry(&best(Variant::Improved), prepared, spec, &Meter::default())?.run;
    check(&run)?;
    Ok(Transfer::of(&run, prepared.truth.nodes(), 0.0).kbit)
}

impl Transfer {
    fn of(run: &Run, nodes: usize, took: f64) -> Transfer {
        let learning = (run.counter("measuring_ms") + run.counter("collecting_ms")) as f64 * 1e-3;
        let flow = run.flows.first().filter(|flow| flow.complete);
        let kilobytes = flow.map_or(0.0, |flow| flow.delivered_bytes as f64 / 1e3);
        let seconds = flow.and_then(|flow| flow.completion_s);
        Transfer {
            kbit: run.mean_goodput() / 1e3,
            kbit_measured: seconds.map_or(0.0, |seconds| kilobytes * 8.0 / (seconds + learning)),
            kilobytes,
            joules: run.counter("energy_uj") as f64 * 1e-6 + learning * nodes as f64 * RADIO_WATTS,
            simulated: run.simulated_s,
            took,
        }
    }
}

/// Source and destination: the ends of a corridor, or any two nodes.
fn ends(kind: &Kind, nodes: usize, seed: u64) -> (usize, usize) {
    if kind.corridor.is_some() {
        return (nodes - 1, 0);
    }
    let mut random = Seed(seed).child(0x0067_6f61_6c73).stream(Purpose::Topology);
    let source = random.below(nodes as u64) as usize;
    let step = 1 + random.below(nodes as u64 - 1) as usize;
    (source, (source + step) % nodes)
}

/// Whether there is a way by links that are good on one of the channels, and whether two of one length have no node in common.
fn ways(prepared: &Prepared, source: usize, destination: usize) -> (bool, bool) {
    let truth = &prepared.truth;
    let best = |from: usize, to: usize| {
        let both = |channel| {
            truth
                .get(channel, from, to)
                .min(truth.get(channel, to, from))
        };
        CHANNELS.into_iter().map(both).fold(0.0, f64::max)
    };
    let graph = LinkGraph::from_prr(truth.nodes(), GOOD, best);
    let way = graph.distances(source)[destination];
    let two = way.is_some_and(|hops| {
        hops == 1
            || (hops..=hops + SLACK).any(|hops| {
                let found = largest_path_set(&graph, source, destination, hops, FLOWS);
                found.paths.len() >= 2
            })
    });
    (way.is_some(), two)
}
