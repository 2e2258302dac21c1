//! The search for heavy sets: it adds and drops single nodes.

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
    /// The probabilities that 0, 1, ..., `misses` of the other members miss a sender's frames. One row of all senders for each number.
    missed: Vec<f64>,
    total: f64,
}

impl<'a> Search<'a> {
    fn new(senders: &'a Senders, misses: usize) -> Search<'a> {
        let mut missed = vec![0.0; (misses + 1) * senders.len()];
        missed[..senders.len()].fill(1.0);
        Search {
            senders,
            misses,
            members: Vec::new(),
            missed,
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

    /// The probability that at most `misses` of the other members miss a sender's frame.
    fn at_most(&self, place: usize) -> f64 {
        let all = self.missed.iter().skip(place).step_by(self.senders.len());
        all.sum()
    }

    /// The node that raises the sum most. Adding it makes the frames of i that exactly `misses`
    /// members miss, and it too, count no more.
    fn best_addition(&self) -> Option<(usize, f64)> {
        let all = self.senders.len();
        let last = &self.missed[self.misses * all..];
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
                self.senders.shares[place] * self.at_most(place) - lost,
            )
        });
        gains.max_by(|a, b| a.1.total_cmp(&b.1))
    }

    fn add(&mut self, place: usize) {
        let at = self.members.partition_point(|&member| member < place);
        self.members.insert(at, place);
        miss(&mut self.missed, self.senders.row(place));
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
        let mut missed = Vec::new();
        let mut heard = Vec::new();
        self.members.iter().copied().find(|&dropped| {
            let kept = || self.members.iter().filter(move |&&kept| kept != dropped);
            let count = self.members.len() - 1;
            missed.clear();
            missed.resize(count, 1.0);
            missed.resize((self.misses + 1) * count, 0.0);
            for &to in kept() {
                let row = self.senders.row(to);
                heard.clear();
                heard.extend(kept().map(|&from| row[from]));
                miss(&mut missed, &heard);
            }
            let sums = kept().enumerate().map(|(at, &place)| {
                let chances = missed.iter().skip(at).step_by(count);
                self.senders.shares[place] * chances.sum::<f64>()
            });
            sums.sum::<f64>() > self.total + 1e-12
        })
    }

    fn sum(&self) -> f64 {
        let members = self.members.iter();
        members
            .map(|&place| self.senders.shares[place] * self.at_most(place))
            .sum()
    }
}

/// One more node, which senses the frames of each sender with the probabilities `heard`. `missed` has a row of all senders for each number of misses.
fn miss(missed: &mut [f64], heard: &[f64]) {
    let all = heard.len();
    for count in (1..missed.len() / all.max(1)).rev() {
        let (fewer, these) = missed.split_at_mut(count * all);
        let fewer = &fewer[(count - 1) * all..];
        for ((this, fewer), heard) in these.iter_mut().zip(fewer).zip(heard) {
            *this = *this * heard + fewer * (1.0 - heard);
        }
    }
    let none = missed.iter_mut().zip(heard);
    none.for_each(|(none, heard)| *none *= heard);
}
