//! One seed's network: where the nodes stand, who sends what to whom, and the true delivery ratios.

use std::path::PathBuf;
use std::sync::Arc;

use chappe_core::{Purpose, Seed, Stream};
use chappe_sim::Medium;

use super::{Check, Ground, Plan, TransferPlan, numbered};
use crate::input::InputError;
use crate::scenario::{Located, Receivers, Scenario, Transfer};

/// A link counts for reachability if it delivers at least this share of its frames: one of the 600 probes of the
/// paper's ETX phase finds a link of 1 % with a probability of 99.8 %.
pub const REACHABLE_PRR: f64 = 0.01;

/// Drawn receivers are drawn among the nodes that links of at least this share lead to: a hop that takes more
/// than ten attempts is not a place where somebody would put a receiver.
const DRAWN_PRR: f64 = 0.1;

/// The largest object: results count octets, and a receiver holds all of it in memory.
const OBJECT_MAX: f64 = 2e9;

/// What is carried.
#[derive(Clone, Debug, PartialEq)]
pub enum Payload {
    /// So many octets, drawn from the seed.
    Random(usize),
    /// A file's contents.
    File {
        /// The file.
        path: PathBuf,
        /// What is in it.
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

/// One seed's network.
#[derive(Clone, Debug)]
pub struct Stage {
    /// The run's seed.
    pub seed: u64,
    /// What lies between the antennas.
    pub medium: Medium,
    /// True delivery ratios of the shortest data frame, without interference: row-major, from each node to each.
    pub delivery: Vec<f64>,
    /// Who sends what to whom.
    pub transfers: Vec<TransferStage>,
}

/// One transfer with its nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct TransferStage {
    /// Its name.
    pub name: String,
    /// Who has the object.
    pub source: usize,
    /// Who wants it.
    pub receivers: Vec<usize>,
    /// The object.
    pub object: Arc<[u8]>,
}

impl Plan {
    /// The network and the transfers of one seed. Fails if a receiver cannot be reached at all.
    pub fn stage(&self, seed: u64) -> Result<Stage, InputError> {
        let nodes = self.ground.nodes();
        let check = Check {
            source: &self.source,
        };
        let medium = self.medium(seed, &check)?;
        let delivery = delivery(&medium, self);
        let mut transfers: Vec<TransferStage> = Vec::new();
        for (index, transfer) in self.transfers.iter().enumerate() {
            let mut draw = Seed(seed).child(1 + index as u64).stream(Purpose::Topology);
            let taken = |node: usize| {
                transfers
                    .iter()
                    .any(|t| t.source == node || t.receivers.contains(&node))
            };
            let source = match transfer.from {
                Some(node) => node,
                None => draw_one(&mut draw, (0..nodes).filter(|&n| !taken(n))).unwrap_or(0),
            };
            let receivers = match &transfer.to {
                Receivers::Nodes(receivers) => {
                    let reached = reached(&delivery, nodes, source, REACHABLE_PRR);
                    if let Some(lost) = receivers.iter().find(|&&node| !reached[node]) {
                        return Err(self.unreachable(transfer, source, *lost, seed, &check));
                    }
                    receivers.clone()
                }
                Receivers::Count(count) => {
                    let reached = reached(&delivery, nodes, source, DRAWN_PRR);
                    let mut others: Vec<usize> = (0..nodes)
                        .filter(|&n| n != source && reached[n] && !taken(n))
                        .collect();
                    draw.shuffle(&mut others);
                    if others.len() < *count {
                        return Err(self.too_few(transfer, source, others.len(), seed, &check));
                    }
                    others.truncate(*count);
                    others.sort_unstable();
                    others
                }
            };
            let object = transfer.payload.bytes(seed, index);
            transfers.push(TransferStage {
                name: transfer.name.clone(),
                source,
                receivers,
                object,
            });
        }
        Ok(Stage {
            seed,
            medium,
            delivery,
            transfers,
        })
    }

    fn medium(&self, seed: u64, check: &Check<'_>) -> Result<Medium, InputError> {
        let ask = (self.mode, self.protocol.frame_octets());
        let places = self.ground.connected_positions(seed, &self.profile, ask);
        let made = match (&self.ground, places) {
            (Ground::Measured(matrix), _) => Medium::matrix(matrix),
            (_, Some(places)) => Medium::geometric(&places, &self.profile, self.ground.seed(seed)),
            (_, None) => {
                let message = format!("with seed {seed} no draw of places is connected");
                return Err(check.error(0..0, "", message).help(
                    "ask for more nodes, a smaller area, or a lower ratio in network.connected",
                ));
            }
        };
        made.map_err(|error| check.error(0..0, "", error.to_string()))
    }

    fn unreachable(
        &self,
        transfer: &TransferPlan,
        source: usize,
        lost: usize,
        seed: u64,
        check: &Check<'_>,
    ) -> InputError {
        let share = REACHABLE_PRR * 100.0;
        let message = format!("no path leads from node {source} to receiver {lost}");
        let mut help =
            format!("no chain of links with a delivery ratio of {share} % or more connects them");
        if self.ground.varies() {
            help += &format!(
                " with seed {seed}; set network.seed, move nodes closer, or draw receivers by count"
            );
        }
        check
            .error(transfer.span.clone(), "this receiver", message)
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
        let message =
            format!("with seed {seed} node {source} reaches only {found} nodes that can be drawn");
        let share = DRAWN_PRR * 100.0;
        check
            .error(transfer.span.clone(), "too many", message)
            .help(format!(
                "ask for fewer receivers, or move nodes closer: links count from {share} %"
            ))
    }
}

fn draw_one(draw: &mut Stream, nodes: impl Iterator<Item = usize>) -> Option<usize> {
    let nodes: Vec<usize> = nodes.collect();
    nodes.get(draw.below(nodes.len() as u64) as usize).copied()
}

/// The true delivery ratios of the shortest data frame.
fn delivery(medium: &Medium, plan: &Plan) -> Vec<f64> {
    let nodes = medium.nodes();
    let (mode, octets) = (plan.mode, plan.protocol.frame_octets());
    let mut delivery = vec![0.0; nodes * nodes];
    for from in 0..nodes {
        let hearers: Vec<usize> = medium.hearers(from).collect();
        for to in hearers {
            delivery[from * nodes + to] = medium.prr(from, to, mode, octets);
        }
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
    check: &Check<'_>,
) -> Result<Vec<TransferPlan>, InputError> {
    if scenario.transfer.is_empty() {
        let message = "there is nothing to carry: the scenario has no [[transfer]]";
        let end = check.source.text().trim_end().len();
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
        if clash {
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
    transfer: &Located<Transfer>,
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

fn receivers(
    transfer: &Transfer,
    from: Option<usize>,
    nodes: usize,
    check: &Check<'_>,
) -> Result<(), InputError> {
    let at = |label: &str, message: String| check.at(&transfer.receivers, label, message);
    match &*transfer.receivers {
        Receivers::Count(0) => Err(at("nobody", "somebody must receive".into())),
        Receivers::Count(count) if *count >= nodes => Err(at(
            "too many",
            format!("{count} receivers in a network of {nodes} nodes"),
        )),
        Receivers::Count(_) => Ok(()),
        Receivers::Nodes(list) if list.is_empty() => {
            Err(at("nobody", "somebody must receive".into()))
        }
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
                    return Err(at("twice", format!("receiver {node} stands here twice")));
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
        check.source.beside(object)
    };
    let bytes = std::fs::read(&path).map_err(|error| {
        let error = InputError::unreadable(&path, &error);
        if object.span().is_empty() {
            error
        } else {
            check.instead(object, error)
        }
    })?;
    if bytes.is_empty() || bytes.len() as f64 > OBJECT_MAX {
        let name = path.display().to_string();
        let message = format!(
            "{name} has {} octets; 1 to {OBJECT_MAX:.0} can be carried",
            bytes.len()
        );
        let error = InputError::new(name, message);
        return Err(if object.span().is_empty() {
            error
        } else {
            check.instead(object, error)
        });
    }
    Ok(Payload::File {
        path,
        bytes: bytes.into(),
    })
}
