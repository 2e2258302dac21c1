//! Small networks in which 802.11 starves a flow, with routers above: packets a second of each flow.
//!
//! ```text
//! cargo run --release -p chappe-dpclo --example small -- [SEEDS] [SCHEME] [SETTING=VALUE]...
//! ```
//!
//! The best schedule gives the poorest flow half of a link in the first four and a quarter in the paper's Fig. 2 (max-min,
//! `crates/bound`); shares are of that, with a link alone carrying 533.6 packets of 200 octets a second at 2 Mbit/s. Radios hear as
//! far as they sense, except in Fig. 2, where all sense all. Settings that can be changed: see `many_to_one/settings.rs`.

#[path = "../tests/suite/common/loaded.rs"]
mod loaded;
#[path = "../tests/suite/common/on_air.rs"]
mod on_air;
#[path = "many_to_one/settings.rs"]
mod settings;
#[path = "../tests/suite/common/slotted.rs"]
mod slotted;

use chappe_core::Rate;
use chappe_dpclo::Settings;
use chappe_mac::dot11::Config;
use chappe_sim::{Matrix, Medium};
use chappe_testkit::Words;
use on_air::{Access, Mesh};

/// Sources begin, counting begins, the run ends, in seconds since routing began.
const TIMES_S: [u64; 3] = [20, 50, 110];
const SLOTS_S: u64 = 30;
/// Packets a second over a link alone: DIFS, 15.5 slots of back-off, 252 octets, SIFS, ACK.
const LINK: f64 = 533.6;

/// Nodes that hear each other, who sends to whom, and which share of a link the poorest flow can have.
struct Case {
    name: &'static str,
    nodes: usize,
    edges: &'static [(usize, usize)],
    flows: &'static [(u16, u16)],
    all_sense: bool,
    share: f64,
}

const CASES: [Case; 5] = [
    Case {
        name: "information asymmetry",
        nodes: 4,
        edges: &[(0, 1), (1, 2), (2, 3)],
        flows: &[(0, 1), (2, 3)],
        all_sense: false,
        share: 0.5,
    },
    Case {
        name: "hidden senders",
        nodes: 3,
        edges: &[(0, 1), (1, 2)],
        flows: &[(0, 1), (2, 1)],
        all_sense: false,
        share: 0.5,
    },
    Case {
        name: "adjacent receivers",
        nodes: 4,
        edges: &[(0, 1), (1, 2), (2, 3)],
        flows: &[(0, 1), (3, 2)],
        all_sense: false,
        share: 0.5,
    },
    Case {
        name: "flow in the middle",
        nodes: 6,
        edges: &[(0, 1), (2, 3), (4, 5), (0, 2), (2, 4)],
        flows: &[(0, 1), (2, 3), (4, 5)],
        all_sense: false,
        share: 0.5,
    },
    Case {
        name: "Fig. 2",
        nodes: 6,
        edges: &[(0, 3), (3, 4), (0, 1), (1, 2), (2, 4), (4, 5)],
        flows: &[(0, 4), (3, 5)],
        all_sense: true,
        share: 0.25,
    },
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = Words::of_process("small [SEEDS] [SCHEME] [SETTING=VALUE]...");
    let seeds = words.next("number of seeds").unwrap_or(1u64);
    let mut wanted = vec!["shortest".to_owned(), "dpclo".into(), "improved".into()];
    if let Some(scheme) = words.next::<String>("scheme") {
        wanted = vec![scheme];
    }
    let changes: Vec<String> = words.rest();
    let schemes: Vec<(&str, Settings)> = wanted
        .iter()
        .map(|name| scheme(name, &changes, &words))
        .collect();
    for case in &CASES {
        for &(name, settings) in &schemes {
            for (mac, access) in accesses(name) {
                let runs = (1..=seeds).map(|seed| case.run(settings, access, seed));
                let runs: Vec<Vec<f64>> = runs.collect::<Result<_, chappe_sim::Error>>()?;
                println!("{}, {name} over {mac}: {}", case.name, case.line(&runs));
            }
        }
    }
    Ok(())
}

/// The scheme of this name with the changes.
fn scheme(wanted: &str, changes: &[String], words: &Words) -> (&'static str, Settings) {
    let mut schemes = settings::schemes().into_iter();
    let Some((name, mut settings)) = schemes.find(|(name, _)| *name == wanted) else {
        words.refuse(wanted, "is no scheme");
    };
    for change in changes {
        let done = settings::set(&mut settings, change);
        done.unwrap_or_else(|why| words.refuse(change, &format!("is no setting here: {why}")));
    }
    (name, settings)
}

/// What the scheme is tried over.
fn accesses(scheme: &str) -> Vec<(&'static str, Access)> {
    let mut all = vec![
        ("DCF", Access::Dcf),
        ("EDCA", Access::Edca),
        ("ZMAC+", Access::zmac(SLOTS_S)),
    ];
    if scheme == "improved" {
        all.push(("sparing ZMAC+", Access::zmac_sparing(SLOTS_S)));
    }
    all
}

impl Case {
    fn run(
        &self,
        settings: Settings,
        access: Access,
        seed: u64,
    ) -> Result<Vec<f64>, chappe_sim::Error> {
        let mut matrix = Matrix::silent(self.nodes);
        if self.all_sense {
            matrix.senses = vec![vec![true; self.nodes]; self.nodes];
        }
        for &(a, b) in self.edges {
            matrix = matrix.with_link(a, b, 1.0);
        }
        let mesh = Mesh {
            medium: Medium::matrix(&matrix)?,
            caps: config().caps(),
            settings,
            flows: self.flows.to_vec(),
            rates: Vec::new(),
            times_s: TIMES_S,
            seed,
        };
        let flows = mesh.over(access, config()).flows;
        Ok(flows.into_iter().map(|(rate, _)| rate).collect())
    }

    /// Mean rates of all flows, and the poorest one's part of what it could have: mean, least, most.
    fn line(&self, runs: &[Vec<f64>]) -> String {
        let mean = |flow: usize| runs.iter().map(|run| run[flow]).sum::<f64>() / runs.len() as f64;
        let rates: Vec<String> = (0..self.flows.len())
            .map(|flow| format!("{:.0}", mean(flow)))
            .collect();
        let fair = self.share * LINK;
        let parts = runs
            .iter()
            .map(|run| run.iter().copied().fold(f64::MAX, f64::min) / fair);
        let parts: Vec<f64> = parts.collect();
        let sum: f64 = parts.iter().sum();
        format!(
            "{}; poorest {:.0} % of {fair:.0} ({:.0} to {:.0})",
            rates.join(" "),
            100.0 * sum / parts.len() as f64,
            100.0 * parts.iter().copied().fold(f64::MAX, f64::min),
            100.0 * parts.iter().copied().fold(0.0, f64::max)
        )
    }
}

fn config() -> Config {
    Config {
        overhear: true,
        ..Config::dot11b(Rate::Dsss2)
    }
}
