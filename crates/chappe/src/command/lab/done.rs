//! What is ordered of a paper, and what became of it.

use chappe_lab::paper::{FigureSet, Paper};

/// The figures of one paper that were ordered.
pub struct Work {
    pub paper: &'static Paper,
    pub names: Vec<&'static str>,
}

/// What became of them.
pub struct Done {
    pub paper: &'static Paper,
    pub made: FigureSet,
    /// The seconds that each figure took, by its name.
    pub seconds: Vec<(&'static str, f64)>,
    /// Names that another part of an array job makes.
    pub others: Vec<&'static str>,
}
