//! TCPlp's part of the demo: one file over three hops of motes.

use chappe_lab::demo::{DemoResult, Order, Part, Row};
use chappe_lab::run::{RunError, WORK};
use chappe_lab::system::Job;
use chappe_results::Run;
use chappe_scenario::Plan;
use chappe_scenario::Variants as _;

use super::plan::{SYSTEM, Variant};

/// TCPlp's line in the demo's table of parts.
pub static DEMO: Part = Part {
    name: "tcplp",
    protocols: PROTOCOLS.len(),
    run,
};

const SCENARIO: &str = include_str!("demo.toml");

/// The variants in the table, the baseline first.
const PROTOCOLS: [Variant; 3] = [Variant::OneSegment, Variant::Paper, Variant::Improved];

/// The pace that avoids this is explained in docs/tcplp.md.
const HIDDEN: &str = "TCPlp has several segments in flight. Its source cannot hear the relay two hops on, and its \
     next frames collide with those that this relay forwards.";

fn run(order: &Order<'_>) -> Result<DemoResult, RunError> {
    let plan = |variant: &Variant| {
        let name = SYSTEM.variants[*variant as usize].name;
        order.plan(&SYSTEM, SCENARIO, &[format!("protocol.variant={name}")])
    };
    let plans: Result<Vec<Plan>, RunError> = PROTOCOLS.iter().map(plan).collect();
    let plans = plans?;
    let finished = order.finished(|seed| network(&plans, seed, order))?;
    let row = |(place, variant): (usize, Variant)| {
        let ours = variant == Variant::Improved;
        let row = Row::new(
            (variant.row(), ours),
            order,
            &plans[place],
            &finished,
            place,
        );
        match variant {
            Variant::Paper => row.behind(HIDDEN),
            _ => row,
        }
    };
    let rows = PROTOCOLS.into_iter().enumerate().map(row);
    let best = |runs: &Vec<Run>| {
        let bounds = runs.iter().filter_map(|run| run.bound.as_ref());
        bounds.map(|bound| bound.goodput_bps).fold(0.0, f64::max)
    };
    Ok(DemoResult {
        part: DEMO.name,
        over: "over 3 hops of motes, 802.15.4 at 250 kbit/s, TCP in segments of five frames".into(),
        octets: plans[0].octets(),
        rows: rows.collect(),
        bounds_bps: finished.iter().map(best).collect(),
        bound: "The bound counts frames and their acknowledgements, which must not overlap within three hops.",
        unfinished: order.seeds().len() - finished.len(),
    })
}

/// The runs of one seed, in the order of [`PROTOCOLS`].
fn network(plans: &[Plan], seed: u64, order: &Order<'_>) -> Result<Vec<Run>, RunError> {
    // The variants share no preparation, so that share of the work is done at once.
    order.meter.advance(WORK);
    let one = |plan: &Plan| -> Result<Run, RunError> {
        let job = Job {
            plan,
            network: plan.network(seed)?,
            copies: false,
            pcap: None,
            traces: None,
        };
        let run = super::carry::carry(super::Tcplp::of(plan)?, &job, order.meter)?.run;
        if order.meter.stopped() {
            return Err(RunError::Interrupted);
        }
        Ok(run)
    };
    plans.iter().map(one).collect()
}
