//! Processor time of one plan of the improved variant, by nodes of the generated building and of a random network:
//! measured links, ends drawn at random.
//!
//! `cargo run --release -p chappe-lab-p3 --example planning -- 139 500`

use chappe_lab::run::RunError;
use chappe_lab_p3::{P3, SYSTEM, Variant, prepare, route};
use chappe_scenario::Plan;
use chappe_testkit::Words;
use chappe_testkit::processor::thread_time;

/// Networks of each kind and size.
const NETWORKS: u64 = 20;
/// Metres between neighbours of the random networks, from dense to hardly connected.
const SPACINGS: [f64; 4] = [8.0, 20.0, 25.0, 30.0];

fn main() -> Result<(), RunError> {
    let mut words = Words::of_process("planning [NODES...]");
    let mut sizes: Vec<usize> = std::iter::from_fn(|| words.next("number of nodes")).collect();
    if sizes.is_empty() {
        sizes = vec![139, 500];
    }
    for nodes in sizes {
        time("a generated building", "generator = \"building\"", nodes)?;
        for spacing in SPACINGS {
            let side = spacing * (nodes as f64).sqrt();
            let text = format!("generator = \"random\"\narea = [\"{side:.0} m\", \"{side:.0} m\"]");
            time(&format!("random, {spacing} m apart"), &text, nodes)?;
        }
    }
    Ok(())
}

/// Prints the times of one kind and size.
fn time(name: &str, network: &str, nodes: usize) -> Result<(), RunError> {
    let (mut took, mut hops): (Vec<f64>, u8) = (Vec::new(), 0);
    for seed in 1..=NETWORKS {
        if let Some((one, far)) = planned(network, nodes, seed)? {
            took.push(one);
            hops = hops.max(far);
        }
    }
    took.sort_by(f64::total_cmp);
    let at = |share: f64| took.get((took.len() as f64 * share) as usize).copied();
    let (middle, most) = (
        at(0.5).unwrap_or(f64::NAN),
        took.last().copied().unwrap_or(f64::NAN),
    );
    let plans = took.len();
    println!(
        "{nodes} nodes, {name}: {plans} plans of up to {hops} hops, {middle:.3} s at the median, {most:.3} s at most"
    );
    Ok(())
}

/// Seconds of a processor that a plan takes, and its hops; `None` where no way joins the ends, or the system tells no times.
fn planned(network: &str, nodes: usize, seed: u64) -> Result<Option<(f64, u8)>, RunError> {
    let text = format!(
        "title = \"planning\"\n[network]\n{network}\nnodes = {nodes}\n[protocol]\nsystem = \"p3\"\n\
         [[transfer]]\nreceivers = 1\nbytes = \"59 kB\"\n"
    );
    let plan = Plan::parse(&[&SYSTEM], "planning", &text)?;
    let prepared = prepare(plan.network(seed)?);
    let with = P3::paper(Variant::Improved);
    let known = prepared.learn(&with);
    let transfer = &prepared.network.transfers[0];
    let ends = (seed, transfer.source, transfer.receivers[0]);
    let packets = transfer.object.len().div_ceil(usize::from(with.payload)) as u32;
    let begun = thread_time();
    let found = route(&with, &known, ends, packets)?;
    let took = thread_time().zip(begun).map(|(end, begun)| end - begun);
    Ok(found
        .zip(took)
        .map(|(found, took)| (took.as_secs_f64(), found.plan.hops())))
}
