//! What the improved variant reaches over lines of one hop to twelve without any loss: what floods, the way of the first packet and the gap
//! between frames leave. Three relays a stage; each hears the stages beside its own.
//!
//! `cargo run --release -p chappe-lab-p3 --example lossless -- cc2420-chips`

use std::fmt::Write as _;

use chappe_lab::carry::RunSpec;
use chappe_lab::run::{Meter, RunError};
use chappe_lab_p3::{P3, SYSTEM, Variant, carry, prepare};
use chappe_p3::Tagging;
use chappe_scenario::Plan;
use chappe_testkit::Words;

/// Relays of a stage.
const WIDTH: usize = 3;
/// Channels of the links.
const CHANNELS: [u8; 4] = [15, 20, 25, 26];
const HOPS_MAX: usize = 12;
const SEEDS: u64 = 3;

fn main() -> Result<(), RunError> {
    let mut words = Words::of_process("lossless [PROFILE]");
    let profile: String = words.next("profile").unwrap_or("cc2420-chips".into());
    words.end();
    let name = format!("chappe-p3-lossless-{}.csv", std::process::id());
    let file = std::env::temp_dir().join(name);
    let failed = |error: std::io::Error| RunError::Defect(format!("a list of links: {error}"));
    for hops in 1..=HOPS_MAX {
        std::fs::write(&file, links(hops)).map_err(failed)?;
        let text = format!(
            "title = \"lossless\"\n[network]\nfile = {:?}\n[radio]\nprofile = \"{profile}\"\n[protocol]\nsystem = \"p3\"\n\
             variant = \"improved\"\n[[transfer]]\nsource = 0\nreceivers = [1]\nbytes = \"59 kB\"\n",
            file.display().to_string()
        );
        let plan = Plan::parse(&[&SYSTEM], "lossless", &text)?;
        let with = P3::paper(Variant::Improved).tagged_by(Tagging::Segments);
        let (mut sum, mut attempts) = (0.0, 0);
        for seed in 1..=SEEDS {
            let prepared = prepare(plan.network(seed)?);
            let spec = RunSpec::plain(&plan, &prepared.network);
            let run = carry(&with, &prepared, spec, &Meter::default())?.run;
            sum += run.mean_goodput() / 1e3;
            attempts += run.counter("attempts");
        }
        println!(
            "{profile}, {hops} hops: {:.1} kbit/s, {attempts} attempts of {SEEDS}",
            sum / SEEDS as f64
        );
    }
    std::fs::remove_file(&file).map_err(failed)
}

/// Links between neighbouring stages without loss, by nodes: source 0, destination 1, then the relays.
fn links(hops: usize) -> String {
    let stage = |at: usize| -> Vec<usize> {
        match at {
            0 => vec![0],
            at if at == hops => vec![1],
            at => (0..WIDTH)
                .map(|place| 2 + (at - 1) * WIDTH + place)
                .collect(),
        }
    };
    let mut list = String::from("src,dst,channel,pdr,mean_rssi\n");
    for at in 0..hops {
        for (a, b) in stage(at)
            .into_iter()
            .flat_map(|a| stage(at + 1).into_iter().map(move |b| (a, b)))
        {
            for (from, to, channel) in CHANNELS
                .iter()
                .flat_map(|&channel| [(a, b, channel), (b, a, channel)])
            {
                // Unequal powers, so that none of the senders of a stage drowns another.
                let dbm = -55 - 6 * (from.max(to) % WIDTH) as i32;
                let _ = writeln!(list, "{from},{to},{channel},1.0,{dbm}");
            }
        }
    }
    list
}
