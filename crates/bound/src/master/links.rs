//! The links in the program, per receiver.

use super::{Answer, Master, Row};
use crate::anypath::priced;
use crate::hyperarc::Share;
use crate::order;
use crate::scout::scout;

impl Master<'_> {
    /// Adds links that the proof must pay for and that the program lacks, and independent sets worth
    /// more than they cost. Returns the number of new columns.
    pub fn add_missing_columns(&mut self, answer: &Answer) -> usize {
        let before = self.program.gain.len();
        let mut certificate = answer.certificate.clone();
        let tolls = certificate.spread_reception(self.network);
        let weights = certificate.weights(self.network);
        for (from, (weight, paid)) in weights.iter().zip(&answer.paid).enumerate() {
            let missing = weight - paid;
            if missing > 1e-10 * weight {
                for index in 0..self.receivers.len() {
                    let levels = certificate.levels(self.network, &tolls, index, from);
                    self.add_worthy_links(index, from, levels, 0.01 * missing);
                }
            }
        }
        self.add_worthy_sets(&weights, &answer.paid);
        self.program.gain.len() - before
    }

    /// Links that a quick look at the dual found in use, with the sets of neighbours that an
    /// optimum would use there: the closest, the two closest, and so on.
    pub(super) fn add_scouted_links(&mut self, cliques: &[Vec<usize>]) {
        let scouted = scout(self.network, self.source, self.receivers, cliques);
        for (index, scouted) in scouted.iter().enumerate() {
            for from in 0..self.network.nodes() {
                let mut heads: Vec<usize> = (scouted.links.iter())
                    .filter(|&&(i, j)| i == from && j != self.source)
                    .map(|&(_, to)| to)
                    .collect();
                order::rising(&mut heads, |&head| scouted.potential[head]);
                self.add_nested(index, from, &heads);
            }
        }
    }

    /// All links between nodes that transmit, and from them to the receivers.
    pub(super) fn add_all_links(&mut self, transmissions: &[f64]) {
        // The relative rate of a link below this is lost in the solver's tolerance.
        let weakest = 1e-9;
        let cost: Vec<f64> = transmissions
            .iter()
            .map(|&z| if z > 0.0 { 1.0 / z } else { f64::INFINITY })
            .collect();
        for index in 0..self.receivers.len() {
            let receiver = self.receivers[index];
            let (distance, order) = priced(self.network, receiver, &cost, |_, _| 0.0);
            for &from in order.iter().filter(|&&from| from != receiver) {
                let heads = |near: bool| -> Vec<usize> {
                    (order.iter().copied())
                        .filter(|&to| to != from && to != self.source)
                        .filter(|&to| self.network.delivery(from, to) > weakest)
                        .filter(|&to| near == (distance[to] < distance[from]))
                        .collect()
                };
                let (near, far) = (heads(true), heads(false));
                self.add_nested(index, from, &near);
                for to in far {
                    let column = self.add_flow(index, from, to);
                    self.add_hyperarc(from, &[(to, column)]);
                }
            }
        }
    }

    fn add_nested(&mut self, index: usize, from: usize, heads: &[usize]) {
        let mut members = Vec::new();
        for &to in heads {
            members.push((to, self.add_flow(index, from, to)));
            self.add_hyperarc(from, &members);
        }
    }

    fn add_worthy_links(
        &mut self,
        index: usize,
        from: usize,
        mut levels: Vec<(usize, Share)>,
        worth: f64,
    ) {
        order::falling(&mut levels, |(_, share)| share.value);
        let mut missed = 1.0;
        for (to, Share { p, value }) in levels {
            let known = self.flows[index]
                .iter()
                .any(|&(i, j, _)| (i, j) == (from, to));
            if !known && missed * p * value > worth {
                let column = self.add_flow(index, from, to);
                self.add_hyperarc(from, &[(to, column)]);
            }
            missed *= 1.0 - p;
        }
    }

    fn add_flow(&mut self, index: usize, from: usize, to: usize) -> usize {
        let column = self.program.column(0.0);
        let flows = &mut self.flows[index];
        let place = flows.partition_point(|&(i, j, _)| (i, j) < (from, to));
        flows.insert(place, (from, to, column));
        for (node, sign) in [(from, 1.0), (to, -1.0)] {
            if node != self.receivers[index] {
                let row = self.conserve(index, node);
                self.program.equal[row].terms.push((column, sign));
            }
        }
        self.add_reception(index, from, to, column);
        column
    }

    fn conserve(&mut self, index: usize, node: usize) -> usize {
        if let Some(row) = self.conserved[index][node] {
            return row;
        }
        let terms = if node == self.source {
            vec![(self.rate, -1.0)]
        } else {
            Vec::new()
        };
        self.program.equal.push(Row { terms, limit: 0.0 });
        let row = self.program.equal.len() - 1;
        self.conserved[index][node] = Some(row);
        row
    }
}
