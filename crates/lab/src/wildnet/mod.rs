//! WiLDNet's evaluation: long links by the DCF and by slots (2.3, 4).
//!
//! One link is simulated at a time ([`trial`]): two stations with dishes, a loss of its own for each frame, UDP or this
//! project's TCP on top (`traffic`). A figure lists its trials; nothing is tuned so that a number of the paper comes
//! out. The paper's curves are pictures whose points are not available: its words and tables are what we compare with.

mod figure10;
mod figure12;
mod figure13;
mod figure14;
mod figure15;
mod figure2;
mod figure9;
mod hosts;
pub mod masts;
mod sheet;
mod station;
mod table1;
mod traffic;
pub mod trial;

use crate::figure::Figure;
use crate::paper::{Item, Made, Order, Paper};
use crate::run::RunError;
use sheet::Sheet;

/// Its line in the table of papers.
pub static PAPER: Paper = Paper {
    name: "wildnet",
    about: "long-distance 802.11 links: slots, bulk acknowledgements, FEC (Patra and others)",
    figures: &ITEMS,
    quick: "shorter runs, fewer seeds and distances",
    make,
};

/// A figure or table: its name, and how it is made.
struct Recipe {
    name: &'static str,
    about: &'static str,
    make: fn(&Sheet<'_>) -> Result<Figure, RunError>,
}

const FIGURES: [Recipe; 8] = [
    Recipe {
        name: "figure2",
        about: "plain 802.11 over distance, by UDP: one way, both ways, loss",
        make: figure2::make,
    },
    Recipe {
        name: "figure9",
        about: "TCP over distance: one way, both ways, both ways at 10 % loss",
        make: figure9::make,
    },
    Recipe {
        name: "table1",
        about: "TCP on three outdoor links",
        make: table1::make,
    },
    Recipe {
        name: "figure10",
        about: "TCP both ways over loss, 80 km",
        make: figure10::make,
    },
    Recipe {
        name: "figure12",
        about: "bulk acknowledgements: delay over retries and loss",
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
];

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

fn make(order: &Order<'_>) -> Result<Made, RunError> {
    let sheet = Sheet::new(order);
    let mut made = Made {
        figures: Vec::new(),
        unfinished: Vec::new(),
        runs: 0,
        drawings: Vec::new(),
        scale: sheet.scale(),
    };
    for recipe in FIGURES.iter().filter(|recipe| order.wants(recipe.name)) {
        match (recipe.make)(&sheet) {
            Ok(figure) => made.figures.push(figure),
            Err(RunError::Interrupted) => made.unfinished.push(recipe.name),
            Err(error) => return Err(error),
        }
    }
    made.runs = sheet.runs();
    Ok(made)
}
