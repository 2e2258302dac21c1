//! Papers whose figures the lab reproduces. Each system describes its own as a [`Paper`]; the command lists all of them.

use crate::run::{Meter, RunError};
use chappe_results::figure::Figure;

/// A paper and the figures of it that the lab reproduces.
pub struct Paper {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is about, and who wrote it.
    pub about: &'static str,
    /// Its figures and tables, in the paper's order.
    pub figures: &'static [Item],
    /// What is smaller with `--quick`, in a few words.
    pub quick: &'static str,
    /// Makes the figures that the order names.
    pub make: fn(&Order<'_>) -> Result<FigureSet, RunError>,
}

/// A figure or table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its name on the command line: `figure7`.
    pub name: &'static str,
    /// What it shows, in a few words.
    pub about: &'static str,
}

/// How a figure or table is made, as the table of a paper has it. `M` is what the paper's own loop needs for it.
pub struct Recipe<M> {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it shows, in a few words.
    pub about: &'static str,
    /// How it is made.
    pub make: M,
}

impl<M> Recipe<M> {
    /// A line of the table.
    pub const fn new(name: &'static str, about: &'static str, make: M) -> Recipe<M> {
        Recipe { name, about, make }
    }
}

/// The items of a paper's recipes, then `others` that are made in another way. A wrong length does not compile.
pub const fn items<M, const N: usize>(recipes: &[Recipe<M>], others: &[Item]) -> [Item; N] {
    assert!(recipes.len() + others.len() == N);
    let none = Item {
        name: "",
        about: "",
    };
    let mut items = [none; N];
    let mut at = 0;
    while at < N {
        items[at] = if at < recipes.len() {
            Item {
                name: recipes[at].name,
                about: recipes[at].about,
            }
        } else {
            others[at - recipes.len()]
        };
        at += 1;
    }
    items
}

/// What the user ordered.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    /// Names of figures; none means all of them.
    pub names: &'a [&'static str],
    /// Whether to do less work: under two minutes on two cores.
    pub quick: bool,
    /// The first seed; others count on from it.
    pub seed: u64,
    /// Threads; results do not depend on it.
    pub threads: usize,
    /// Reports progress, and stops the runs on request.
    pub meter: &'a Meter,
}

/// The figures that were made, and what they took.
#[derive(Clone, Debug)]
pub struct FigureSet {
    /// The figures whose runs are all finished.
    pub figures: Vec<Figure>,
    /// Names of figures that lack some runs, because the user asked to stop.
    pub unfinished: Vec<&'static str>,
    /// The number of runs that were made.
    pub runs: usize,
    /// Drawings that are not figures of the paper.
    pub drawings: Vec<Drawing>,
    /// How much of the paper's work was done: numbers by name, for the document.
    pub scale: Vec<(&'static str, u64)>,
}

/// A drawing that a system made itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drawing {
    /// The name of its file, without the extension.
    pub name: &'static str,
    /// A summary of it for a terminal.
    pub text: String,
    /// The drawing as SVG.
    pub svg: String,
}

impl Order<'_> {
    /// Whether a figure is wanted.
    pub fn wants(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.contains(&name)
    }
}

impl FigureSet {
    /// Makes the `items` that the order names, one after the other; `make` takes the place of an item. Interrupted figures
    /// are listed as unfinished; any other error ends the whole. The caller counts the runs.
    pub fn each(
        order: &Order<'_>,
        items: &[Item],
        scale: Vec<(&'static str, u64)>,
        mut make: impl FnMut(usize) -> Result<Figure, RunError>,
    ) -> Result<FigureSet, RunError> {
        let mut made = FigureSet {
            figures: Vec::new(),
            unfinished: Vec::new(),
            runs: 0,
            drawings: Vec::new(),
            scale,
        };
        let wanted = |(_, item): &(usize, &Item)| order.wants(item.name);
        for (place, item) in items.iter().enumerate().filter(wanted) {
            match make(place) {
                Ok(figure) => {
                    order.meter.finished(&figure);
                    made.figures.push(figure);
                }
                Err(RunError::Interrupted) => made.unfinished.push(item.name),
                Err(error) => return Err(error),
            }
        }
        Ok(made)
    }
}

impl Paper {
    /// The name of a figure of this paper, if it has it.
    pub fn figure(&self, name: &str) -> Option<&'static str> {
        let found = self.figures.iter().find(|item| item.name == name);
        found.map(|item| item.name)
    }
}
