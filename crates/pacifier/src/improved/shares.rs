//! Shares: how often each node has to send so that a packet reaches all receivers with the least transmissions in all.
//!
//! With coded broadcasts the least is a linear program (Lun, Médard, Koetter, Effros, "On coding for reliable communication over
//! packet networks", 2008): node i sends `z_i` frames for each packet of the source, and for each receiver the receptions carry a flow
//! of one packet. `z_i` is the largest of what the receivers need of node i. Its dual divides the price of a transmission of each node
//! among the receivers; for one receiver with given prices the answer is a shortest anypath (Laufer, Dubois-Ferrière, Kleinrock,
//! INFOCOM 2009), in closed form. So this module solves one shortest anypath for each receiver in turn, raises the prices for those
//! receivers that need a node most, and averages the answers (a subgradient method with averaging: Sherali, Choi, 1996). The prices'
//! anypaths are a lower bound, so the gap is known.

use alloc::vec;
use alloc::vec::Vec;

use super::pairs::Pairs;
use crate::links::Links;

/// Rounds of prices. The sum is 2 to 11 % above the program's least on outdoor networks of 50 nodes and nine receivers (n = 4); four times
/// as many rounds gain less than 2 %.
const ROUNDS: usize = 1000;
/// How far a round moves the prices, at most, in the first round.
const STEP: f64 = 1.0;
/// No price falls below this part of an equal share, or it could not rise again.
const LEAST_PRICE: f64 = 1e-3;

/// Transmissions of each node for each packet of the source.
#[derive(Clone, Debug, PartialEq)]
pub struct Shares {
    /// Transmissions of each node, by its number.
    pub sent: Vec<f64>,
    /// No choice of transmissions needs fewer in all.
    pub bound: f64,
    /// What of a packet's flow to all receivers goes from a node to another, up to a factor.
    pub(super) flow: Pairs,
}

impl Shares {
    /// The least transmissions that bring a packet from `source` to all `receivers`, over links of at least `link_min`. A receiver that
    /// cannot be reached is left out.
    pub fn least(links: &Links, source: u16, receivers: &[u16], link_min: f64) -> Shares {
        let nodes = links.nodes();
        let ratio = |from: usize, to: usize| {
            let ratio = links.ratio(from as u16, to as u16);
            if ratio >= link_min { ratio } else { 0.0 }
        };
        let table: Vec<f64> = (0..nodes * nodes)
            .map(|pair| ratio(pair / nodes, pair % nodes))
            .collect();
        let source = usize::from(source);
        let even = vec![1.0; nodes];
        let receivers: Vec<usize> = receivers
            .iter()
            .map(|&receiver| usize::from(receiver))
            .filter(|&receiver| receiver != source && receiver < nodes)
            .filter(|&receiver| Anypath::to(receiver, &table, &even).reaches(source))
            .collect();
        let count = receivers.len();
        let mut prices = vec![vec![1.0 / count.max(1) as f64; nodes]; count];
        let mut sums = vec![vec![0.0; nodes]; count];
        let mut flow = Pairs::of(nodes, |_, _| 0.0);
        let (mut weight, mut bound) = (0.0, 0.0f64);
        for round in 1..=ROUNDS {
            let mut dual = 0.0;
            let mut loads = Vec::with_capacity(count);
            // Later rounds count for more: the first ones know little.
            let share = (round * round) as f64;
            for (&receiver, prices) in receivers.iter().zip(&prices) {
                let path = Anypath::to(receiver, &table, prices);
                dual += path.cost(source);
                loads.push(path.loads(source, &table, share, &mut flow));
            }
            bound = bound.max(dual);
            weight += share;
            for (sums, loads) in sums.iter_mut().zip(&loads) {
                for (sum, load) in sums.iter_mut().zip(loads) {
                    *sum += load * share;
                }
            }
            raise(&mut prices, &loads, round);
        }
        let most = |node: usize| {
            let each = sums.iter().filter_map(|sums| sums.get(node));
            each.fold(0.0f64, |most, &sum| most.max(sum)) / weight
        };
        Shares {
            sent: (0..nodes).map(most).collect(),
            bound,
            flow,
        }
    }
}

/// Moves the prices of each node towards the receivers that need most of it, and keeps their sum at 1.
fn raise(prices: &mut [Vec<f64>], loads: &[Vec<f64>], round: usize) {
    let nodes = prices.first().map_or(0, Vec::len);
    let all = loads.iter().flatten();
    let most = all.fold(1e-9f64, |most, &load| most.max(load));
    // Steps of 1/sqrt(n), by Newton's method: the standard library's root is not there without it.
    let step = STEP / root(round as f64) / most;
    let least = LEAST_PRICE / prices.len().max(1) as f64;
    for node in 0..nodes {
        let mut sum = 0.0;
        for (prices, loads) in prices.iter_mut().zip(loads) {
            if let (Some(price), Some(load)) = (prices.get_mut(node), loads.get(node)) {
                *price = (*price * (1.0 + step * load)).max(least);
                sum += *price;
            }
        }
        for prices in prices.iter_mut() {
            if let Some(price) = prices.get_mut(node) {
                *price /= sum;
            }
        }
    }
}

fn root(square: f64) -> f64 {
    let mut root = square.max(1.0);
    for _ in 0..40 {
        root = (root + square / root) / 2.0;
    }
    root
}

/// The shortest anypaths to one receiver: expected cost from each node, when of those that hear a frame the nearest goes on.
struct Anypath {
    nodes: usize,
    cost: Vec<f64>,
    /// Nodes by rising cost, the receiver first, without those that cannot reach it.
    order: Vec<usize>,
}

impl Anypath {
    fn to(receiver: usize, table: &[f64], prices: &[f64]) -> Anypath {
        let nodes = prices.len();
        let mut path = Anypath {
            nodes,
            cost: vec![f64::INFINITY; nodes],
            order: Vec::with_capacity(nodes),
        };
        // Cost spent and still to come, and the probability that no nearer node hears.
        let mut spent: Vec<f64> = prices.to_vec();
        let mut missed = vec![1.0; nodes];
        let mut open = vec![true; nodes];
        if let Some(cost) = path.cost.get_mut(receiver) {
            *cost = 0.0;
        }
        while let Some(nearest) = path.nearest(&open) {
            if let Some(open) = open.get_mut(nearest) {
                *open = false;
            }
            path.order.push(nearest);
            let level = path.cost(nearest);
            for node in 0..nodes {
                let heard = table.get(node * nodes + nearest).copied().unwrap_or(0.0);
                let (Some(true), Some(spent), Some(missed), Some(cost)) = (
                    open.get(node),
                    spent.get_mut(node),
                    missed.get_mut(node),
                    path.cost.get_mut(node),
                ) else {
                    continue;
                };
                if heard > 0.0 && level < *cost {
                    *spent += *missed * heard * level;
                    *missed *= 1.0 - heard;
                    *cost = (*spent / (1.0 - *missed)).max(level);
                }
            }
        }
        path
    }

    fn cost(&self, node: usize) -> f64 {
        self.cost.get(node).copied().unwrap_or(f64::INFINITY)
    }

    fn reaches(&self, node: usize) -> bool {
        self.cost(node).is_finite()
    }

    fn nearest(&self, open: &[bool]) -> Option<usize> {
        let known =
            (0..self.nodes).filter(|&node| open.get(node) == Some(&true) && self.reaches(node));
        known.min_by(|&a, &b| self.cost(a).total_cmp(&self.cost(b)))
    }

    /// Transmissions of each node for one packet of the source; adds the flow over each link, times `share`, to `flow`.
    fn loads(&self, source: usize, table: &[f64], share: f64, flow: &mut Pairs) -> Vec<f64> {
        let mut carried = vec![0.0; self.nodes];
        let mut sent = vec![0.0; self.nodes];
        if let Some(carried) = carried.get_mut(source) {
            *carried = 1.0;
        }
        for (place, &node) in self.order.iter().enumerate().rev() {
            let load: f64 = carried.get(node).copied().unwrap_or(0.0);
            let nearer = self.order.get(..place).unwrap_or_default();
            if load <= 0.0 || nearer.is_empty() {
                continue;
            }
            let heard = |to: usize| table.get(node * self.nodes + to).copied().unwrap_or(0.0);
            let missed: f64 = nearer.iter().map(|&to| 1.0 - heard(to)).product();
            let frames = load / (1.0 - missed).max(1e-9);
            if let Some(sent) = sent.get_mut(node) {
                *sent = frames;
            }
            let mut left = frames;
            for &to in nearer {
                if let Some(carried) = carried.get_mut(to) {
                    *carried += left * heard(to);
                }
                if let Some(flow) = flow.at_mut(node, to) {
                    *flow += share * left * heard(to);
                }
                left *= 1.0 - heard(to);
            }
        }
        sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::links::tests::links;

    /// s reaches two relays with 1/2 each, and they the receiver with 1: a packet takes 4/3 frames of s, of which the relays forward
    /// one between them.
    #[test]
    fn a_diamond_by_hand() {
        let links = links(4, &[(0, 1, 0.5), (0, 2, 0.5), (1, 3, 1.0), (2, 3, 1.0)]);
        let shares = Shares::least(&links, 0, &[3], 0.05);
        assert!((shares.bound - 7.0 / 3.0).abs() < 1e-9, "{shares:?}");
        assert!((shares.sent[0] - 4.0 / 3.0).abs() < 1e-9, "{shares:?}");
        assert!((shares.sent[1] + shares.sent[2] - 1.0).abs() < 1e-9);
    }
}
