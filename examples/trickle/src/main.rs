//! Carries an object over a random mesh by Trickle: `cargo run --release -p trickle [SCENARIO.toml]`.

use std::path::Path;

use chappe_lab::run::Meter;
use chappe_lab::session::{self, Options};
use chappe_lab::system::scenarios;
use chappe_results::DATA_TRANSMISSIONS;
use chappe_results::provenance::Program;
use chappe_scenario::Plan;
use chappe_scenario::plan::Changes;
use trickle::system::TRICKLE;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let named = std::env::args().nth(1);
    let file = named.unwrap_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/mesh.toml").into());
    let systems = [&TRICKLE];
    let plan = Plan::read(
        &scenarios(&systems),
        Path::new(&file),
        &[],
        &Changes::default(),
    )?;
    let program = Program::unknown("trickle");
    let options = Options::default();
    let session = session::run(&systems, &plan, program, options, &Meter::default())?;
    for run in &session.document.runs {
        let (packets, summaries) = (run.counter(DATA_TRANSMISSIONS), run.counter("summaries"));
        let (seed, digest) = (run.seed, &run.digest);
        println!(
            "seed {seed}: {packets} packets and {summaries} summaries were broadcast, digest {digest}"
        );
        for flow in &run.flows {
            let (kbps, right) = (flow.goodput_bps / 1e3, flow.digest_ok);
            println!("  {}: {kbps:.0} kbit/s, digest right: {right}", flow.name);
        }
    }
    match session.document.all_complete() {
        true => Ok(()),
        false => Err("a receiver has no right copy".into()),
    }
}
