//! The set of senders that earns most under given values of packets at nodes: by local search, and by a search that proves.

use super::{Interference, WEAK};
use crate::order;

/// Values of a packet for each receiver at each node: none at the source, most at the receiver itself.
pub(super) struct Values {
    /// For each receiver its nodes by falling value, with the value; nodes without value are left out.
    orders: Vec<Vec<(usize, f64)>>,
    /// For each receiver the value at each node.
    at: Vec<Vec<f64>>,
}

/// The best set found, and what no set exceeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Heaviest {
    /// The senders of the best set found.
    pub set: Vec<usize>,
    /// What one frame of each of them earns together.
    pub earned: f64,
    /// No set earns more.
    pub at_most: f64,
    /// Sets that the proof looked at.
    pub looked_at: usize,
}

/// A group of candidates, small enough to list its subsets.
struct Group {
    members: Vec<usize>,
    /// For each subset, as a mask, what each member earns in it.
    earned: Vec<Vec<f64>>,
}

/// Members of a group. Their subsets are listed for each node of the search.
const GROUP: usize = 8;

impl Values {
    pub fn new(values: &[Vec<f64>]) -> Values {
        let order = |values: &Vec<f64>| {
            let mut order: Vec<(usize, f64)> = values.iter().copied().enumerate().collect();
            order.retain(|&(_, value)| value > 0.0);
            order::falling(&mut order, |&(_, value)| value);
            order
        };
        Values {
            orders: values.iter().map(order).collect(),
            at: values.to_vec(),
        }
    }

    /// What one frame of a sender earns if each node receives it with the probability that `received` says: for each receiver
    /// the expected rise of the best node that hears it.
    fn earned(&self, from: usize, received: impl Fn(usize) -> f64) -> f64 {
        let mut total = 0.0;
        for (order, at) in self.orders.iter().zip(&self.at) {
            let mut missed = 1.0;
            for &(to, value) in order {
                if value <= at[from] {
                    break;
                }
                let p = received(to);
                total += missed * p * (value - at[from]);
                missed *= 1.0 - p;
            }
        }
        total
    }
}

impl Interference {
    /// What a set earns.
    pub(super) fn weight(&self, set: &[usize], values: &Values) -> f64 {
        let of = |&from: &usize| values.earned(from, |to| self.received(from, to, set));
        set.iter().map(of).sum()
    }

    /// Good sets by local search from each node, best first, without repetitions.
    pub(super) fn good_sets(&self, values: &Values) -> Vec<(Vec<usize>, f64)> {
        let mut found: Vec<(Vec<usize>, f64)> = Vec::new();
        for start in 0..self.nodes {
            let mut set = vec![start];
            let mut weight = self.weight(&set, values);
            while let Some((next, gained)) = self.neighbour(&set, values) {
                if gained <= weight * (1.0 + 1e-9) {
                    break;
                }
                (set, weight) = (next, gained);
            }
            set.sort_unstable();
            if weight > 0.0 && found.iter().all(|(known, _)| *known != set) {
                found.push((set, weight));
            }
        }
        order::falling(&mut found, |&(_, weight)| weight);
        found
    }

    /// The best set that differs from `set` by one sender more, or by one less.
    fn neighbour(&self, set: &[usize], values: &Values) -> Option<(Vec<usize>, f64)> {
        let more = (0..self.nodes).filter(|node| !set.contains(node));
        let more = more.map(|node| [set, &[node]].concat());
        let less = (0..set.len()).map(|left_out| {
            let mut rest = set.to_vec();
            rest.swap_remove(left_out);
            rest
        });
        more.chain(less)
            .map(|set| {
                let weight = self.weight(&set, values);
                (set, weight)
            })
            .max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// The set that earns most, to within the part `tolerance`: for each receiver (row) the value of a packet at each node, never
    /// negative. If the search looks at more than `sets_max` sets it begins again with twice the tolerance; `at_most` holds in any
    /// case.
    pub fn heaviest(&self, values: &[Vec<f64>], tolerance: f64, sets_max: usize) -> Heaviest {
        let values = Values::new(values);
        let best = self.good_sets(&values).into_iter().next();
        let (set, earned) = best.unwrap_or_default();
        let mut search = Search::new(self, &values, set, earned);
        let mut tolerance = tolerance.max(1e-9);
        loop {
            search.left = sets_max;
            search.tolerance = tolerance;
            let candidates: Vec<usize> = (0..self.nodes).collect();
            let alone = self.delivery.clone();
            if search.branch(&mut Vec::new(), &alone, &candidates) || search.earned <= 0.0 {
                break;
            }
            tolerance *= 2.0;
        }
        // Rounding: sums of fewer than a million products.
        Heaviest {
            at_most: search.earned * (1.0 + tolerance) * (1.0 + 1e-9),
            set: search.set,
            earned: search.earned,
            looked_at: search.looked_at,
        }
    }
}

impl Interference {
    /// The probability that `to` receives a frame of `from`, as [`received`](Self::received) says it, once `node` sends as well;
    /// `heard` is that probability for all pairs before.
    fn beside(&self, heard: &[f64], (from, to): (usize, usize), node: usize) -> f64 {
        let pair = from * self.nodes + to;
        if to == node {
            return 0.0;
        }
        if from == node || self.delivery[pair] < WEAK {
            return heard[pair];
        }
        heard[pair] * self.survival[pair * self.nodes + node]
    }
}

/// A search over all sets, cut short where no set can be better.
struct Search<'a> {
    model: &'a Interference,
    values: &'a Values,
    groups: Vec<Group>,
    /// For each node its group and its place there.
    place: Vec<(usize, usize)>,
    set: Vec<usize>,
    earned: f64,
    tolerance: f64,
    left: usize,
    looked_at: usize,
}

impl<'a> Search<'a> {
    fn new(
        model: &'a Interference,
        values: &'a Values,
        set: Vec<usize>,
        earned: f64,
    ) -> Search<'a> {
        let groups = grouped(model, values);
        let mut place = vec![(0, 0); model.nodes];
        for (number, group) in groups.iter().enumerate() {
            for (at, &member) in group.members.iter().enumerate() {
                place[member] = (number, at);
            }
        }
        Search {
            model,
            values,
            groups,
            place,
            set,
            earned,
            tolerance: 0.0,
            left: 0,
            looked_at: 0,
        }
    }

    /// Looks at all sets that contain `inside` and otherwise only `candidates`. `heard` is the probability for each sender and
    /// node that a frame gets through beside those inside. False if it had to stop before.
    fn branch(&mut self, inside: &mut Vec<usize>, heard: &[f64], candidates: &[usize]) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        self.looked_at += 1;
        let weight = self.model.weight(inside, self.values);
        if weight > self.earned {
            self.earned = weight;
            self.set = inside.clone();
        }
        // What each candidate earns beside those inside, and what it leaves to them; others only lower both.
        let mut offers: Vec<Offer> = Vec::with_capacity(candidates.len());
        for &node in candidates {
            let nodes = self.model.nodes;
            let earned = self.values.earned(node, |to| heard[node * nodes + to]);
            let beside = |&from: &usize| {
                self.values
                    .earned(from, |to| self.model.beside(heard, (from, to), node))
            };
            let leaves: f64 = inside.iter().map(beside).sum();
            if earned > 0.0 {
                offers.push(Offer {
                    node,
                    earned,
                    leaves,
                });
            }
        }
        // With a newcomer in the set, those inside keep at most what that newcomer leaves them. Sets are divided by the newcomer
        // that leaves least, so all other members of the set leave at least as much.
        order::rising(&mut offers, |offer| offer.leaves);
        // The rest that is left of each group, and the best of it: one group changes with each newcomer.
        let mut left = vec![[0.0f64; GROUP]; self.groups.len()];
        for offer in &offers {
            let (group, at) = self.place[offer.node];
            left[group][at] = offer.earned;
        }
        let each = self.groups.iter().zip(&left);
        let mut best: Vec<f64> = each.map(|(group, left)| group.best(left)).collect();
        for first in 0..offers.len() {
            let Offer {
                node,
                earned,
                leaves,
            } = offers[first];
            let rest = &offers[first + 1..];
            let (group, at) = self.place[node];
            left[group][at] = 0.0;
            best[group] = self.groups[group].best(&left[group]);
            let most = leaves + earned + best.iter().sum::<f64>();
            if most <= self.earned * (1.0 + self.tolerance) {
                continue;
            }
            let candidates: Vec<usize> = rest.iter().map(|offer| offer.node).collect();
            let nodes = self.model.nodes;
            let pair = |pair: usize| self.model.beside(heard, (pair / nodes, pair % nodes), node);
            let heard: Vec<f64> = (0..nodes * nodes).map(pair).collect();
            inside.push(node);
            let done = self.branch(inside, &heard, &candidates);
            inside.pop();
            if !done {
                return false;
            }
        }
        true
    }
}

/// A candidate beside those inside.
#[derive(Clone, Copy)]
struct Offer {
    node: usize,
    earned: f64,
    /// What those inside earn together with it.
    leaves: f64,
}

/// All nodes in groups whose members get in each other's way: each group begins with the node that earns most alone.
fn grouped(model: &Interference, values: &Values) -> Vec<Group> {
    let alone: Vec<f64> = (0..model.nodes)
        .map(|node| model.weight(&[node], values))
        .collect();
    let mut open: Vec<usize> = (0..model.nodes).filter(|&node| alone[node] > 0.0).collect();
    order::falling(&mut open, |&node| alone[node]);
    let mut groups = Vec::new();
    while !open.is_empty() {
        let mut members = vec![open.remove(0)];
        while members.len() < GROUP && !open.is_empty() {
            // What the pair loses by sending together, the largest loss first.
            let lost = |node: usize| -> f64 {
                let with = |&member: &usize| {
                    let both = model.weight(&[member, node], values);
                    (alone[member] + alone[node] - both).min(alone[node])
                };
                members.iter().map(with).sum()
            };
            let next = (0..open.len()).max_by(|&a, &b| lost(open[a]).total_cmp(&lost(open[b])));
            let Some(next) = next else { break };
            members.push(open.remove(next));
        }
        groups.push(Group::new(members, model, values));
    }
    groups
}

impl Group {
    fn new(members: Vec<usize>, model: &Interference, values: &Values) -> Group {
        let earned = (0u32..1 << members.len()).map(|mask| {
            let chosen = |at: &usize| mask >> at & 1 == 1;
            let set: Vec<usize> = (0..members.len())
                .filter(chosen)
                .map(|at| members[at])
                .collect();
            let of = |at: usize| match chosen(&at) {
                true => {
                    let from = members[at];
                    values.earned(from, |to| model.received(from, to, &set))
                }
                false => 0.0,
            };
            (0..members.len()).map(of).collect()
        });
        let earned = earned.collect();
        Group { members, earned }
    }

    /// More than any choice among members earns beside those inside, of which each earns as much alone as `alone` says: the best
    /// subset, where a member earns at most that, and at most what it earns in that subset.
    fn best(&self, alone: &[f64; GROUP]) -> f64 {
        let subset = |of: &Vec<f64>| -> f64 {
            of.iter()
                .zip(alone)
                .map(|(there, here)| there.min(*here))
                .sum()
        };
        self.earned.iter().map(subset).fold(0.0, f64::max)
    }
}
