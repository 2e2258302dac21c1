//! The improved variant on the paper's outdoor networks, beside the best schedule of one frame at a time.
//!
//! ```text
//! cargo run --release -p chappe-paper-pacifier --example serial [-- FIRST_SEED [NETWORKS [BYTES]]] [KEY=VALUE...]
//! ```
//!
//! `turns=true` lets members send in turns, and `outer=0` without coded batches; `day=1` and `day=2` take the indoor network; `link_min`,
//! `gap` is how exactly `ideal` is proven (0.1); `gate`, `settled_ms`, `drained_ms`, `batch_in_turns` and `share` change the variant's settings.
//!
//! One row for each seed. Rates of the worst receiver in kbit/s: what carrier sense allows at most (`bound`), the best serial schedule,
//! and the improved variant on 802.11; then transmissions for a packet, those of the serial schedule, and frames on the air at once.

use std::num::ParseFloatError;
use std::str::FromStr;

use chappe_core::Duration;
use chappe_lab::carry::RunSpec;
use chappe_lab::run::{Meter, RunError};
use chappe_lab_pacifier::{Depth, Pacifier, ProtocolPlan, Variant, carry, ideal, prepare};
use chappe_paper_pacifier::indoor;
use chappe_paper_pacifier::outdoor::{self, Setting};
use chappe_results::DATA_TRANSMISSIONS;
use chappe_results::statistics::ratio;
use chappe_testkit::Words;

const USAGE: &str = "serial [FIRST_SEED [NETWORKS [BYTES]]] [turns=true] [outer=0] [ideal=true] [day=1] [KEY=VALUE...]";

/// The words that may stand before a number, or before `true`.
const KEYS: [&str; 12] = [
    "gap",
    "turns",
    "outer",
    "ideal",
    "day",
    "batch",
    "link_min",
    "gate",
    "settled_ms",
    "drained_ms",
    "batch_in_turns",
    "share",
];

fn main() -> Result<(), RunError> {
    let mut words = Words::of_process(USAGE);
    let keys = KEYS.iter().filter_map(|key| {
        let Number(value) = words.key(&format!("{key}="))?;
        Some((*key, value))
    });
    let keys: Vec<(&str, f64)> = keys.collect();
    let first: u64 = words.next("seed").unwrap_or(1);
    let networks: u64 = words.next("number of networks").unwrap_or(10);
    let bytes = words.next("number of bytes").unwrap_or(1_440_000);
    words.end();
    println!("seed    bound   serial improved   share  frames   least  at once    ideal   share");
    let mut pairs = Vec::new();
    for seed in first..first + networks {
        pairs.push(row(seed, bytes, &keys)?);
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

/// The value of a key; `true` is one.
struct Number(f64);

impl FromStr for Number {
    type Err = ParseFloatError;

    fn from_str(word: &str) -> Result<Number, ParseFloatError> {
        match word {
            "true" => Ok(Number(1.0)),
            number => number.parse().map(Number),
        }
    }
}

fn change(with: &mut Pacifier, keys: &[(&str, f64)]) {
    for (key, value) in keys {
        let value = *value;
        let chappe_pacifier::Config::Improved(config) = &mut with.protocol.config else {
            return;
        };
        match *key {
            "turns" => with.protocol.turns = value > 0.0,
            "batch" => config.common.k = value as usize,
            "link_min" => config.settings.link_min = value,
            "outer" => config.settings.outer = value > 0.0,
            "batch_in_turns" => config.settings.batch_in_turns = value as usize,
            "share" => config.settings.share = value as f32,
            "gate" => config.settings.gate = value as f32,
            "drained_ms" => config.settings.drained = Duration::from_secs_f64(value / 1e3),
            "settled_ms" => config.settings.settled = Duration::from_secs_f64(value / 1e3),
            _ => {}
        }
    }
}

/// Prints the row of a seed; returns the rates of the serial schedule and of the improved variant.
fn row(seed: u64, bytes: usize, keys: &[(&str, f64)]) -> Result<(f64, f64), RunError> {
    let day = keys.iter().find(|(key, _)| *key == "day");
    let (plan, network) = match day {
        Some(&(_, day)) => indoor::planned(bytes, day as u8, seed)?,
        None => outdoor::planned(bytes, Setting::FIGURES, seed)?,
    };
    let meter = Meter::default();
    let mut with = Pacifier::of(&plan)?.carried_by(&ProtocolPlan::paper(Variant::Improved));
    change(&mut with, keys);
    let prepared = prepare(&with, network, Depth::Each, &meter)?;
    let run = carry(
        &with,
        &prepared,
        RunSpec::plain(&plan, &prepared.network),
        &meter,
    )?
    .run;
    let bound = &prepared.bounds[0];
    let ideal = match keys
        .iter()
        .any(|(key, value)| *key == "ideal" && *value > 0.0)
    {
        true => {
            let gap = keys.iter().find(|(key, _)| *key == "gap");
            let gap = gap.map_or(0.1, |(_, gap)| *gap);
            ideal(
                &with,
                &prepared.network,
                &prepared.network.transfers[0],
                gap,
            )?
        }
        false => None,
    };
    let ideal = ideal.map_or(f64::NAN, |ideal| ideal.goodput_bps());
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
        "{seed:4} {:8.1} {:8.1} {:8.1} {:6.1}% {:7.1} {least:7.1} {:8.2} {:8.1} {:6.1}%",
        bound.worst_bps / 1e3,
        serial / 1e3,
        worst / 1e3,
        100.0 * worst / bound.worst_bps,
        sent * payload / bytes as f64,
        sent * airtime / run.simulated_s.max(1e-9),
        ideal / 1e3,
        100.0 * worst / ideal,
    );
    Ok((serial, worst))
}
