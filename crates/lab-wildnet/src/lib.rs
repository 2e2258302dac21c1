//! WiLDNet's evaluation: long links by the DCF and by slots (2.3, 4).
//!
//! One link is simulated at a time ([`trial`]): two stations with dishes, a loss of its own for each frame, UDP or this
//! project's TCP on top (`traffic`). A figure lists its trials; nothing is tuned so that a number of the paper comes
//! out. The paper's curves are pictures whose points are not available: its words and tables are what we compare with.

mod aggregate;
mod ampdu;
mod carry;
mod changes;
mod classes;
mod demo;
mod faults;
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
mod hosts;
mod improved;
mod ipv4;
mod lives;
pub mod masts;
pub mod mounting;
mod peers;
mod pings;
mod pipe;
mod plan;
pub mod run;
mod serial;
mod sheet;
mod snoop;
mod station;
mod stream;
mod table1;
mod table2;
mod traffic;
pub mod trial;

use chappe_lab::paper::{self, FigureSet, Item, Order, Paper};
use chappe_lab::run::RunError;
use chappe_results::figure::Figure;

pub use demo::DEMO;
pub use plan::{SYSTEM, Variant, WildNet};

/// Its line in the table of systems.
pub static WILDNET: chappe_lab::system::System = chappe_lab::system::System {
    scenario: &SYSTEM,
    carry: plan::run,
    paper: Some(&PAPER),
    demo: Some(&DEMO),
};

use sheet::Sheet;

/// Its line in the table of papers.
pub static PAPER: Paper = Paper {
    name: "wildnet",
    about: "long-distance 802.11 links: slots, bulk acknowledgements, FEC (Patra and others)",
    figures: &ITEMS,
    quick: "shorter runs, fewer seeds and distances",
    make,
};

/// A figure or table, made of its trials.
type Recipe = paper::Recipe<fn(&Sheet<'_>) -> Result<Figure, RunError>>;

const FIGURES: [Recipe; 20] = [
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
        about: "a relay, by how far its channels are apart",
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
    Recipe {
        name: "snoop",
        about: "Snoop beside bulk acknowledgements (section 7)",
        make: snoop::make,
    },
    Recipe {
        name: "ampdu",
        about: "802.11n and ac with A-MPDUs over distance: slots stretched or fixed, and turns",
        make: ampdu::make,
    },
    Recipe {
        name: "peers",
        about: "what tunnels do about loss: TCP, static codes, KCP with and without parity",
        make: peers::make,
    },
    Recipe {
        name: "improved",
        about: "the improved variant against its goals",
        make: improved::make,
    },
    Recipe {
        name: "classes",
        about: "a ping beside bulk traffic that fills the link",
        make: classes::make,
    },
];

const ITEMS: [Item; FIGURES.len()] = paper::items(&FIGURES, &[]);

fn make(order: &Order<'_>) -> Result<FigureSet, RunError> {
    let sheet = Sheet::new(order);
    let make = |place: usize| (FIGURES[place].make)(&sheet);
    let mut made = FigureSet::each(order, &ITEMS, sheet.scale(), make)?;
    made.runs = sheet.runs();
    Ok(made)
}

#[cfg(test)]
mod fault_tests;
#[cfg(test)]
mod tests;
