//! WiLDNet's part of the demo: an object each way by TCP over 60 km, where a tenth of all frames is lost.
//!
//! The paper's point stands both ways: equal slots give each direction half of the air, whether it has anything to send or not.

use chappe_lab::demo::{DemoResult, Order, Part, Row};
use chappe_lab::run::{RunError, WORK};
use chappe_lab::system::Job;
use chappe_results::Run;
use chappe_scenario::Plan;
use chappe_scenario::Variants as _;

use crate::plan::{SYSTEM, Variant, WildNet};

/// WiLDNet's line in the table of the demo's parts.
pub static DEMO: Part = Part {
    name: "wildnet",
    protocols: PROTOCOLS.len(),
    run,
};

const SCENARIO: &str = include_str!("demo.toml");

/// The variants that are compared, the baseline first.
const PROTOCOLS: [Variant; 4] = [
    Variant::Csma,
    Variant::Snoop,
    Variant::Paper,
    Variant::Improved,
];

/// The bound, and why each way has data. Measured in docs/wildnet.md, figure 9.
const BOUND: &str = "The bound is half of what the radio carries in frames back to back, since both ways share it. WiLDNet's slots are \
     fixed and equal: a transfer one way leaves half of the airtime unused, and 802.11 is ahead of it at this distance.";

/// A round trip is two slots at least, and the start of TCP takes several.
const WAITS: &str = "WiLDNet's frames wait for their end's slot, so short files take longer.";

fn run(order: &Order<'_>) -> Result<DemoResult, RunError> {
    let plan = order.plan(&SYSTEM, SCENARIO, &[])?;
    let finished = order.finished(|seed| network(&plan, seed, order))?;
    let row = |(place, variant): (usize, Variant)| {
        let ours = matches!(variant, Variant::Paper | Variant::Improved);
        let row = Row::new((variant.row(), ours), order, &plan, &finished, place);
        match variant {
            Variant::Paper => row.behind(WAITS),
            _ => row,
        }
    };
    let rows = PROTOCOLS.into_iter().enumerate().map(row);
    let bounds = finished.iter().filter_map(|runs| runs[0].bound.as_ref());
    Ok(DemoResult {
        part: DEMO.name,
        over: "each way by TCP over 60 km, a tenth of all frames lost, 802.11b at 11 Mbit/s".into(),
        octets: plan.octets(),
        rows: rows.collect(),
        bounds_bps: bounds.map(|bound| bound.goodput_bps).collect(),
        bound: BOUND,
        unfinished: order.seeds().len() - finished.len(),
    })
}

/// The runs on one seed's network, in the order of [`PROTOCOLS`].
fn network(plan: &Plan, seed: u64, order: &Order<'_>) -> Result<Vec<Run>, RunError> {
    order.meter.advance(WORK);
    let one = |variant| -> Result<Run, RunError> {
        let with = WildNet::of(plan, variant)?;
        let job = Job {
            plan,
            network: plan.network(seed)?,
            copies: false,
            pcap: None,
            traces: None,
        };
        Ok(super::carry::carry(&with, &job, order.meter)?.run)
    };
    PROTOCOLS.into_iter().map(one).collect()
}
