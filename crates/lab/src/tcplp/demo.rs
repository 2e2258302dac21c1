//! TCPlp's part of the demo: one file over three hops of motes.

use super::plan::{SYSTEM, Variant};
use crate::demo::{Order, Part, Row, Shown};
use crate::plan::{Changes, Plan};
use crate::provenance::Provenance;
use crate::results::{Document, Run};
use crate::run::{RunError, WORK, seeds};
use crate::scenario::Source;
use crate::system::Job;

/// Its line in the table of parts.
pub static DEMO: Part = Part {
    name: "tcplp",
    protocols: PROTOCOLS.len(),
    run,
};

const SCENARIO: &str = include_str!("demo.toml");

/// What is compared, the baseline first.
const PROTOCOLS: [Variant; 3] = [Variant::OneSegment, Variant::Paper, Variant::Chappe];

fn run(order: &Order<'_>) -> Result<Shown, RunError> {
    let last = order.seed.saturating_add(order.networks);
    let seeds: Vec<u64> = (order.seed..last).collect();
    let plans = PROTOCOLS
        .iter()
        .map(|variant| plan(*variant, &seeds, order))
        .collect::<Result<Vec<Plan>, RunError>>()?;
    let go_on = || !order.meter.stopped();
    let done = seeds::parallel(&seeds, order.threads, go_on, |&seed| {
        network(&plans, seed, order)
    });
    let mut finished: Vec<Vec<Run>> = Vec::new();
    for runs in done.into_iter().flatten() {
        match runs {
            Err(RunError::Interrupted) => {}
            runs => finished.push(runs?),
        }
    }
    let unfinished = seeds.len() - finished.len();
    let rows = PROTOCOLS.iter().enumerate().map(|(place, variant)| {
        let from = Provenance::here(order.command, &plans[place].canonical);
        let runs = finished.iter().map(|runs| runs[place].clone()).collect();
        Row {
            label: SYSTEM.variants[*variant as usize].label,
            ours: *variant == Variant::Chappe,
            document: Document::new(&plans[place].title, &from, runs, unfinished > 0),
        }
    });
    let best = |runs: &Vec<Run>| {
        let bounds = runs.iter().filter_map(|run| run.bound.as_ref());
        bounds.map(|bound| bound.goodput_bps).fold(0.0, f64::max)
    };
    Ok(Shown {
        part: DEMO.name,
        over: "over 3 hops of motes, 802.15.4 at 250 kbit/s, TCP in segments of five frames".into(),
        octets: plans[0]
            .transfers
            .first()
            .map_or(0, |transfer| transfer.payload.len()),
        rows: rows.collect(),
        bounds_bps: finished.iter().map(best).collect(),
        bound: "The bound counts frames and their acknowledgements, which must not overlap within three hops.",
        unfinished,
    })
}

fn plan(variant: Variant, seeds: &[u64], order: &Order<'_>) -> Result<Plan, RunError> {
    let name = SYSTEM.variants[variant as usize].name;
    let source = Source::new("demo", SCENARIO, &[format!("protocol.variant={name}")]);
    let changes = Changes {
        object: order.file,
        seeds: Some(seeds.to_vec()),
        ..Changes::default()
    };
    Ok(Plan::new(source.parse()?, source, &changes)?)
}

/// The runs of one seed, in the order of [`PROTOCOLS`].
fn network(plans: &[Plan], seed: u64, order: &Order<'_>) -> Result<Vec<Run>, RunError> {
    // Nothing is prepared that the three share.
    order.meter.advance(WORK);
    let one = |plan: &Plan| -> Result<Run, RunError> {
        let job = Job {
            plan,
            stage: plan.stage(seed)?,
            copies: false,
            pcap: None,
        };
        let run = super::carry::carry(carrier(plan)?, job, order.meter)?.run;
        if order.meter.stopped() {
            return Err(RunError::Interrupted);
        }
        Ok(run)
    };
    plans.iter().map(one).collect()
}

fn carrier(plan: &Plan) -> Result<&super::Tcplp, RunError> {
    let found = super::Tcplp::of(plan);
    found.ok_or_else(|| RunError::Defect("the demo's plan is not TCPlp's".into()))
}
