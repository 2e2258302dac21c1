//! The table of the paper's figures (V).

use super::context::FigureContext;
use super::{figure2, figure5, figure7, figure8};
use chappe_lab::paper::{self, FigureSet, Item, Order, Paper};
use chappe_lab::run::RunError;
use chappe_results::figure::Figure;

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
