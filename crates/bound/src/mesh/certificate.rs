//! Dual certificates of mesh bounds: proofs that no routing and no schedule carries more.

use super::{Mesh, MeshFlow, Objective};

/// Room for rounding: sums of far fewer than a million non-negative terms.
const ROUNDING: f64 = 1e-9;

/// Potentials of the nodes. *Any* values prove a bound, good ones a tight one.
///
/// The proof: let h be the potentials towards a flow's sink, zero there. Summing h(from) - h(to) over the path of each
/// packet gives h(source) for each packet of the flow, and link l takes part in that with at most
/// `price[l] = max over sinks of (h(from) - h(to))+` for each packet it carries. So
///
/// ```text
/// sum over flows of h(source) x  <=  sum over links of price y  <=  W,
/// ```
///
/// where W is the heaviest independent set of the conflict graph with weights price * rate, since at each moment the
/// links that are on form such a set. With p the flows' h(source): the sum of rates is at most W / min p, the smallest
/// rate at most W / sum p, and the sum of logarithms is largest where every p x is the same share of W.
#[derive(Clone, Debug, PartialEq)]
pub struct MeshCertificate {
    /// The sinks that occur, each once.
    pub sinks: Vec<usize>,
    /// For each sink one potential per node: the worth of a packet there. Negative ones count as 0, and the sink's own
    /// always counts as 0.
    pub potentials: Vec<Vec<f64>>,
}

impl MeshCertificate {
    /// The value of the objective that `mesh` cannot exceed, by this proof; in bit/s, or sums of logarithms of bit/s.
    /// Infinite if the potentials prove nothing.
    ///
    /// `least`: links whose weight is below this share of the heaviest are counted by a clique cover instead of the exact
    /// search. Exact search of an independent set takes exponential time in the worst case.
    pub fn bound(&self, mesh: &Mesh, flows: &[MeshFlow], objective: Objective, least: f64) -> f64 {
        match self.worth(mesh, flows) {
            Some(worth) => ceiling(objective, &worth, self.heaviest(mesh, least).1),
            None => f64::INFINITY,
        }
    }

    /// The heaviest independent set of links that weigh at least the share `least` of the heaviest link, and a weight that
    /// no independent set exceeds.
    pub(super) fn heaviest(&self, mesh: &Mesh, least: f64) -> (Vec<usize>, f64) {
        let weights = self.weights(mesh);
        let heaviest = weights.iter().copied().fold(0.0, f64::max);
        mesh.conflicts()
            .independent_set_bound(&weights, heaviest * least)
    }

    /// Price of each link times its rate.
    pub(super) fn weights(&self, mesh: &Mesh) -> Vec<f64> {
        let of = |link: &super::MeshLink| {
            let differences = self
                .sinks
                .iter()
                .zip(&self.potentials)
                .map(|(&sink, potential)| {
                    let at = |node: usize| match node == sink {
                        true => 0.0,
                        false => potential[node].max(0.0),
                    };
                    at(link.from) - at(link.to)
                });
            differences.fold(0.0, f64::max) * link.rate_bps
        };
        mesh.links().iter().map(of).collect()
    }

    /// h(source) of each flow; `None` if a sink or a number is missing.
    pub(super) fn worth(&self, mesh: &Mesh, flows: &[MeshFlow]) -> Option<Vec<f64>> {
        let proper =
            |h: &Vec<f64>| h.len() == mesh.nodes() && h.iter().all(|value| value.is_finite());
        if self.sinks.len() != self.potentials.len() || !self.potentials.iter().all(proper) {
            return None;
        }
        let of = |flow: &MeshFlow| {
            let place = self.sinks.iter().position(|&sink| sink == flow.sink)?;
            Some(self.potentials[place][flow.source].max(0.0))
        };
        flows.iter().map(of).collect()
    }
}

/// The largest objective with sum of worth * x <= `most`, rounded up; infinite where nothing has a worth.
pub(super) fn ceiling(objective: Objective, worth: &[f64], most: f64) -> f64 {
    let most = most * (1.0 + ROUNDING);
    let value = match objective {
        Objective::Sum => most / worth.iter().copied().fold(f64::INFINITY, f64::min),
        Objective::MaxMin => most / worth.iter().sum::<f64>() * (1.0 + ROUNDING),
        Objective::SumLog => {
            let share = most / worth.len() as f64;
            let sum: f64 = worth.iter().map(|worth| (share / worth).ln()).sum();
            sum + ROUNDING * worth.len() as f64
        }
    };
    // Zero over zero: without prices there is no proof.
    if value.is_nan() { f64::INFINITY } else { value }
}
