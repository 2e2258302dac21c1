//! The growing linear program: it starts with few columns and rows and gains more where it proves too optimistic.

use crate::certificate::Certificate;
use crate::error::Error;
use crate::flows::{Flows, by_sender};
use crate::hyperarc::{Share, most_violated_set};
use crate::medium::Medium;
use crate::network::Network;
use crate::order;
use crate::program::{Program, Row};
use std::collections::BTreeSet;
use std::ops::Range;

mod links;
mod medium;

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
    transmissions: Vec<Transmissions>,
    /// Per receiver, (from, to, column) of each flow, in rising order.
    flows: Vec<Vec<(usize, usize, usize)>>,
    /// Per receiver and node, the equality that conserves flow.
    conserved: Vec<Vec<Option<usize>>>,
    /// Sets of flow columns that have a hyperarc row.
    hyperarcs: BTreeSet<Vec<usize>>,
    medium: medium::Rows,
}

/// A node's transmissions: a column of the program, or given (per unit).
#[derive(Clone, Copy)]
enum Transmissions {
    Column(usize),
    Fixed(f64),
}

/// Numbers of one solution, back in frames/s.
pub(crate) struct Answer {
    /// Frames/s of each node.
    pub transmissions: Vec<f64>,
    pub flows: Flows,
    /// The program's own values, for [`Master::overload`].
    pub values: Vec<f64>,
    /// A proof of an upper bound, as the solver left it.
    pub certificate: Certificate,
    /// What the medium's prices pay for one transmission of each node.
    pub paid: Vec<f64>,
}

impl<'a> Master<'a> {
    /// A program whose transmissions are free within `medium`; `cliques` always sense each other,
    /// `crowds` cover all nodes and guide the first guess of what will be scarce.
    pub fn new(
        network: &'a Network,
        source: usize,
        receivers: &'a [usize],
        medium: Medium,
        cliques: &[Vec<usize>],
        crowds: &[Vec<usize>],
    ) -> Master<'a> {
        let mut master = Master::empty(network, source, receivers);
        master.transmissions = (0..network.nodes())
            .map(|_| Transmissions::Column(master.program.column(0.0)))
            .collect();
        master.add_medium(medium, cliques);
        master.add_scouted_links(crowds);
        master
    }

    /// A program whose transmissions (frames/s, at least one above 0) are given.
    pub fn fixed(
        network: &'a Network,
        source: usize,
        receivers: &'a [usize],
        transmissions: &[f64],
    ) -> Master<'a> {
        let mut master = Master::empty(network, source, receivers);
        let most = transmissions.iter().copied().fold(0.0, f64::max);
        master.unit_s = 1.0 / most;
        master.transmissions = transmissions
            .iter()
            .map(|z| Transmissions::Fixed(z / most))
            .collect();
        master.add_all_links(transmissions);
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
            unit_s: (0..nodes)
                .map(|node| network.channel_s(node))
                .fold(0.0, f64::max),
            program,
            rate,
            transmissions: Vec::new(),
            flows: vec![Vec::new(); receivers.len()],
            conserved: vec![vec![None; nodes]; receivers.len()],
            hyperarcs: BTreeSet::new(),
            medium: medium::Rows::None,
        }
    }

    /// The rows of inequalities.
    pub fn rows(&self) -> usize {
        self.program.at_most.len()
    }

    /// Solves to about `tolerance`, and returns the primal in frames/s with a proof made of the dual.
    pub fn solve(&self, tolerance: f64) -> Result<Answer, Error> {
        let solution = self.program.solve(tolerance)?;
        let rate = |column: usize| (solution.values[column] / self.unit_s).max(0.0);
        let transmissions = (self.transmissions.iter())
            .map(|transmissions| match *transmissions {
                Transmissions::Column(column) => rate(column),
                Transmissions::Fixed(per_unit) => per_unit / self.unit_s,
            })
            .collect();
        let flows = (self.flows.iter())
            .map(|flows| {
                flows
                    .iter()
                    .map(|&(i, j, column)| (i, j, rate(column)))
                    .collect()
            })
            .collect();
        let potentials = (0..self.receivers.len())
            .map(|index| self.potentials(index, &solution.equal_dual))
            .collect();
        let (prices, paid) = self.prices(&solution.at_most_dual);
        let certificate = Certificate {
            source: self.source,
            receivers: self.receivers.to_vec(),
            potentials,
            prices,
        };
        Ok(Answer {
            transmissions,
            flows,
            values: solution.values,
            certificate,
            paid,
        })
    }

    /// Adds rows for sets of neighbours that are promised more than they can hear, by more than
    /// `tolerance` frames/s, and for overfull sets of nodes. Returns the number of new rows.
    pub fn add_violated_rows(&mut self, answer: &Answer, tolerance: f64) -> usize {
        let before = self.program.at_most.len();
        for index in 0..self.receivers.len() {
            for (from, range) in by_sender(&answer.flows[index]) {
                let shares: Vec<Share> = (answer.flows[index][range.clone()].iter())
                    .map(|&(_, to, value)| Share {
                        p: self.network.delivery(from, to),
                        value,
                    })
                    .collect();
                let z = answer.transmissions[from];
                if let Some((set, _)) = most_violated_set(&shares, z, tolerance) {
                    let known = &self.flows[index][range.clone()];
                    let members: Vec<(usize, usize)> = set
                        .iter()
                        .map(|&member| (known[member].1, known[member].2))
                        .collect();
                    self.add_hyperarc(from, &members);
                    self.add_hyperarcs_by_potential(index, from, range, answer);
                }
            }
        }
        self.add_violated_sets(&answer.transmissions);
        self.program.at_most.len() - before
    }

    /// At an optimum the sets that matter are the neighbours of lowest potential. So where one set was
    /// violated, the sets that the present potentials would pick are good guesses.
    fn add_hyperarcs_by_potential(
        &mut self,
        index: usize,
        from: usize,
        range: Range<usize>,
        answer: &Answer,
    ) {
        let potential = &answer.certificate.potentials[index];
        let mut members: Vec<(usize, usize)> = (self.flows[index][range].iter())
            .map(|&(_, to, column)| (to, column))
            .filter(|&(to, _)| potential[to] < potential[from])
            .collect();
        order::rising(&mut members, |&(to, _)| potential[to]);
        for length in 1..=members.len() {
            let next = members
                .get(length)
                .map_or(potential[from], |&(to, _)| potential[to]);
            // Smaller steps are noise of the solver.
            if next - potential[members[length - 1].0] > 1e-5 * potential[from] {
                self.add_hyperarc(from, &members[..length]);
            }
        }
    }

    /// x(K) <= z b(K) for members (node, column), unless the row exists.
    fn add_hyperarc(&mut self, from: usize, members: &[(usize, usize)]) {
        let mut columns: Vec<usize> = members.iter().map(|&(_, column)| column).collect();
        columns.sort_unstable();
        let mut terms: Vec<(usize, f64)> = columns.iter().map(|&column| (column, 1.0)).collect();
        if !self.hyperarcs.insert(columns) {
            return;
        }
        let reach = self.network.reach(from, members.iter().map(|&(to, _)| to));
        let limit = match self.transmissions[from] {
            Transmissions::Column(column) => {
                terms.push((column, -reach));
                0.0
            }
            Transmissions::Fixed(z) => z * reach,
        };
        self.program.at_most.push(Row { terms, limit });
    }

    /// The potentials of one receiver, from the duals of flow conservation: what a packet at each node
    /// still misses.
    fn potentials(&self, index: usize, equal_dual: &[f64]) -> Vec<f64> {
        let value = |node: usize| self.conserved[index][node].map(|row| -equal_dual[row]);
        let own = value(self.source).unwrap_or(0.0).max(0.0);
        (0..self.network.nodes())
            .map(|node| match value(node) {
                Some(value) => value.clamp(0.0, own),
                None if node == self.receivers[index] => 0.0,
                // A node that no flow passes is assumed to be as far as the source.
                None => own,
            })
            .collect()
    }
}
