//! DPCLO's part of the demo: one file to four nodes of a mesh, each by its own TCP connection.

use chappe_lab::demo::{DemoResult, Order, Part, Row};
use chappe_lab::run::RunError;
use chappe_lab::system::{Job, settings};
use chappe_results::Run;
use chappe_scenario::Plan;
use chappe_scenario::Variants as _;

use crate::plan::{Dpclo, SYSTEM, Variant};

/// DPCLO's line in the table of the demo's parts.
pub static DEMO: Part = Part {
    name: "dpclo",
    // Each run solves its bound first, which is as much work again; there is no other preparation.
    protocols: 2 * PROTOCOLS.len() - 1,
    run,
};

const SCENARIO: &str = include_str!("demo.toml");

/// The variants that are compared, the baseline first.
const PROTOCOLS: [Variant; 3] = [Variant::Tcp, Variant::Paper, Variant::Improved];

/// Measured in docs/studies/dpclo.md: of 1 MB instead of 100 kB, DPCLO and its improved variant carry as much as TCP.
const SLOW_START: &str = "DPCLO limits the rates of sources, and they start low: a short object ends before its rate has \
     grown. It is made for flows that last.";

fn run(order: &Order<'_>) -> Result<DemoResult, RunError> {
    let plans = PROTOCOLS.map(|variant| {
        let set = format!("protocol.variant = \"{}\"", variant.name());
        order.plan(&SYSTEM, SCENARIO, &[set])
    });
    let plans = plans.into_iter().collect::<Result<Vec<Plan>, RunError>>()?;
    let finished = order.finished(|seed| network(&plans, seed, order))?;
    let row = |(place, (variant, plan)): (usize, (Variant, &Plan))| {
        let ours = variant != Variant::Tcp;
        let row = Row::new((variant.row(), ours), order, plan, &finished, place);
        match variant {
            Variant::Paper => row.behind(SLOW_START),
            _ => row,
        }
    };
    let rows = PROTOCOLS.into_iter().zip(&plans).enumerate().map(row);
    let bounds = finished.iter().filter_map(|runs| runs[0].bounds.first());
    Ok(DemoResult {
        part: DEMO.name,
        over: "from one node to 4 others of a 20-node mesh, each by TCP, 802.11e at 2 Mbit/s"
            .into(),
        octets: plans[0].octets(),
        rows: rows.collect(),
        bounds_bps: bounds.map(|bound| bound.goodput_bps).collect(),
        bound: "The bound is the most that all four can have at once, over all routings and schedules.",
        unfinished: order.seeds().len() - finished.len(),
    })
}

/// The runs on one seed's network, in the order of [`PROTOCOLS`].
fn network(plans: &[Plan], seed: u64, order: &Order<'_>) -> Result<Vec<Run>, RunError> {
    let one = |plan: &Plan| -> Result<Run, RunError> {
        let job = Job {
            plan,
            network: plan.network(seed)?,
            copies: false,
            pcap: None,
            traces: None,
        };
        let with: &Dpclo = settings(plan)?;
        Ok(super::carry::carry(with, &job, order.meter)?.run)
    };
    plans.iter().map(one).collect()
}
