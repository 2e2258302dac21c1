//! The program over time shares of sets, which gains sets and orders of nodes until a proof ends it.

use super::Interference;
use super::interior::{self, Shape};
use super::search::Heaviest;
use super::senders::Senders;
use crate::circulation;
use crate::error::Error;
use crate::maxflow::Arcs;
use crate::order;
use std::collections::BTreeMap;

/// When a computation of [`schedule()`] stops.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduleOptions {
    /// Stop when the relative difference of bound and rate is at most this.
    pub gap: f64,
    /// Stop after this many programs.
    pub rounds_max: usize,
    /// Parts of all sets that one proof may look at before it stops.
    pub sets_max: usize,
}

impl Default for ScheduleOptions {
    /// To a gap of 10 %.
    fn default() -> ScheduleOptions {
        ScheduleOptions {
            gap: 0.1,
            rounds_max: 40,
            sets_max: 20_000,
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
    /// Packets in each frame's time that go from a node to another, for all receivers together; row-major: from, to. Each goes on to its
    /// receiver, and those to one receiver never go round in a ring.
    pub flows: Vec<f64>,
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

    fn take_proof(&mut self, values: &[Vec<f64>], certified_fps: f64) {
        if certified_fps < self.certified_fps {
            self.certified_fps = certified_fps;
            self.values = values.to_vec();
        }
    }

    /// Frames on the air at once, on average over time.
    pub fn at_once(&self) -> f64 {
        self.sets
            .iter()
            .map(|(set, share)| set.len() as f64 * share)
            .sum()
    }

    /// The proof again, from `values` alone: frames/s that nothing exceeds. Whatever the values, the result is a bound; the search for the
    /// heaviest set is exact to the part `tolerance` if `sets_max` parts of all sets suffice.
    ///
    /// With a packet's worth `v(r, i)` for receiver r at node i, none at the source: a rate of R brings `R sum v(r, r)` of worth a second to
    /// the receivers. All of it was earned by frames, and a moment's frames earn at most what the heaviest set does.
    pub fn prove(
        values: &[Vec<f64>],
        receivers: &[usize],
        model: &Interference,
        tolerance: f64,
        sets_max: usize,
    ) -> f64 {
        let worth: f64 = values.iter().zip(receivers).map(|(row, &at)| row[at]).sum();
        let heaviest = model.heaviest(values, tolerance, sets_max);
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

/// The part of the gap below which a proof is tried; the rest is for what the proof leaves in doubt.
const CLOSE: f64 = 0.65;
/// How exact programs are, as a part of the gap that is left: early ones lack most sets, so rough answers serve, and come from nearer the middle. A
/// fifth takes three quarters of the steps that a tenth with 2 % at most took (three networks of 50 nodes).
const PART: f64 = 0.2;
const FINE: f64 = 1e-3;

/// One solution: shares of the sets, flows, values.
struct Answer {
    shares: Vec<f64>,
    rate: f64,
    values: Vec<Vec<f64>>,
    /// For each use the time of each of its vertices.
    spent: Vec<Vec<f64>>,
    /// For each receiver what goes from each node to each other.
    flows: Vec<Vec<f64>>,
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
        flows: vec![0.0; model.nodes * model.nodes],
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
    let mut close = CLOSE * options.gap;
    let mut tolerance = PART;
    let mut flows = Vec::new();
    for round in 1..=options.rounds_max.max(1) {
        best.rounds = round;
        let answer = plan.solve(&centre, tolerance);
        let rate_fps = answer.rate / model.airtime_s;
        if rate_fps > best.rate_fps {
            best.rate_fps = rate_fps;
            best.sets = plan.shared(&answer.shares);
            flows = answer.flows.clone();
        }
        plan.forget(&answer);
        // Half-way to the best values: the program's own jump about while it lacks sets.
        for weight in [1.0, 0.4] {
            let values = mixed(&centre, &answer.values, weight);
            let found = Senders::new(model, &values).good_sets();
            let estimate = found.first().map_or(0.0, |(_, earned)| *earned);
            plan.take_sets(found, answer.rate);
            plan.improve(&values, answer.rate);
            if estimate < least {
                (centre, least) = (values, estimate);
            }
        }
        let reached = best.rate_fps * model.airtime_s;
        let estimated = 1.0 - reached / least;
        tolerance = (PART * estimated).clamp(FINE, PART);
        if estimated <= close || round == options.rounds_max {
            // A proof costs as much as many rounds; the next one has to promise more.
            close = 0.6 * estimated.min(close);
            let enough = reached / (1.0 - options.gap) * (1.0 - 1e-6);
            let found = model.heaviest_below(&centre, FINE, enough, options.sets_max);
            best.take_proof(&centre, found.at_most / model.airtime_s);
            plan.take_sets(vec![(found.set, found.earned)], answer.rate);
            if best.gap() <= options.gap || estimated <= 0.2 * options.gap {
                break;
            }
        }
    }
    best.flows = joined(model.nodes, flows);
    Ok(best)
}

/// What goes from each node to each other for all receivers together, without what goes round to one of them.
fn joined(nodes: usize, flows: Vec<Vec<f64>>) -> Vec<f64> {
    let mut joined = vec![0.0; nodes * nodes];
    for mut flow in flows {
        circulation::cancel(nodes, &mut flow);
        for (all, flow) in joined.iter_mut().zip(&flow) {
            *all += flow;
        }
    }
    joined
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
    fn solve(&mut self, values: &[Vec<f64>], tolerance: f64) -> Answer {
        let set = |used: &Use| used.set as f64;
        order::rising(&mut self.uses, set);
        let inner = self.shape().solve(&values.concat(), tolerance);
        let rows = inner.values.chunks(self.model.nodes);
        let values = self.scaled(rows.map(<[f64]>::to_vec).collect());
        let total: f64 = inner.shares.iter().sum();
        let shares: Vec<f64> = (inner.shares.iter())
            .map(|share| share / total.max(1.0))
            .collect();
        let mut place = 0;
        let each = self.uses.iter().map(|used| {
            let first = place;
            place += used.vertices.len();
            inner.spent[first..place].to_vec()
        });
        let spent: Vec<Vec<f64>> = each.collect();
        let (rate, flows) = self.carried(&shares, &spent);
        Answer {
            shares,
            rate,
            values,
            spent,
            flows,
        }
    }

    fn shape(&self) -> Shape {
        let mut shape = Shape {
            nodes: self.model.nodes,
            source: self.source,
            receivers: self.receivers.to_vec(),
            sets: self.sets.len(),
            uses: Vec::with_capacity(self.uses.len()),
            vertices: Vec::new(),
            terms: Vec::new(),
        };
        for used in &self.uses {
            let first = shape.vertices.len();
            for vertex in &used.vertices {
                let out: f64 = vertex.iter().map(|&(_, share)| share).sum();
                let begin = shape.terms.len();
                shape.terms.push((used.from, out));
                let brought = vertex.iter().map(|&(to, share)| (to, -share));
                shape.terms.extend(brought);
                shape.vertices.push(begin..shape.terms.len());
            }
            shape.uses.push(interior::Use {
                set: used.set,
                receiver: used.receiver,
                vertices: first..shape.vertices.len(),
            });
        }
        shape
    }

    /// Packets for each frame's time that shares and flows carry to every receiver, after what the solver left inexact is cut off.
    fn carried(&self, shares: &[f64], spent: &[Vec<f64>]) -> (f64, Vec<Vec<f64>>) {
        let nodes = self.model.nodes;
        let mut flows = vec![vec![0.0; nodes * nodes]; self.receivers.len()];
        for (used, spent) in self.uses.iter().zip(spent) {
            let all: f64 = spent.iter().sum();
            let scale = if all > 0.0 {
                shares[used.set] / all
            } else {
                0.0
            };
            for (vertex, time) in used.vertices.iter().zip(spent) {
                for &(to, share) in vertex {
                    flows[used.receiver][used.from * nodes + to] += scale * time * share;
                }
            }
        }
        let each = self.receivers.iter().zip(&mut flows);
        let each = each.map(|(&receiver, flow)| {
            let mut arcs = Arcs::new(nodes);
            for (pair, &room) in flow.iter().enumerate().filter(|(_, room)| **room > 0.0) {
                arcs.add(pair / nodes, pair % nodes, room);
            }
            let rate = arcs.max_flow(self.source, receiver, 1e-12);
            *flow = arcs.flow();
            rate
        });
        let rate = each.fold(f64::INFINITY, f64::min);
        (rate, flows)
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
