//! Pacifier in experiments: scenarios on simulated 802.11b, and the figures of its paper.
//!
//! Pacifier (Koutsonikolas, Hu, Wang) carries one object to many receivers over a lossy mesh. This crate joins
//! `chappe-pacifier` with the MAC and the simulator, and adds the baselines MORE, TREE and TREE+RL.
//!
//! ```
//! use chappe_lab::{run::Meter, session};
//! use chappe_lab_pacifier::{PACIFIER, SYSTEM};
//! use chappe_results::provenance::Program;
//! use chappe_scenario::Plan;
//!
//! let text = r#"
//! [network]
//! links = [[0.0, 0.8, 0.0], [0.8, 0.0, 0.8], [0.0, 0.8, 0.0]]
//! [protocol]
//! system = "pacifier"
//! variant = "improved"
//! probing = "20 s"
//! [[transfer]]
//! source = 0
//! receivers = [1, 2]
//! bytes = "20 kB"
//! "#;
//! let plan = Plan::parse(&[&SYSTEM], "line", text).expect("a valid scenario");
//! let (program, options) = (Program::unknown("example"), session::Options::default());
//! let session = session::run(&[&PACIFIER], &plan, program, options, &Meter::default()).expect("a run");
//! assert!(session.document.runs[0].all_complete());
//! ```
//!
//! | module | content |
//! |---|---|
//! | `plan` | keys, variants and limits of scenarios; the checked settings ([`Pacifier`]) |
//! | `bound` | the throughput that no protocol can exceed on a network ([`TransferBound`]) |
//! | `prepare` | a seed's network, its bounds, and the link probes ([`prepare()`]) |
//! | `carry` | the transfers of a seed on 802.11 ([`carry()`]) |
//! | `ideal` | the same transfers on an ideal channel access ([`carry_ideally`]) |
//! | [`outdoor`], [`indoor`], [`links`] | the paper's networks (IV, V), and statistics of their links |
//! | [`runs`] | the runs that the figures share |
//! | `figure2` to `figure9`, `sensitivity`, `improved`, [`claims`] | the figures and the paper's claims ([`PAPER`]) |
//! | [`cast`] | how each addition of `chappe cast` changes a simulated transfer |
//! | `demo` | Pacifier's part of `chappe demo` ([`DEMO`]) |
//!
//! No parameter is tuned to reproduce a number of the paper. [`outdoor`] and [`indoor`] list the paper's values, and
//! our choices where the paper says nothing.

mod bound;
mod carry;
pub mod cast;
pub mod claims;
mod demo;
mod figure2;
mod figure3;
mod figure4;
mod figure5;
mod figure6;
mod figure7;
mod figure8;
mod figure9;
mod ideal;
mod improved;
pub mod indoor;
pub mod links;
pub mod outdoor;
mod plan;
mod prepare;
pub mod runs;
mod sensitivity;

use chappe_lab::paper::{self, FigureSet, Item, Order, Paper};
use chappe_lab::run::RunError;
use chappe_results::figure::Figure;

use chappe_lab::system::RunsOn;

pub use bound::{Depth, TransferBound};
pub use carry::{carry, check};
pub use demo::DEMO;
pub use ideal::carry_ideally;
pub use plan::{Pacifier, ProtocolPlan, SYSTEM, Variant};
pub use prepare::{Prepared, prepare};

use runs::{Runs, Scale, Trial};

/// Pacifier's entry in the table of systems.
pub static PACIFIER: chappe_lab::system::System = chappe_lab::system::System {
    scenario: &SYSTEM,
    carry: carry::run,
    paper: Some(&PAPER),
    demo: Some(&DEMO),
    page: "docs/pacifier.md",
    runs_on: &[
        RunsOn {
            what: "real networks: `chappe cast`",
            page: "docs/cast.md",
        },
        RunsOn {
            what: "emulated radios: `chappe emu cast`",
            page: "docs/media.md",
        },
    ],
};

/// The figures of Pacifier's paper.
pub static PAPER: Paper = Paper {
    name: "pacifier",
    about: "reliable multicast over lossy meshes (Koutsonikolas, Hu, Wang)",
    figures: &ITEMS,
    quick: "smaller objects than the paper's",
    make: |order| {
        let scale = if order.quick {
            Scale::quick(order.seed)
        } else {
            Scale::full(order.seed)
        };
        make(order, &scale)
    },
};

/// A figure of the paper: the trials it needs, and the function that makes it from their runs.
type Recipe = paper::Recipe<(Needs, Make)>;
type Needs = fn(&Scale) -> Vec<Trial>;
type Make = fn(&Runs, &Scale) -> Figure;

const ITEMS: [Item; FIGURES.len()] = paper::items(&FIGURES, &[]);

/// All figures, in the paper's order.
const FIGURES: [Recipe; 10] = [
    Recipe {
        name: "figure2",
        about: "MORE's pruning threshold: forwarding nodes and throughput",
        make: (figure2::needs, figure2::make),
    },
    Recipe {
        name: "figure3",
        about: "tree and belts compared: throughput, forwarders, transmissions, redundancy",
        make: (figure3::needs, figure3::make),
    },
    Recipe {
        name: "figure4",
        about: "source rate limiting: throughput, transmissions, redundancy",
        make: (figure4::needs, figure4::make),
    },
    Recipe {
        name: "figure5",
        about: "round-robin batches: throughput, best and worst receiver",
        make: (figure5::needs, figure5::make),
    },
    Recipe {
        name: "figure6",
        about: "throughput for each value of the knob",
        make: (figure6::needs, figure6::make),
    },
    Recipe {
        name: "figure7",
        about: "all four systems: throughput and its distribution",
        make: (figure7::needs, figure7::make),
    },
    Recipe {
        name: "figure8",
        about: "indoor network: throughput, best and worst receiver, two days",
        make: (figure8::needs, figure8::make),
    },
    Recipe {
        name: "figure9",
        about: "indoor network: distribution of throughput, two days",
        make: (figure9::needs, figure9::make),
    },
    Recipe {
        name: "sensitivity",
        about: "choices that the paper leaves open, and their effect",
        make: (sensitivity::needs, sensitivity::make),
    },
    Recipe {
        name: "improved",
        about: "the improved variant, Pacifier and MORE, on 802.11 and on ideal air",
        make: (improved::needs, improved::make),
    },
];

/// Makes the figures of an order. An interrupted order returns the figures whose runs are complete.
pub fn make(order: &Order<'_>, scale: &Scale) -> Result<FigureSet, RunError> {
    let wanted = FIGURES.iter().filter(|recipe| order.wants(recipe.name));
    let needed = wanted.flat_map(|recipe| (recipe.make.0)(scale)).collect();
    let runs = Runs::run(needed, scale, order.threads, order.meter)?;
    let make = |place: usize| {
        let (needs, make) = FIGURES[place].make;
        match needs(scale).iter().all(|trial| runs.has(trial)) {
            true => Ok(make(&runs, scale)),
            false => Err(RunError::Interrupted),
        }
    };
    let done = vec![
        ("scenarios", u64::from(scale.scenarios)),
        ("outdoor_bytes", scale.outdoor_bytes as u64),
        ("indoor_bytes", scale.indoor_bytes as u64),
    ];
    let mut made = FigureSet::each(order, &ITEMS, done, make)?;
    made.runs = runs.len();
    Ok(made)
}

#[cfg(test)]
mod tests;
