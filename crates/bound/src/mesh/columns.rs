//! Column generation for a mesh: the program starts with few independent sets and gains more where they pay.

use std::collections::BTreeSet;

use super::certificate::{MeshCertificate, ceiling};
use super::paths::{Loads, Path};
use super::pricing::{LIGHT, greedy, maximal};
use super::routing::{Routing, SOLVER};
use super::{Effort, Mesh, MeshBound, MeshFlow, MeshOptions, Objective};
use crate::error::Error;
use crate::program::{Row, Solution};

/// The tolerance of the first linear programs, relative. Prices from the middle of the good solutions find better sets than
/// those of one optimal corner, in a third of the solver's iterations (Gondzio, Gonzalez-Brevis, Munari, "New developments in the
/// primal-dual column generation technique", 2013).
const ROUGH: f64 = 0.1;
/// How much smaller the tolerance gets when a program has found fewer new sets than this.
const FINER: f64 = 0.1;
const FEW: usize = 60;
/// Rates below this share of the fastest link are noise of the solver.
const NOISE: f64 = 1e-9;

/// The best that `mesh` can do for `flows`, over all routings and schedules, with a proven gap.
///
/// A second or two for a hundred nodes and one sink. Memory and time grow with links times sinks: seven sinks take some
/// 20 s.
pub fn mesh_bound(
    mesh: &Mesh,
    flows: &[MeshFlow],
    objective: Objective,
    options: &MeshOptions,
) -> Result<MeshBound, Error> {
    mesh.check(flows)?;
    let mut master = Master::new(mesh, flows, objective);
    let mut effort = Effort::default();
    let mut best: Option<(f64, MeshCertificate)> = None;
    let mut tolerance = ROUGH;
    loop {
        let answer = master.solve(tolerance)?;
        effort.programs += 1;
        effort.sets = master.sets.len();
        let last = effort.programs >= options.rounds;
        let found = greedy(
            mesh.conflicts(),
            &answer.weights,
            answer.sigma * (1.0 + 0.1 * options.gap),
        );
        let fresh = master.add(found);
        if !last && tolerance > SOLVER && fresh < FEW {
            tolerance = (tolerance * FINER).max(SOLVER);
            continue;
        }
        if !last && fresh > 0 {
            continue;
        }
        // Greedy found nothing: search all sets exactly, which also proves how much could be missing.
        effort.searches += 1;
        let (set, most) = answer.certificate.heaviest(mesh, LIGHT);
        let worth = answer.certificate.worth(mesh, flows);
        let bound = worth.map_or(f64::INFINITY, |worth| ceiling(objective, &worth, most));
        if best.as_ref().is_none_or(|(least, _)| bound < *least) {
            best = Some((bound, answer.certificate.clone()));
        }
        let paths = answer.paths(mesh, flows, &master);
        let value = objective.of(&rates(&paths, flows.len()));
        let bound = best.as_ref().map_or(bound, |(bound, _)| *bound);
        let gap = objective.gap(value, bound, flows.len());
        let grown = master.add(vec![maximal(
            mesh.conflicts(),
            set.first().copied().unwrap_or(0),
            &set,
        )]);
        if gap <= options.gap || last || grown == 0 {
            let certificate = best.map_or(answer.certificate.clone(), |(_, proof)| proof);
            return Ok(answer.report(mesh, &master, paths, (bound, gap), certificate, effort));
        }
    }
}

fn rates(paths: &[Path], flows: usize) -> Vec<f64> {
    let mut rates = vec![0.0; flows];
    for path in paths {
        rates[path.flow] += path.rate_bps;
    }
    rates
}

/// The routing program with a schedule: a share of time for each independent set.
struct Master<'a> {
    routing: Routing<'a>,
    /// Row of the sets' shares, and the first of the links' capacity rows.
    shares: usize,
    capacity: usize,
    /// Independent sets with their columns.
    sets: Vec<(Vec<usize>, usize)>,
    known: BTreeSet<Vec<usize>>,
}

/// One solution, with prices in units of the objective for each bit/s.
struct Answer {
    solution: Solution,
    certificate: MeshCertificate,
    /// Price times rate of each link.
    weights: Vec<f64>,
    /// The dual value of the schedule's row: the price of time.
    sigma: f64,
}

impl<'a> Master<'a> {
    fn new(mesh: &'a Mesh, flows: &[MeshFlow], objective: Objective) -> Master<'a> {
        let mut master = Master {
            routing: Routing::new(mesh, flows, objective),
            shares: 0,
            capacity: 0,
            sets: Vec::new(),
            known: BTreeSet::new(),
        };
        master.limit();
        let all: Vec<usize> = (0..mesh.links().len()).collect();
        let first = |&link: &usize| maximal(mesh.conflicts(), link, &all);
        master.add(all.iter().map(first).collect());
        master
    }

    /// Room for the rows of the sets: one for the shares, one for each link.
    fn limit(&mut self) {
        self.shares = self.routing.program.at_most.len();
        self.capacity = self.shares + 1;
        self.routing.program.at_most.push(Row {
            terms: Vec::new(),
            limit: 1.0,
        });
        for link in 0..self.routing.mesh.links().len() {
            let terms = self
                .routing
                .loads
                .iter()
                .map(|loads| (loads[link], 1.0))
                .collect();
            self.routing.program.at_most.push(Row { terms, limit: 0.0 });
        }
    }

    /// Adds columns for sets that are not in the program yet; returns how many.
    fn add(&mut self, sets: Vec<Vec<usize>>) -> usize {
        let before = self.sets.len();
        for set in sets {
            if set.is_empty() || !self.known.insert(set.clone()) {
                continue;
            }
            let column = self.routing.program.column(0.0);
            self.routing.program.at_most[self.shares]
                .terms
                .push((column, 1.0));
            for &link in &set {
                let rate = self.routing.mesh.links()[link].rate_bps / self.routing.unit_bps;
                let row = &mut self.routing.program.at_most[self.capacity + link];
                row.terms.push((column, -rate));
            }
            self.sets.push((set, column));
        }
        self.sets.len() - before
    }

    fn solve(&self, tolerance: f64) -> Result<Answer, Error> {
        let solution = self.routing.program.solve(tolerance)?;
        let certificate = self.routing.certificate(&solution);
        Ok(Answer {
            weights: certificate.weights(self.routing.mesh),
            sigma: solution.at_most_dual[self.shares] * self.routing.unit_bps,
            certificate,
            solution,
        })
    }
}

impl Answer {
    /// Shares of the sets, made to sum to 1 at most.
    fn schedule(&self, master: &Master) -> Vec<(Vec<usize>, f64)> {
        // Sets that were found after this solution have no share in it.
        let share = |column: usize| self.solution.values.get(column).map_or(0.0, |v| v.max(0.0));
        let total: f64 = master.sets.iter().map(|&(_, column)| share(column)).sum();
        let scale = if total > 1.0 { 1.0 / total } else { 1.0 };
        (master.sets.iter())
            .map(|(set, column)| (set.clone(), share(*column) * scale))
            .filter(|&(_, share)| share > NOISE)
            .collect()
    }

    /// Paths within the capacity that the schedule provides.
    fn paths(&self, mesh: &Mesh, flows: &[MeshFlow], master: &Master) -> Vec<Path> {
        let mut capacity = vec![0.0; mesh.links().len()];
        for (set, share) in self.schedule(master) {
            for link in set {
                capacity[link] += share * mesh.links()[link].rate_bps;
            }
        }
        let routing = &master.routing;
        let value = |&column: &usize| self.solution.values[column].max(0.0) * routing.unit_bps;
        let mut loads = Loads {
            mesh,
            towards: (routing.loads.iter())
                .map(|loads| loads.iter().map(value).collect())
                .collect(),
            least: NOISE * routing.unit_bps,
        };
        loads.cap(&capacity);
        let wanted: Vec<f64> = routing.rates.iter().map(value).collect();
        loads.paths(flows, &routing.sinks, &wanted)
    }

    fn report(
        &self,
        mesh: &Mesh,
        master: &Master,
        paths: Vec<Path>,
        (bound, gap): (f64, f64),
        certificate: MeshCertificate,
        effort: Effort,
    ) -> MeshBound {
        let routing = &master.routing;
        let objective = routing.objective;
        let rates_bps = rates(&paths, routing.rates.len());
        let mut airtime = vec![0.0; mesh.links().len()];
        for path in &paths {
            for &link in &path.links {
                airtime[link] += path.rate_bps / mesh.links()[link].rate_bps;
            }
        }
        let price = certificate.weights(mesh);
        // A link with a price near zero is not part of a bottleneck.
        let dear = price.iter().copied().fold(0.0, f64::max) * 1e-3;
        let priced: Vec<f64> = (airtime.iter().zip(&price))
            .map(|(&airtime, &price)| if price > dear { airtime } else { 0.0 })
            .collect();
        MeshBound {
            objective,
            value: objective.of(&rates_bps),
            rates_bps,
            bound,
            gap,
            schedule: self.schedule(master),
            bottleneck: super::cliques::busiest(mesh.conflicts(), &priced),
            airtime,
            price,
            paths,
            certificate,
            effort,
        }
    }
}
