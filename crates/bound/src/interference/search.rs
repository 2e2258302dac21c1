//! The set of senders that earns most under given values of packets at nodes, by a search that proves what no set exceeds.
//!
//! All sets are divided into parts: those that contain some senders and otherwise only some open nodes. For a bound on a part the open nodes are
//! put in groups whose members get in each other's way, and each group is given the senders inside that it disturbs most. Senders only lower
//! each other, so the part's best set earns at most the sum of what the groups' best subsets leave and earn, with all subsets of a group listed.
//! The part with the highest bound is divided next, by the open node that comes first in the set; nodes that earn much come first.

use super::Interference;
use super::senders::Senders;
use crate::order;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// The best set found, and what no set exceeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Heaviest {
    /// The senders of the best set found.
    pub set: Vec<usize>,
    /// What one frame of each of them earns together.
    pub earned: f64,
    /// No set earns more.
    pub at_most: f64,
    /// Parts of all sets that the proof looked at.
    pub looked_at: usize,
}

impl Interference {
    /// The set that earns most, to within the part `tolerance`: for each receiver (row) the value of a packet at each node, never
    /// negative. The search stops when it has looked at `sets_max` parts of all sets; `at_most` holds in any case.
    pub fn heaviest(&self, values: &[Vec<f64>], tolerance: f64, sets_max: usize) -> Heaviest {
        self.heaviest_below(values, tolerance.max(1e-9), 0.0, sets_max)
    }

    /// As [`heaviest`](Self::heaviest); the search also ends when no set can earn more than `enough` and going on is not cheap.
    pub(super) fn heaviest_below(
        &self,
        values: &[Vec<f64>],
        tolerance: f64,
        enough: f64,
        sets_max: usize,
    ) -> Heaviest {
        let senders = Senders::new(self, values);
        let (set, earned) = senders.good_sets().into_iter().next().unwrap_or_default();
        let mut search = Search {
            senders: &senders,
            set,
            earned,
            tolerance,
            enough,
            looked_at: 0,
        };
        let at_most = search.run(sets_max);
        // Rounding: sums of fewer than a million products.
        Heaviest {
            at_most: at_most * (1.0 + 1e-9),
            set: search.set,
            earned: search.earned,
            looked_at: search.looked_at,
        }
    }
}

/// Members of a group by the number of senders inside: few parts have few inside, and their bounds are the worst.
const GROUPS: [usize; 4] = [12, 10, 8, 7];

/// Parts that take less time than a program of 50 nodes.
const CHEAP: usize = 300;

struct Search<'a> {
    senders: &'a Senders,
    set: Vec<usize>,
    earned: f64,
    tolerance: f64,
    enough: f64,
    looked_at: usize,
}

/// All sets that contain `inside` and otherwise only `open` nodes.
struct Part {
    at_most: f64,
    inside: Vec<usize>,
    open: Vec<usize>,
}

/// Some open nodes, and what each choice among them brings.
struct Group {
    members: Vec<usize>,
    /// For each subset, as a mask, what it earns and what the senders given to this group earn beside it.
    brings: Vec<f64>,
    /// The members not yet dealt with.
    left: usize,
    /// The most among subsets of these.
    best: f64,
}

/// A sender, and how it is heard beside those inside.
#[derive(Clone)]
struct Heard {
    node: usize,
    heard: Vec<f64>,
    earned: f64,
}

impl Search<'_> {
    /// What no set exceeds.
    fn run(&mut self, sets_max: usize) -> f64 {
        let mut parts = BinaryHeap::new();
        parts.push(Part {
            at_most: f64::INFINITY,
            inside: Vec::new(),
            open: (0..self.senders.each.len()).collect(),
        });
        while let Some(part) = parts.pop() {
            if part.at_most <= self.close() {
                break;
            }
            let cheap = self.looked_at < CHEAP;
            if self.looked_at >= sets_max || !cheap && part.at_most <= self.enough {
                return part.at_most;
            }
            self.looked_at += 1;
            self.divide(&part, &mut parts);
        }
        self.close()
    }

    /// What is near enough to the best set found.
    fn close(&self) -> f64 {
        self.earned * (1.0 + self.tolerance)
    }

    fn divide(&mut self, part: &Part, parts: &mut BinaryHeap<Part>) {
        let senders = self.senders;
        let beside = |&node: &usize| Heard::beside(senders, node, &part.inside);
        let inside: Vec<Heard> = part.inside.iter().map(beside).collect();
        let weight: f64 = inside.iter().map(|heard| heard.earned).sum();
        if weight > self.earned {
            (self.earned, self.set) = (weight, part.inside.clone());
        }
        let mut open: Vec<Heard> = part.open.iter().map(beside).collect();
        open.retain(|heard| heard.earned > 0.0);
        // What those inside keep beside each open node: no more beside several.
        let kept: Vec<Vec<f64>> = open
            .iter()
            .map(|other| self.kept(&inside, other.node))
            .collect();
        let groups = self.grouped(&inside, &open, &kept);
        self.divide_by(part, &open, groups, parts);
    }

    /// The parts that begin with each open node, as far as their bounds leave a doubt.
    fn divide_by(
        &self,
        part: &Part,
        open: &[Heard],
        mut groups: Vec<Group>,
        parts: &mut BinaryHeap<Part>,
    ) {
        let mut turns: Vec<usize> = (0..open.len()).collect();
        order::falling(&mut turns, |&at| open[at].earned);
        let mut place = vec![(0, 0); open.len()];
        for (number, group) in groups.iter().enumerate() {
            for (bit, &member) in group.members.iter().enumerate() {
                place[member] = (number, bit);
            }
        }
        for (turn, &at) in turns.iter().enumerate() {
            let all: f64 = groups.iter().map(|group| group.best).sum();
            if all <= self.close() {
                break;
            }
            let (number, bit) = place[at];
            let with = groups[number].most(1 << bit);
            let at_most = (all - groups[number].best + with).min(part.at_most);
            groups[number].remove(bit);
            if at_most > self.close() {
                let rest = turns[turn + 1..].iter().map(|&at| open[at].node);
                parts.push(Part {
                    at_most,
                    inside: [&part.inside[..], &[open[at].node]].concat(),
                    open: rest.collect(),
                });
            }
        }
    }

    /// What each of those inside earns beside one more.
    fn kept(&self, inside: &[Heard], other: usize) -> Vec<f64> {
        let each = inside.iter().map(|own| {
            let sender = &self.senders.each[own.node];
            sender.earned_beside(&own.heard, sender.left_by(other))
        });
        each.collect()
    }

    fn grouped(&self, inside: &[Heard], open: &[Heard], kept: &[Vec<f64>]) -> Vec<Group> {
        let size = GROUPS[inside.len().min(GROUPS.len() - 1)];
        let mut all = self.rivals(open, size);
        if all.is_empty() {
            all.push(Vec::new());
        }
        // Each sender inside goes to the group that could take most from it.
        let mut given: Vec<Vec<Heard>> = vec![Vec::new(); all.len()];
        for (own, heard) in inside.iter().enumerate() {
            let lost = |at: usize| heard.earned - kept[at][own];
            let of = |members: &Vec<usize>| members.iter().map(|&at| lost(at)).sum::<f64>();
            let most = (0..all.len()).max_by(|&a, &b| of(&all[a]).total_cmp(&of(&all[b])));
            given[most.unwrap_or(0)].push(heard.clone());
        }
        let each = all.into_iter().zip(given);
        each.map(|(members, given)| self.listed(members, given, open))
            .collect()
    }

    /// Open nodes in groups whose members get in each other's way: each group begins with the node that earns most.
    fn rivals(&self, open: &[Heard], size: usize) -> Vec<Vec<usize>> {
        let mut rest: Vec<usize> = (0..open.len()).collect();
        order::rising(&mut rest, |&at| open[at].earned);
        let mut all = Vec::new();
        while let Some(first) = rest.pop() {
            let mut members = vec![first];
            let (mut last, mut lost) = (first, vec![0.0; rest.len()]);
            while members.len() < size {
                for (lost, &at) in lost.iter_mut().zip(&rest) {
                    *lost += self.lost(&open[last], &open[at]);
                }
                let next = (0..rest.len()).max_by(|&a, &b| lost[a].total_cmp(&lost[b]));
                let Some(next) = next else { break };
                lost.remove(next);
                last = rest.remove(next);
                members.push(last);
            }
            all.push(members);
        }
        all
    }

    /// What a pair loses by sending together, as far as it is worth having both.
    fn lost(&self, a: &Heard, b: &Heard) -> f64 {
        let beside = |own: &Heard, other: &Heard| {
            let sender = &self.senders.each[own.node];
            own.earned - sender.earned_beside(&own.heard, sender.left_by(other.node))
        };
        (beside(a, b) + beside(b, a)).min(a.earned.min(b.earned))
    }

    /// A group with all its subsets.
    fn listed(&self, members: Vec<usize>, own: Vec<Heard>, open: &[Heard]) -> Group {
        let mut brings = vec![0.0; 1 << members.len()];
        brings[0] = own.iter().map(|heard| heard.earned).sum();
        let chosen: Vec<&Heard> = members.iter().map(|&at| &open[at]).collect();
        self.list(&chosen, 0, 0, &own, &mut brings);
        let mut group = Group {
            left: brings.len() - 1,
            members,
            brings,
            best: 0.0,
        };
        group.best = group.most(0);
        group
    }

    /// Lists the subsets that have a given beginning, `mask`, whose senders are heard as `senders` says.
    fn list(
        &self,
        members: &[&Heard],
        next: usize,
        mask: usize,
        senders: &[Heard],
        brings: &mut [f64],
    ) {
        // Those inside have disturbed all newcomers already; the group's own members have not.
        let inside = senders.len() - mask.count_ones() as usize;
        for bit in next..members.len() {
            let mut newcomer = members[bit].clone();
            let own = &self.senders.each[newcomer.node];
            for before in &senders[inside..] {
                own.disturb(&mut newcomer.heard, before.node);
            }
            newcomer.earned = own.earned(&newcomer.heard);
            let with = mask | 1 << bit;
            if bit + 1 == members.len() {
                // Nothing follows, so nobody asks how those before are heard now.
                let kept = self.kept(senders, newcomer.node).into_iter();
                brings[with] = newcomer.earned + kept.sum::<f64>();
                continue;
            }
            let mut together: Vec<Heard> = senders.to_vec();
            for before in &mut together {
                let sender = &self.senders.each[before.node];
                sender.disturb(&mut before.heard, newcomer.node);
                before.earned = sender.earned(&before.heard);
            }
            together.push(newcomer);
            brings[with] = together.iter().map(|heard| heard.earned).sum();
            self.list(members, bit + 1, with, &together, brings);
        }
    }
}

impl Heard {
    fn beside(senders: &Senders, node: usize, inside: &[usize]) -> Heard {
        let heard = senders.heard_in(node, inside);
        let earned = senders.each[node].earned(&heard);
        Heard {
            node,
            heard,
            earned,
        }
    }
}

impl Group {
    /// The most among subsets of what is left that contain `needed`.
    fn most(&self, needed: usize) -> f64 {
        let (mut most, mut mask) = (0.0f64, self.left);
        loop {
            if mask & needed == needed {
                most = most.max(self.brings[mask]);
            }
            if mask == 0 {
                return most;
            }
            mask = (mask - 1) & self.left;
        }
    }

    fn remove(&mut self, bit: usize) {
        self.left &= !(1 << bit);
        self.best = self.most(0);
    }
}

impl Ord for Part {
    fn cmp(&self, other: &Part) -> Ordering {
        self.at_most.total_cmp(&other.at_most)
    }
}

impl PartialOrd for Part {
    fn partial_cmp(&self, other: &Part) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Part {
    fn eq(&self, other: &Part) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Part {}
