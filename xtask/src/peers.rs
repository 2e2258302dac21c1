//! `cargo xtask peers`: runs Chappe and ns-3 on the same networks and compares what they count.
//!
//! ns-3 comes from Debian's `libns3-dev`, or from the wheel `ns3` of PyPI in an environment under `target/peers`. Our programs for it are
//! `peers/*.cc`, Chappe's side is the example `peer` of `chappe-sim`.

mod comparison;
mod ns3;

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use comparison::{Comparison, Counts};
use ns3::Ns3;

use crate::{bench, process, workspace};

/// The first seed. Those of the project's own tests and figures are lower.
const FIRST_SEED: u64 = 101;
/// Seeds unless the user says otherwise.
const SEEDS: u64 = 12;
/// No run takes nearly so long, however busy the machine is.
const LIMIT: Duration = Duration::from_mins(60);

/// What is run on both sides.
struct Case {
    /// The scenario of both programs.
    scenario: &'static str,
    /// Our program for ns-3, without its ending.
    program: &'static str,
    /// Keys of Chappe's side that change the scenario.
    keys: &'static [&'static str],
    what: &'static str,
    /// Whether both sides must agree. A case that shows a known difference does not decide.
    decides: bool,
}

const CASES: &[Case] = &[
    Case {
        scenario: "broadcast",
        program: "dot11",
        keys: &[],
        what: "802.11b: 50 nodes, 10 saturated broadcasters, Rayleigh fading",
        decides: true,
    },
    Case {
        scenario: "broadcast",
        program: "dot11",
        keys: &["cca_sensitivity=-82"],
        what: "the same with ns-3's default for its second carrier sense threshold",
        decides: false,
    },
    Case {
        scenario: "cell",
        program: "dot11",
        keys: &[],
        what: "802.11b: 20 saturated stations and a sink, acknowledged",
        decides: true,
    },
    Case {
        scenario: "broadcast-ofdm",
        program: "dot11",
        keys: &[],
        what: "OFDM at 24 Mbit/s: 50 nodes, 10 saturated broadcasters, Rayleigh fading",
        decides: true,
    },
    Case {
        scenario: "cell-ofdm",
        program: "dot11",
        keys: &[],
        what: "OFDM at 24 Mbit/s: 20 saturated stations and a sink, acknowledged",
        decides: true,
    },
    Case {
        scenario: "broadcast-ht",
        program: "dot11",
        keys: &[],
        what: "802.11n at 26 Mbit/s: 50 nodes, 10 saturated broadcasters, Rayleigh fading",
        decides: true,
    },
    Case {
        scenario: "cell-ht",
        program: "dot11",
        keys: &[],
        what: "802.11n at 26 Mbit/s: 20 saturated stations and a sink, acknowledged",
        decides: true,
    },
    Case {
        scenario: "cell-ampdu",
        program: "dot11",
        keys: &[],
        what: "802.11n at 26 Mbit/s in A-MPDUs of 16: 20 saturated stations and a sink",
        decides: true,
    },
    Case {
        scenario: "dot15d4",
        program: "dot15d4",
        keys: &[],
        what: "802.15.4: 139 nodes, 100 octets a second each, CSMA-CA",
        decides: true,
    },
    Case {
        scenario: "dot15d4",
        program: "dot15d4",
        keys: &["profile=ieee-e418-gate"],
        what: "the same, and Chappe receives nothing below the sensitivity",
        decides: false,
    },
];

/// Compares both simulators on `arguments[0]` seeds (12) and keeps the table under `docs/benchmarks`.
pub fn alone(arguments: &[String]) -> Result<(), String> {
    let seeds = match arguments {
        [] => SEEDS,
        [count] => match count.parse() {
            Ok(count) if (2..=1000).contains(&count) => count,
            _ => return Err(format!("{count}: give a number of seeds from 2 to 1000")),
        },
        _ => return Err("give one number of seeds, or none".to_owned()),
    };
    let root = workspace::root()?;
    let folder = root.join("target/peers");
    fs::create_dir_all(&folder).map_err(|why| format!("{}: {why}", folder.display()))?;
    let ns3 = match Ns3::found(&folder) {
        Ok(ns3) => ns3,
        Err(why) => {
            println!("skipped: {why}");
            return Ok(());
        }
    };
    println!("ns-3 is {}", ns3.version);
    for program in ["dot11", "dot15d4"] {
        ns3.compile(&root.join("peers").join(program), &folder.join(program))?;
    }
    let mut build = process::cargo(&root, ["build", "--release", "--quiet"]);
    process::show(build.args(["-p", "chappe-sim", "--example", "peer"]))?;
    let sides = Sides {
        peer: workspace::Workspace::load()?
            .target
            .join("release/examples/peer"),
        folder,
    };
    let mut text = format!(
        "{}, seeds {FIRST_SEED} to {}\n",
        ns3.version,
        FIRST_SEED + seeds - 1
    );
    let mut apart = Vec::new();
    for case in CASES {
        let comparison = sides.compare(case, seeds)?;
        let shown = comparison.table(case.what);
        print!("\n{shown}");
        let _ = write!(text, "\n{shown}");
        if case.decides && !comparison.agrees() {
            apart.push(case.scenario);
        }
    }
    let kept = bench::keep(&root, "cargo xtask peers", "peers", &text)?;
    println!("\nkept in {}", kept.display());
    match apart.is_empty() {
        true => Ok(()),
        false => Err(format!("Chappe and ns-3 differ: {}", apart.join(", "))),
    }
}

/// The programs of the two sides: Chappe's, and the folder of those for ns-3.
struct Sides {
    peer: PathBuf,
    folder: PathBuf,
}

impl Sides {
    /// Runs a case with each seed, Chappe and ns-3 in turn.
    fn compare(&self, case: &Case, seeds: u64) -> Result<Comparison, String> {
        let plan = self.folder.join("plan");
        let mut comparison = Comparison::default();
        for seed in FIRST_SEED..FIRST_SEED + seeds {
            let seed = seed.to_string();
            let ours = |what: &str| {
                let mut command = Command::new(&self.peer);
                command.args([what, case.scenario, &seed]).args(case.keys);
                process::take(&mut command, LIMIT)
            };
            fs::write(&plan, ours("plan")?).map_err(|why| why.to_string())?;
            let ours = Counts::read(&ours("run")?)?;
            let theirs = Counts::read(&process::take(&mut self.ns3(case, &plan, &seed), LIMIT)?)?;
            comparison.add(ours, theirs)?;
        }
        Ok(comparison)
    }

    fn ns3(&self, case: &Case, plan: &Path, seed: &str) -> Command {
        let mut command = Command::new(self.folder.join(case.program));
        if case.program == "dot11" {
            command.arg(case.scenario);
        }
        command.arg(plan).arg(seed);
        command
    }
}
