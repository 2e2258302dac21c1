//! Processor time of whole transfers over 139 nodes of the generated building, by phase: the network, its true links, planning and
//! the transfer. Ends are drawn at random.
//!
//! `cargo run --release -p chappe-lab-p3 --example speed -- 20 cc2420-indoor`

use std::time::Duration;

use chappe_lab::carry::RunSpec;
use chappe_lab::run::{Meter, RunError};
use chappe_lab_p3::{P3, SYSTEM, carry, prepare};
use chappe_scenario::Plan;
use chappe_testkit::Words;
use chappe_testkit::processor::thread_time;

/// The profiles of the radios to measure under.
const PROFILES: [&str; 2] = ["cc2420-indoor", "cc2420-chips"];

fn main() -> Result<(), RunError> {
    let mut words = Words::of_process("speed [SEEDS [PROFILE]]");
    let seeds = words.next("number of seeds").unwrap_or(20u64);
    let wanted: Option<String> = words.next("profile");
    let is_wanted = |profile: &&str| wanted.as_deref().is_none_or(|wanted| wanted == *profile);
    if let Some(name) = wanted.as_deref().filter(|name| !PROFILES.contains(name)) {
        words.refuse(name, &format!("is none of {}", PROFILES.join(", ")));
    }
    words.end();
    for profile in PROFILES.into_iter().filter(is_wanted) {
        let text = format!(
            "title = \"speed\"\n[network]\ngenerator = \"building\"\nnodes = 139\nbad_links = 0.25\n\
             [radio]\nprofile = \"{profile}\"\n[protocol]\nsystem = \"p3\"\nvariant = \"improved\"\n\
             [[transfer]]\nreceivers = 1\nbytes = \"59 kB\"\n"
        );
        let plan = Plan::parse(&[&SYSTEM], "speed", &text)?;
        let (mut air, mut took) = (0.0, [Duration::ZERO; 3]);
        for seed in 1..=seeds {
            let begun = now();
            let network = plan.network(seed)?;
            let drawn = now();
            let prepared = prepare(network);
            let known = now();
            let spec = RunSpec::plain(&plan, &prepared.network);
            let run = carry(P3::of(&plan)?, &prepared, spec, &Meter::default())?.run;
            let phases = [drawn - begun, known - drawn, now() - known];
            took = std::array::from_fn(|phase| took[phase] + phases[phase]);
            air += run.simulated_s;
            println!("{profile} seed {seed}: {}", run.digest);
        }
        let all: f64 = took.iter().map(|phase| phase.as_secs_f64()).sum();
        let [network, links, transfer] = took.map(|phase| phase.as_secs_f64() * 1e3 / seeds as f64);
        println!(
            "{profile}: {:.0} times real time; of a transfer {network:.1} ms for the network, {links:.1} for its true links, \
             {transfer:.1} for plan and transfer",
            air / all
        );
    }
    Ok(())
}

/// Time for which this thread has worked so far; zero where the system does not tell.
fn now() -> Duration {
    thread_time().unwrap_or_default()
}
