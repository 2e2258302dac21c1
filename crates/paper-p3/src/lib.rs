//! P³'s evaluation: Tables I to IV, Figures 5 to 7, the energy comparison, equation 1 and the download times.
//!
//! The command's table of papers has one line for this crate, [`PAPER`].
//!
//! ```
//! use chappe_lab::paper::Order;
//! use chappe_lab::run::Meter;
//!
//! // Equation 1 on a few routes; an order without names makes all figures.
//! let (names, quick, seed, threads) = (&["overhead"][..], true, 1, 2);
//! let meter = Meter::default();
//! let order = Order { names, quick, seed, threads, meter: &meter };
//! let scale = chappe_paper_p3::campaign::Scale { routes: 1, data: None, ..chappe_paper_p3::campaign::Scale::quick(1) };
//! let set = chappe_paper_p3::make(&order, &scale)?;
//! assert_eq!(set.figures[0].id, "overhead");
//! # Ok::<(), chappe_lab::run::RunError>(())
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`campaign`] | the trials of the paper's evaluation, each run once |
//! | `table1` to `table4`, `figure5` to `figure7`, `energy`, `overhead`, `large`, `calibration` | the figures that [`PAPER`] lists |
//! | `goals` | our goals on unseen networks with random ends, under each receiver |
//! | `claims` | the kinds of claims that several figures make |
//! | [`pipeline`] | a drawing of one transfer, cycle by cycle |
//!
//! No parameter is tuned to reproduce a number of P³. One parameter is fitted to a result of the paper: the share of bad
//! links. That result is its baseline's, PIP's (`calibration`).

mod calibration;
pub mod campaign;
mod claims;
mod energy;
mod figure5;
mod figure6;
mod figure7;
mod goals;
mod large;
mod overhead;
pub mod pipeline;
mod table1;
mod table2;
mod table3;
mod table4;

#[cfg(test)]
mod tests;

use chappe_lab::paper::{self, FigureSet, Item, Order, Paper};
use chappe_lab::run::RunError;
use chappe_results::figure::Figure;

use campaign::{Measured, Receiver, Scale, Trial};

/// P³'s line in the table of papers.
pub static PAPER: Paper = Paper {
    name: "p3",
    about: "a pipeline of synchronous transmissions in a sensor network (Doddavenkatappa, Chan)",
    figures: &ITEMS,
    quick: "20 routes instead of 120, two unseen networks of a kind instead of 20, no corridors",
    make: |order| {
        let scale = if order.quick {
            Scale::quick(order.seed)
        } else {
            Scale::full(order.seed)
        };
        make(order, &scale)
    },
};

/// A table or figure: the trials it needs, how it is made of their runs, and how its radios receive.
type Recipe = paper::Recipe<(Needs, Make, Receiver)>;
type Needs = fn(&Scale) -> Vec<Trial>;
type Make = fn(&Measured, &Scale) -> Result<Figure, RunError>;

const fn recipe(name: &'static str, about: &'static str, needs: Needs, make: Make) -> Recipe {
    Recipe::new(name, about, (needs, make, Receiver::Comparing))
}

/// A figure made again under the receiver that is worked out chip by chip. Links, plans and single paths do not depend on the
/// receiver, so Tables I and IV, the formula of the overhead and the calibration, which is PIP's, are not here.
const fn again(name: &'static str, needs: Needs, make: Make) -> Recipe {
    Recipe::new(
        name,
        "the same under the receiver cc2420-chips",
        (needs, make, Receiver::Chips),
    )
}

/// The paper's tables and figures in its order, then those that it does not have.
const RECIPES: [Recipe; 17] = [
    recipe(
        "table1",
        "links that are good on channel 26: their delivery ratio on all channels",
        table1::needs,
        table1::make,
    ),
    recipe(
        "table2",
        "correlation of receivers of synchronous transmissions",
        table2::needs,
        table2::make,
    ),
    recipe(
        "figure5",
        "goodput by route: P³, PIP, and improved",
        figure5::needs,
        figure5::make,
    ),
    recipe(
        "figure6",
        "utilisation with and without wake-up",
        figure6::needs,
        figure6::make,
    ),
    recipe(
        "figure7",
        "goodput by packet size",
        figure7::needs,
        figure7::make,
    ),
    recipe(
        "table3",
        "rounds, retransmissions, goodput",
        table3::needs,
        table3::make,
    ),
    recipe(
        "table4",
        "hops, paths, active nodes",
        table4::needs,
        table4::make,
    ),
    recipe(
        "energy",
        "joules per kilobyte, also against PIP's working routes",
        energy::needs,
        energy::make,
    ),
    recipe(
        "overhead",
        "equation 1 and the time to download from all nodes",
        overhead::needs,
        overhead::make,
    ),
    recipe("large", "an object of 1 MB", large::needs, large::make),
    recipe(
        "calibration",
        "goodput of each protocol by share of bad links",
        calibration::needs,
        calibration::make,
    ),
    again("figure5-chips", figure5::needs, figure5::make),
    again("figure6-chips", figure6::needs, figure6::make),
    again("figure7-chips", figure7::needs, figure7::make),
    again("table3-chips", table3::needs, table3::make),
    again("energy-chips", energy::needs, energy::make),
    again("large-chips", large::needs, large::make),
];

const DRAWING: Item = Item {
    name: pipeline::NAME,
    about: "a transfer cycle by cycle: which node sends or listens on which channel",
};

const GOALS: Item = Item {
    name: goals::NAME,
    about: goals::ABOUT,
};

const ITEMS: [Item; RECIPES.len() + 2] = paper::items(&RECIPES, &[GOALS, DRAWING]);

/// Makes the tables and figures that the order names.
pub fn make(order: &Order<'_>, scale: &Scale) -> Result<FigureSet, RunError> {
    let wanted = RECIPES.iter().filter(|recipe| order.wants(recipe.name));
    let needed = wanted.flat_map(|recipe| {
        let (needs, _, receiver) = recipe.make;
        needs(&scale.under(receiver))
    });
    let measured = Measured::run(needed.collect(), scale, order.threads, order.meter)?;
    let mut more = 0;
    let make = |place: usize| {
        let Some(recipe) = RECIPES.get(place) else {
            let (figure, runs) = goals::make(order, scale)?;
            more = runs;
            return Ok(figure);
        };
        let (needs, make, receiver) = recipe.make;
        let scale = &scale.under(receiver);
        if !needs(scale).iter().all(|trial| measured.has(trial)) {
            return Err(RunError::Interrupted);
        }
        let mut figure = make(&measured, scale)?;
        figure.id = recipe.name;
        if receiver != Receiver::Comparing {
            figure.title += &format!(" (receiver {})", receiver.profile());
        }
        Ok(figure)
    };
    let done = vec![
        ("routes", scale.routes.into()),
        ("measured_building", scale.data.is_some().into()),
    ];
    let mut made = FigureSet::each(order, &ITEMS[..=RECIPES.len()], done, make)?;
    made.runs = measured.len() + more;
    if order.wants(pipeline::NAME) && !order.meter.stopped() {
        made.drawings.push(pipeline::draw(scale)?);
    }
    Ok(made)
}
