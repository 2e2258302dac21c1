//! A quick approximation of the dual before the first program: it finds the links and orders that will matter.

use crate::anypath::priced;
use crate::network::Network;

/// The links that a receiver's flow will probably use.
pub(crate) struct Scouted {
    /// Per node, the mean expected cost from there to the receiver; infinite if there is no way.
    pub potential: Vec<f64>,
    /// (from, to) of links that carried a noteworthy part, in rising order.
    pub links: Vec<(usize, usize)>,
}

/// Rounds of the price game.
const LOOKS: usize = 60;

/// Links enter if they carried at least this part of a receiver's packets, on average.
const NOTEWORTHY: f64 = 1e-3;

/// Plays multiplicative weights on the prices (Arora, Hazan, Kale, "The multiplicative weights
/// update method", 2012): every clique of `cliques` and, within each node's price, every receiver's
/// part gets dearer the more the shortest anypaths use it. The players' averages approach the optimum
/// of the multicast program, far too slowly for a bound, soon enough to say where to look.
pub(crate) fn scout(
    network: &Network,
    source: usize,
    receivers: &[usize],
    cliques: &[Vec<usize>],
) -> Vec<Scouted> {
    let nodes = network.nodes();
    let mut share = vec![vec![1.0 / receivers.len() as f64; nodes]; receivers.len()];
    let mut price = vec![1.0 / cliques.len() as f64; cliques.len()];
    let mut potential = vec![vec![0.0; nodes]; receivers.len()];
    let mut carried = vec![vec![0.0; nodes * nodes]; receivers.len()];
    for look in 0..LOOKS {
        let mut paid = vec![0.0; nodes];
        for (set, price) in cliques.iter().zip(&price) {
            set.iter()
                .for_each(|&node| paid[node] += price * network.channel_s(node));
        }
        let step = 2.0 / (1.0 + look as f64).sqrt();
        let mut sent = vec![vec![0.0; nodes]; receivers.len()];
        for (index, &receiver) in receivers.iter().enumerate() {
            let cost: Vec<f64> = (0..nodes)
                .map(|node| paid[node] * share[index][node] + 1e-15)
                .collect();
            let (distance, order) = priced(network, receiver, &cost, |_, _| 0.0);
            let mut flow = |from: usize, to: usize, packets: f64| {
                if look >= LOOKS / 4 {
                    carried[index][from * nodes + to] += packets;
                }
            };
            sent[index] = walk(network, source, &distance, &order, &mut flow);
            if look >= LOOKS / 4 {
                let scale = distance[source];
                let sums = potential[index].iter_mut().zip(&distance);
                sums.for_each(|(sum, distance)| *sum += distance / scale);
            }
        }
        let mut airtime = vec![0.0; nodes];
        for node in 0..nodes {
            let mean: f64 = (0..receivers.len())
                .map(|index| share[index][node] * sent[index][node])
                .sum();
            airtime[node] = mean * network.channel_s(node);
            let most = (0..receivers.len())
                .map(|index| sent[index][node])
                .fold(0.0, f64::max);
            if most > 0.0 {
                let grow = |index: usize| (step * sent[index][node] / most).exp();
                (0..receivers.len()).for_each(|index| share[index][node] *= grow(index));
                let total: f64 = share.iter().map(|share| share[node]).sum();
                share.iter_mut().for_each(|share| share[node] /= total);
            }
        }
        let load: Vec<f64> = cliques
            .iter()
            .map(|set| set.iter().map(|&node| airtime[node]).sum())
            .collect();
        let most = load.iter().copied().fold(0.0, f64::max);
        price
            .iter_mut()
            .zip(&load)
            .for_each(|(price, load)| *price *= (step * load / most).exp());
        let total: f64 = price.iter().sum();
        price.iter_mut().for_each(|price| *price /= total);
    }
    let kept = (LOOKS - LOOKS / 4) as f64;
    (potential.into_iter().zip(carried))
        .map(|(potential, carried)| Scouted {
            potential,
            links: (0..nodes * nodes)
                .filter(|&link| carried[link] / kept >= NOTEWORTHY)
                .map(|link| (link / nodes, link % nodes))
                .collect(),
        })
        .collect()
}

/// Sends one packet along shortest anypaths; returns the expected transmissions of each node.
fn walk(
    network: &Network,
    source: usize,
    distance: &[f64],
    order: &[usize],
    flow: &mut impl FnMut(usize, usize, f64),
) -> Vec<f64> {
    let mut load = vec![0.0; distance.len()];
    let mut sent = vec![0.0; distance.len()];
    load[source] = 1.0;
    for position in (1..order.len()).rev() {
        let from = order[position];
        if load[from] > 0.0 {
            let missed: f64 = order[..position]
                .iter()
                .map(|&to| 1.0 - network.delivery(from, to))
                .product();
            sent[from] = load[from] / (1.0 - missed).max(f64::MIN_POSITIVE);
            let mut left = sent[from];
            for &to in &order[..position] {
                let packets = left * network.delivery(from, to);
                left -= packets;
                load[to] += packets;
                if packets > 0.0 {
                    flow(from, to, packets);
                }
            }
        }
    }
    sent
}
