//! WiLDNet's part of the demo: one file by TCP over 60 km, with a tenth of all frames lost.

use super::plan::{Variant, WildNet};
use crate::demo::{Order, Part, Row, Shown};
use crate::plan::{Changes, Plan};
use crate::provenance::Provenance;
use crate::results::{Document, Run};
use crate::run::{RunError, WORK, seeds};
use crate::scenario::Source;
use crate::system::Job;

/// Its line in the table of parts.
pub static DEMO: Part = Part {
    name: "wildnet",
    protocols: PROTOCOLS.len(),
    run,
};

const SCENARIO: &str = include_str!("demo.toml");

/// What is compared, the baseline first.
const PROTOCOLS: [Variant; 4] = [
    Variant::Csma,
    Variant::Snoop,
    Variant::Paper,
    Variant::Chappe,
];

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
    let go_on = || !order.meter.stopped();
    let one = |&seed: &u64| network(&plan, seed, order);
    let done = seeds::parallel(&seeds, order.threads, go_on, one);
    let mut finished: Vec<Vec<Run>> = Vec::new();
    for runs in done.into_iter().flatten() {
        match runs {
            Err(RunError::Interrupted) => {}
            runs => finished.push(runs?),
        }
    }
    let unfinished = seeds.len() - finished.len();
    let rows = PROTOCOLS.into_iter().enumerate();
    let rows = rows.map(|(place, variant)| Row {
        label: variant.label(),
        ours: matches!(variant, Variant::Paper | Variant::Chappe),
        document: Document::new(
            &plan.title,
            &from,
            finished.iter().map(|runs| runs[place].clone()).collect(),
            unfinished > 0,
        ),
    });
    let bounds = finished.iter().filter_map(|runs| runs[0].bound.as_ref());
    let first = plan.transfers.first();
    Ok(Shown {
        part: DEMO.name,
        over: "by TCP over 60 km, a tenth of all frames lost, 802.11b at 11 Mbit/s".into(),
        octets: first.map_or(0, |transfer| transfer.payload.len()),
        rows: rows.collect(),
        bounds_bps: bounds.map(|bound| bound.goodput_bps).collect(),
        bound: "The bound is what the radio carries in frames back to back.",
        unfinished,
    })
}

/// The runs of one seed, in the order of [`PROTOCOLS`].
fn network(plan: &Plan, seed: u64, order: &Order<'_>) -> Result<Vec<Run>, RunError> {
    order.meter.advance(WORK);
    let one = |variant| -> Result<Run, RunError> {
        let with = WildNet::of(plan, variant)?;
        let job = Job {
            plan,
            stage: plan.stage(seed)?,
            copies: false,
            pcap: None,
        };
        Ok(super::carry::carry(&with, &job, order.meter)?.run)
    };
    PROTOCOLS.into_iter().map(one).collect()
}
