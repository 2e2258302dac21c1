//! The set of senders that earns most under given values of packets at nodes: by local search, and by a search that proves.

use super::Interference;
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
            if search.branch(&mut Vec::new(), &candidates) || search.earned <= 0.0 {
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

    /// Looks at all sets that contain `inside` and otherwise only `candidates`. False if it had to stop before.
    fn branch(&mut self, inside: &mut Vec<usize>, candidates: &[usize]) -> bool {
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
            inside.push(node);
            let of = |from: usize| {
                let received = |to| self.model.received(from, to, inside);
                self.values.earned(from, received)
            };
            let earned = of(node);
            let leaves: f64 = inside[..inside.len() - 1].iter().map(|&i| of(i)).sum();
            inside.pop();
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
        for first in 0..offers.len() {
            let Offer {
                node,
                earned,
                leaves,
            } = offers[first];
            let rest = &offers[first + 1..];
            let most = leaves + earned + self.best_of(rest);
            if most <= self.earned * (1.0 + self.tolerance) {
                continue;
            }
            let candidates: Vec<usize> = rest.iter().map(|offer| offer.node).collect();
            inside.push(node);
            let done = self.branch(inside, &candidates);
            inside.pop();
            if !done {
                return false;
            }
        }
        true
    }

    /// More than any choice among `offers` earns: in each group the best subset, where a member earns at most what it earns beside
    /// those inside, and at most what it earns in that subset.
    fn best_of(&self, offers: &[Offer]) -> f64 {
        let mut earned = vec![[0.0f64; GROUP]; self.groups.len()];
        for offer in offers {
            let (group, at) = self.place[offer.node];
            earned[group][at] = offer.earned;
        }
        let best = |(group, earned): (&Group, &[f64; GROUP])| {
            let subset = |of: &Vec<f64>| -> f64 {
                of.iter()
                    .zip(earned)
                    .map(|(there, here)| there.min(*here))
                    .sum()
            };
            group.earned.iter().map(subset).fold(0.0, f64::max)
        };
        self.groups.iter().zip(&earned).map(best).sum()
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
}
