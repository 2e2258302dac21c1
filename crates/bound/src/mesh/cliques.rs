//! The clique bound, which is cheap: links that all exclude each other share one channel.

use crate::order;
use std::collections::BTreeSet;

use super::certificate::ceiling;
use super::routing::{Routing, SOLVER};
use super::{Mesh, MeshFlow, Objective};
use crate::error::Error;
use crate::graph::Graph;
use crate::program::{Row, Solution};

/// A clique is added if it is overfull by more than this.
const OVERFULL: f64 = 1e-6;
/// Linear programs after which to stop; the bound proven by then is valid.
const ROUNDS: usize = 60;

/// An upper bound without a schedule: airtimes within each clique of the conflict graph sum to 1 at most. It is loose where
/// the conflict graph is not perfect (a cycle of five links carries 2 at once, and its cliques allow 2.5).
#[derive(Clone, Debug)]
pub struct CliqueBound {
    /// The objective that was maximised.
    pub objective: Objective,
    /// The objective that nothing exceeds: bit/s, or the sum of logarithms of bit/s.
    pub bound: f64,
    /// Rate of each flow at the relaxation's optimum, in bit/s. Not feasible in general.
    pub rates_bps: Vec<f64>,
    /// The cliques that limit it, dearest first, with their prices in units of the objective.
    pub cliques: Vec<(Vec<usize>, f64)>,
    /// The number of linear programs solved.
    pub programs: usize,
}

/// The clique bound, by adding the cliques that a solution overfills until none is found.
pub fn clique_bound(
    mesh: &Mesh,
    flows: &[MeshFlow],
    objective: Objective,
) -> Result<CliqueBound, Error> {
    mesh.check(flows)?;
    let mut relaxed = Relaxed::new(mesh, flows, objective);
    let mut programs = 0;
    loop {
        programs += 1;
        let solution = relaxed.routing.program.solve(SOLVER)?;
        let overfull = overfull(mesh.conflicts(), &relaxed.airtime(&solution));
        if relaxed.add(overfull) == 0 || programs >= ROUNDS {
            return Ok(relaxed.report(flows, &solution, programs));
        }
    }
}

/// The clique of largest total weight among the vertices that weigh anything, by greedy growth from each of them.
pub(super) fn busiest(graph: &Graph, weights: &[f64]) -> Vec<usize> {
    let order = by_weight(weights);
    let grown = order.iter().map(|&start| grow(graph, start, &order));
    let total = |set: &Vec<usize>| set.iter().map(|&v| weights[v]).sum::<f64>();
    grown
        .max_by(|a, b| total(a).total_cmp(&total(b)).then(b.cmp(a)))
        .unwrap_or_default()
}

fn by_weight(weights: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..weights.len()).filter(|&v| weights[v] > 1e-9).collect();
    order::falling(&mut order, |&v| weights[v]);
    order
}

fn grow(graph: &Graph, start: usize, order: &[usize]) -> Vec<usize> {
    let mut clique = vec![start];
    for &next in order {
        if next != start && clique.iter().all(|&member| graph.adjacent(member, next)) {
            clique.push(next);
        }
    }
    clique.sort_unstable();
    clique
}

/// Cliques whose airtimes sum to more than 1, made maximal so that they hold links which may be used later.
fn overfull(graph: &Graph, airtime: &[f64]) -> Vec<Vec<usize>> {
    let order = by_weight(airtime);
    let all: Vec<usize> = (0..airtime.len()).collect();
    let mut found: BTreeSet<Vec<usize>> = BTreeSet::new();
    for &start in &order {
        let mut clique = grow(graph, start, &order);
        let sum: f64 = clique.iter().map(|&v| airtime[v]).sum();
        if sum > 1.0 + OVERFULL {
            for &next in &all {
                if !clique.contains(&next) && clique.iter().all(|&v| graph.adjacent(v, next)) {
                    clique.push(next);
                }
            }
            clique.sort_unstable();
            found.insert(clique);
        }
    }
    found.into_iter().collect()
}

/// The routing program with a row for each clique.
struct Relaxed<'a> {
    routing: Routing<'a>,
    /// The first clique's row.
    first: usize,
    cliques: BTreeSet<Vec<usize>>,
    /// In the order of the rows.
    rows: Vec<Vec<usize>>,
}

impl<'a> Relaxed<'a> {
    fn new(mesh: &'a Mesh, flows: &[MeshFlow], objective: Objective) -> Relaxed<'a> {
        let routing = Routing::new(mesh, flows, objective);
        let mut relaxed = Relaxed {
            first: routing.program.at_most.len(),
            routing,
            cliques: BTreeSet::new(),
            rows: Vec::new(),
        };
        // Every link in some clique, so that the program is bounded; the others come when they are overfull.
        let order = by_weight(&vec![1.0; mesh.links().len()]);
        let mut covered = BTreeSet::new();
        for &link in &order {
            if !covered.contains(&link) {
                let clique = grow(mesh.conflicts(), link, &order);
                covered.extend(clique.iter().copied());
                relaxed.add(vec![clique]);
            }
        }
        relaxed
    }

    /// Adds rows for cliques that are new; returns how many.
    fn add(&mut self, cliques: Vec<Vec<usize>>) -> usize {
        let before = self.rows.len();
        for clique in cliques {
            if !self.cliques.insert(clique.clone()) {
                continue;
            }
            let mut terms = Vec::new();
            for &link in &clique {
                let rate = self.routing.mesh.links()[link].rate_bps / self.routing.unit_bps;
                terms.extend((self.routing.loads.iter()).map(|loads| (loads[link], 1.0 / rate)));
            }
            self.routing.program.at_most.push(Row { terms, limit: 1.0 });
            self.rows.push(clique);
        }
        self.rows.len() - before
    }

    /// Airtime of each link.
    fn airtime(&self, solution: &Solution) -> Vec<f64> {
        let routing = &self.routing;
        let of = |link: usize| {
            let loads = routing
                .loads
                .iter()
                .map(|loads| solution.values[loads[link]]);
            let rate = routing.mesh.links()[link].rate_bps / routing.unit_bps;
            loads.sum::<f64>().max(0.0) / rate
        };
        (0..routing.mesh.links().len()).map(of).collect()
    }

    fn report(&self, flows: &[MeshFlow], solution: &Solution, programs: usize) -> CliqueBound {
        let routing = &self.routing;
        let certificate = routing.certificate(solution);
        let price = |row: usize| solution.at_most_dual[row].max(0.0) * routing.unit_bps;
        let prices: Vec<f64> = (self.first..self.first + self.rows.len())
            .map(price)
            .collect();
        // The part of a link's weight that its cliques do not cover is charged to the link alone, as a clique of one.
        let mut unpaid = certificate.weights(routing.mesh);
        for (clique, price) in self.rows.iter().zip(&prices) {
            clique.iter().for_each(|&link| unpaid[link] -= price);
        }
        let most =
            prices.iter().sum::<f64>() + unpaid.iter().map(|rest| rest.max(0.0)).sum::<f64>();
        let worth = certificate.worth(routing.mesh, flows).unwrap_or_default();
        let dear = prices.iter().copied().fold(0.0, f64::max) * 1e-3;
        let mut cliques: Vec<(Vec<usize>, f64)> = (self.rows.iter().cloned())
            .zip(prices)
            .filter(|&(_, price)| price > dear)
            .collect();
        order::falling(&mut cliques, |&(_, price)| price);
        CliqueBound {
            objective: routing.objective,
            bound: ceiling(routing.objective, &worth, most),
            rates_bps: (routing.rates.iter())
                .map(|&rate| solution.values[rate].max(0.0) * routing.unit_bps)
                .collect(),
            cliques,
            programs,
        }
    }
}
