//! The capacity of a mesh of links for several unicast flows: conflict graphs, routing and scheduling together.
//!
//! Every node may send any mixture of flows over any of its links; at each moment the links that are on form an
//! independent set of the *conflict graph*. The bound is over all routings and all schedules, so no MAC and no routing
//! protocol exceeds it, under the model that the conflict graph is (Jain, Padhye, Padmanabhan, Qiu, "Impact of
//! interference on multi-hop wireless network performance", 2003).
//!
//! With x the flows' rates, y the load of link l towards destination k, c the links' rates, and a schedule that gives
//! each independent set S a share of time:
//!
//! ```text
//! out of a node - into it, per destination  =  the rates of the flows that begin there
//! sum over k of y[l, k]  <=  c[l] * (the shares of the sets that hold l),   sum of shares <= 1
//! maximise  sum x  |  min x  |  sum log x
//! ```
//!
//! There are far too many sets to list. Column generation finds them one by one, greedily while that helps and by an exact
//! search when it does not. [`MeshCertificate`] turns the prices of any stage into a bound that holds whatever the solver
//! did. The feasible solution is rebuilt from paths. So the gap between the two is proven.
//!
//! **"Maximise the sum" is a degenerate goal**: with all flows towards one sink it gives the whole channel to the node
//! beside the sink. Print [`Objective::MaxMin`] and [`Objective::SumLog`] with it.
//!
//! ```
//! use chappe_bound::{Conflict, Mesh, MeshFlow, MeshLink, MeshOptions, Objective, mesh_bound};
//!
//! // A chain of three hops that all disturb each other: a third of a link.
//! let link = |from| MeshLink { from, to: from + 1, rate_bps: 900e3 };
//! let mesh = Mesh::new(4, vec![link(0), link(1), link(2)], Conflict::Symmetric, |_, _| true)?;
//! let flows = [MeshFlow { source: 0, sink: 3 }];
//! let bound = mesh_bound(&mesh, &flows, Objective::MaxMin, &MeshOptions::default())?;
//! assert!((bound.rates_bps[0] - 300e3).abs() < 1e3 && bound.gap < 2e-3);
//! # Ok::<(), chappe_bound::Error>(())
//! ```

mod certificate;
mod cliques;
mod columns;
mod network;
mod paths;
mod pricing;
mod routing;
#[cfg(test)]
mod tests;

pub use certificate::MeshCertificate;
pub use cliques::{CliqueBound, clique_bound};
pub use columns::mesh_bound;
pub use network::{Conflict, Mesh, MeshFlow, MeshLink};
pub use paths::Path;

/// The objective to maximise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Objective {
    /// The sum of the rates.
    Sum,
    /// The smallest rate of any flow.
    MaxMin,
    /// The sum of the logarithms: proportional fairness.
    SumLog,
}

/// When to stop the computation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeshOptions {
    /// The relative gap at which to stop. Default 2e-3.
    pub gap: f64,
    /// Linear programs after which to stop, whatever the gap. Default 200.
    pub rounds: usize,
}

impl Default for MeshOptions {
    fn default() -> MeshOptions {
        MeshOptions {
            gap: 2e-3,
            rounds: 200,
        }
    }
}

/// The optimum of a mesh, enclosed by a feasible solution and a proven bound.
#[derive(Clone, Debug)]
pub struct MeshBound {
    /// The objective that was maximised.
    pub objective: Objective,
    /// Feasible rate of each flow, in bit/s.
    pub rates_bps: Vec<f64>,
    /// The objective at these rates: bit/s, or the sum of logarithms of bit/s.
    pub value: f64,
    /// The objective that nothing exceeds, by `certificate`.
    pub bound: f64,
    /// Their relative difference; for `SumLog` per flow (the geometric mean could grow by this share).
    pub gap: f64,
    /// The routes of the feasible solution.
    pub paths: Vec<Path>,
    /// Its schedule: sets of links that are on together, and their shares of time.
    pub schedule: Vec<(Vec<usize>, f64)>,
    /// Airtime that each link needs: its load over its rate.
    pub airtime: Vec<f64>,
    /// Price of each link's airtime in units of the objective: the marginal value of more of it.
    pub price: Vec<f64>,
    /// The busiest set of links, all in conflict with each other, among those with a price: where the bottleneck is.
    pub bottleneck: Vec<usize>,
    /// The proof of `bound`.
    pub certificate: MeshCertificate,
    /// Linear programs solved, exact searches made, independent sets used.
    pub effort: Effort,
}

/// The effort that a bound took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effort {
    /// The number of linear programs solved.
    pub programs: usize,
    /// Exact searches for the heaviest independent set.
    pub searches: usize,
    /// Independent sets in the last program.
    pub sets: usize,
}

impl Objective {
    /// The objective at these rates.
    pub fn of(self, rates: &[f64]) -> f64 {
        match self {
            Objective::Sum => rates.iter().sum(),
            Objective::MaxMin => rates.iter().copied().fold(f64::INFINITY, f64::min),
            Objective::SumLog => rates.iter().map(|rate| rate.ln()).sum(),
        }
    }

    /// The gap between `value` and `bound`, as in [`MeshBound::gap`].
    pub fn gap(self, value: f64, bound: f64, flows: usize) -> f64 {
        match self {
            Objective::SumLog => ((bound - value) / flows as f64).exp() - 1.0,
            _ if value > 0.0 => bound / value - 1.0,
            _ => f64::INFINITY,
        }
    }
}

impl MeshBound {
    /// This bound, if its gap is no larger than `limit`. The computation also stops where the solver gets no farther, whatever the gap.
    pub fn within(self, limit: f64) -> Result<MeshBound, crate::Error> {
        match self.gap <= limit {
            true => Ok(self),
            false => Err(crate::Error::Unproven {
                gap: self.gap,
                limit,
            }),
        }
    }

    /// Sum of the rates in bit/s.
    pub fn total_bps(&self) -> f64 {
        self.rates_bps.iter().sum()
    }

    /// Jain's index of the rates: 1 when all are equal, 1/n when one flow has everything (Jain, Chiu, Hawe, 1984).
    pub fn jain(&self) -> f64 {
        let squares: f64 = self.rates_bps.iter().map(|rate| rate * rate).sum();
        self.total_bps().powi(2) / (self.rates_bps.len() as f64 * squares)
    }
}
