//! The improved variant on the paper's outdoor networks, beside the best schedule of one frame at a time.
//!
//! ```text
//! cargo run --release -p chappe-paper-pacifier --example serial [-- FIRST_SEED [NETWORKS [BYTES]]]
//! ```
//!
//! One row for each seed. Rates of the worst receiver in kbit/s: what carrier sense allows at most (`bound`), the best serial schedule,
//! and the improved variant on 802.11; then transmissions for a packet, those of the serial schedule, and frames on the air at once.

use chappe_lab::carry::RunSpec;
use chappe_lab::run::{Meter, RunError};
use chappe_lab_pacifier::{Depth, Pacifier, ProtocolPlan, Variant, carry, prepare};
use chappe_paper_pacifier::outdoor::{self, Setting};
use chappe_results::DATA_TRANSMISSIONS;
use chappe_results::statistics::ratio;

fn main() -> Result<(), RunError> {
    let numbers: Vec<u64> = std::env::args()
        .skip(1)
        .filter_map(|word| word.parse().ok())
        .collect();
    let value = |place: usize, usual: u64| numbers.get(place).copied().unwrap_or(usual);
    let (first, networks, bytes) = (value(0, 1), value(1, 10), value(2, 1_440_000) as usize);
    println!("seed    bound   serial improved   share  frames   least  at once");
    let mut pairs = Vec::new();
    for seed in first..first + networks {
        pairs.push(row(seed, bytes)?);
    }
    let above = pairs.iter().filter(|(serial, ours)| ours > serial).count();
    if let Some(ratio) = ratio(&pairs) {
        let (low, high) = (
            ratio.low.unwrap_or(f64::NAN),
            ratio.high.unwrap_or(f64::NAN),
        );
        println!(
            "over the serial schedule: {:.2} ({low:.2} to {high:.2}, geometric mean), above it in {above} of {networks}",
            ratio.mean
        );
    }
    Ok(())
}

/// Prints the row of a seed; returns the rates of the serial schedule and of the improved variant.
fn row(seed: u64, bytes: usize) -> Result<(f64, f64), RunError> {
    let plan = outdoor::plan(bytes, Setting::FIGURES)?;
    let network = outdoor::network(&plan, seed)?;
    let meter = Meter::default();
    let with = Pacifier::of(&plan)?.carried_by(&ProtocolPlan::paper(Variant::Improved));
    let prepared = prepare(&with, network, Depth::Each, &meter)?;
    let run = carry(
        &with,
        &prepared,
        RunSpec::plain(&plan, &prepared.network),
        &meter,
    )?
    .run;
    let bound = &prepared.bounds[0];
    let (serial, least) = bound
        .serial
        .map_or((f64::NAN, f64::NAN), |s| (s.bps, s.frames));
    let sent = run.counter(DATA_TRANSMISSIONS) as f64;
    let payload = with.protocol.config.common().payload as f64;
    let airtime = with
        .mode
        .airtime(with.protocol.frame_octets())
        .as_secs_f64();
    let worst = run.worst_goodput();
    println!(
        "{seed:4} {:8.1} {:8.1} {:8.1} {:6.1}% {:7.1} {least:7.1} {:8.2}",
        bound.worst_bps / 1e3,
        serial / 1e3,
        worst / 1e3,
        100.0 * worst / bound.worst_bps,
        sent * payload / bytes as f64,
        sent * airtime / run.simulated_s.max(1e-9),
    );
    Ok((serial, worst))
}
