//! What each sender earns under given values of packets at nodes, in a form that is quick to evaluate beside many sets.

use super::{Interference, WEAK};
use crate::order;

/// All senders under one table of values.
pub(super) struct Senders {
    pub each: Vec<Sender>,
}

/// One sender: who hears it, and what a packet gains there.
pub(super) struct Sender {
    /// The probability that each hearer receives an undisturbed frame.
    pub alone: Vec<f64>,
    /// For each other node, one after the other, the part that its frames leave of that at each hearer.
    survival: Vec<f64>,
    /// Places among hearers with the gain there, by falling value for one receiver after another, each ended by `END`.
    order: Vec<(usize, f64)>,
    /// What hearers with almost no chance could add at most.
    rest: f64,
}

/// Ends one receiver's hearers.
const END: usize = usize::MAX;
/// Hearers with less chance are counted as if nothing disturbed them and no one else heard the frame.
const FAINT: f64 = 1e-8;

impl Senders {
    /// For each receiver (row of `values`) the value of a packet at each node, never negative.
    pub fn new(model: &Interference, values: &[Vec<f64>]) -> Senders {
        let nodes = model.nodes;
        let orders: Vec<Vec<usize>> = values
            .iter()
            .map(|row| {
                let mut order: Vec<usize> = (0..nodes).filter(|&node| row[node] > 0.0).collect();
                order::falling(&mut order, |&node| row[node]);
                order
            })
            .collect();
        let each = (0..nodes).map(|from| Sender::new(model, from, values, &orders));
        Senders {
            each: each.collect(),
        }
    }

    /// What a set earns.
    pub fn weight(&self, set: &[usize]) -> f64 {
        let of = |&from: &usize| self.each[from].earned(&self.heard_in(from, set));
        set.iter().map(of).sum()
    }

    /// Good sets by local search from each node, best first, without repetitions.
    pub fn good_sets(&self) -> Vec<(Vec<usize>, f64)> {
        let mut found: Vec<(Vec<usize>, f64)> = Vec::new();
        for start in 0..self.each.len() {
            let (mut set, weight) = self.climb(vec![start]);
            set.sort_unstable();
            if weight > 0.0 && found.iter().all(|(known, _)| *known != set) {
                found.push((set, weight));
            }
        }
        order::falling(&mut found, |&(_, weight)| weight);
        found
    }

    /// Adds and removes senders one by one, the best change first, while the set earns more.
    fn climb(&self, mut set: Vec<usize>) -> (Vec<usize>, f64) {
        let mut weight = self.weight(&set);
        loop {
            let heard: Vec<Vec<f64>> = set.iter().map(|&from| self.heard_in(from, &set)).collect();
            let more = (0..self.each.len()).filter(|node| !set.contains(node));
            let more = more.map(|node| (self.joined(&set, &heard, node), Some(node), 0));
            let less = (0..set.len()).map(|at| {
                let mut rest = set.clone();
                rest.swap_remove(at);
                (self.weight(&rest), None, at)
            });
            let best = more.chain(less).max_by(|a, b| a.0.total_cmp(&b.0));
            let Some((gained, more, less)) = best else {
                break;
            };
            // Written so that numbers that are none end it too.
            let better = gained > weight * (1.0 + 1e-9);
            match more {
                _ if !better => break,
                Some(node) => set.push(node),
                None => drop(set.swap_remove(less)),
            }
            weight = gained;
        }
        (set, weight)
    }

    /// How a sender is heard beside the others of a set.
    pub fn heard_in(&self, from: usize, set: &[usize]) -> Vec<f64> {
        let sender = &self.each[from];
        let mut heard = sender.alone.clone();
        for &other in set.iter().filter(|&&other| other != from) {
            sender.disturb(&mut heard, other);
        }
        heard
    }

    /// What a set earns with one node more.
    fn joined(&self, set: &[usize], heard: &[Vec<f64>], node: usize) -> f64 {
        let own = self.each[node].earned(&self.heard_in(node, set));
        let others = set.iter().zip(heard).map(|(&from, heard)| {
            let sender = &self.each[from];
            sender.earned_beside(heard, sender.left_by(node))
        });
        own + others.sum::<f64>()
    }
}

impl Sender {
    fn new(
        model: &Interference,
        from: usize,
        values: &[Vec<f64>],
        orders: &[Vec<usize>],
    ) -> Sender {
        let nodes = model.nodes;
        let mut place = vec![END; nodes];
        let (mut hearers, mut order, mut rest) = (Vec::new(), Vec::new(), 0.0);
        for (row, nodes_by_value) in values.iter().zip(orders) {
            let before = order.len();
            for &to in nodes_by_value {
                let gain = row[to] - row[from];
                if gain <= 0.0 {
                    break;
                }
                let p = model.delivery[from * nodes + to];
                if to == from || p == 0.0 {
                    continue;
                }
                if p < FAINT {
                    rest += p * gain;
                    continue;
                }
                if place[to] == END {
                    place[to] = hearers.len();
                    hearers.push(to);
                }
                order.push((place[to], gain));
            }
            if order.len() > before {
                order.push((END, 0.0));
            }
        }
        let mut survival = Vec::with_capacity(nodes * hearers.len());
        for other in 0..nodes {
            survival.extend(hearers.iter().map(|&to| {
                let pair = from * nodes + to;
                match () {
                    () if to == other => 0.0,
                    () if model.delivery[pair] < WEAK => 1.0,
                    () => model.survival[pair * nodes + other],
                }
            }));
        }
        let alone = hearers.iter().map(|&to| model.delivery[from * nodes + to]);
        Sender {
            alone: alone.collect(),
            survival,
            order,
            rest,
        }
    }

    /// The part that frames of `other` leave at each hearer.
    pub fn left_by(&self, other: usize) -> &[f64] {
        &self.survival[other * self.alone.len()..][..self.alone.len()]
    }

    /// Lowers what is heard by what frames of `other` spoil.
    pub fn disturb(&self, heard: &mut [f64], other: usize) {
        for (heard, left) in heard.iter_mut().zip(self.left_by(other)) {
            *heard *= left;
        }
    }

    /// What one frame earns if each hearer receives it with the probability `heard`: for each receiver the expected rise of the best node
    /// that hears it.
    pub fn earned(&self, heard: &[f64]) -> f64 {
        let (mut total, mut missed) = (self.rest, 1.0);
        for &(at, gain) in &self.order {
            if at == END {
                missed = 1.0;
                continue;
            }
            let p = heard[at];
            total += missed * p * gain;
            missed *= 1.0 - p;
        }
        total
    }

    /// As [`earned`](Self::earned), beside frames that leave the part `left`.
    pub fn earned_beside(&self, heard: &[f64], left: &[f64]) -> f64 {
        let (mut total, mut missed) = (self.rest, 1.0);
        for &(at, gain) in &self.order {
            if at == END {
                missed = 1.0;
                continue;
            }
            let p = heard[at] * left[at];
            total += missed * p * gain;
            missed *= 1.0 - p;
        }
        total
    }
}
