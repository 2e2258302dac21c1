//! Pacifier's evaluation: Figures 2 to 7 by simulation (IV), 8 and 9 on an indoor network like its testbed's (V).
//!
//! A figure says which runs it needs ([`runs`]); what several figures need is run once. Nothing is tuned so that a
//! number of the paper comes out: the set-up is the paper's ([`outdoor`], [`indoor`]), and what the paper leaves
//! open is listed there.

pub mod claims;
mod figure2;
mod figure3;
mod figure4;
mod figure5;
mod figure6;
mod figure7;
mod figure8;
mod figure9;
pub mod indoor;
pub mod links;
pub mod outdoor;
pub mod runs;
mod sensitivity;

use crate::figure::Figure;
use crate::run::{Meter, RunError};
use runs::{Cell, Cells, Scale};

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
pub const FIGURES: [Recipe; 9] = [
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
];

/// What the lab made.
#[derive(Clone, Debug)]
pub struct Made {
    /// The figures whose runs are all there.
    pub figures: Vec<Figure>,
    /// Names of those that lack some, because somebody asked to stop.
    pub unfinished: Vec<&'static str>,
    /// How many runs were made.
    pub runs: usize,
}

/// Makes the named figures; all of them if no name is given.
pub fn make(
    names: &[&str],
    scale: &Scale,
    threads: usize,
    meter: &Meter,
) -> Result<Made, RunError> {
    let wanted: Vec<&Recipe> = FIGURES
        .iter()
        .filter(|recipe| names.is_empty() || names.contains(&recipe.name))
        .collect();
    let needed = wanted
        .iter()
        .flat_map(|recipe| (recipe.needs)(scale))
        .collect();
    let cells = Cells::run(needed, scale, threads, meter)?;
    let mut made = Made {
        figures: Vec::new(),
        unfinished: Vec::new(),
        runs: cells.len(),
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
