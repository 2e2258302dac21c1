//! P³'s part of the demo: one file over several hops of a sensor network.

use chappe_lab::carry::RunSpec;
use chappe_lab::demo::{DemoResult, Order, Part, Row};
use chappe_lab::run::{RunError, WORK};
use chappe_results::Run;
use chappe_results::statistics::mean;
use chappe_scenario::Plan;
use chappe_scenario::Variants as _;

use super::carry::HOPS;
use super::ends::{ends_for, fits_paper};
use super::{P3, Prepared, SYSTEM, Variant, carry, check, radio_bound_bps};

/// P³'s line in the demo's table of parts.
pub static DEMO: Part = Part {
    name: "p3",
    protocols: PROTOCOLS.len(),
    run,
};

const SCENARIO: &str = include_str!("demo.toml");

/// The variants in the table, the baseline first.
const PROTOCOLS: [Variant; 4] = [
    Variant::PipAware,
    Variant::Pip,
    Variant::Paper,
    Variant::Improved,
];

/// Networks that are tried for one route.
const NETWORKS: u64 = 20;

/// Why the paper's protocol may fall behind (docs/p3.md says when).
const ONCE: &str = "P³ floods its plan once and asks once for what is missing; if either is lost, the transfer ends. Late \
    starts and unequal clocks, which this receiver has, lose more of them.";

fn run(order: &Order<'_>) -> Result<DemoResult, RunError> {
    let plan = order.plan(&SYSTEM, SCENARIO, &[])?;
    let finished = order.finished(|seed| network(&plan, seed, order))?;
    let row = |(place, variant): (usize, Variant)| {
        let ours = variant == Variant::Improved;
        let row = Row::new((variant.row(), ours), order, &plan, &finished, place);
        match variant {
            Variant::Paper => row.behind(ONCE),
            _ => row,
        }
    };
    let rows = PROTOCOLS.into_iter().enumerate().map(row);
    let hops: Vec<f64> = finished
        .iter()
        .map(|runs| runs[2].counter(HOPS) as f64)
        .collect();
    Ok(DemoResult {
        part: DEMO.name,
        over: format!(
            "over {:.1} hops, on average, of 139 sensor nodes, 802.15.4 at 250 kbit/s",
            mean(&hops)
        ),
        octets: plan.octets(),
        rows: rows.collect(),
        bounds_bps: finished.iter().map(|_| radio_bound_bps()).collect(),
        bound: "The bound is the rate of back-to-back frames on this radio.",
        unfinished: order.seeds().len() - finished.len(),
    })
}

/// The runs of one network, in the order of [`PROTOCOLS`].
fn network(plan: &Plan, seed: u64, order: &Order<'_>) -> Result<Vec<Run>, RunError> {
    let with = P3::paper(Variant::Paper);
    let found = ends_for(plan, seed, &with, NETWORKS, &fits_paper)?;
    let Some((prepared, _)) = found else {
        let message = format!("seed {seed}: no route in {NETWORKS} networks");
        return Err(RunError::Defect(message));
    };
    order.meter.advance(WORK);
    let one = |variant| -> Result<Run, RunError> {
        let prepared: &Prepared = &prepared;
        let spec = RunSpec::plain(plan, &prepared.network);
        let mut run = carry(&P3::paper(variant), prepared, spec, order.meter)?.run;
        check(&run)?;
        // The route may come from a child of this seed; results are listed by the order's seeds.
        run.seed = seed;
        Ok(run)
    };
    PROTOCOLS.into_iter().map(one).collect()
}
