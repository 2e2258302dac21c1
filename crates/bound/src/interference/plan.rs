//! The program over time shares of sets, which gains sets and orders of nodes until a proof ends it.

use super::Interference;
use super::search::{Heaviest, Values};
use crate::error::Error;
use crate::maxflow::Arcs;
use crate::order;
use crate::program::{Program, Row};
use std::collections::BTreeMap;

/// When a computation of [`schedule()`] stops.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduleOptions {
    /// Stop when the relative difference of bound and rate is at most this.
    pub gap: f64,
    /// Stop after this many programs.
    pub rounds_max: usize,
    /// Sets that one proof may look at before it becomes coarser.
    pub sets_max: usize,
}

impl Default for ScheduleOptions {
    /// To a gap of 10 %.
    fn default() -> ScheduleOptions {
        ScheduleOptions {
            gap: 0.1,
            rounds_max: 40,
            sets_max: 10_000,
        }
    }
}

/// The capacity under interference, enclosed by a schedule and a proven bound.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// Frames/s that the schedule carries to every receiver, in the model.
    pub rate_fps: f64,
    /// Frames/s that nothing exceeds: the heaviest set under `values` proves it. **This is the bound.**
    pub certified_fps: f64,
    /// Senders that are on the air together, and their share of the time. Shares add up to 1 at most.
    pub sets: Vec<(Vec<usize>, f64)>,
    /// For each receiver the value of a packet at each node, which prove the bound.
    pub values: Vec<Vec<f64>>,
    /// The number of linear programs solved.
    pub rounds: usize,
    /// Useful bits in one frame.
    pub payload_bits: f64,
}

impl Schedule {
    /// The proven bound in bit/s of payload.
    pub fn goodput_bps(&self) -> f64 {
        self.certified_fps * self.payload_bits
    }

    /// The relative difference between the proven bound and the schedule.
    pub fn gap(&self) -> f64 {
        match self.certified_fps > 0.0 {
            true => 1.0 - self.rate_fps / self.certified_fps,
            false => 0.0,
        }
    }

    /// Frames on the air at once, on average over time.
    pub fn at_once(&self) -> f64 {
        self.sets
            .iter()
            .map(|(set, share)| set.len() as f64 * share)
            .sum()
    }

    /// The proof again, from `values` alone: frames/s that nothing exceeds. Whatever the values, the result is a bound.
    ///
    /// With a packet's worth `v(r, i)` for receiver r at node i, none at the source: a rate of R brings `R sum v(r, r)` of worth a second to
    /// the receivers. All of it was earned by frames, and a moment's frames earn at most what the heaviest set does.
    pub fn prove(
        values: &[Vec<f64>],
        receivers: &[usize],
        model: &Interference,
        sets_max: usize,
    ) -> f64 {
        let worth: f64 = values.iter().zip(receivers).map(|(row, &at)| row[at]).sum();
        let heaviest = model.heaviest(values, 0.05, sets_max);
        match worth > 0.0 {
            true => heaviest.at_most / worth / model.airtime_s,
            false => f64::INFINITY,
        }
    }
}

/// What a sender's frames in one set bring for one receiver: shares of the set's time, each with an order of nodes.
struct Use {
    set: usize,
    from: usize,
    receiver: usize,
    /// Vertices of what one transmission can hand on: (node, share of frames).
    vertices: Vec<Vec<(usize, f64)>>,
}

struct Plan<'a> {
    model: &'a Interference,
    source: usize,
    receivers: &'a [usize],
    sets: Vec<Vec<usize>>,
    /// For each set, how many programs in a row gave it no time.
    idle: Vec<u32>,
    uses: Vec<Use>,
}

/// The least part of a set's earnings for which the program gains an order. A set has some forty senders and receivers, so what is
/// left out is at most 2 %; the bound is proven with all of it.
const NOTABLE: f64 = 5e-4;
/// Programs after which the flows of a set without time are forgotten. A guess; they come back when the set earns again.
const IDLE: u32 = 2;

/// One solution: shares of the sets, flows, values.
struct Answer {
    shares: Vec<f64>,
    rate: f64,
    values: Vec<Vec<f64>>,
    /// For each use the time of each of its vertices.
    spent: Vec<Vec<f64>>,
}

/// The largest rate at which `source` can feed all `receivers` at once, by any protocol, when frames on the air together disturb
/// each other. A receiver out of reach makes it zero.
pub fn schedule(
    model: &Interference,
    source: usize,
    receivers: &[usize],
    options: &ScheduleOptions,
) -> Result<Schedule, Error> {
    check(model, source, receivers)?;
    let mut plan = Plan {
        model,
        source,
        receivers,
        sets: (0..model.nodes).map(|node| vec![node]).collect(),
        idle: vec![0; model.nodes],
        uses: Vec::new(),
    };
    let mut best = Schedule {
        rate_fps: 0.0,
        certified_fps: f64::INFINITY,
        sets: Vec::new(),
        values: Vec::new(),
        rounds: 0,
        payload_bits: model.payload_bits(),
    };
    let Some(first) = plan.first_values() else {
        best.certified_fps = 0.0;
        return Ok(best);
    };
    plan.improve(&first, 0.0);
    // The values with the least estimate of the heaviest set so far, and that estimate.
    let (mut centre, mut least) = (first, f64::INFINITY);
    let mut close = 0.8 * options.gap;
    // Early answers are far from the optimum, so a rough one serves.
    let mut tolerance = 1e-4;
    for round in 1..=options.rounds_max.max(1) {
        best.rounds = round;
        let answer = match plan.solve(tolerance) {
            Ok(answer) => answer,
            Err(_) if best.rate_fps > 0.0 => break,
            Err(error) => return Err(error),
        };
        let rate_fps = answer.rate / model.airtime_s;
        if rate_fps > best.rate_fps {
            best.rate_fps = rate_fps;
            best.sets = plan.shared(&answer.shares);
        }
        plan.forget(&answer);
        // Half-way to the best values: the program's own jump about while it lacks sets.
        for weight in [1.0, 0.4] {
            let values = mixed(&centre, &answer.values, weight);
            let found = model.good_sets(&Values::new(&values));
            let estimate = found.first().map_or(0.0, |(_, earned)| *earned);
            plan.take_sets(found, answer.rate);
            plan.improve(&values, answer.rate);
            if estimate < least {
                (centre, least) = (values, estimate);
            }
        }
        let estimated = 1.0 - best.rate_fps * model.airtime_s / least;
        tolerance = if estimated < 0.2 { 1e-5 } else { 1e-4 };
        if estimated <= close || round == options.rounds_max {
            // A proof costs as much as many rounds; the next one has to promise more.
            close *= 0.6;
            let proven = Schedule::prove(&centre, receivers, model, options.sets_max);
            if proven < best.certified_fps {
                best.certified_fps = proven;
                best.values = centre.clone();
            }
            if best.gap() <= options.gap || estimated <= 0.2 * options.gap {
                break;
            }
        }
    }
    if best.certified_fps.is_infinite() {
        best.certified_fps = Schedule::prove(&centre, receivers, model, options.sets_max);
        best.values = centre;
    }
    Ok(best)
}

fn check(model: &Interference, source: usize, receivers: &[usize]) -> Result<(), Error> {
    let nodes = model.nodes;
    if receivers.is_empty() {
        return Err(Error::NoReceivers);
    }
    for (place, &node) in receivers.iter().chain([&source]).enumerate() {
        if node >= nodes {
            return Err(Error::NoSuchNode { node, nodes });
        }
        if receivers[..place.min(receivers.len())].contains(&node) {
            return Err(Error::BadReceiver { node });
        }
    }
    Ok(())
}

fn mixed(old: &[Vec<f64>], new: &[Vec<f64>], weight: f64) -> Vec<Vec<f64>> {
    let row = |(old, new): (&Vec<f64>, &Vec<f64>)| {
        let each = old.iter().zip(new);
        each.map(|(old, new)| old + weight * (new - old)).collect()
    };
    old.iter().zip(new).map(row).collect()
}

impl Plan<'_> {
    /// Values by expected transmissions, one frame at a time; `None` if a receiver is out of reach.
    fn first_values(&self) -> Option<Vec<Vec<f64>>> {
        let nodes = self.model.nodes;
        let network = crate::Network::new(
            self.model.delivery.clone(),
            vec![1.0; nodes],
            1,
            vec![0.0; nodes * nodes],
        )
        .ok()?;
        let mut rows = Vec::new();
        for &receiver in self.receivers {
            let away = crate::anypath::anypath(&network, receiver).airtime_s;
            let own = away[self.source];
            if !own.is_finite() {
                return None;
            }
            let value = |distance: &f64| (own - distance).max(0.0);
            rows.push(away.iter().map(value).collect::<Vec<f64>>());
        }
        Some(self.scaled(rows))
    }

    /// The values with a worth of one at all receivers together, none at the source, and nowhere more than at the receiver.
    fn scaled(&self, mut rows: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
        for (row, &receiver) in rows.iter_mut().zip(self.receivers) {
            row[self.source] = 0.0;
            let own = row[receiver];
            row.iter_mut()
                .for_each(|value| *value = value.clamp(0.0, own.max(0.0)));
        }
        let worth: f64 = rows
            .iter()
            .zip(self.receivers)
            .map(|(row, &at)| row[at])
            .sum();
        let scale = if worth > 0.0 { 1.0 / worth } else { 0.0 };
        rows.iter_mut().flatten().for_each(|value| *value *= scale);
        rows
    }

    /// Takes in sets that earn more than the program pays for its time.
    fn take_sets(&mut self, found: Vec<(Vec<usize>, f64)>, paid: f64) {
        let better = found
            .into_iter()
            .filter(|(_, earned)| *earned > paid * (1.0 + 1e-4));
        for (set, _) in better.take(20) {
            if !self.sets.contains(&set) {
                self.sets.push(set);
                self.idle.push(0);
            }
        }
    }

    /// Drops what the program did not use, which keeps it small: orders without time, except the newest of each use, and all orders of
    /// sets that had no time for a while.
    fn forget(&mut self, answer: &Answer) {
        for (idle, &share) in self.idle.iter_mut().zip(&answer.shares) {
            *idle = if share > 1e-6 { 0 } else { *idle + 1 };
        }
        for (used, spent) in self.uses.iter_mut().zip(&answer.spent) {
            let last = spent.len() - 1;
            let mut place = 0;
            used.vertices.retain(|_| {
                place += 1;
                spent[place - 1] > 1e-7 || place - 1 == last
            });
        }
        let idle = &self.idle;
        self.uses.retain(|used| idle[used.set] < IDLE);
    }

    /// Adds the orders of nodes that these values ask for, in sets that then earn more than the program pays for their time. Other
    /// sets gain nothing from better orders.
    fn improve(&mut self, values: &[Vec<f64>], paid: f64) {
        let known: BTreeMap<(usize, usize, usize), usize> = (self.uses.iter().enumerate())
            .map(|(place, used)| ((used.set, used.from, used.receiver), place))
            .collect();
        let orders: Vec<Vec<usize>> = values.iter().map(|row| falling(row)).collect();
        for set in 0..self.sets.len() {
            let mut asked = Vec::new();
            let mut total = 0.0;
            for &from in &self.sets[set] {
                for (receiver, row) in values.iter().enumerate() {
                    let vertex = self.vertex(set, from, &orders[receiver], row);
                    let earned = worth(&vertex, row, from);
                    total += earned;
                    asked.push((from, receiver, vertex, earned));
                }
            }
            if total <= paid * (1.0 + 1e-3) {
                continue;
            }
            self.idle[set] = 0;
            for (from, receiver, vertex, earned) in asked {
                let place = known.get(&(set, from, receiver)).copied();
                let before = place.map_or(0.0, |place| {
                    let each = self.uses[place].vertices.iter();
                    each.map(|known| worth(known, &values[receiver], from))
                        .fold(0.0, f64::max)
                });
                if earned > before * (1.0 + 1e-3) + NOTABLE * paid {
                    match place {
                        Some(place) => self.uses[place].vertices.push(vertex),
                        None => self.uses.push(Use {
                            set,
                            from,
                            receiver,
                            vertices: vec![vertex],
                        }),
                    }
                }
            }
        }
    }

    /// What a transmission hands on if of those that hear it the first in the order takes it.
    fn vertex(&self, set: usize, from: usize, order: &[usize], row: &[f64]) -> Vec<(usize, f64)> {
        let mut missed = 1.0;
        let mut vertex = Vec::new();
        for &to in order.iter().take_while(|&&to| row[to] > row[from]) {
            let p = self.model.received(from, to, &self.sets[set]);
            if p * missed > 1e-6 {
                vertex.push((to, missed * p));
            }
            missed *= 1.0 - p;
        }
        vertex
    }

    /// Solves the program over the sets and orders known so far.
    fn solve(&self, tolerance: f64) -> Result<Answer, Error> {
        let nodes = self.model.nodes;
        let mut program = Program::default();
        let rate = program.column(1.0);
        let shares: Vec<usize> = self.sets.iter().map(|_| program.column(0.0)).collect();
        // Conservation for each receiver and node: what leaves is at most what arrives; at the receiver the rate leaves.
        let mut nets: Vec<Vec<(usize, f64)>> = vec![Vec::new(); self.receivers.len() * nodes];
        for (place, &receiver) in self.receivers.iter().enumerate() {
            nets[place * nodes + receiver].push((rate, 1.0));
        }
        let mut columns = Vec::with_capacity(self.uses.len());
        for used in &self.uses {
            let mut row = vec![(shares[used.set], -1.0)];
            for vertex in &used.vertices {
                let column = program.column(0.0);
                row.push((column, 1.0));
                let base = used.receiver * nodes;
                let out: f64 = vertex.iter().map(|&(_, share)| share).sum();
                nets[base + used.from].push((column, out));
                for &(to, share) in vertex {
                    nets[base + to].push((column, -share));
                }
            }
            columns.push(
                row.iter()
                    .skip(1)
                    .map(|&(column, _)| column)
                    .collect::<Vec<_>>(),
            );
            program.at_most.push(Row {
                terms: row,
                limit: 0.0,
            });
        }
        let time = shares.iter().map(|&column| (column, 1.0)).collect();
        program.at_most.push(Row {
            terms: time,
            limit: 1.0,
        });
        let first = program.at_most.len();
        let mut rows = vec![None; nets.len()];
        for (place, terms) in nets.into_iter().enumerate() {
            if place % nodes != self.source && !terms.is_empty() {
                rows[place] = Some(program.at_most.len() - first);
                program.at_most.push(Row { terms, limit: 0.0 });
            }
        }
        let solution = program.solve(tolerance)?;
        let value =
            |place: usize| rows[place].map_or(0.0, |row| solution.at_most_dual[first + row]);
        let table = (0..self.receivers.len()).map(|receiver| {
            let row = (0..nodes).map(|node| value(receiver * nodes + node));
            row.collect::<Vec<f64>>()
        });
        let values = self.scaled(table.collect());
        let shares: Vec<f64> = shares
            .iter()
            .map(|&column| solution.values[column].max(0.0))
            .collect();
        let total: f64 = shares.iter().sum();
        let shares: Vec<f64> = shares.iter().map(|share| share / total.max(1.0)).collect();
        let rate = self.carried(&shares, &columns, &solution.values);
        let each = |columns: &Vec<usize>| {
            columns
                .iter()
                .map(|&column| solution.values[column])
                .collect()
        };
        let spent = columns.iter().map(each).collect();
        Ok(Answer {
            shares,
            rate,
            values,
            spent,
        })
    }

    /// Packets for each frame's time that shares and flows carry to every receiver, after what the solver left inexact is cut off.
    fn carried(&self, shares: &[f64], columns: &[Vec<usize>], solved: &[f64]) -> f64 {
        let nodes = self.model.nodes;
        let mut flows = vec![vec![0.0; nodes * nodes]; self.receivers.len()];
        for (used, columns) in self.uses.iter().zip(columns) {
            let spent: f64 = columns.iter().map(|&column| solved[column].max(0.0)).sum();
            let scale = if spent > shares[used.set] {
                shares[used.set] / spent
            } else {
                1.0
            };
            for (vertex, &column) in used.vertices.iter().zip(columns) {
                for &(to, share) in vertex {
                    flows[used.receiver][used.from * nodes + to] +=
                        scale * solved[column].max(0.0) * share;
                }
            }
        }
        let each = self.receivers.iter().zip(&flows).map(|(&receiver, flows)| {
            let mut arcs = Arcs::new(nodes);
            for (pair, &flow) in flows.iter().enumerate().filter(|(_, flow)| **flow > 0.0) {
                arcs.add(pair / nodes, pair % nodes, flow);
            }
            arcs.max_flow(self.source, receiver, 1e-12)
        });
        each.fold(f64::INFINITY, f64::min)
    }

    fn shared(&self, shares: &[f64]) -> Vec<(Vec<usize>, f64)> {
        let each = self.sets.iter().cloned().zip(shares.iter().copied());
        each.filter(|(_, share)| *share > 1e-6).collect()
    }
}

/// What a transmission of `from` earns that hands on a vertex.
fn worth(vertex: &[(usize, f64)], row: &[f64], from: usize) -> f64 {
    let each = vertex.iter();
    each.map(|&(to, share)| share * (row[to] - row[from])).sum()
}

/// Nodes by falling value.
fn falling(row: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..row.len()).collect();
    order::falling(&mut order, |&node| row[node]);
    order
}

impl Heaviest {
    /// How much heavier than the set that was found another one may be, as a part of it.
    pub fn doubt(&self) -> f64 {
        match self.earned > 0.0 {
            true => self.at_most / self.earned - 1.0,
            false => 0.0,
        }
    }
}
