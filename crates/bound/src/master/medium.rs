//! The medium's share of the program: rows, their prices, and what an answer makes of them.

use super::{Master, Transmissions};
use crate::certificate::Prices;
use crate::multicast::Medium;
use crate::program::Row;

/// Cliques the first program holds; more are added when the answer violates them.
const FIRST_CLIQUES: usize = 300;

/// Where the medium's constraints are in the program.
pub(super) enum Rows {
    None,
    Cliques {
        all: Vec<Vec<usize>>,
        /// (index into `all`, row)
        rows: Vec<(usize, usize)>,
    },
    IndependentSets {
        /// Row of each node: `a_i z_i - sum of its sets <= 0`.
        nodes: Vec<usize>,
        total: usize,
        /// (members, column)
        sets: Vec<(Vec<usize>, usize)>,
    },
    Radios {
        /// Row of each node's time.
        nodes: Vec<usize>,
        /// Column of the receptions over each link, row-major.
        receptions: Vec<Option<usize>>,
        /// Per receiver (from, to, row of `x <= y`).
        handovers: Vec<Vec<(usize, usize, usize)>>,
    },
}

impl Master<'_> {
    pub(super) fn add_medium(&mut self, medium: Medium, cliques: &[Vec<usize>]) {
        match medium {
            Medium::CarrierSense => self.add_cliques(cliques),
            Medium::IndependentSets => self.add_independent_sets(),
            Medium::OneRadio => self.add_radios(),
        }
    }

    /// Prices in frames/s, and what they pay for one transmission of each node.
    pub(super) fn prices(&self, at_most_dual: &[f64]) -> (Prices, Vec<f64>) {
        let price = |row: usize| (at_most_dual[row] / self.unit_s).max(0.0);
        let mut paid = vec![0.0; self.network.nodes()];
        let prices = match &self.medium {
            Rows::None => Prices::Cliques(Vec::new()),
            Rows::Cliques { all, rows } => {
                let priced: Vec<(Vec<usize>, f64)> = rows
                    .iter()
                    .map(|&(index, row)| (all[index].clone(), price(row)))
                    .collect();
                for (set, price) in &priced {
                    set.iter()
                        .for_each(|&node| paid[node] += price * self.network.airtime_s(node));
                }
                Prices::Cliques(priced)
            }
            Rows::IndependentSets { nodes, .. } => {
                for (node, &row) in nodes.iter().enumerate() {
                    paid[node] = price(row) * self.network.airtime_s(node);
                }
                Prices::IndependentSets
            }
            Rows::Radios {
                nodes, handovers, ..
            } => {
                let busy: Vec<f64> = nodes.iter().map(|&row| price(row)).collect();
                for (node, price) in busy.iter().enumerate() {
                    paid[node] = price * self.network.airtime_s(node);
                }
                let reception = (handovers.iter())
                    .map(|rows| {
                        rows.iter()
                            .map(|&(i, j, row)| (i, j, at_most_dual[row].max(0.0)))
                            .collect()
                    })
                    .collect();
                Prices::Radios { busy, reception }
            }
        };
        (prices, paid)
    }

    /// The factor by which the answer must shrink to fit the medium (all of it, not only the rows
    /// that the program has).
    pub fn overload(
        &self,
        transmissions: &[f64],
        flows: &[Vec<(usize, usize, f64)>],
        values: &[f64],
    ) -> f64 {
        let airtime = |node: usize| transmissions[node] * self.network.airtime_s(node);
        match &self.medium {
            Rows::None => 1.0,
            Rows::Cliques { all, .. } => (all.iter())
                .map(|set| set.iter().map(|&node| airtime(node)).sum())
                .fold(0.0, f64::max),
            Rows::IndependentSets { sets, .. } => {
                let mut room = vec![0.0; transmissions.len()];
                let mut total = 0.0;
                for (set, column) in sets {
                    let share = values[*column].max(0.0);
                    total += share;
                    set.iter().for_each(|&node| room[node] += share);
                }
                // What the sets leave uncovered gets slots of its own.
                let uncovered = room
                    .iter()
                    .enumerate()
                    .map(|(i, room)| (airtime(i) - room).max(0.0));
                total + uncovered.sum::<f64>()
            }
            Rows::Radios { .. } => {
                let nodes = transmissions.len();
                let mut received = vec![0.0f64; nodes * nodes];
                for &(from, to, flow) in flows.iter().flatten() {
                    let most = transmissions[from] * self.network.delivery(from, to);
                    let entry = &mut received[from * nodes + to];
                    *entry = entry.max(flow.min(most));
                }
                (0..nodes)
                    .map(|to| {
                        let heard = (0..nodes)
                            .map(|from| received[from * nodes + to] * self.network.airtime_s(from));
                        airtime(to) + heard.sum::<f64>()
                    })
                    .fold(0.0, f64::max)
            }
        }
    }

    pub(super) fn add_violated_cliques(&mut self, transmissions: &[f64]) {
        let Rows::Cliques { all, rows } = &self.medium else {
            return;
        };
        let mut known = vec![false; all.len()];
        rows.iter().for_each(|&(index, _)| known[index] = true);
        let load = |set: &[usize]| -> f64 {
            set.iter()
                .map(|&node| transmissions[node] * self.network.airtime_s(node))
                .sum()
        };
        let mut violated: Vec<(f64, usize)> = (0..all.len())
            .filter(|&index| !known[index])
            .map(|index| (load(&all[index]), index))
            .filter(|&(load, _)| load > 1.0 + 1e-9)
            .collect();
        violated.sort_by(|a, b| b.0.total_cmp(&a.0));
        violated.truncate(FIRST_CLIQUES / 4);
        for (_, index) in violated {
            self.add_clique_row(index);
        }
    }

    /// Adds the independent sets that are heaviest at the program's own prices and at the weights
    /// of the proof.
    pub(super) fn add_worthy_sets(&mut self, weights: &[f64], paid: &[f64]) {
        if !matches!(self.medium, Rows::IndependentSets { .. }) {
            return;
        }
        for values in [paid, weights] {
            let per_second: Vec<f64> = (values.iter().enumerate())
                .map(|(node, value)| value / self.network.airtime_s(node))
                .collect();
            let (set, _) = self.network.senses().heaviest_independent_set(&per_second);
            self.add_set(set);
        }
    }

    /// The receiving side of a flow, if receptions count: x <= y, and y fills the receiver
    /// (y <= p z follows from the rows of single neighbours).
    pub(super) fn add_reception(&mut self, index: usize, from: usize, to: usize, flow: usize) {
        let nodes = self.network.nodes();
        let Rows::Radios {
            nodes: rows,
            receptions,
            handovers,
        } = &mut self.medium
        else {
            return;
        };
        let heard = *receptions[from * nodes + to].get_or_insert_with(|| {
            let column = self.program.column(0.0);
            let airtime = self.network.airtime_s(from) / self.unit_s;
            self.program.at_most[rows[to]].terms.push((column, airtime));
            column
        });
        self.program.at_most.push(Row {
            terms: vec![(flow, 1.0), (heard, -1.0)],
            limit: 0.0,
        });
        handovers[index].push((from, to, self.program.at_most.len() - 1));
    }

    fn add_cliques(&mut self, cliques: &[Vec<usize>]) {
        self.medium = Rows::Cliques {
            all: cliques.to_vec(),
            rows: Vec::new(),
        };
        let mut chosen: Vec<usize> = (0..cliques.len()).collect();
        if chosen.len() > FIRST_CLIQUES {
            // The largest first, and then whatever is needed to charge every node.
            chosen.sort_by_key(|&index| std::cmp::Reverse(cliques[index].len()));
            let mut charged = vec![false; self.network.nodes()];
            let mut place = 0;
            chosen.retain(|&index| {
                place += 1;
                let needed = cliques[index].iter().any(|&node| !charged[node]);
                cliques[index].iter().for_each(|&node| charged[node] = true);
                needed || place <= FIRST_CLIQUES / 2
            });
        }
        chosen
            .into_iter()
            .for_each(|index| self.add_clique_row(index));
    }

    fn add_clique_row(&mut self, index: usize) {
        let Rows::Cliques { all, rows } = &mut self.medium else {
            return;
        };
        rows.push((index, self.program.at_most.len()));
        let set = all[index].clone();
        let terms = set
            .iter()
            .filter_map(|&node| self.airtime_term(node))
            .collect();
        self.program.at_most.push(Row { terms, limit: 1.0 });
    }

    fn airtime_term(&self, node: usize) -> Option<(usize, f64)> {
        match self.transmissions[node] {
            Transmissions::Column(column) => {
                Some((column, self.network.airtime_s(node) / self.unit_s))
            }
            Transmissions::Fixed(_) => None,
        }
    }

    fn add_independent_sets(&mut self) {
        let nodes = (0..self.network.nodes())
            .map(|node| {
                let terms = self.airtime_term(node).into_iter().collect();
                self.program.at_most.push(Row { terms, limit: 0.0 });
                self.program.at_most.len() - 1
            })
            .collect();
        self.program.at_most.push(Row {
            terms: Vec::new(),
            limit: 1.0,
        });
        let total = self.program.at_most.len() - 1;
        self.medium = Rows::IndependentSets {
            nodes,
            total,
            sets: Vec::new(),
        };
        // One set around every node, so that each can transmit.
        for node in 0..self.network.nodes() {
            let mut set = vec![node];
            for other in 0..self.network.nodes() {
                let free = |&member: &usize| {
                    member != other && !self.network.senses().adjacent(member, other)
                };
                if set.iter().all(free) {
                    set.push(other);
                }
            }
            set.sort_unstable();
            self.add_set(set);
        }
    }

    fn add_set(&mut self, set: Vec<usize>) {
        let Rows::IndependentSets { nodes, total, sets } = &mut self.medium else {
            return;
        };
        if set.is_empty() || sets.iter().any(|(known, _)| *known == set) {
            return;
        }
        let column = self.program.column(0.0);
        for &node in &set {
            self.program.at_most[nodes[node]].terms.push((column, -1.0));
        }
        self.program.at_most[*total].terms.push((column, 1.0));
        sets.push((set, column));
    }

    fn add_radios(&mut self) {
        let nodes = (0..self.network.nodes())
            .map(|node| {
                let terms = self.airtime_term(node).into_iter().collect();
                self.program.at_most.push(Row { terms, limit: 1.0 });
                self.program.at_most.len() - 1
            })
            .collect();
        self.medium = Rows::Radios {
            nodes,
            receptions: vec![None; self.network.nodes() * self.network.nodes()],
            handovers: vec![Vec::new(); self.receivers.len()],
        };
    }
}
