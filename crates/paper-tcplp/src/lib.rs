//! TCPlp's evaluation: the paper's tables and figures in its order, then those that it does not have.
//!
//! The command's table of papers has one line for this crate, [`PAPER`].
//!
//! ```
//! use chappe_lab::paper::Order;
//! use chappe_lab::run::Meter;
//!
//! // Table 9 compares features, and runs nothing.
//! let meter = Meter::default();
//! let order = Order { names: &["table9"], quick: true, seed: 1, threads: 1, meter: &meter };
//! let set = (chappe_paper_tcplp::PAPER.make)(&order)?;
//! assert!(set.figures[0].claims.iter().all(|claim| claim.holds));
//! # Ok::<(), chappe_lab::run::RunError>(())
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `figure3` to `figure12`, `table3` to `table9`, `hops`, `loss`, `improved` | the figures that [`PAPER`] lists |
//! | [`context`], `bounds` | what the figures share |

mod bounds;
pub mod context;
mod figure10;
mod figure11;
mod figure12;
mod figure3;
mod figure4;
mod figure5;
mod figure6;
mod figure7;
mod figure8;
mod figure9;
mod hops;
mod improved;
mod loss;
mod table3;
mod table4;
mod table5;
mod table6;
mod table7;
mod table9;

#[cfg(test)]
mod tests;

use chappe_lab::paper::{self, FigureSet, Item, Order, Paper};
use chappe_lab::run::RunError;
use chappe_results::figure::Figure;

use context::FigureContext;

/// TCPlp's line in the table of papers.
pub static PAPER: Paper = Paper {
    name: "tcplp",
    about: "full-scale TCP on motes, over 6LoWPAN and 802.15.4 (Kumar and others)",
    figures: &ITEMS,
    quick: "2 seeds of 10 s instead of 5 of 60 s, fewer values on each axis",
    make,
};

/// A figure or table, and the function that makes it. To add one, add a line to [`RECIPES`].
type Recipe = paper::Recipe<fn(&FigureContext<'_>) -> Result<Figure, RunError>>;

const RECIPES: [Recipe; 19] = [
    Recipe::new(
        "table3",
        "memory, and instructions per segment",
        table3::make,
    ),
    Recipe::new("table4", "links of TCP/IP networks", table4::make),
    Recipe::new("table5", "headers of a segment in frames", table5::make),
    Recipe::new(
        "table6",
        "goodput compared with simple stacks",
        table6::make,
    ),
    Recipe::new(
        "figure3",
        "goodput by size of segments and buffers",
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
        "the congestion window over time, and its recoveries",
        figure6::make,
    ),
    Recipe::new("hops", "goodput over one to five hops (7.2)", hops::make),
    Recipe::new(
        "figure7",
        "latency of a mote's page by HTTP and by CoAP",
        figure7::make,
    ),
    Recipe::new(
        "figure8",
        "latency and throughput by size of page",
        figure8::make,
    ),
    Recipe::new("figure9", "sense-and-send by night", figure9::make),
    Recipe::new(
        "figure10",
        "sense-and-send by injected loss",
        figure10::make,
    ),
    Recipe::new("table7", "a day of sense-and-send", table7::make),
    Recipe::new(
        "figure11",
        "a day of sense-and-send, hour by hour",
        figure11::make,
    ),
    Recipe::new("figure12", "four flows at once", figure12::make),
    Recipe::new("table9", "features of TCP stacks", table9::make),
    Recipe::new(
        "loss",
        "goodput by loss of segments: equation 4",
        loss::make,
    ),
    Recipe::new(
        "improved",
        "improvements that the paper does not have",
        improved::make,
    ),
];

const ITEMS: [Item; RECIPES.len()] = paper::items(&RECIPES, &[]);

fn make(order: &Order<'_>) -> Result<FigureSet, RunError> {
    let context = FigureContext::new(order);
    let make = |place: usize| (RECIPES[place].make)(&context);
    let mut made = FigureSet::each(order, &ITEMS, context.scale(), make)?;
    made.runs = context.runs();
    Ok(made)
}
