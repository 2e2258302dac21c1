//! WiLDNet's figures and tables, and what its paper does not have: other tunnels, 802.11n, the improved variant's goals.
//!
//! The command's table of papers has one line for this crate, [`PAPER`].
//!
//! ```
//! use chappe_lab::paper::Order;
//! use chappe_lab::run::Meter;
//!
//! let meter = Meter::default();
//! let order = Order { names: &["figure7"], quick: true, seed: 1, threads: 2, meter: &meter };
//! let set = (chappe_paper_wildnet::PAPER.make)(&order)?;
//! assert_eq!(set.figures[0].id, "figure7");
//! # Ok::<(), chappe_lab::run::RunError>(())
//! ```
//!
//! Each figure is a module with a `make`: it lists trials, runs them over all seeds, and checks claims on the results.
//!
//! | module | what |
//! |---|---|
//! | `figure2` to `figure15`, `table1`, `table2`, `snoop` | the paper's figures and tables |
//! | `ampdu`, `peers`, `classes`, `crossover`, `sites`, `improved` | figures that the paper does not have |
//! | `few_packets` | figure 15's slots of one to four packets |
//! | [`context`], [`panel`], `changes`, `outdoor_links` | what the figures share |

mod ampdu;
mod changes;
mod classes;
pub mod context;
mod crossover;
mod few_packets;
mod figure10;
mod figure11;
mod figure12;
mod figure13;
mod figure14;
mod figure15;
mod figure2;
mod figure3;
mod figure5;
mod figure7;
mod figure9;
mod improved;
mod outdoor_links;
pub mod panel;
mod peers;
mod sites;
mod snoop;
mod table1;
mod table2;

#[cfg(test)]
mod tests;

use chappe_lab::paper::{self, FigureSet, Item, Order, Paper};
use chappe_lab::run::RunError;
use chappe_results::figure::Figure;

use context::FigureContext;

/// WiLDNet's line in the table of papers.
pub static PAPER: Paper = Paper {
    name: "wildnet",
    about: "long-distance 802.11 links: slots, bulk acknowledgements, FEC (Patra and others)",
    figures: &ITEMS,
    quick: "shorter runs, fewer seeds and distances",
    make,
};

type Recipe = paper::Recipe<fn(&FigureContext<'_>) -> Result<Figure, RunError>>;

const FIGURES: [Recipe; 22] = [
    Recipe {
        name: "figure2",
        about: "plain 802.11 over distance, by UDP: one way, both ways, loss",
        make: figure2::make,
    },
    Recipe {
        name: "section233",
        about: "two links from one mast, on one channel and on two",
        make: figure3::two_links,
    },
    Recipe {
        name: "figure3",
        about: "a relay, by the distance of its channels",
        make: figure3::make,
    },
    Recipe {
        name: "figure5",
        about: "TCP over plain 802.11 at 10 % loss, by retries and distance",
        make: figure5::make,
    },
    Recipe {
        name: "figure7",
        about: "frames that an interferer hides or destroys",
        make: figure7::make,
    },
    Recipe {
        name: "figure9",
        about: "TCP over distance: one way, both ways, both ways at 10 % loss",
        make: figure9::make,
    },
    Recipe {
        name: "crossover",
        about: "from which distance on WiLDNet is ahead one way, by the settings of 802.11",
        make: crossover::make,
    },
    Recipe {
        name: "table1",
        about: "TCP on three outdoor links",
        make: table1::make,
    },
    Recipe {
        name: "table2",
        about: "TCP along lines of one, two and three hops",
        make: table2::table2,
    },
    Recipe {
        name: "table3",
        about: "TCP over K - P - M, on one channel and on two",
        make: table2::table3,
    },
    Recipe {
        name: "sites",
        about: "a star and a chain of masts with several radios, on one channel",
        make: sites::make,
    },
    Recipe {
        name: "figure10",
        about: "TCP both ways over loss, 80 km",
        make: figure10::make,
    },
    Recipe {
        name: "figure11",
        about: "jitter under the block code",
        make: figure11::make,
    },
    Recipe {
        name: "figure12",
        about: "bulk acknowledgements: delay by retries and loss",
        make: figure12::make,
    },
    Recipe {
        name: "figure13",
        about: "throughput over the length of a slot",
        make: figure13::make,
    },
    Recipe {
        name: "figure14",
        about: "delay over the length of a slot and loss",
        make: figure14::make,
    },
    Recipe {
        name: "figure15",
        about: "redundancy for a residual loss",
        make: figure15::make,
    },
    Recipe {
        name: "snoop",
        about: "Snoop compared with bulk acknowledgements (section 7)",
        make: snoop::make,
    },
    Recipe {
        name: "ampdu",
        about: "802.11n and ac with A-MPDUs over distance: slot time stretched or fixed, and turns",
        make: ampdu::make,
    },
    Recipe {
        name: "peers",
        about: "tunnels over lossy links: TCP, static codes, KCP with and without parity",
        make: peers::make,
    },
    Recipe {
        name: "improved",
        about: "the improved variant against its goals",
        make: improved::make,
    },
    Recipe {
        name: "classes",
        about: "a ping on a link that bulk traffic fills",
        make: classes::make,
    },
];

const ITEMS: [Item; FIGURES.len()] = paper::items(&FIGURES, &[]);

fn make(order: &Order<'_>) -> Result<FigureSet, RunError> {
    let context = FigureContext::new(order);
    let make = |place: usize| (FIGURES[place].make)(&context);
    let mut made = FigureSet::each(order, &ITEMS, context.scale(), make)?;
    made.runs = context.runs();
    Ok(made)
}
