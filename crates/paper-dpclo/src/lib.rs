//! DPCLO's evaluation (V): the paper's figures with its claims.
//!
//! The command's table of papers has one line for this crate, [`PAPER`].
//!
//! ```
//! use chappe_paper_dpclo::PAPER;
//!
//! let names: Vec<&str> = PAPER.figures.iter().map(|item| item.name).collect();
//! assert_eq!(names, ["figure2", "figure3", "figure4", "figure5", "figure6", "figure7", "figure8"]);
//! ```
//!
//! | module | content |
//! |---|---|
//! | `figure2` to `figure8` | the figures that [`PAPER`] lists |
//! | `goals` | our goals, held against the runs of Figure 7 |
//! | `scene`, `trial`, `context`, `series` | the paper's networks, a run on them, the scale of an order, its series |

mod context;
mod figure2;
mod figure5;
mod figure7;
mod figure8;
mod goals;
mod scene;
mod series;
mod trial;

#[cfg(test)]
mod tests;

use chappe_lab::paper::{self, FigureSet, Item, Order, Paper};
use chappe_lab::run::RunError;
use chappe_results::figure::Figure;
use context::FigureContext;

/// The figures of DPCLO's paper.
pub static PAPER: Paper = Paper {
    name: "dpclo",
    about: "a mesh that routes and paces flows by queue differences (Warrier, Le, Rhee)",
    figures: &ITEMS,
    quick: "shorter runs, fewer seeds, networks and systems",
    make,
};

/// A figure, and the function that runs its trials and makes it.
type Recipe = paper::Recipe<fn(&FigureContext<'_>) -> Result<Figure, RunError>>;

const FIGURES: [Recipe; 7] = [
    Recipe::new(
        "figure2",
        "DCLO and DPCLO over time, two flows on six nodes",
        figure2::figure2,
    ),
    Recipe::new(
        "figure3",
        "one path compared with several",
        figure2::figure3,
    ),
    Recipe::new(
        "figure4",
        "lossy links, with and without ETX",
        figure2::figure4,
    ),
    Recipe::new(
        "figure5",
        "networks in which 802.11 starves flows: ZMAC+ and 802.11e",
        figure5::make,
    ),
    Recipe::new("figure6", "the network of 108 nodes", figure7::figure6),
    Recipe::new(
        "figure7",
        "seven sources, one sink: goodput, delay, fairness",
        figure7::make,
    ),
    Recipe::new(
        "figure8",
        "flows between any two nodes, by path length",
        figure8::make,
    ),
];

const ITEMS: [Item; FIGURES.len()] = paper::items(&FIGURES, &[]);

fn make(order: &Order<'_>) -> Result<FigureSet, RunError> {
    let context = FigureContext::new(order);
    let make = |place: usize| (FIGURES[place].make)(&context);
    let mut made = FigureSet::each(order, &ITEMS, context.scale(), make)?;
    made.runs = context.trials.runs();
    Ok(made)
}
