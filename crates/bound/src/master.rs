//! The growing linear program: few columns and rows at first, more where it proves too optimistic.

use crate::anypath::{Anypath, anypath};
use crate::certificate::Certificate;
use crate::error::Error;
use crate::hyperarc::{Share, most_violated_set};
use crate::multicast::Medium;
use crate::network::Network;
use crate::program::{Program, Row};

mod medium;

/// A forwarding link enters the first program if at least this part of the expected progress of a
/// transmission comes from it; all others are priced in when they matter.
const FIRST_LINKS: f64 = 1e-3;

/// Cliques the first program holds; more are added when the answer violates them.
const FIRST_CLIQUES: usize = 300;

/// The program and where its columns and rows are.
///
/// Time runs in units of the longest airtime, so that all values are near 1.
pub(crate) struct Master<'a> {
    network: &'a Network,
    source: usize,
    receivers: &'a [usize],
    unit_s: f64,
    program: Program,
    rate: usize,
    /// Column of each node's transmissions; none if they are fixed.
    transmissions: Vec<Transmissions>,
    /// Per receiver, (from, to, column) of each flow.
    flows: Vec<Vec<(usize, usize, usize)>>,
    /// Per receiver and node, the equality that conserves flow.
    conserved: Vec<Vec<Option<usize>>>,
    anypaths: Vec<Anypath>,
    medium: MediumRows,
}

/// A node's transmissions: to be chosen, or given.
#[derive(Clone, Copy)]
enum Transmissions {
    Column(usize),
    Fixed(f64),
}

enum MediumRows {
    None,
    Cliques {
        all: Vec<Vec<usize>>,
        /// (index into `all`, row)
        rows: Vec<(usize, usize)>,
    },
    IndependentSets {
        /// Row of each node: `a_i z_i - sum of its sets <= 0`.
        nodes: Vec<usize>,
        total: usize,
        sets: Vec<(Vec<usize>, usize)>,
    },
    Radios {
        /// Row of each node's time.
        nodes: Vec<usize>,
        /// (from, to) to (column of receptions), row-major.
        receptions: Vec<Option<usize>>,
        /// Per receiver (from, to, row of `x <= y`).
        handovers: Vec<Vec<(usize, usize, usize)>>,
    },
}

/// Numbers of one solution, back in frames/s.
pub(crate) struct Answer {
    /// Frames/s of each node, within the medium's limits up to `overload`.
    pub transmissions: Vec<f64>,
    /// Per receiver (from, to, frames/s).
    pub flows: Vec<Vec<(usize, usize, f64)>>,
    /// Share of the medium in use; above 1 by rounding or by constraints not yet in the program.
    pub overload: f64,
    /// A proof of an upper bound, as the solver left it.
    pub certificate: Certificate,
    /// What the medium's prices pay for one transmission of each node.
    pub paid: Vec<f64>,
}

impl<'a> Master<'a> {
    /// A program whose transmissions are free within `medium`.
    pub fn new(
        network: &'a Network,
        source: usize,
        receivers: &'a [usize],
        medium: Medium,
        cliques: &[Vec<usize>],
    ) -> Master<'a> {
        let mut master = Master::empty(network, source, receivers);
        master.transmissions = (0..network.nodes())
            .map(|_| Transmissions::Column(master.program.column(0.0)))
            .collect();
        master.add_medium(medium, cliques);
        master.add_first_links();
        master
    }

    /// A program whose transmissions (frames/s) are given.
    pub fn fixed(
        network: &'a Network,
        source: usize,
        receivers: &'a [usize],
        transmissions: &[f64],
    ) -> Master<'a> {
        let mut master = Master::empty(network, source, receivers);
        let most = transmissions.iter().fold(0.0, |a: f64, &b| a.max(b));
        master.unit_s = 1.0 / most;
        master.transmissions =
            transmissions.iter().map(|z| Transmissions::Fixed(z / most)).collect();
        master.add_first_links();
        master
    }

    fn empty(network: &'a Network, source: usize, receivers: &'a [usize]) -> Master<'a> {
        let nodes = network.nodes();
        let mut program = Program::default();
        let rate = program.column(1.0);
        Master {
            network,
            source,
            receivers,
            unit_s: (0..nodes).map(|node| network.airtime_s(node)).fold(0.0, f64::max),
            program,
            rate,
            transmissions: Vec::new(),
            flows: vec![Vec::new(); receivers.len()],
            conserved: vec![vec![None; nodes]; receivers.len()],
            anypaths: receivers.iter().map(|&receiver| anypath(network, receiver)).collect(),
            medium: MediumRows::None,
        }
    }

    /// Solves, and returns the primal in frames/s with a proof made of the dual.
    pub fn solve(&self, tolerance: f64) -> Result<Answer, Error> {
        let solution = self.program.solve(tolerance)?;
        let rate = |column: usize| (solution.values[column] / self.unit_s).max(0.0);
        let transmissions: Vec<f64> = (self.transmissions.iter())
            .map(|transmissions| match *transmissions {
                Transmissions::Column(column) => rate(column),
                Transmissions::Fixed(per_unit) => per_unit / self.unit_s,
            })
            .collect();
        let flows: Vec<Vec<(usize, usize, f64)>> = (self.flows.iter())
            .map(|flows| flows.iter().map(|&(i, j, column)| (i, j, rate(column))).collect())
            .collect();
        let potentials = (0..self.receivers.len())
            .map(|index| self.potentials(index, &solution.equal_dual))
            .collect();
        let (prices, paid) = self.prices(&solution.at_most_dual);
        let mut certificate = Certificate {
            source: self.source,
            receivers: self.receivers.to_vec(),
            potentials,
            prices,
        };
        certificate.spread_reception(self.network);
        let overload = self.overload(&transmissions, &flows, &solution.values);
        Ok(Answer { transmissions, flows, overload, certificate, paid })
    }

    pub fn size(&self) -> String {
        let p = &self.program;
        let nz: usize = p.equal.iter().chain(&p.at_most).map(|r| r.terms.len()).sum();
        format!("cols {} eq {} le {} nz {}", p.gain.len(), p.equal.len(), p.at_most.len(), nz)
    }

    /// Adds the most violated set of neighbours of every node and receiver, and medium
    /// constraints. Returns how many rows came.
    pub fn add_violated_rows(&mut self, answer: &Answer, tolerance: f64) -> usize {
        let before = self.program.at_most.len();
        for index in 0..self.receivers.len() {
            for (from, range) in by_sender(&answer.flows[index]) {
                let shares: Vec<Share> = (answer.flows[index][range.clone()].iter())
                    .map(|&(_, to, value)| Share { p: self.network.delivery(from, to), value })
                    .collect();
                let z = answer.transmissions[from];
                if let Some((set, _)) = most_violated_set(&shares, z, tolerance) {
                    let flows = &self.flows[index][range];
                    let members: Vec<(usize, usize)> =
                        set.iter().map(|&member| (flows[member].1, flows[member].2)).collect();
                    self.add_hyperarc(from, &members);
                }
            }
        }
        self.add_violated_cliques(&answer.transmissions);
        self.program.at_most.len() - before
    }

    /// Adds the links that a proof still has to pay for although the program does not know them,
    /// and independent sets worth more than they cost. Returns how many columns came.
    pub fn add_missing_columns(&mut self, answer: &Answer) -> usize {
        let before = self.program.gain.len();
        let Answer { certificate, paid, .. } = answer;
        let weights = certificate.weights(self.network);
        let potentials = certificate.clamped();
        for from in 0..self.network.nodes() {
            let missing = weights[from] - paid[from];
            if missing > 1e-10 * weights[from] {
                for (index, potential) in potentials.iter().enumerate() {
                    self.add_worthy_links(index, from, potential, 0.01 * missing);
                }
            }
        }
        self.add_worthy_sets(&weights, paid);
        self.program.gain.len() - before
    }

    fn add_worthy_links(&mut self, index: usize, from: usize, potential: &[f64], worth: f64) {
        let mut downhill: Vec<(usize, f64)> = (0..self.network.nodes())
            .map(|to| (to, potential[from] - potential[to]))
            .filter(|&(to, drop)| drop > 0.0 && self.network.delivery(from, to) > 0.0)
            .collect();
        downhill.sort_by(|a, b| b.1.total_cmp(&a.1));
        let mut missed = 1.0;
        for (to, drop) in downhill {
            let p = self.network.delivery(from, to);
            let known = self.flows[index].iter().any(|&(i, j, _)| (i, j) == (from, to));
            if !known && missed * p * drop > worth {
                let column = self.add_flow(index, from, to);
                self.add_hyperarc(from, &[(to, column)]);
            }
            missed *= 1.0 - p;
        }
    }

    /// Links along the shortest anypaths, with the sets of neighbours that an optimum would use
    /// there: the closest, the two closest, and so on.
    fn add_first_links(&mut self) {
        for index in 0..self.receivers.len() {
            for position in 1..self.anypaths[index].order.len() {
                let from = self.anypaths[index].order[position];
                if matches!(self.transmissions[from], Transmissions::Fixed(z) if z <= 0.0) {
                    continue;
                }
                let mut members = Vec::new();
                for to in self.forwarders(index, position) {
                    let column = self.add_flow(index, from, to);
                    members.push((to, column));
                    self.add_hyperarc(from, &members);
                }
            }
        }
    }

    fn forwarders(&self, index: usize, position: usize) -> Vec<usize> {
        let Anypath { airtime_s, order } = &self.anypaths[index];
        let from = order[position];
        let mut missed = 1.0;
        let mut links = Vec::new();
        for &to in order[..position].iter().filter(|&&to| to != self.source) {
            let p = self.network.delivery(from, to);
            // These add up to the airtime of one transmission over all closer neighbours.
            let progress = missed * p * (airtime_s[from] - airtime_s[to]);
            if progress >= FIRST_LINKS * self.network.airtime_s(from) {
                links.push(to);
            }
            missed *= 1.0 - p;
        }
        links
    }

    fn add_flow(&mut self, index: usize, from: usize, to: usize) -> usize {
        let column = self.program.column(0.0);
        let flows = &mut self.flows[index];
        let place = flows.partition_point(|&(i, j, _)| (i, j) < (from, to));
        flows.insert(place, (from, to, column));
        for (node, sign) in [(from, 1.0), (to, -1.0)] {
            if node != self.receivers[index] {
                let row = self.conserve(index, node);
                self.program.equal[row].terms.push((column, sign));
            }
        }
        self.add_reception(index, from, to, column);
        column
    }

    fn conserve(&mut self, index: usize, node: usize) -> usize {
        if let Some(row) = self.conserved[index][node] {
            return row;
        }
        let terms = if node == self.source { vec![(self.rate, -1.0)] } else { Vec::new() };
        self.program.equal.push(Row { terms, limit: 0.0 });
        let row = self.program.equal.len() - 1;
        self.conserved[index][node] = Some(row);
        row
    }

    /// x(K) <= z b(K) for members (node, column).
    fn add_hyperarc(&mut self, from: usize, members: &[(usize, usize)]) {
        let reach = self.network.reach(from, members.iter().map(|&(to, _)| to));
        let mut terms: Vec<(usize, f64)> =
            members.iter().map(|&(_, column)| (column, 1.0)).collect();
        let limit = match self.transmissions[from] {
            Transmissions::Column(column) => {
                terms.push((column, -reach));
                0.0
            }
            Transmissions::Fixed(z) => z * reach,
        };
        self.program.at_most.push(Row { terms, limit });
    }

    fn potentials(&self, index: usize, equal_dual: &[f64]) -> Vec<f64> {
        let value = |node: usize| self.conserved[index][node].map(|row| -equal_dual[row]);
        let own = value(self.source).unwrap_or(0.0).max(0.0);
        (0..self.network.nodes())
            .map(|node| match value(node) {
                Some(value) => value.clamp(0.0, own),
                None if node == self.receivers[index] => 0.0,
                // Nodes that cannot reach the receiver at all.
                None => own,
            })
            .collect()
    }
}

/// Runs of equal senders in flows sorted by (from, to).
pub(crate) fn by_sender(
    flows: &[(usize, usize, f64)],
) -> Vec<(usize, std::ops::Range<usize>)> {
    let mut runs: Vec<(usize, std::ops::Range<usize>)> = Vec::new();
    for (place, &(from, _, _)) in flows.iter().enumerate() {
        match runs.last_mut() {
            Some((sender, range)) if *sender == from => range.end = place + 1,
            _ => runs.push((from, place..place + 1)),
        }
    }
    runs
}
