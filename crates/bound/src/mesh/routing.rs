//! The part of the program that every bound shares: flows, loads, conservation.

use super::certificate::MeshCertificate;
use super::{Mesh, MeshFlow, Objective};
use crate::program::{Program, Row, Solution};

/// The tolerance of a linear program that is to be as good as it can be, relative.
pub(super) const SOLVER: f64 = 1e-8;

/// A program whose loads are not limited yet, and where its columns and rows are. Rates are in units of the fastest link,
/// so that all values are near 1.
pub(super) struct Routing<'a> {
    pub mesh: &'a Mesh,
    pub objective: Objective,
    pub program: Program,
    pub unit_bps: f64,
    pub sinks: Vec<usize>,
    /// Column of each flow's rate.
    pub rates: Vec<usize>,
    /// Per sink and link, the column of the load.
    pub loads: Vec<Vec<usize>>,
    /// Per sink and node, the row that conserves flow; none at the sink.
    conserved: Vec<Vec<Option<usize>>>,
}

impl<'a> Routing<'a> {
    pub fn new(mesh: &'a Mesh, flows: &[MeshFlow], objective: Objective) -> Routing<'a> {
        let mut sinks: Vec<usize> = flows.iter().map(|flow| flow.sink).collect();
        sinks.sort_unstable();
        sinks.dedup();
        let mut program = Program::default();
        let gain = if objective == Objective::Sum {
            1.0
        } else {
            0.0
        };
        let rates: Vec<usize> = flows.iter().map(|_| program.column(gain)).collect();
        if objective == Objective::SumLog {
            program.logs = rates.clone();
        }
        if objective == Objective::MaxMin {
            let least = program.column(1.0);
            let row = |&rate: &usize| Row {
                terms: vec![(least, 1.0), (rate, -1.0)],
                limit: 0.0,
            };
            program.at_most.extend(rates.iter().map(row));
        }
        let loads = (sinks.iter())
            .map(|_| mesh.links().iter().map(|_| program.column(0.0)).collect())
            .collect();
        let mut routing = Routing {
            mesh,
            objective,
            unit_bps: mesh.unit_bps(),
            sinks,
            rates,
            loads,
            conserved: Vec::new(),
            program,
        };
        routing.conserve(flows);
        routing
    }

    /// Out of a node minus into it: the rates that begin there.
    fn conserve(&mut self, flows: &[MeshFlow]) {
        for (place, &sink) in self.sinks.iter().enumerate() {
            let mut rows: Vec<Row> = (0..self.mesh.nodes())
                .map(|_| Row {
                    terms: Vec::new(),
                    limit: 0.0,
                })
                .collect();
            for (number, link) in self.mesh.links().iter().enumerate() {
                rows[link.from].terms.push((self.loads[place][number], 1.0));
                rows[link.to].terms.push((self.loads[place][number], -1.0));
            }
            for (flow, &rate) in flows.iter().zip(&self.rates) {
                if flow.sink == sink {
                    rows[flow.source].terms.push((rate, -1.0));
                }
            }
            let mut places = vec![None; self.mesh.nodes()];
            for (node, row) in rows.into_iter().enumerate() {
                if node != sink && !row.terms.is_empty() {
                    places[node] = Some(self.program.equal.len());
                    self.program.equal.push(row);
                }
            }
            self.conserved.push(places);
        }
    }

    /// The potentials that a solution's dual values are.
    pub fn certificate(&self, solution: &Solution) -> MeshCertificate {
        let potential = |rows: &Vec<Option<usize>>| {
            // A node without a row has no links; nothing passes it, so any potential will do.
            let of = |row: &Option<usize>| row.map_or(0.0, |row| -solution.equal_dual[row]);
            rows.iter().map(|row| of(row).max(0.0)).collect()
        };
        MeshCertificate {
            sinks: self.sinks.clone(),
            potentials: self.conserved.iter().map(potential).collect(),
        }
    }
}
