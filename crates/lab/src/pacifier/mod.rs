//! Pacifier in scenarios ([`Pacifier`], [`prepare`], [`carry`]), and its evaluation: Figures 2 to 7 by simulation (IV), 8 and 9 on an indoor network like its testbed's (V).
//!
//! A figure says which runs it needs ([`runs`]); what several figures need is run once. Nothing is tuned so that a
//! number of the paper comes out: the set-up is the paper's ([`outdoor`], [`indoor`]), and what the paper leaves
//! open is listed there.

mod bound;
mod carry;
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

pub use bound::StageBound;
pub use carry::{Attempt, carry};
pub use demo::DEMO;
pub use ideal::carry_ideally;
pub use plan::{Pacifier, ProtocolPlan, SYSTEM, Variant, check};
pub use prepare::{Prepared, prepare};

use crate::figure::Figure;
use crate::paper::{Item, Made, Order, Paper};
use crate::run::RunError;
use runs::{Cell, Cells, Scale};

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

/// The names of [`FIGURES`].
const ITEMS: [Item; FIGURES.len()] = {
    let mut items = [Item {
        name: "",
        about: "",
    }; FIGURES.len()];
    let mut at = 0;
    while at < FIGURES.len() {
        items[at] = Item {
            name: FIGURES[at].name,
            about: FIGURES[at].about,
        };
        at += 1;
    }
    items
};

/// A figure of the paper: its name, the runs it needs, and how it is made of them.
pub struct Recipe {
    /// `figure2` to `figure9`, and `sensitivity`.
    pub name: &'static str,
    /// What it shows, in a few words.
    pub about: &'static str,
    needs: fn(&Scale) -> Vec<Cell>,
    make: fn(&Cells, &Scale) -> Figure,
}

/// All figures, in the paper's order.
pub const FIGURES: [Recipe; 10] = [
    Recipe {
        name: "figure2",
        about: "MORE's pruning threshold: forwarders and throughput",
        needs: figure2::needs,
        make: figure2::make,
    },
    Recipe {
        name: "figure3",
        about: "tree against belts: throughput, forwarders, transmissions, redundancy",
        needs: figure3::needs,
        make: figure3::make,
    },
    Recipe {
        name: "figure4",
        about: "source rate limiting: throughput, transmissions, redundancy",
        needs: figure4::needs,
        make: figure4::make,
    },
    Recipe {
        name: "figure5",
        about: "round-robin batches: throughput, best and worst receiver",
        needs: figure5::needs,
        make: figure5::make,
    },
    Recipe {
        name: "figure6",
        about: "throughput over the knob",
        needs: figure6::needs,
        make: figure6::make,
    },
    Recipe {
        name: "figure7",
        about: "all four systems: throughput and its distribution",
        needs: figure7::needs,
        make: figure7::make,
    },
    Recipe {
        name: "figure8",
        about: "indoor network: throughput, best and worst receiver, two days",
        needs: figure8::needs,
        make: figure8::make,
    },
    Recipe {
        name: "figure9",
        about: "indoor network: distribution of throughput, two days",
        needs: figure9::needs,
        make: figure9::make,
    },
    Recipe {
        name: "sensitivity",
        about: "what the paper leaves open: how much our answers matter",
        needs: sensitivity::needs,
        make: sensitivity::make,
    },
    Recipe {
        name: "improved",
        about: "our variant beside Pacifier and MORE, on 802.11 and on ideal air",
        needs: improved::needs,
        make: improved::make,
    },
];

/// Makes the wanted figures.
pub fn make(order: &Order<'_>, scale: &Scale) -> Result<Made, RunError> {
    let wanted: Vec<&Recipe> = FIGURES
        .iter()
        .filter(|recipe| order.wants(recipe.name))
        .collect();
    let needed = wanted
        .iter()
        .flat_map(|recipe| (recipe.needs)(scale))
        .collect();
    let cells = Cells::run(needed, scale, order.threads, order.meter)?;
    let mut made = Made {
        figures: Vec::new(),
        unfinished: Vec::new(),
        runs: cells.len(),
        drawings: Vec::new(),
        scale: vec![
            ("scenarios", u64::from(scale.scenarios)),
            ("outdoor_bytes", scale.outdoor_bytes as u64),
            ("indoor_bytes", scale.indoor_bytes as u64),
        ],
    };
    for recipe in wanted {
        if (recipe.needs)(scale).iter().all(|cell| cells.has(cell)) {
            made.figures.push((recipe.make)(&cells, scale));
        } else {
            made.unfinished.push(recipe.name);
        }
    }
    Ok(made)
}

#[cfg(test)]
mod tests;
