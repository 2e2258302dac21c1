//! The figures of Pacifier's paper, with its claims.
//!
//! The command's table of papers has one line for this crate, [`PAPER`].
//!
//! ```
//! use chappe_lab::paper::Order;
//! use chappe_lab::run::Meter;
//! use chappe_paper_pacifier::runs::Scale;
//!
//! // Figure 5 with two small objects.
//! let meter = Meter::default();
//! let order = Order { names: &["figure5"], quick: true, seed: 1, threads: 2, meter: &meter };
//! let scale = Scale { scenarios: 2, outdoor_bytes: 50_000, ..Scale::quick(1) };
//! let set = chappe_paper_pacifier::make(&order, &scale)?;
//! assert_eq!(set.figures[0].id, "figure5");
//! # Ok::<(), chappe_lab::run::RunError>(())
//! ```
//!
//! | module | content |
//! |---|---|
//! | [`outdoor`], [`indoor`], [`links`] | the paper's networks (IV, V), and statistics of their links |
//! | [`runs`] | the runs that the figures share |
//! | `figure2` to `figure9`, `sensitivity`, `improved`, [`claims`] | the figures and the paper's claims ([`PAPER`]) |
//!
//! No parameter is tuned to reproduce a number of the paper. [`outdoor`] and [`indoor`] list the paper's values, and
//! our choices where the paper says nothing.

pub mod claims;
mod figure2;
mod figure3;
mod figure4;
mod figure5;
mod figure6;
mod figure7;
mod figure8;
mod figure9;
mod improved;
pub mod indoor;
pub mod links;
pub mod outdoor;
pub mod runs;
mod sensitivity;

#[cfg(test)]
mod tests;

use chappe_lab::paper::{self, FigureSet, Item, Order, Paper};
use chappe_lab::run::RunError;
use chappe_results::figure::Figure;

use runs::{Runs, Scale, Trial};

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
