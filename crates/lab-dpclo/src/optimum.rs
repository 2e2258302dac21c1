//! The best rates that a mesh allows its flows: max-min fair and proportionally fair.
//!
//! The optimum is that of a model. Two links exclude each other if they share a node, if their senders sense each other, or
//! if one sender's signal would destroy a frame at the other's receiver. Frames follow their acknowledgements without gaps,
//! probes take no airtime, and routing and schedule are the best possible.

use chappe_bound::graph::Graph;
use chappe_bound::{Mesh, MeshBound, MeshFlow, MeshLink, MeshOptions, Objective, mesh_bound};
use chappe_core::Duration;
use chappe_sim::{Medium, Rule};

use super::access::{Access, NEIGHBOUR_PRR};
use super::mesh::frame;
use chappe_lab::run::RunError;
use chappe_scenario::InputError;
use serde::{Deserialize, Serialize};

/// The least probability with which a node counts as sensed, or heard.
const SENSED: f64 = 0.5;

/// The relative gap between an optimum and its proven bound at which the computation ends.
const GAP: f64 = 0.01;

/// The largest gap of an optimum that is reported. Where the solver gets no farther it stops with any gap: with 310 % on one of 62 networks,
/// and below 0.1 % on all others (docs/studies/dpclo.md).
const GAP_MAX: f64 = 0.05;

/// The optima of one network's flows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Optimum {
    /// The largest rate that all flows can have simultaneously, in bit/s.
    pub max_min_bps: f64,
    /// The rates with the largest product, in bit/s, one for each flow.
    pub sum_log_bps: Vec<f64>,
}

impl Optimum {
    /// The geometric mean of the proportionally fair rates in bit/s, which no other rates exceed.
    pub fn geometric_mean_bps(&self) -> f64 {
        geometric_mean(&self.sum_log_bps)
    }

    /// Computes the optima of flows with packets of `payload` octets. `exchange` is the time that a packet occupies a link.
    pub fn of(
        medium: &Medium,
        access: &Access,
        (payload, exchange): (usize, Duration),
        flows: &[(usize, usize)],
    ) -> Result<Optimum, RunError> {
        let solved = Optimum::solve(medium, access, (payload, exchange), flows);
        solved.map_err(|error| defect(error, |_, message| InputError::new("this network", message)))
    }

    /// The same with the solver's own error, of which [`defect`] tells the user.
    pub(crate) fn solve(
        medium: &Medium,
        access: &Access,
        (payload, exchange): (usize, Duration),
        flows: &[(usize, usize)],
    ) -> Result<Optimum, chappe_bound::Error> {
        let mesh = mesh(medium, access, payload, exchange)?;
        let flows: Vec<MeshFlow> = flows
            .iter()
            .map(|&(source, sink)| MeshFlow { source, sink })
            .collect();
        let solve = |objective| -> Result<MeshBound, chappe_bound::Error> {
            let options = MeshOptions {
                gap: GAP,
                ..MeshOptions::default()
            };
            mesh_bound(&mesh, &flows, objective, &options)?.within(GAP_MAX)
        };
        let fair = solve(Objective::MaxMin)?;
        Ok(Optimum {
            max_min_bps: fair.bound,
            sum_log_bps: solve(Objective::SumLog)?.rates_bps,
        })
    }
}

/// A network whose links lead one way only, or are too bad for routes, is the scenario's mistake. `at` says where the flow
/// between two nodes stands.
pub(crate) fn defect(
    error: chappe_bound::Error,
    at: impl FnOnce((usize, usize), String) -> InputError,
) -> RunError {
    let chappe_bound::Error::NoRoute { source, sink } = error else {
        return RunError::Defect(format!("bound: {error}"));
    };
    let share = NEIGHBOUR_PRR * 100.0;
    let message = format!("no path for a flow leads from node {source} to node {sink}");
    let help = format!(
        "each of its links must deliver {share} % of the frames or more, in both directions"
    );
    at((source, sink), message).help(help).into()
}

/// The usable links, and the pairs that exclude each other.
fn mesh(
    medium: &Medium,
    access: &Access,
    payload: usize,
    exchange: Duration,
) -> Result<Mesh, chappe_bound::Error> {
    let (mode, octets, nodes) = (access.station.data, frame(payload), medium.nodes());
    let mut links = Vec::new();
    for from in 0..nodes {
        for to in medium.hearers(from) {
            let ratio = medium.prr(from, to, mode, octets);
            let back = medium.prr(to, from, mode, octets);
            if ratio.min(back) >= NEIGHBOUR_PRR {
                let rate_bps = payload as f64 * 8.0 * ratio / exchange.as_secs_f64();
                links.push(MeshLink { from, to, rate_bps });
            }
        }
    }
    let interference = Interference::new(medium, access, octets);
    let mut conflicts = Graph::new(links.len());
    for (b, other) in links.iter().enumerate() {
        for (a, link) in links[..b].iter().enumerate() {
            if interference.exclude(link, other) {
                conflicts.connect(a, b);
            }
        }
    }
    Mesh::with_conflicts(nodes, links, conflicts)
}

/// Which transmissions disturb each other.
struct Interference<'a> {
    medium: &'a Medium,
    sensed: Vec<Vec<bool>>,
    /// The power ratio in dB that a frame needs over an interferer, if the medium decides by it. A matrix of delivery ratios
    /// has no powers.
    margin: Option<f64>,
    hears: Vec<Vec<bool>>,
}

impl<'a> Interference<'a> {
    fn new(medium: &'a Medium, access: &Access, octets: usize) -> Interference<'a> {
        let nodes = medium.nodes();
        let table = |of: &dyn Fn(usize, usize) -> bool| -> Vec<Vec<bool>> {
            (0..nodes)
                .map(|from| (0..nodes).map(|to| of(from, to)).collect())
                .collect()
        };
        let margin = match medium.profile().rule {
            Rule::Pairwise(ratio) | Rule::SnrThreshold(ratio) => Some(ratio.0),
            Rule::ErrorCurves | Rule::Overlap => None,
        };
        let mode = access.station.data;
        Interference {
            medium,
            sensed: table(&|from, to| medium.sense_probability(from, to) >= SENSED),
            margin,
            hears: table(&|from, to| medium.prr(from, to, mode, octets) >= SENSED),
        }
    }

    fn exclude(&self, a: &MeshLink, b: &MeshLink) -> bool {
        let shared = [a.from, a.to]
            .iter()
            .any(|end| [b.from, b.to].contains(end));
        shared
            || self.sensed[a.from][b.from]
            || self.sensed[b.from][a.from]
            || self.destroys(a.from, b)
            || self.destroys(b.from, a)
    }

    /// Whether a frame from `from` destroys a frame on `link`.
    fn destroys(&self, from: usize, link: &MeshLink) -> bool {
        match self.margin {
            Some(margin) => {
                let power = |tx: usize| self.medium.mean_power(tx, link.to).0;
                power(link.from) - power(from) < margin
            }
            // Without powers, any frame that the receiver could hear destroys another.
            None => self.hears[from][link.to],
        }
    }
}

/// Jain's index of rates: 1 when all are equal, 1/n when one has everything (Jain, Chiu, Hawe, 1984).
pub fn jain(rates: &[f64]) -> f64 {
    let (sum, squares) = rates.iter().fold((0.0, 0.0), |(sum, squares), rate| {
        (sum + rate, squares + rate * rate)
    });
    if squares > 0.0 {
        sum * sum / (rates.len() as f64 * squares)
    } else {
        0.0
    }
}

/// The geometric mean of rates; zero if one of them is.
pub fn geometric_mean(rates: &[f64]) -> f64 {
    let logs: f64 = rates.iter().map(|&rate| libm::log(rate)).sum();
    libm::exp(logs / rates.len().max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::super::access::Method;
    use super::*;
    use chappe_core::{Mode, Rate};
    use chappe_sim::Matrix;

    /// Four nodes in a row that all sense each other carry a third of a link's rate over three hops.
    #[test]
    fn three_hops_in_one_cell_carry_a_third() {
        let mut matrix = Matrix::silent(4).with_link(0, 1, 1.0).with_link(1, 2, 1.0);
        matrix = matrix.with_link(2, 3, 1.0);
        matrix.senses = vec![vec![true; 4]; 4];
        let medium = Medium::matrix(&matrix).unwrap();
        let access = Access::new(Method::Dcf, Mode::long(Rate::Dsss2));
        let exchange = access.exchange(frame(200));
        let link = 1600.0 / exchange.as_secs_f64();
        let optimum = Optimum::of(&medium, &access, (200, exchange), &[(0, 3)]).unwrap();
        assert!(
            (optimum.max_min_bps / (link / 3.0) - 1.0).abs() < 2.0 * GAP,
            "{optimum:?}"
        );
        assert!((optimum.geometric_mean_bps() / (link / 3.0) - 1.0).abs() < 2.0 * GAP);
        assert!((jain(&[1.0, 1.0, 4.0]) - 36.0 / 54.0).abs() < 1e-12);
    }
}
