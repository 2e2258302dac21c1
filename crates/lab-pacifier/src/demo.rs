//! Pacifier's part of the demo: one file to nine receivers over bad meshes.

use chappe_lab::carry::RunSpec;
use chappe_lab::demo::{DemoResult, Order, Part, Row};
use chappe_lab::run::{RunError, WORK};
use chappe_lab::seeds;
use chappe_results::Run;
use chappe_scenario::Variants as _;

use super::{Depth, Pacifier, Prepared, ProtocolPlan, SYSTEM, Variant, carry, check, prepare};

/// Pacifier's entry in the table of demo parts.
pub static DEMO: Part = Part {
    name: "pacifier",
    protocols: PROTOCOLS.len(),
    run,
};

/// The network: Pacifier's simulation set-up (IV-A) with a smaller object.
const SCENARIO: &str = include_str!("demo.toml");

/// The variants of the demo, the baseline first.
const PROTOCOLS: [Variant; 4] = [
    Variant::More,
    Variant::TreeRl,
    Variant::Paper,
    Variant::Improved,
];

/// Moves the file over the order's networks.
fn run(order: &Order<'_>) -> Result<DemoResult, RunError> {
    let plan = order.plan(&SYSTEM, SCENARIO, &[])?;
    let with = Pacifier::of(&plan)?;
    let systems = PROTOCOLS.map(|variant| with.carried_by(&ProtocolPlan::paper(variant)));
    let meter = order.meter;
    let ready: Vec<Prepared> = order.finished(|seed| {
        let prepared = prepare(with, plan.network(seed)?, Depth::Slowest, meter);
        meter.advance(WORK);
        prepared
    })?;
    let jobs: Vec<(usize, usize)> = (0..ready.len())
        .flat_map(|n| (0..systems.len()).map(move |s| (n, s)))
        .collect();
    let runs = seeds::finished(&jobs, order.threads, meter, |&(network, system)| {
        let spec = RunSpec::plain(&plan, &ready[network].network);
        let outcome = carry(&systems[system], &ready[network], spec, meter)?;
        check(&systems[system], &ready[network], &outcome.run)?;
        Ok(outcome.run)
    })?;
    let mut finished: Vec<Vec<Run>> = vec![Vec::new(); ready.len()];
    for (&(network, _), run) in runs {
        finished[network].push(run);
    }
    let whole = |(_, runs): &(&Prepared, Vec<Run>)| runs.len() == systems.len();
    let (ready, finished): (Vec<&Prepared>, Vec<Vec<Run>>) =
        ready.iter().zip(finished).filter(whole).unzip();
    let row = |(place, variant): (usize, Variant)| {
        let ours = matches!(variant, Variant::Paper | Variant::Improved);
        Row::new((variant.row(), ours), order, &plan, &finished, place)
    };
    let rows = PROTOCOLS.into_iter().enumerate().map(row);
    let receivers = ready
        .first()
        .and_then(|prepared| prepared.network.transfers.first())
        .map_or(0, |transfer| transfer.receivers.len());
    Ok(DemoResult {
        part: DEMO.name,
        over: format!(
            "from one node to {receivers} others over a lossy 50-node mesh, 802.11b at 2 Mbit/s"
        ),
        octets: plan.octets(),
        rows: rows.collect(),
        bounds_bps: ready
            .iter()
            .map(|prepared| prepared.bounds[0].worst_bps)
            .collect(),
        bound: "No protocol whose nodes defer to frames that they sense can exceed the bound (a linear program with a checked proof).",
        unfinished: order.seeds().len() - finished.len(),
    })
}
