//! The medium's part of the program: rows, their prices, and the overload of an answer.

use super::{Master, Transmissions};
use crate::certificate::Prices;
use crate::medium::Medium;
use crate::network::Network;
use crate::order;
use crate::program::Row;
use crate::sensing::{SensedSet, overfull_sets};

/// Sets the first program holds; more are added when the answer violates them.
const FIRST_SETS: usize = 300;

/// Sets are overfull above 1 and this.
const EXCESS: f64 = 1e-6;

/// Where the medium's constraints are in the program.
pub(super) enum Rows {
    None,
    Shares {
        /// Known sets, in the program or not.
        pool: Vec<Line>,
        /// (index into `pool`, row)
        rows: Vec<(usize, usize)>,
        radios: Option<Radios>,
    },
    IndependentSets {
        /// Row of each node: `a_i z_i - sum of its sets <= 0`.
        nodes: Vec<usize>,
        total: usize,
        /// The independent sets with their columns: (members, column).
        sets: Vec<(Vec<usize>, usize)>,
    },
}

/// A row of carrier sense: `sum of cost * z <= 1`.
pub(super) struct Line {
    set: SensedSet,
    /// (node, seconds that one of its frames counts)
    costs: Vec<(usize, f64)>,
}

/// One radio per node.
pub(super) struct Radios {
    /// Row of each node's time.
    nodes: Vec<usize>,
    /// Column of the receptions over each link, row-major.
    receptions: Vec<Option<usize>>,
    /// Per receiver (from, to, row of `x <= y`).
    handovers: Vec<Vec<(usize, usize, usize)>>,
}

impl Line {
    fn new(network: &Network, set: SensedSet) -> Line {
        let cost = |(node, weight)| (node, weight * network.channel_s(node));
        let costs = set.weights(network).into_iter().map(cost).collect();
        Line { set, costs }
    }

    fn load(&self, transmissions: &[f64]) -> f64 {
        (self.costs.iter())
            .map(|&(node, cost)| transmissions[node] * cost)
            .sum()
    }
}

impl Master<'_> {
    pub(super) fn add_medium(&mut self, medium: Medium, cliques: &[Vec<usize>]) {
        match medium {
            Medium::IndependentSets => self.add_independent_sets(),
            Medium::CarrierSense => self.add_shares(Some(cliques), false),
            Medium::OneRadio => self.add_shares(None, true),
            Medium::CarrierSenseOneRadio => self.add_shares(Some(cliques), true),
        }
    }

    /// The prices in frames/s, and the price of one transmission of each node.
    pub(super) fn prices(&self, at_most_dual: &[f64]) -> (Prices, Vec<f64>) {
        let price = |row: usize| (at_most_dual[row] / self.unit_s).max(0.0);
        match &self.medium {
            Rows::None => (Prices::none(), vec![0.0; self.network.nodes()]),
            Rows::IndependentSets { nodes, .. } => {
                let paid = (nodes.iter().enumerate())
                    .map(|(node, &row)| price(row) * self.network.channel_s(node))
                    .collect();
                (Prices::IndependentSets, paid)
            }
            Rows::Shares { pool, rows, radios } => {
                let sensed = rows
                    .iter()
                    .map(|&(index, row)| (pool[index].set.clone(), price(row)))
                    .collect();
                let (mut busy, mut reception) = (Vec::new(), Vec::new());
                if let Some(radios) = radios {
                    busy.extend(radios.nodes.iter().map(|&row| price(row)));
                    let dual =
                        |&(i, j, row): &(usize, usize, usize)| (i, j, at_most_dual[row].max(0.0));
                    let lists = radios.handovers.iter();
                    reception.extend(lists.map(|rows| rows.iter().map(dual).collect()));
                }
                let prices = Prices::Rows {
                    sensed,
                    busy,
                    reception,
                };
                let paid = prices.paid(self.network);
                (prices, paid)
            }
        }
    }

    /// The factor by which the answer must shrink to fit the medium: all of it, not only the rows
    /// that the program has, as far as the search for overfull sets found them.
    pub fn overload(
        &self,
        transmissions: &[f64],
        flows: &[Vec<(usize, usize, f64)>],
        values: &[f64],
    ) -> f64 {
        let channel = |node: usize| transmissions[node] * self.network.channel_s(node);
        match &self.medium {
            Rows::None => 1.0,
            Rows::Shares { pool, radios, .. } => {
                let sensed = pool.iter().map(|line| line.load(transmissions));
                let radios = radios
                    .as_ref()
                    .map_or(0.0, |_| self.busiest(transmissions, flows));
                sensed.fold(radios, f64::max)
            }
            Rows::IndependentSets { sets, .. } => {
                let mut room = vec![0.0; transmissions.len()];
                let mut total = 0.0;
                for (set, column) in sets {
                    let share = values[*column].max(0.0);
                    total += share;
                    set.iter().for_each(|&node| room[node] += share);
                }
                // Time that the sets do not cover is scheduled separately.
                let uncovered = room
                    .iter()
                    .enumerate()
                    .map(|(i, room)| (channel(i) - room).max(0.0));
                total + uncovered.sum::<f64>()
            }
        }
    }

    /// Share of time of the busiest radio.
    fn busiest(&self, transmissions: &[f64], flows: &[Vec<(usize, usize, f64)>]) -> f64 {
        let nodes = transmissions.len();
        let mut received = vec![0.0f64; nodes * nodes];
        for &(from, to, flow) in flows.iter().flatten() {
            let most = transmissions[from] * self.network.delivery(from, to);
            let entry = &mut received[from * nodes + to];
            *entry = entry.max(flow.min(most));
        }
        let airtime = |node: usize| self.network.airtime_s(node);
        (0..nodes)
            .map(|to| {
                let heard = (0..nodes).map(|from| received[from * nodes + to] * airtime(from));
                transmissions[to] * airtime(to) + heard.sum::<f64>()
            })
            .fold(0.0, f64::max)
    }

    /// Searches for sets that the transmissions overfill, and adds them to the pool.
    pub fn find_overfull_sets(&mut self, transmissions: &[f64]) {
        if let Rows::Shares { pool, .. } = &mut self.medium
            && !pool.is_empty()
            && self.network.fades()
        {
            for (set, _) in overfull_sets(self.network, transmissions, EXCESS) {
                if !pool.iter().any(|line| line.set == set) {
                    pool.push(Line::new(self.network, set));
                }
            }
        }
    }

    pub(super) fn add_violated_sets(&mut self, transmissions: &[f64]) {
        let Rows::Shares { pool, rows, .. } = &self.medium else {
            return;
        };
        let mut known = vec![false; pool.len()];
        rows.iter().for_each(|&(index, _)| known[index] = true);
        let mut violated: Vec<(f64, usize)> = (0..pool.len())
            .filter(|&index| !known[index])
            .map(|index| (pool[index].load(transmissions), index))
            .filter(|&(load, _)| load > 1.0 + 1e-9)
            .collect();
        order::falling(&mut violated, |&(load, _)| load);
        violated.truncate(FIRST_SETS / 4);
        for (_, index) in violated {
            self.add_set_row(index);
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
                .map(|(node, value)| value / self.network.channel_s(node))
                .collect();
            let (set, _) = self.network.senses().heaviest_independent_set(&per_second);
            self.add_set(set);
        }
    }

    /// The receiving side of a flow, if receptions count: x <= y, and y fills the receiver
    /// (y <= p z follows from the rows of single neighbours).
    pub(super) fn add_reception(&mut self, index: usize, from: usize, to: usize, flow: usize) {
        let nodes = self.network.nodes();
        let Rows::Shares {
            radios: Some(radios),
            ..
        } = &mut self.medium
        else {
            return;
        };
        let Radios {
            nodes: rows,
            receptions,
            handovers,
        } = radios;
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

    fn add_shares(&mut self, cliques: Option<&[Vec<usize>]>, radios: bool) {
        let (network, nodes) = (self.network, self.network.nodes());
        let mut pool: Vec<Line> = (cliques.unwrap_or_default().iter())
            .map(|set| Line::new(network, SensedSet::clique(set.clone())))
            .collect();
        let mut chosen: Vec<usize> = (0..pool.len()).collect();
        if chosen.len() > FIRST_SETS {
            // The largest first, and then whatever is needed to charge every node.
            order::falling(&mut chosen, |&index| pool[index].set.nodes.len() as f64);
            let mut charged = vec![false; nodes];
            let mut place = 0;
            chosen.retain(|&index| {
                place += 1;
                let members = &pool[index].set.nodes;
                let needed = members.iter().any(|&node| !charged[node]);
                members.iter().for_each(|&node| charged[node] = true);
                needed || place <= FIRST_SETS / 2
            });
        }
        if cliques.is_some() && network.fades() {
            // Sets that would be overfull if all nodes always transmitted.
            let always: Vec<f64> = (0..nodes).map(|i| 1.0 / network.channel_s(i)).collect();
            for (set, _) in overfull_sets(network, &always, EXCESS) {
                chosen.push(pool.len());
                pool.push(Line::new(network, set));
            }
        }
        let radios = radios.then(|| self.radios());
        self.medium = Rows::Shares {
            pool,
            rows: Vec::new(),
            radios,
        };
        chosen.into_iter().for_each(|index| self.add_set_row(index));
    }

    fn add_set_row(&mut self, index: usize) {
        let Rows::Shares { pool, rows, .. } = &mut self.medium else {
            return;
        };
        rows.push((index, self.program.at_most.len()));
        let costs = pool[index].costs.clone();
        let terms = costs
            .into_iter()
            .filter_map(|(node, cost_s)| self.time_term(node, cost_s))
            .collect();
        self.program.at_most.push(Row { terms, limit: 1.0 });
    }

    fn time_term(&self, node: usize, cost_s: f64) -> Option<(usize, f64)> {
        match self.transmissions[node] {
            Transmissions::Column(column) => Some((column, cost_s / self.unit_s)),
            Transmissions::Fixed(_) => None,
        }
    }

    fn add_independent_sets(&mut self) {
        let nodes = (0..self.network.nodes())
            .map(|node| {
                let cost_s = self.network.channel_s(node);
                let terms = self.time_term(node, cost_s).into_iter().collect();
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

    fn radios(&mut self) -> Radios {
        let nodes = (0..self.network.nodes())
            .map(|node| {
                let cost_s = self.network.airtime_s(node);
                let terms = self.time_term(node, cost_s).into_iter().collect();
                self.program.at_most.push(Row { terms, limit: 1.0 });
                self.program.at_most.len() - 1
            })
            .collect();
        Radios {
            nodes,
            receptions: vec![None; self.network.nodes() * self.network.nodes()],
            handovers: vec![Vec::new(); self.receivers.len()],
        }
    }
}
