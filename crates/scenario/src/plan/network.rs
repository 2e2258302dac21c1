//! One seed's network: where the nodes stand, who sends what to whom, and the true delivery ratios.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use chappe_core::{Mode, Purpose, Seed, Stream};
use chappe_sim::{Medium, Profile};

use super::{Plan, Topology, TransferPlan};
use crate::check::{Check, numbered};
use crate::format::{Located, Receivers, Scenario, TransferTable};
use crate::input::{InputError, read_limited};

/// A link counts for reachability if it delivers at least this share of its frames: one of the 600 probes of the
/// paper's ETX phase finds a link of 1 % with a probability of 99.8 %.
pub const REACHABLE_PRR: f64 = 0.01;

/// Receivers are drawn among the nodes that links of at least this share lead to: no user would put a receiver behind
/// a hop that takes more than ten attempts.
const DRAWN_PRR: f64 = 0.1;

/// The largest object: results count octets, and a receiver holds all of it in memory.
const OBJECT_MAX: f64 = 2e9;

/// The octets that a transfer carries.
#[derive(Clone, Debug, PartialEq)]
pub enum Payload {
    /// This number of octets, drawn from the seed.
    Random(usize),
    /// The contents of a file.
    File {
        /// Where the file was read from.
        path: PathBuf,
        /// The contents of the file.
        bytes: Arc<[u8]>,
    },
}

impl Payload {
    /// Its size in octets.
    pub fn len(&self) -> usize {
        match self {
            Payload::Random(octets) => *octets,
            Payload::File { bytes, .. } => bytes.len(),
        }
    }

    /// Whether it has no octets.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The octets in a run of this seed; `transfer` keeps two transfers' contents apart.
    pub fn bytes(&self, seed: u64, transfer: usize) -> Arc<[u8]> {
        match self {
            Payload::File { bytes, .. } => bytes.clone(),
            Payload::Random(octets) => {
                let mut bytes = vec![0; *octets];
                Seed(seed)
                    .stream(Purpose::Traffic(transfer as u32))
                    .fill(&mut bytes);
                bytes.into()
            }
        }
    }
}

/// The network of one seed: the medium, the true delivery ratios, and the transfers.
#[derive(Clone, Debug)]
pub struct Network {
    /// The seed of the run.
    pub seed: u64,
    /// What lies between the antennas.
    pub medium: Medium,
    /// True delivery ratios of the shortest data frame, without interference: row-major, from each node to each. If nodes move,
    /// those of the start.
    pub delivery: Vec<f64>,
    /// Who sends what to whom.
    pub transfers: Vec<Transfer>,
}

/// One transfer with its nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Transfer {
    /// Its name in the results.
    pub name: String,
    /// The node that has the object.
    pub source: usize,
    /// The nodes that receive the object.
    pub receivers: Vec<usize>,
    /// The octets of the object.
    pub object: Arc<[u8]>,
}

impl Plan {
    /// The network and the transfers of one seed. Fails if a receiver cannot be reached at all.
    pub fn network(&self, seed: u64) -> Result<Network, InputError> {
        let nodes = self.topology.nodes();
        let check = Check::new(&self.source);
        let medium = self.medium(seed, &check)?;
        let delivery = delivery(&medium, self);
        // Nodes that move may meet later.
        let must_reach = !self.topology.moves();
        let mut transfers: Vec<Transfer> = Vec::new();
        for (index, transfer) in self.transfers.iter().enumerate() {
            // A child for each transfer: the seed's own stream of this purpose places the nodes.
            let mut draw = Seed(seed).child(1 + index as u64).stream(Purpose::Topology);
            // What later transfers name is taken too: a drawn end must not be theirs.
            let named = |later: &TransferPlan, node: usize| {
                let is_receiver =
                    matches!(&later.to, Receivers::Nodes(list) if list.contains(&node));
                later.from == Some(node) || is_receiver
            };
            let taken = |node: usize| {
                let earlier = transfers
                    .iter()
                    .any(|t| t.source == node || t.receivers.contains(&node));
                let mut later = self.transfers[index + 1..].iter();
                earlier || later.any(|later| named(later, node))
            };
            let (source, receivers) = match &transfer.to {
                Receivers::Nodes(receivers) => {
                    let source = transfer.from.unwrap_or(0);
                    let reached = reached(&delivery, nodes, source, REACHABLE_PRR);
                    let mut lost = receivers.iter().filter(|&&node| !reached[node]);
                    if let Some(lost) = lost.next().filter(|_| must_reach) {
                        return Err(self.unreachable(
                            &transfer.span,
                            (source, *lost),
                            seed,
                            &check,
                        ));
                    }
                    (source, receivers.clone())
                }
                Receivers::Count(count) => {
                    let drawn = draw_group(&mut draw, &delivery, (transfer.from, *count), taken);
                    drawn.map_err(|(source, found)| {
                        self.too_few(transfer, source, found, seed, &check)
                    })?
                }
            };
            let object = transfer.payload.bytes(seed, index);
            transfers.push(Transfer {
                name: transfer.name.clone(),
                source,
                receivers,
                object,
            });
        }
        for flow in &self.flows {
            let reached = reached(&delivery, nodes, flow.source, REACHABLE_PRR);
            if must_reach && !reached[flow.sink] {
                let ends = (flow.source, flow.sink);
                return Err(self.unreachable(&flow.span, ends, seed, &check));
            }
        }
        Ok(Network {
            seed,
            medium,
            delivery,
            transfers,
        })
    }

    /// An error about the receivers of a transfer, for what shows only on its network. Panics if there is no such transfer.
    pub fn transfer_error(
        &self,
        index: usize,
        label: &str,
        message: impl Into<String>,
    ) -> InputError {
        let span = self.transfers[index].span.clone();
        Check::new(&self.source).error(span, label, message)
    }

    /// An error about the sink of a flow. Panics if there is no such flow.
    pub fn flow_error(&self, index: usize, label: &str, message: impl Into<String>) -> InputError {
        let span = self.flows[index].span.clone();
        Check::new(&self.source).error(span, label, message)
    }

    fn medium(&self, seed: u64, check: &Check<'_>) -> Result<Medium, InputError> {
        let ask = self.settings.frame();
        medium_of((&self.topology, &self.profile), ask, seed, check)
    }

    fn unreachable(
        &self,
        span: &Range<usize>,
        (source, lost): (usize, usize),
        seed: u64,
        check: &Check<'_>,
    ) -> InputError {
        let share = REACHABLE_PRR * 100.0;
        let (source, lost) = (self.name_of(source), self.name_of(lost));
        let message = format!("no path leads from node {source} to receiver {lost}");
        let mut help =
            format!("no chain of links with a delivery ratio of {share} % or more connects them");
        if self.topology.varies() {
            help += &format!(
                " with seed {seed}; set network.seed, move nodes closer, or draw receivers by count"
            );
        }
        // A list of links that go one way is the likeliest reason.
        for note in &self.notes {
            help += &format!("; {note}");
        }
        check
            .error(span.clone(), "this receiver", message)
            .help(help)
    }

    fn too_few(
        &self,
        transfer: &TransferPlan,
        source: usize,
        found: usize,
        seed: u64,
        check: &Check<'_>,
    ) -> InputError {
        let source = self.name_of(source);
        let message = format!("with seed {seed} node {source} reaches only {found} others");
        let share = DRAWN_PRR * 100.0;
        check
            .error(transfer.span.clone(), "too many", message)
            .help(format!(
                "ask for fewer receivers, or move nodes closer: links count from {share} %"
            ))
    }
}

/// The medium of one seed, where frames that are sent like `ask` must connect the nodes if the scenario says so.
pub(super) fn medium_of(
    (topology, profile): (&Topology, &Profile),
    ask: (Mode, usize),
    seed: u64,
    check: &Check<'_>,
) -> Result<Medium, InputError> {
    let placed = topology.placed(seed, profile, ask);
    let unconnected = || {
        let message = format!("with seed {seed} no draw of positions is connected");
        let help = "ask for more nodes, a smaller area, or a lower ratio in network.connected";
        check.error(0..0, "", message).help(help)
    };
    let made = match (topology, placed) {
        (Topology::Channels(topology), _) => {
            let powers = topology.powers(seed, profile).ok_or_else(unconnected)?;
            Medium::given(&powers, profile, Seed(seed))
        }
        (Topology::Measured(matrix), _) => Medium::matrix(matrix),
        (_, Some(placed)) => match &placed.motion {
            Some(motion) => Medium::moving(motion, profile, topology.seed(seed)),
            None => Medium::geometric(&placed.places, profile, topology.seed(seed)),
        },
        (_, None) => return Err(unconnected()),
    };
    made.map_err(|error| check.error(0..0, "", error.to_string()))
}

/// The number of sources drawn before giving up on one that reaches enough others.
const SOURCE_DRAWS: usize = 1000;

/// Draws `count` receivers, and a source that reaches them unless it is given, among the nodes that are not taken.
/// Fails with the source that reaches most others, and how many those are.
fn draw_group(
    draw: &mut Stream,
    delivery: &[f64],
    (given, count): (Option<usize>, usize),
    taken: impl Fn(usize) -> bool,
) -> Result<(usize, Vec<usize>), (usize, usize)> {
    let nodes = delivery.len().isqrt();
    let free: Vec<usize> = (0..nodes).filter(|&node| !taken(node)).collect();
    let mut best = (given.unwrap_or(0), 0);
    for _ in 0..given.map_or(SOURCE_DRAWS, |_| 1) {
        let drawn = || free.get(draw.below(free.len() as u64) as usize).copied();
        let Some(source) = given.or_else(drawn) else {
            break;
        };
        let reached = reached(delivery, nodes, source, DRAWN_PRR);
        let mut others: Vec<usize> = free
            .iter()
            .copied()
            .filter(|&node| node != source && reached[node])
            .collect();
        if others.len() >= count {
            draw.shuffle(&mut others);
            others.truncate(count);
            others.sort_unstable();
            return Ok((source, others));
        }
        if others.len() >= best.1 {
            best = (source, others.len());
        }
    }
    Err(best)
}

/// The true delivery ratios of the shortest data frame.
fn delivery(medium: &Medium, plan: &Plan) -> Vec<f64> {
    let nodes = medium.nodes();
    let (mode, octets) = plan.settings.frame();
    let mut delivery = vec![0.0; nodes * nodes];
    for (from, to, prr) in medium.ratios(mode, octets) {
        delivery[from * nodes + to] = prr;
    }
    delivery
}

/// Which nodes links of at least `prr` lead to.
fn reached(delivery: &[f64], nodes: usize, source: usize, prr: f64) -> Vec<bool> {
    let (mut seen, mut open) = (vec![false; nodes], vec![source]);
    seen[source] = true;
    while let Some(from) = open.pop() {
        for to in 0..nodes {
            if !seen[to] && delivery[from * nodes + to] >= prr {
                seen[to] = true;
                open.push(to);
            }
        }
    }
    seen
}

/// Checks `[[transfer]]` and reads the files to carry.
pub fn transfers(
    scenario: &Scenario,
    nodes: usize,
    shares_ends: bool,
    check: &Check<'_>,
) -> Result<Vec<TransferPlan>, InputError> {
    if scenario.transfer.is_empty() && scenario.flow.is_empty() {
        let message = "there is nothing to carry: the scenario has no [[transfer]]";
        let end = check.source().text().trim_end().len();
        return Err(check
            .error(end..end, "add a [[transfer]] here", message)
            .help("[[transfer]] with source, receivers, and bytes or object"));
    }
    let mut plans: Vec<TransferPlan> = Vec::new();
    for (index, transfer) in scenario.transfer.iter().enumerate() {
        let plan = one(transfer, index, nodes, check)?;
        let clash = plans.iter().any(|other| {
            let both = plan.from.is_some() && plan.from == other.from;
            let shared = match (&plan.to, &other.to) {
                (Receivers::Nodes(a), Receivers::Nodes(b)) => a.iter().any(|node| b.contains(node)),
                _ => false,
            };
            both || shared
        });
        if clash && !shares_ends {
            let message =
                "a node is the source of one transfer and the receiver of one transfer at most";
            return Err(check.at(
                &transfer.receivers,
                "takes part in another one already",
                message,
            ));
        }
        plans.push(plan);
    }
    Ok(plans)
}

fn one(
    transfer: &Located<TransferTable>,
    index: usize,
    nodes: usize,
    check: &Check<'_>,
) -> Result<TransferPlan, InputError> {
    let from = transfer
        .source
        .as_ref()
        .map(|source| check.node(source, nodes))
        .transpose()?;
    receivers(transfer, from, nodes, check)?;
    let payload = match (&transfer.object, &transfer.bytes) {
        (Some(object), None) => file(object, check)?,
        (None, Some(bytes)) => {
            if !(1.0..=OBJECT_MAX).contains(&bytes.value()) {
                let message = format!("an object of {} cannot be carried", **bytes);
                return Err(check
                    .at(bytes, "out of range", message)
                    .help("from 1 B to 2 GB"));
            }
            Payload::Random(bytes.value() as usize)
        }
        (Some(_), Some(bytes)) => {
            let message = "`bytes` and `object` both say what is carried";
            return Err(check
                .at(bytes, "one too many", message)
                .help("leave out one of them"));
        }
        (None, None) => {
            let message = "this transfer does not say what is carried";
            return Err(check
                .at(transfer, "in this table", message)
                .help("for example bytes = \"12 MB\", or object = \"file\""));
        }
    };
    Ok(TransferPlan {
        name: transfer.name.clone().unwrap_or_else(|| format!("t{index}")),
        from,
        to: (*transfer.receivers).clone(),
        payload,
        span: transfer.receivers.span(),
    })
}

const NO_RECEIVER: &str = "a transfer needs at least one receiver";

fn receivers(
    transfer: &TransferTable,
    from: Option<usize>,
    nodes: usize,
    check: &Check<'_>,
) -> Result<(), InputError> {
    let at = |label: &str, message: String| check.at(&transfer.receivers, label, message);
    match &*transfer.receivers {
        Receivers::Count(0) => Err(at("no receiver", NO_RECEIVER.into())),
        Receivers::Count(count) if *count >= nodes => Err(at(
            "too many",
            format!("{count} receivers in a network of {nodes} nodes"),
        )),
        Receivers::Count(_) => Ok(()),
        Receivers::Nodes(list) if list.is_empty() => Err(at("no receiver", NO_RECEIVER.into())),
        Receivers::Nodes(list) => {
            for (index, &node) in list.iter().enumerate() {
                if node >= nodes {
                    return Err(at("no such node", format!("there is no node {node}"))
                        .help(numbered(nodes)));
                }
                if Some(node) == from {
                    return Err(at(
                        "the source itself",
                        format!("node {node} is the source; it has the object"),
                    ));
                }
                if list[..index].contains(&node) {
                    return Err(at("twice", format!("receiver {node} is listed twice")));
                }
            }
            if from.is_none() {
                return Err(
                    at("these nodes", "named receivers need a named source".into())
                        .help("add source = 0, or give the number of receivers to draw"),
                );
            }
            Ok(())
        }
    }
}

fn file(object: &Located<PathBuf>, check: &Check<'_>) -> Result<Payload, InputError> {
    // A path from the command line counts from where the command runs.
    let path = if object.span().is_empty() {
        (**object).clone()
    } else {
        check.source().beside(object)
    };
    let told = |error: InputError| match object.span().is_empty() {
        true => error,
        false => check.instead(object, error),
    };
    let bytes = read_limited(&path, OBJECT_MAX as u64).map_err(told)?;
    if bytes.is_empty() {
        let name = path.display().to_string();
        let message = format!("{name} is empty: there is nothing to carry");
        return Err(told(InputError::new(name, message)));
    }
    Ok(Payload::File {
        path,
        bytes: bytes.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::idle;

    fn plan(network: &str, transfer: &str) -> Plan {
        let text = format!("[network]\n{network}\n[[transfer]]\n{transfer}\nbytes = \"3 kB\"\n");
        idle::plan(&text)
    }

    /// Two islands: whoever is drawn as the source has its receivers on its own one.
    #[test]
    fn receivers_are_drawn_where_the_source_reaches() {
        let islands =
            "links = [[0,0.9,0.9,0,0],[0.9,0,0.9,0,0],[0.9,0.9,0,0,0],[0,0,0,0,0.9],[0,0,0,0.9,0]]";
        for seed in 0..50 {
            let network = plan(islands, "receivers = 2").network(seed).unwrap();
            let transfer = &network.transfers[0];
            assert!(transfer.source < 3 && transfer.receivers.iter().all(|&node| node < 3));
            assert!(!transfer.receivers.contains(&transfer.source));
        }
        let error = plan(islands, "receivers = 3").network(1).unwrap_err();
        assert!(error.message.contains("reaches only 2 others"), "{error}");
    }

    /// The same seed draws the same group and the same object, another seed another object.
    #[test]
    fn a_network_is_decided_by_its_seed() {
        let plan = plan(
            "generator = \"grid\"\nnodes = 9\nspacing = \"50 m\"",
            "receivers = 3",
        );
        let (one, again, other) = (
            plan.network(1).unwrap(),
            plan.network(1).unwrap(),
            plan.network(2).unwrap(),
        );
        assert_eq!(one.transfers, again.transfers);
        assert_ne!(one.transfers[0].object, other.transfers[0].object);
    }

    #[test]
    fn only_a_network_seed_fixes_the_places() {
        let random = "generator = \"random\"\nnodes = 20\narea = [\"300 m\", \"300 m\"]";
        let places = |network: &str, seed| {
            plan(network, "receivers = 1")
                .network(seed)
                .unwrap()
                .medium
                .positions()
                .to_vec()
        };
        let fixed = format!("{random}\nseed = 7");
        assert_eq!(places(&fixed, 1), places(&fixed, 2));
        assert_ne!(places(random, 1), places(random, 2));
        let connected = format!("{random}\nconnected = 0.5");
        assert_eq!(places(&connected, 1).len(), 20);
    }
}
