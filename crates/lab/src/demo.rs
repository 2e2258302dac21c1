//! The main job in ten seconds: one file to nine receivers over bad meshes, by each system, beside the bound.

use std::path::Path;

use crate::input::InputError;
use crate::pacifier::{Attempt, Pacifier, Prepared, ProtocolPlan, Variant, carry, check, prepare};
use crate::plan::{Changes, Payload, Plan};
use crate::provenance::Provenance;
use crate::results::{Document, Run};
use crate::run::{Depth, Meter, RunError, WORK, seeds};
use crate::scenario::Source;

/// The network of the demo: Pacifier's simulation set-up (IV-A) with a smaller object.
pub const SCENARIO: &str = include_str!("demo.toml");

/// The systems, in the order of the table.
pub const SYSTEMS: [Variant; 4] = [
    Variant::More,
    Variant::Tree,
    Variant::TreeRl,
    Variant::Paper,
];

/// What the demo found.
#[derive(Clone, Debug)]
pub struct Demo {
    /// Octets that were moved.
    pub octets: usize,
    /// The file they came from, if any.
    pub file: Option<String>,
    /// One for each system, in the order of [`SYSTEMS`], each with one run for each network.
    pub systems: Vec<(Variant, Document)>,
    /// The bound of the slowest receiver for each network, in bits per second.
    pub bounds_bps: Vec<f64>,
    /// Networks that were not finished because somebody asked to stop.
    pub unfinished: usize,
}

/// Moves the file over `networks` networks, of which the first has the seed `seed`.
pub fn run(
    file: Option<&Path>,
    first: u64,
    networks: u64,
    (command, threads): (&str, usize),
    meter: &Meter,
) -> Result<Demo, RunError> {
    let seeds: Vec<u64> = (first..first.saturating_add(networks)).collect();
    let plan = plan(file, seeds.clone())?;
    let from = Provenance::here(command, &plan.canonical);
    let with = Pacifier::of(&plan)?;
    let systems = SYSTEMS.map(|variant| with.carried_by(&ProtocolPlan::paper(variant)));
    meter.plan(seeds.len(), systems.len());
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
    Ok(Demo {
        octets: plan
            .transfers
            .first()
            .map_or(0, |transfer| transfer.payload.len()),
        file: plan
            .transfers
            .first()
            .and_then(|transfer| match &transfer.payload {
                Payload::File { path, .. } => Some(path.display().to_string()),
                Payload::Random(_) => None,
            }),
        systems: SYSTEMS
            .into_iter()
            .enumerate()
            .map(|(place, variant)| (variant, system(place)))
            .collect(),
        bounds_bps: whole
            .iter()
            .map(|&network| ready[network].bounds[0].worst_bps)
            .collect(),
        unfinished: seeds.len() - whole.len(),
    })
}

fn plan(file: Option<&Path>, seeds: Vec<u64>) -> Result<Plan, InputError> {
    let source = Source::new("demo", SCENARIO, &[]);
    Plan::new(
        source.parse()?,
        source,
        &Changes {
            object: file,
            seeds: Some(seeds),
        },
    )
}
