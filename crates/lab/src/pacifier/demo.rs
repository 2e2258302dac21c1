//! Pacifier's part of the demo: one file to nine receivers over bad meshes.

use super::{Attempt, Pacifier, Prepared, ProtocolPlan, Variant, carry, check, prepare};
use crate::demo::{Order, Part, Row, Shown};
use crate::plan::{Changes, Plan};
use crate::provenance::Provenance;
use crate::results::{Document, Run};
use crate::run::{Depth, RunError, WORK, seeds};
use crate::scenario::Source;

/// Its line in the table of parts.
pub static DEMO: Part = Part {
    name: "pacifier",
    protocols: PROTOCOLS.len(),
    run,
};

/// The network: Pacifier's simulation set-up (IV-A) with a smaller object.
const SCENARIO: &str = include_str!("demo.toml");

/// What is compared, the baseline first.
const PROTOCOLS: [Variant; 4] = [
    Variant::More,
    Variant::Tree,
    Variant::TreeRl,
    Variant::Paper,
];

/// Moves the file over the order's networks.
fn run(order: &Order<'_>) -> Result<Shown, RunError> {
    let last = order.seed.saturating_add(order.networks);
    let seeds: Vec<u64> = (order.seed..last).collect();
    let source = Source::new("demo", SCENARIO, &[]);
    let changes = Changes {
        object: order.file,
        seeds: Some(seeds.clone()),
        ..Changes::default()
    };
    let plan = Plan::new(source.parse()?, source, &changes)?;
    let from = Provenance::here(order.command, &plan.canonical);
    let with = Pacifier::of(&plan)?;
    let systems = PROTOCOLS.map(|variant| with.carried_by(&ProtocolPlan::paper(variant)));
    let (threads, meter) = (order.threads, order.meter);
    let prepared = seeds::parallel(
        &seeds,
        threads,
        || !meter.stopped(),
        |&seed| {
            let prepared = prepare(with, plan.stage(seed)?, Depth::Slowest, meter);
            meter.advance(WORK);
            prepared
        },
    );
    let mut ready: Vec<Prepared> = Vec::new();
    for prepared in prepared.into_iter().flatten() {
        match prepared {
            Err(RunError::Interrupted) => {}
            other => ready.push(other?),
        }
    }
    let jobs: Vec<(usize, usize)> = (0..ready.len())
        .flat_map(|n| (0..systems.len()).map(move |s| (n, s)))
        .collect();
    let runs = seeds::parallel(
        &jobs,
        threads,
        || !meter.stopped(),
        |&(network, system)| {
            let attempt = Attempt {
                plan: &plan,
                with: &systems[system],
                prepared: &ready[network],
                copies: false,
                pcap: None,
            };
            let outcome = carry(attempt, meter)?;
            check(&systems[system], &ready[network], &outcome.run)?;
            Ok(outcome.run)
        },
    );
    let mut finished: Vec<Vec<Run>> = vec![Vec::new(); ready.len()];
    for (&(network, _), run) in jobs.iter().zip(runs) {
        match run {
            None | Some(Err(RunError::Interrupted)) => {}
            Some(run) => finished[network].push(run?),
        }
    }
    let whole: Vec<usize> = (0..ready.len())
        .filter(|&network| finished[network].len() == systems.len())
        .collect();
    let system = |place: usize| {
        let runs = whole
            .iter()
            .map(|&network| finished[network][place].clone())
            .collect();
        Document::new(&plan.title, &from, runs, whole.len() < seeds.len())
    };
    let rows = PROTOCOLS
        .into_iter()
        .enumerate()
        .map(|(place, variant)| Row {
            label: variant.label(),
            ours: variant == Variant::Paper,
            document: system(place),
        });
    let receivers = ready
        .first()
        .and_then(|prepared| prepared.stage.transfers.first())
        .map_or(0, |transfer| transfer.receivers.len());
    Ok(Shown {
        part: DEMO.name,
        over: format!(
            "from one node to {receivers} others over a lossy 50-node mesh, 802.11b at 2 Mbit/s"
        ),
        octets: plan
            .transfers
            .first()
            .map_or(0, |transfer| transfer.payload.len()),
        rows: rows.collect(),
        bounds_bps: whole
            .iter()
            .map(|&network| ready[network].bounds[0].worst_bps)
            .collect(),
        bound: "The bound is what no protocol can exceed whose nodes wait while they sense another (a linear program with a\nchecked proof).",
        unfinished: seeds.len() - whole.len(),
    })
}
