//! Dual certificates: proofs of a bound that can be checked without a solver.

use crate::anypath::priced;
use crate::hyperarc::{Share, expected_best};
use crate::network::Network;
use crate::sensing::SensedSet;

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
    /// The node that sends the multicast.
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
    /// Prices of the medium's rows; any family may be empty.
    Rows {
        /// Price of each row of carrier sense ([`SensedSet`]).
        sensed: Vec<(SensedSet, f64)>,
        /// Price of each node's time, if one radio sends or receives one frame at a time.
        busy: Vec<f64>,
        /// For each receiver (from, to, how much of the potential difference the reception rather
        /// than the transmission pays for); paid from `busy`.
        reception: Vec<Vec<(usize, usize, f64)>>,
    },
    /// No prices: the bound is the heaviest independent set of the sensing graph.
    IndependentSets,
}

impl Prices {
    /// Rows without any price.
    pub(crate) fn none() -> Prices {
        Prices::Rows {
            sensed: Vec::new(),
            busy: Vec::new(),
            reception: Vec::new(),
        }
    }

    /// The price of one transmission of each node.
    pub(crate) fn paid(&self, network: &Network) -> Vec<f64> {
        let mut paid = vec![0.0; network.nodes()];
        if let Prices::Rows { sensed, busy, .. } = self {
            for (set, price) in sensed {
                for (node, weight) in set.weights(network) {
                    paid[node] += price * weight * network.channel_s(node);
                }
            }
            for (node, price) in busy.iter().enumerate() {
                paid[node] += price * network.airtime_s(node);
            }
        }
        paid
    }

    /// Whether all rows exist and all prices are non-negative. Otherwise they prove nothing.
    fn are_proper(&self, nodes: usize, receivers: usize) -> bool {
        let Prices::Rows {
            sensed,
            busy,
            reception,
        } = self
        else {
            return true;
        };
        let links = || reception.iter().flatten();
        sensed
            .iter()
            .all(|(set, price)| *price >= 0.0 && set.is_proper(nodes))
            && busy.iter().all(|&price| price >= 0.0)
            && (busy.len() == nodes || busy.is_empty() && links().next().is_none())
            && (reception.len() == receivers || reception.is_empty())
            && links().all(|&(from, to, _)| from < nodes && to < nodes)
    }

    fn sum(&self) -> f64 {
        match self {
            Prices::Rows { sensed, busy, .. } => {
                sensed.iter().map(|(_, price)| price).sum::<f64>() + busy.iter().sum::<f64>()
            }
            Prices::IndependentSets => 0.0,
        }
    }
}

impl Certificate {
    /// The rate in frames/s that `network` cannot exceed, by this proof. Infinite if the values
    /// prove nothing (a price missing, a set that names a node twice, a potential that is not a number).
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
        if !self
            .prices
            .are_proper(network.nodes(), self.receivers.len())
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
            Prices::IndependentSets => {
                let weights: Vec<f64> = (weight.iter().enumerate())
                    .map(|(node, weight)| weight / network.channel_s(node))
                    .collect();
                network.senses().heaviest_independent_set(&weights).1
            }
            rows => {
                // The proof needs prices that cover every weight. Scaling all of them by the overload achieves that, and
                // the bound grows by the same factor: so any prices prove a bound.
                let (handed, covered) = self.receptions(network);
                let overload =
                    overload(&weight, &rows.paid(network)).max(overload(&handed, &covered));
                rows.sum() * overload
            }
        };
        let bound = cost / gained * (1.0 + ROUNDING);
        if bound >= 0.0 { bound } else { f64::INFINITY }
    }

    /// Raises prices that do not cover every weight. A deficit within the solver's tolerance costs next
    /// to nothing this way; without repair the overload of one node would scale all prices.
    pub(crate) fn repair(&mut self, network: &Network, paid: &mut Vec<f64>) {
        self.spread_reception(network);
        let weights = self.weights(network);
        match &mut self.prices {
            Prices::IndependentSets => *paid = weights,
            Prices::Rows { sensed, busy, .. } => {
                let mut lack: Vec<f64> = (weights.iter().zip(&*paid))
                    .map(|(weight, paid)| (weight - paid).max(0.0))
                    .collect();
                if sensed.is_empty() {
                    for (node, price) in busy.iter_mut().enumerate() {
                        *price += lack[node] / network.airtime_s(node);
                    }
                } else {
                    raise(network, sensed, &mut lack);
                    sensed.retain(|&(_, price)| price > 0.0);
                }
                *paid = self.prices.paid(network);
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

    /// Sets the reception prices of each link to exactly what the receiver's time pays for: no more, and
    /// no less where a potential difference can use it. Returns them as dense tables.
    pub(crate) fn spread_reception(&mut self, network: &Network) -> Vec<Vec<f64>> {
        let nodes = network.nodes();
        let mut tolls = self.tolls(network);
        let potentials = &self.potentials;
        let Prices::Rows {
            busy, reception, ..
        } = &mut self.prices
        else {
            return tolls;
        };
        if busy.is_empty() {
            return tolls;
        }
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

    /// The same certificate with potentials clamped between 0 and the source's own. That shrinks
    /// differences, so the bound never gets worse.
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

    /// For each link, the reception prices of all receivers together, and what the time of the
    /// receiving node pays for.
    fn receptions(&self, network: &Network) -> (Vec<f64>, Vec<f64>) {
        let nodes = network.nodes();
        let (mut handed, mut covered) = (vec![0.0; nodes * nodes], vec![0.0; nodes * nodes]);
        if let Prices::Rows {
            busy, reception, ..
        } = &self.prices
        {
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

    /// The neighbours of `from` that are better for one receiver's packets, with the gain of each.
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
        let Prices::Rows { reception, .. } = &self.prices else {
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

/// Raises prices of sets until nothing is lacking: for the node that lacks most, the set that helps
/// the others most.
fn raise(network: &Network, sensed: &mut [(SensedSet, f64)], lack: &mut [f64]) {
    let lines: Vec<Vec<(usize, f64)>> = (sensed.iter())
        .map(|(set, _)| {
            let cost = |(node, weight)| (node, weight * network.channel_s(node));
            set.weights(network).into_iter().map(cost).collect()
        })
        .collect();
    let worst = |lack: &[f64]| (0..lack.len()).max_by(|&a, &b| lack[a].total_cmp(&lack[b]));
    while let Some(worst) = worst(lack).filter(|&node| lack[node] > 0.0) {
        // Per row that charges the node: the price it would take, and how much that covers.
        let help = |line: &Vec<(usize, f64)>| -> Option<(f64, f64)> {
            let charged = line.iter().find(|&&(node, _)| node == worst)?.1;
            let price = lack[worst] / charged;
            let covered: f64 = line.iter().map(|&(i, c)| lack[i].min(price * c)).sum();
            (charged > 0.0).then_some((price, covered / price))
        };
        let best = (0..lines.len())
            .filter_map(|row| help(&lines[row]).map(|(price, help)| (row, price, help)))
            .max_by(|a, b| a.2.total_cmp(&b.2));
        let Some((row, price, _)) = best else {
            // No row charges this node, so no price can cover it: the bound becomes infinite.
            return;
        };
        sensed[row].1 += price;
        for &(node, cost) in &lines[row] {
            lack[node] = (lack[node] - price * cost).max(0.0);
        }
        lack[worst] = 0.0;
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
