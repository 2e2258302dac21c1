//! Explains the throughput of `chappe cast` in the emulator by a series of simulations.
//!
//! `chappe sim` runs Pacifier alone: its nodes know their links from ten minutes of probing, hand over a frame when the
//! MAC has room, and overhear each other's unicast frames. A member of `chappe cast` measures its links in seconds, seals
//! its frames, sends hellos and records, and confirms unicast frames itself. It sends at a pace, because no socket reports
//! when the radio is free. [`Step`] adds these differences one by one to the simulated nodes. The difference that remains
//! after the last step is due to real time and the kernel.

mod member;

use std::sync::Arc;

use chappe_core::{Address, Bitrate, OverMac, Purpose, Seed};
use chappe_lab::run::{Meter, RunError};
use chappe_mac::dot11::Dot11;
use chappe_pacifier::{Links, Node};
use chappe_scenario::Plan;
use chappe_sim::{AirTime, Simulator, World};

use crate::{Depth, Pacifier, Prepared, prepare};

pub use member::{AROUND, Additions, Chatter, MemberNode};

/// A difference between a member of `chappe cast` and a simulated node. Each step includes all earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// No difference: the run of `chappe sim`.
    Simulator,
    /// Delivery ratios as the members measured them, in two seconds and then with every broadcast.
    Links,
    /// Chappe's header and tag, UDP's and IP's headers around each frame.
    Around,
    /// No overhearing of unicast frames, and a separate frame that confirms each, besides the MAC's acknowledgement.
    Confirmations,
    /// Broadcasts of hellos and records, besides the data.
    Chatter,
    /// Frames leave the node at a fixed pace and wait in the station's queue. The node does not learn when a broadcast is
    /// on the air.
    Pace,
}

impl Step {
    /// All steps, in their order.
    pub const ALL: [Step; 6] = [
        Step::Simulator,
        Step::Links,
        Step::Around,
        Step::Confirmations,
        Step::Chatter,
        Step::Pace,
    ];

    /// A short description for reports.
    pub const fn name(self) -> &'static str {
        match self {
            Step::Simulator => "Pacifier, as simulated",
            Step::Links => "links as the processes measured them",
            Step::Around => "headers and seals",
            Step::Confirmations => "confirmation frames, no overhearing",
            Step::Chatter => "hellos and records",
            Step::Pace => "a pace and a queue, no back-pressure",
        }
    }
}

/// Measurements of an emulated run that the steps use.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// The delivery ratios that the members measured: (from, to, ratio).
    pub links: Vec<(u16, u16, f64)>,
    /// The broadcasts of a member that carries no data.
    pub chatter: Chatter,
    /// The sending rate of each member, and the queue length of its station in frames.
    pub pace: (Bitrate, usize),
}

/// The limit of a simulated transfer, in simulated seconds.
const LIMIT_S: u64 = 600;
/// Random streams of coding vectors and of chatter, distinct from those of back-offs.
const CODING: u32 = 1 << 16;
const CHATTER: u32 = 1 << 17;

/// The part of a seed that all steps share: the network, its transfers, the probed links.
#[derive(Clone, Debug)]
pub struct Ladder {
    with: Pacifier,
    prepared: Prepared,
}

impl Ladder {
    /// Prepares one seed of a plan. Fails if the plan is not Pacifier's.
    pub fn new(plan: &Plan, seed: u64) -> Result<Ladder, RunError> {
        let with = Pacifier::of(plan)?.clone();
        let prepared = prepare(
            &with,
            plan.network(seed)?,
            Depth::Slowest,
            &Meter::default(),
        )?;
        Ok(Ladder { with, prepared })
    }

    /// The bound of the slowest receiver in bit/s.
    pub fn bound_bps(&self) -> Option<f64> {
        self.prepared.bounds.first().map(|bound| bound.worst_bps)
    }

    /// The goodput in bit/s of each receiver of the first transfer; 0 if the receiver did not finish in time.
    pub fn goodput(&self, step: Step, facts: &Facts) -> Result<Vec<f64>, RunError> {
        let defect = |error: &dyn std::fmt::Debug| RunError::Defect(format!("{error:?}"));
        let Some(transfer) = self.prepared.network.transfers.first() else {
            return Err(RunError::Defect("a plan without a transfer".into()));
        };
        let receivers: Vec<u16> = transfer.receivers.iter().map(|&node| node as u16).collect();
        let nodes = self.prepared.network.medium.nodes();
        let mut stations = Vec::new();
        for node in 0..nodes {
            let mut station = self.station(node, step, facts)?;
            let inner = &mut station.link.node;
            if transfer.receivers.contains(&node) {
                let expected = inner.expect(transfer.source as u16, transfer.object.len());
                expected.map_err(|error| defect(&error))?;
            }
            if node == transfer.source {
                let offered = inner.offer(transfer.object.clone(), &receivers);
                offered.map_err(|error| defect(&error))?;
            }
            stations.push(Box::new(station));
        }
        let world = World::new(self.prepared.network.medium.clone());
        let seed = Seed(self.prepared.network.seed);
        let mut simulator =
            Simulator::new(world, stations, seed, ()).map_err(|error| defect(&error))?;
        let end = AirTime::ZERO + chappe_core::Duration::from_secs(LIMIT_S);
        let completed = |simulator: &Simulator<Station>, node: usize| {
            simulator.node(node).link.node.received().complete_at
        };
        simulator.run_while(end, |simulator| {
            let lacks = |&node: &usize| completed(simulator, node).is_none();
            transfer.receivers.iter().any(lacks)
        });
        let bits = transfer.object.len() as f64 * 8.0;
        let rate = |&node: &usize| {
            completed(&simulator, node).map_or(0.0, |at| bits / at.as_secs_f64().max(1e-9))
        };
        Ok(transfer.receivers.iter().map(rate).collect())
    }

    fn station(&self, node: usize, step: Step, facts: &Facts) -> Result<Station, RunError> {
        let defect = |error: &dyn std::fmt::Debug| RunError::Defect(format!("{error:?}"));
        let seed = Seed(self.prepared.network.seed);
        let nodes = self.prepared.network.medium.nodes();
        let links = match step {
            Step::Simulator => self.prepared.links.clone(),
            _ => {
                let ratio = |from: u16, to: u16| {
                    let known = facts
                        .links
                        .iter()
                        .find(|link| (link.0, link.1) == (from, to));
                    known.map_or(0.0, |link| link.2)
                };
                Arc::new(Links::measured(nodes, ratio).map_err(|error| defect(&error))?)
            }
        };
        let coding = seed.stream(Purpose::Node(CODING + node as u32));
        let config = self.with.protocol.config.clone();
        let inner =
            Node::new(config, node as u16, links, coding).map_err(|error| defect(&error))?;
        let mac = chappe_mac::dot11::Config {
            overhear: step < Step::Confirmations,
            ..self.with.mac
        };
        let random = seed.stream(Purpose::Node(node as u32));
        let mac = Dot11::new(mac, Address::node(node as u16), random);
        let additions = Additions {
            around: if step >= Step::Around { AROUND } else { 0 },
            confirms: step >= Step::Confirmations,
            chatter: (step >= Step::Chatter).then_some(facts.chatter),
            pace: (step >= Step::Pace).then_some(facts.pace),
        };
        let chatter = seed.stream(Purpose::Node(CHATTER + node as u32));
        Ok(OverMac::new(
            mac,
            MemberNode::new(inner, additions, chatter),
        ))
    }
}

/// A member's node on 802.11.
type Station = OverMac<Dot11, MemberNode>;

#[cfg(test)]
mod tests;
