//! WiLDNet's part of the demo: one object by TCP over 60 km, where a tenth of all frames is lost.

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

/// Measured in docs/wildnet.md: equal slots carry UDP one way at 3.7 Mbit/s, slots by demand at 6.9; both ways at 65 km
/// WiLDNet carries 5.9 Mbit/s and 802.11 3.6.
const HALF_IDLE: &str = "WiLDNet's slots are fixed and equal. A one-way transfer leaves the return slots almost empty, so \
     half of the airtime is unused. WiLDNet is ahead with traffic both ways, and over several hops.";

fn run(order: &Order<'_>) -> Result<DemoResult, RunError> {
    let plan = order.plan(&SYSTEM, SCENARIO, &[])?;
    let finished = order.finished(|seed| network(&plan, seed, order))?;
    let row = |(place, variant): (usize, Variant)| {
        let ours = matches!(variant, Variant::Paper | Variant::Improved);
        let row = Row::new((variant.label(), ours), order, &plan, &finished, place);
        match variant {
            Variant::Paper => row.behind(HALF_IDLE),
            _ => row,
        }
    };
    let rows = PROTOCOLS.into_iter().enumerate().map(row);
    let bounds = finished.iter().filter_map(|runs| runs[0].bound.as_ref());
    Ok(DemoResult {
        part: DEMO.name,
        over: "by TCP over 60 km, a tenth of all frames lost, 802.11b at 11 Mbit/s".into(),
        octets: plan.octets(),
        rows: rows.collect(),
        bounds_bps: bounds.map(|bound| bound.goodput_bps).collect(),
        bound: "The bound is what the radio carries in frames back to back.",
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
