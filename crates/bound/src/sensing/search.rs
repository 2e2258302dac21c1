//! The search for heavy sets: it adds and drops single nodes.

use super::missed::Missed;
use crate::network::Network;

/// The nodes that send at all, by rising number. Positions below are places in this list.
pub(super) struct Senders {
    nodes: Vec<usize>,
    /// The share of airtime of each.
    shares: Vec<f64>,
    /// One row for each sender: the probabilities that it senses a frame of each of the senders, 1 for its own.
    heard: Vec<f64>,
}

impl Senders {
    pub fn new(network: &Network, transmissions: &[f64]) -> Senders {
        let share = |node: usize| transmissions[node] * network.channel_s(node);
        let nodes: Vec<usize> = (0..network.nodes())
            .filter(|&node| share(node) > 0.0)
            .collect();
        let heard = nodes.iter().flat_map(|&to| {
            let row = nodes.iter();
            row.map(move |&from| network.sensing(from, to))
        });
        Senders {
            shares: nodes.iter().map(|&node| share(node)).collect(),
            heard: heard.collect(),
            nodes,
        }
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The members of a set that no single node added to it makes heavier, climbed to from one sender, and the sum of their y_i P_i.
    pub fn climb(&self, start: usize, misses: usize) -> (Vec<usize>, f64) {
        let mut search = Search::new(self, misses);
        search.add(start);
        search.climb();
        let members = search.members.iter().map(|&place| self.nodes[place]);
        (members.collect(), search.total)
    }

    fn row(&self, to: usize) -> &[f64] {
        &self.heard[to * self.len()..][..self.len()]
    }
}

/// A set that grows and shrinks by single nodes towards a larger sum of y_i P_i.
struct Search<'a> {
    senders: &'a Senders,
    misses: usize,
    /// Places of the nodes in the set, in rising order.
    members: Vec<usize>,
    /// How many of the other members miss the frames of each sender, member or not.
    missed: Missed,
    total: f64,
}

impl<'a> Search<'a> {
    fn new(senders: &'a Senders, misses: usize) -> Search<'a> {
        Search {
            senders,
            misses,
            members: Vec::new(),
            missed: Missed::none(misses, senders.len()),
            total: 0.0,
        }
    }

    fn climb(&mut self) {
        for _ in 0..4 {
            while let Some((best, gain)) = self.best_addition() {
                if gain <= 1e-12 {
                    break;
                }
                self.add(best);
            }
            if !self.drop_one() {
                return;
            }
        }
    }

    /// The node that raises the sum most. Adding it makes the frames of i that exactly `misses`
    /// members miss, and it too, count no more.
    fn best_addition(&self) -> Option<(usize, f64)> {
        let all = self.senders.len();
        let last = self.missed.exactly_most();
        let edges = self.members.iter();
        let edges: Vec<(usize, f64)> = edges
            .map(|&place| (place, self.senders.shares[place] * last[place]))
            .collect();
        let outside = (0..all).filter(|place| self.members.binary_search(place).is_err());
        let gains = outside.map(|place| {
            let heard = self.senders.row(place);
            let lost = edges.iter().map(|&(from, edge)| edge * (1.0 - heard[from]));
            let lost: f64 = lost.sum();
            (
                place,
                self.senders.shares[place] * self.missed.at_most(place) - lost,
            )
        });
        gains.max_by(|a, b| a.1.total_cmp(&b.1))
    }

    fn add(&mut self, place: usize) {
        let at = self.members.partition_point(|&member| member < place);
        self.members.insert(at, place);
        self.missed.add(self.senders.row(place));
        self.total = self.sum();
    }

    /// Drops the first member without which the sum is larger.
    fn drop_one(&mut self) -> bool {
        let Some(dropped) = self.dispensable() else {
            return false;
        };
        // All anew, for the nodes outside too.
        let mut fresh = Search::new(self.senders, self.misses);
        let kept = self.members.iter().filter(|&&kept| kept != dropped);
        kept.for_each(|&kept| fresh.add(kept));
        *self = fresh;
        true
    }

    /// The first member without which the sum is larger.
    fn dispensable(&self) -> Option<usize> {
        let mut heard = Vec::new();
        self.members.iter().copied().find(|&dropped| {
            let kept = || self.members.iter().filter(move |&&kept| kept != dropped);
            let mut missed = Missed::none(self.misses, self.members.len() - 1);
            for &to in kept() {
                let row = self.senders.row(to);
                heard.clear();
                heard.extend(kept().map(|&from| row[from]));
                missed.add(&heard);
            }
            let sums = kept().enumerate();
            let sums = sums.map(|(at, &place)| self.senders.shares[place] * missed.at_most(at));
            sums.sum::<f64>() > self.total + 1e-12
        })
    }

    fn sum(&self) -> f64 {
        let members = self.members.iter();
        members
            .map(|&place| self.senders.shares[place] * self.missed.at_most(place))
            .sum()
    }
}
