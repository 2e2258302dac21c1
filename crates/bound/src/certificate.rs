//! A proof that nothing can carry more: dual values that anyone can check without a solver.

use crate::anypath::priced;
use crate::hyperarc::{Share, expected_best};
use crate::network::Network;

/// Room for rounding in a bound: every number below is a sum or product of far fewer than a million
/// non-negative terms, each with a relative error of 2^-53, so 1e-9 is generous.
const ROUNDING: f64 = 1e-9;

/// Dual values of the multicast program. *Any* values prove an upper bound, good ones a tight one.
///
/// The proof, for potentials h (zero at the receiver itself), flows x and rate R: summing
/// h_i - h_j over all flow of receiver t gives R h_s, so
///
/// R * sum over t of h_s(t)  =  sum x_ij(t) (h_i(t) - h_j(t))  <=  sum over i of z_i G_i,
///
/// where G_i = sum over t of E\[max over the j that receive a frame of i of (h_i - h_j)+\]: the
/// polymatroid of a broadcast lets one transmission buy no more ([`expected_best`]). All sets of
/// neighbours and all links of the network are in that expectation, also those that the linear
/// program never saw. What remains is to bound sum z_i G_i over what the medium can carry, and
/// [`Prices`] does that.
#[derive(Clone, Debug, PartialEq)]
pub struct Certificate {
    /// The source.
    pub source: usize,
    /// The receivers, in the order of `potentials`.
    pub receivers: Vec<usize>,
    /// For each receiver one potential per node: what one packet at this node is still missing.
    /// Negative ones count as 0, and none counts for more than the source's own.
    pub potentials: Vec<Vec<f64>>,
    /// What the medium charges.
    pub prices: Prices,
}

/// Prices of the medium, in frames/s.
#[derive(Clone, Debug, PartialEq)]
pub enum Prices {
    /// Price of each clique of nodes that sense each other: `sum over i in Q of z_i a_i <= 1`.
    Cliques(Vec<(Vec<usize>, f64)>),
    /// None: the bound is the heaviest independent set of the sensing graph.
    IndependentSets,
    /// One radio per node, one frame at a time.
    Radios {
        /// Price of each node's time.
        busy: Vec<f64>,
        /// For each receiver (from, to, how much of the potential difference the reception rather
        /// than the transmission pays for).
        reception: Vec<Vec<(usize, usize, f64)>>,
    },
}

impl Certificate {
    /// The rate in frames/s that `network` cannot exceed, by this proof. Infinite if the values
    /// prove nothing (a price missing, a clique that is none, a potential that is not a number).
    ///
    /// O(receivers * links * log degree), in doubles with a slack for rounding.
    pub fn bound_fps(&self, network: &Network) -> f64 {
        if self
            .potentials
            .iter()
            .flatten()
            .any(|value| !value.is_finite())
        {
            return f64::INFINITY;
        }
        let gained: f64 = self
            .potentials
            .iter()
            .map(|potential| potential[self.source].max(0.0))
            .sum();
        let weight = self.weights(network);
        let cost = match &self.prices {
            Prices::Cliques(cliques) => {
                if !cliques
                    .iter()
                    .all(|(set, price)| *price >= 0.0 && network.senses().is_clique(set))
                {
                    return f64::INFINITY;
                }
                let mut paid = vec![0.0; network.nodes()];
                for (set, price) in cliques {
                    set.iter()
                        .for_each(|&node| paid[node] += price * network.airtime_s(node));
                }
                cliques.iter().map(|(_, price)| price).sum::<f64>() * overload(&weight, &paid)
            }
            Prices::IndependentSets => {
                let weights: Vec<f64> = (weight.iter().enumerate())
                    .map(|(node, weight)| weight / network.airtime_s(node))
                    .collect();
                network.senses().heaviest_independent_set(&weights).1
            }
            Prices::Radios { busy, .. } => {
                if !busy.iter().all(|&price| price >= 0.0) {
                    return f64::INFINITY;
                }
                let paid: Vec<f64> = (busy.iter().enumerate())
                    .map(|(node, price)| price * network.airtime_s(node))
                    .collect();
                let (handed, covered) = self.receptions(network);
                let overload = overload(&weight, &paid).max(overload(&handed, &covered));
                busy.iter().sum::<f64>() * overload
            }
        };
        let bound = cost / gained * (1.0 + ROUNDING);
        if bound >= 0.0 { bound } else { f64::INFINITY }
    }

    /// Raises prices until they cover every weight, where they fall short; what a solver leaves out
    /// within its tolerance costs next to nothing here.
    pub(crate) fn repair(&mut self, network: &Network, cliques: &[Vec<usize>], paid: &mut [f64]) {
        self.spread_reception(network);
        let weights = self.weights(network);
        // Seconds-free: the price each node still lacks.
        let mut lack: Vec<f64> = (0..network.nodes())
            .map(|node| ((weights[node] - paid[node]) / network.airtime_s(node)).max(0.0))
            .collect();
        match &mut self.prices {
            Prices::IndependentSets => paid.copy_from_slice(&weights),
            Prices::Radios { busy, .. } => {
                for (node, price) in busy.iter_mut().enumerate() {
                    *price += lack[node];
                    paid[node] = *price * network.airtime_s(node);
                }
            }
            Prices::Cliques(priced) => {
                let largest =
                    |lack: &[f64]| (0..lack.len()).max_by(|&a, &b| lack[a].total_cmp(&lack[b]));
                while let Some(worst) = largest(&lack).filter(|&node| lack[node] > 0.0) {
                    let extra = lack[worst];
                    let help = |set: &&Vec<usize>| -> f64 { set.iter().map(|&i| lack[i]).sum() };
                    let home = (cliques.iter())
                        .filter(|set| set.contains(&worst))
                        .max_by(|a, b| help(a).total_cmp(&help(b)));
                    let set = home.cloned().unwrap_or_else(|| vec![worst]);
                    set.iter()
                        .for_each(|&node| lack[node] = (lack[node] - extra).max(0.0));
                    set.iter()
                        .for_each(|&i| paid[i] += extra * network.airtime_s(i));
                    priced.push((set, extra));
                }
                priced.retain(|&(_, price)| price > 0.0);
            }
        }
    }

    /// The best potentials that the prices pay for, in place of the solver's.
    ///
    /// `paid[i]` is what the prices pay for a transmission of node i. Each receiver's part of it is
    /// what its potentials cost now; what is left over is shared evenly. Given the parts, the best
    /// potentials are shortest anypaths, exact over all links.
    pub(crate) fn improve(&mut self, network: &Network, paid: &[f64]) {
        let nodes = network.nodes();
        let tolls = self.spread_reception(network);
        let mut parts = self.parts(network, &tolls);
        for node in 0..nodes {
            let wanted: f64 = parts.iter().map(|part| part[node]).sum();
            let shrink = if wanted > paid[node] {
                paid[node] / wanted
            } else {
                1.0
            };
            let spare = (paid[node] - wanted).max(0.0) / parts.len() as f64;
            parts
                .iter_mut()
                .for_each(|part| part[node] = part[node] * shrink + spare);
        }
        for (index, part) in parts.iter().enumerate() {
            let toll = |from, to| tolls.get(index).map_or(0.0, |toll| toll[from * nodes + to]);
            let (potential, _) = priced(network, self.receivers[index], part, toll);
            let most = potential[self.source];
            self.potentials[index] = potential.iter().map(|value| value.min(most)).collect();
        }
    }

    /// Makes the receptions of each link cost what the receiver's time pays for, all of it: no more,
    /// and where a potential difference can use it, no less. Returns them as dense tables.
    pub(crate) fn spread_reception(&mut self, network: &Network) -> Vec<Vec<f64>> {
        let nodes = network.nodes();
        let mut tolls = self.tolls(network);
        let potentials = &self.potentials;
        let Prices::Radios { busy, reception } = &mut self.prices else {
            return tolls;
        };
        for from in 0..nodes {
            for to in (0..nodes).filter(|&to| network.delivery(from, to) > 0.0) {
                let link = from * nodes + to;
                let limit = busy[to] * network.airtime_s(from);
                for (toll, potential) in tolls.iter_mut().zip(potentials) {
                    toll[link] = toll[link].min(potential[from] - potential[to]).max(0.0);
                }
                let used: f64 = tolls.iter().map(|toll| toll[link]).sum();
                if used > limit {
                    tolls.iter_mut().for_each(|toll| toll[link] *= limit / used);
                }
                let mut spare = (limit - used).max(0.0);
                for (toll, potential) in tolls.iter_mut().zip(potentials) {
                    let drop = potential[from] - potential[to] - toll[link];
                    let more = drop.min(spare).max(0.0);
                    toll[link] += more;
                    spare -= more;
                }
                let even = spare / tolls.len() as f64;
                tolls.iter_mut().for_each(|toll| toll[link] += even);
            }
        }
        for (list, toll) in reception.iter_mut().zip(&tolls) {
            list.clear();
            list.extend(
                (0..nodes * nodes)
                    .filter(|&link| toll[link] > 0.0)
                    .map(|link| (link / nodes, link % nodes, toll[link])),
            );
        }
        tolls
    }

    /// The same with potentials within 0 and the source's own. That shrinks differences, so it
    /// never hurts.
    fn clamped(&self) -> Certificate {
        let mut clamped = self.clone();
        for (potential, &receiver) in clamped.potentials.iter_mut().zip(&self.receivers) {
            let most = potential[self.source].max(0.0);
            potential
                .iter_mut()
                .for_each(|value| *value = value.clamp(0.0, most));
            potential[receiver] = 0.0;
        }
        clamped
    }

    /// What the receptions of each link cost all receivers together, and what the time of the
    /// receiving node pays for.
    fn receptions(&self, network: &Network) -> (Vec<f64>, Vec<f64>) {
        let nodes = network.nodes();
        let (mut handed, mut covered) = (vec![0.0; nodes * nodes], vec![0.0; nodes * nodes]);
        if let Prices::Radios { busy, reception } = &self.prices {
            for &(from, to, price) in reception.iter().flatten() {
                handed[from * nodes + to] += price.max(0.0);
                covered[from * nodes + to] = busy[to] * network.airtime_s(from);
            }
        }
        (handed, covered)
    }

    /// G_i: the most that one transmission of each node can buy.
    pub(crate) fn weights(&self, network: &Network) -> Vec<f64> {
        let parts = self.clamped().parts(network, &self.tolls(network));
        (0..network.nodes())
            .map(|node| parts.iter().map(|part| part[node]).sum())
            .collect()
    }

    /// What one transmission of each node can buy for each receiver.
    fn parts(&self, network: &Network, tolls: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let cost = |index: usize, from: usize| {
            let levels = self.levels(network, tolls, index, from);
            expected_best(&levels.iter().map(|level| level.1).collect::<Vec<Share>>())
        };
        (0..self.receivers.len())
            .map(|index| (0..network.nodes()).map(|from| cost(index, from)).collect())
            .collect()
    }

    /// The neighbours that one receiver's packets at `from` gain by, with what they gain.
    pub(crate) fn levels(
        &self,
        network: &Network,
        tolls: &[Vec<f64>],
        index: usize,
        from: usize,
    ) -> Vec<(usize, Share)> {
        let nodes = network.nodes();
        let potential = &self.potentials[index];
        let toll = |to: usize| tolls.get(index).map_or(0.0, |toll| toll[from * nodes + to]);
        (0..nodes)
            .map(|to| {
                let value = potential[from] - potential[to] - toll(to);
                (
                    to,
                    Share {
                        p: network.delivery(from, to),
                        value,
                    },
                )
            })
            .filter(|(_, share)| share.p > 0.0 && share.value > 0.0)
            .collect()
    }

    /// The reception prices as dense tables, one per receiver; empty for other media.
    fn tolls(&self, network: &Network) -> Vec<Vec<f64>> {
        let nodes = network.nodes();
        let Prices::Radios { reception, .. } = &self.prices else {
            return Vec::new();
        };
        let dense = |list: &Vec<(usize, usize, f64)>| {
            let mut toll = vec![0.0; nodes * nodes];
            list.iter()
                .for_each(|&(from, to, price)| toll[from * nodes + to] = price.max(0.0));
            toll
        };
        reception.iter().map(dense).collect()
    }
}

/// The least factor that makes what is paid cover every weight.
fn overload(weight: &[f64], paid: &[f64]) -> f64 {
    weight
        .iter()
        .zip(paid)
        .filter(|(weight, _)| **weight > 0.0 || weight.is_nan())
        .map(|(weight, paid)| weight / paid)
        .fold(1.0, |most, ratio| {
            if ratio > most || ratio.is_nan() {
                ratio
            } else {
                most
            }
        })
}
