//! Pacifier in scenarios ([`Pacifier`], [`prepare`], [`carry`]), and its evaluation: Figures 2 to 7 by simulation (IV), 8 and 9 on an indoor network like its testbed's (V).
//!
//! A figure says which runs it needs ([`runs`]); what several figures need is run once. Nothing is tuned so that a
//! number of the paper comes out: the set-up is the paper's ([`outdoor`], [`indoor`]), and what the paper leaves
//! open is listed there.

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

pub use bound::{Depth, StageBound};
pub use carry::carry;
pub use demo::DEMO;
pub use ideal::carry_ideally;
pub use plan::{Pacifier, ProtocolPlan, SYSTEM, Variant, check};
pub use prepare::{Prepared, prepare};

use runs::{Cell, Cells, Scale};

/// Its line in the table of systems.
pub static PACIFIER: chappe_lab::system::System = chappe_lab::system::System {
    scenario: &SYSTEM,
    carry: plan::run,
    paper: Some(&PAPER),
    demo: Some(&DEMO),
};

/// Its line in the table of papers.
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

/// A figure of the paper: the runs it needs, and how it is made of them.
type Recipe = paper::Recipe<(Needs, Make)>;
type Needs = fn(&Scale) -> Vec<Cell>;
type Make = fn(&Cells, &Scale) -> Figure;

const ITEMS: [Item; FIGURES.len()] = paper::items(&FIGURES, &[]);

/// All figures, in the paper's order.
const FIGURES: [Recipe; 10] = [
    Recipe {
        name: "figure2",
        about: "MORE's pruning threshold: forwarders and throughput",
        make: (figure2::needs, figure2::make),
    },
    Recipe {
        name: "figure3",
        about: "tree against belts: throughput, forwarders, transmissions, redundancy",
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
        about: "throughput over the knob",
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
        about: "what the paper leaves open: how much our answers matter",
        make: (sensitivity::needs, sensitivity::make),
    },
    Recipe {
        name: "improved",
        about: "our variant beside Pacifier and MORE, on 802.11 and on ideal air",
        make: (improved::needs, improved::make),
    },
];

/// Makes the wanted figures.
pub fn make(order: &Order<'_>, scale: &Scale) -> Result<FigureSet, RunError> {
    let wanted = FIGURES.iter().filter(|recipe| order.wants(recipe.name));
    let needed = wanted.flat_map(|recipe| (recipe.make.0)(scale)).collect();
    let cells = Cells::run(needed, scale, order.threads, order.meter)?;
    let make = |place: usize| {
        let (needs, make) = FIGURES[place].make;
        match needs(scale).iter().all(|cell| cells.has(cell)) {
            true => Ok(make(&cells, scale)),
            false => Err(RunError::Interrupted),
        }
    };
    let done = vec![
        ("scenarios", u64::from(scale.scenarios)),
        ("outdoor_bytes", scale.outdoor_bytes as u64),
        ("indoor_bytes", scale.indoor_bytes as u64),
    ];
    let mut made = FigureSet::each(order, &ITEMS, done, make)?;
    made.runs = cells.len();
    Ok(made)
}

#[cfg(test)]
mod tests;
