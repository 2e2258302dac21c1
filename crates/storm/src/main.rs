//! `cargo xtask storm`: random scenarios with faults for every system.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use chappe::systems;
use chappe_lab::system::System;
use chappe_storm::campaign::{Campaign, table};
use chappe_storm::cost;
use chappe_storm::verdict::Kind;

const HELP: &str = "\
Usage: cargo xtask storm [--hours H] [--seconds S] [--seeds A..B] [--system NAME]...

  --hours H       Stop after H hours
  --seconds S     Stop after S seconds; 60 if neither time nor seeds are given
  --seeds A..B    Run these seeds, both ends included; from 1 on if omitted
  --system NAME   Only this system; can be given several times
  --only-sure     Fail only by what no run may do: panic, miscount, contradict itself, not repeat
  --costs         Print how processor time is spread over the runs of each system, and the dearest
  --out DIR       Where the smallest failing scenarios are written; target/storm if omitted
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.iter().any(|arg| arg == "--help" || arg == "-h") {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    let (flags, args): (Vec<String>, Vec<String>) = args
        .into_iter()
        .partition(|arg| arg == "--only-sure" || arg == "--costs");
    let is_set = |flag: &str| flags.iter().any(|one| one == flag);
    let campaign = match campaign(&args) {
        Ok(campaign) => campaign,
        Err(why) => {
            eprint!("storm: {why}\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    let tallies = campaign.run();
    print!("{}", table(&campaign.systems, &tallies));
    if is_set("--costs") {
        for (system, tally) in campaign.systems.iter().zip(&tallies) {
            print!("{}", cost::report(system.scenario.name, &tally.costs));
        }
    }
    let fails = |kind: &Kind| !is_set("--only-sure") || kind.is_sure();
    let mut wrong = tallies.iter().flat_map(|tally| tally.wrong.keys());
    match !wrong.any(fails) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn campaign(args: &[String]) -> Result<Campaign, String> {
    let mut campaign = Campaign {
        systems: Vec::new(),
        first: 1,
        last: None,
        time: None,
        folder: PathBuf::from("target/storm"),
    };
    let mut args = args.iter();
    while let Some(option) = args.next() {
        let value = args
            .next()
            .ok_or_else(|| format!("`{option}` needs a value"))?;
        let number = || {
            let number = value.parse::<f64>().ok().filter(|n| *n > 0.0 && *n < 1e6);
            number.ok_or_else(|| format!("`{value}` is not a time"))
        };
        match option.as_str() {
            "--hours" => campaign.time = Some(Duration::from_secs_f64(number()? * 3600.0)),
            "--seconds" => campaign.time = Some(Duration::from_secs_f64(number()?)),
            "--seeds" => (campaign.first, campaign.last) = seeds(value)?,
            "--system" => campaign.systems.push(system(value)?),
            "--out" => campaign.folder = PathBuf::from(value),
            _ => return Err(format!("unknown option `{option}`")),
        }
    }
    if campaign.systems.is_empty() {
        campaign.systems = systems::SYSTEMS.to_vec();
    }
    if campaign.time.is_none() && campaign.last.is_none() {
        campaign.time = Some(Duration::from_secs(60));
    }
    Ok(campaign)
}

fn seeds(text: &str) -> Result<(u64, Option<u64>), String> {
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    let both = first.parse().ok().zip(last.parse().ok());
    let both = both.filter(|(first, last)| first <= last);
    let (first, last) = both.ok_or_else(|| format!("`{text}` is not a range such as 1..100"))?;
    Ok((first, Some(last)))
}

fn system(name: &str) -> Result<&'static System, String> {
    systems::named(name).ok_or_else(|| {
        let known: Vec<&str> = systems::SYSTEMS
            .iter()
            .map(|one| one.scenario.name)
            .collect();
        format!("unknown system `{name}`; known here: {}", known.join(", "))
    })
}
