//! One number for each ordered pair of nodes.

use alloc::vec::Vec;

/// A number for each ordered pair of nodes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pairs {
    nodes: usize,
    /// Row by row: `from * nodes + to`.
    values: Vec<f64>,
}

impl Pairs {
    /// Calls `value(from, to)` for every pair and keeps the results.
    pub fn of(nodes: usize, value: impl Fn(usize, usize) -> f64) -> Pairs {
        let pairs = (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, to)));
        Pairs {
            nodes,
            values: pairs.map(|(from, to)| value(from, to)).collect(),
        }
    }

    /// All numbers, row by row.
    pub fn into_values(self) -> Vec<f64> {
        self.values
    }

    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// The number of a pair; NaN, which no comparison holds for, if there is no such node.
    pub fn at(&self, from: usize, to: usize) -> f64 {
        let place = from * self.nodes + to;
        self.values.get(place).copied().unwrap_or(f64::NAN)
    }

    /// The number of a pair, to be changed.
    pub fn at_mut(&mut self, from: usize, to: usize) -> Option<&mut f64> {
        self.values.get_mut(from * self.nodes + to)
    }
}
