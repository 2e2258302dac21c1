//! TCPlp's evaluation: tables and figures in the paper's order, then what it does not have.

use chappe_lab::paper::{self, Item, Made, Order, Paper};
use chappe_lab::run::RunError;
use chappe_results::figure::Figure;

use super::context::FigureContext;
use super::{
    figure3, figure4, figure5, figure6, figure7, figure8, figure9, figure10, figure11, figure12,
    hops, improved, loss, table3, table4, table5, table6, table7, table9,
};

/// Its line in the table of papers.
pub static PAPER: Paper = Paper {
    name: "tcplp",
    about: "full-scale TCP on motes, over 6LoWPAN and 802.15.4 (Kumar and others)",
    figures: &ITEMS,
    quick: "2 seeds of 10 s instead of 5 of 60 s, fewer places",
    make,
};

/// A figure or table, made of its runs. To add one: a line in [`RECIPES`].
type Recipe = paper::Recipe<fn(&FigureContext<'_>) -> Result<Figure, RunError>>;

const RECIPES: [Recipe; 19] = [
    Recipe::new(
        "table3",
        "memory, and instructions for a segment",
        table3::make,
    ),
    Recipe::new("table4", "links of TCP/IP networks", table4::make),
    Recipe::new("table5", "headers of a segment in frames", table5::make),
    Recipe::new("table6", "goodput beside simple stacks", table6::make),
    Recipe::new(
        "figure3",
        "goodput over the size of segments and buffers",
        figure3::make,
    ),
    Recipe::new(
        "figure4",
        "where the time of a frame and of a segment goes",
        figure4::make,
    ),
    Recipe::new(
        "figure5",
        "pauses between link retries; equations 1 and 2",
        figure5::make,
    ),
    Recipe::new(
        "figure6",
        "the congestion window, and what moves it",
        figure6::make,
    ),
    Recipe::new("hops", "goodput over one to five hops (7.2)", hops::make),
    Recipe::new(
        "figure7",
        "a mote's page by HTTP and by CoAP",
        figure7::make,
    ),
    Recipe::new("figure8", "pages of different sizes", figure8::make),
    Recipe::new("figure9", "sense-and-send by night", figure9::make),
    Recipe::new(
        "figure10",
        "sense-and-send over injected loss",
        figure10::make,
    ),
    Recipe::new("table7", "a day of sense-and-send", table7::make),
    Recipe::new("figure11", "the same hour by hour", figure11::make),
    Recipe::new("figure12", "four flows at once", figure12::make),
    Recipe::new("table9", "features of TCP stacks", table9::make),
    Recipe::new(
        "loss",
        "goodput over the loss of segments: equation 4",
        loss::make,
    ),
    Recipe::new("improved", "what the paper does not have", improved::make),
];

const ITEMS: [Item; RECIPES.len()] = paper::items(&RECIPES, &[]);

fn make(order: &Order<'_>) -> Result<Made, RunError> {
    let context = FigureContext::new(order);
    let make = |place: usize| (RECIPES[place].make)(&context);
    let mut made = Made::each(order, &ITEMS, context.scale(), make)?;
    made.runs = context.runs();
    Ok(made)
}
