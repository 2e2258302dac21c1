//! A scenario's transfer by the processes of `chappe cast` in the emulator, and why it takes as long as it does.
//!
//! `chappe sim` runs Pacifier alone: its nodes know their links from ten minutes of probing, take a frame when the MAC
//! has room for one, and hear each other's unicast frames. A member of `chappe cast` measures its links in seconds,
//! seals its frames, talks of itself, confirms unicast frames itself, and sends at a pace, since no socket tells it when
//! the radio is free. [`Step`] adds these one after the other to the simulated nodes; what remains after the last one is
//! what only real time and the kernel do.

mod dressed;

use std::sync::Arc;

use chappe_core::{Address, Bitrate, OverMac, Purpose, Seed};
use chappe_lab::run::{Meter, RunError};
use chappe_mac::dot11::Dot11;
use chappe_pacifier::{Links, Node};
use chappe_scenario::Plan;
use chappe_sim::{AirTime, Simulator, World};

use crate::{Depth, Pacifier, Prepared, prepare};

pub use dressed::{AROUND, Chatter, Clothes, Dressed};

/// What a member of `chappe cast` differs in from a simulated node, one after the other: each step has all before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Nothing: `chappe sim`.
    Simulator,
    /// The links that the members measured, in two seconds and then by every broadcast.
    Links,
    /// Chappe's, UDP's and IP's headers around each frame.
    Around,
    /// Unicast frames of others are not overheard, and are confirmed by a frame of their own beside the MAC's.
    Confirmations,
    /// Hellos and records.
    Chatter,
    /// Frames leave the node at a pace and wait in the station's queue; nobody says when a broadcast is on the air.
    Pace,
}

impl Step {
    /// In their order.
    pub const ALL: [Step; 6] = [
        Step::Simulator,
        Step::Links,
        Step::Around,
        Step::Confirmations,
        Step::Chatter,
        Step::Pace,
    ];

    /// In a few words.
    pub const fn name(self) -> &'static str {
        match self {
            Step::Simulator => "Pacifier, as simulated",
            Step::Links => "links as the processes measured them",
            Step::Around => "headers and seals",
            Step::Confirmations => "confirmed by frames, not overheard",
            Step::Chatter => "hellos and records",
            Step::Pace => "a pace and a queue, no push-back",
        }
    }
}

/// What was seen in an emulated run.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// The delivery ratios that the members had measured: (from, to, ratio).
    pub links: Vec<(u16, u16, f64)>,
    /// What a member sends that has nothing to pass on.
    pub chatter: Chatter,
    /// The rate of each member, and the frames that may wait at a station.
    pub pace: (Bitrate, usize),
}

/// How long a simulated transfer may take, in seconds of air.
const LIMIT_S: u64 = 600;
/// Streams of coding vectors and of chatter, apart from those of back-offs.
const CODING: u32 = 1 << 16;
const CHATTER: u32 = 1 << 17;

/// What all steps of a seed share: the network, the transfers, the probed links.
#[derive(Clone, Debug)]
pub struct Ladder {
    with: Pacifier,
    prepared: Prepared,
}

impl Ladder {
    /// Of a plan and a seed.
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

    /// The goodput in bit/s of each receiver of the first transfer, 0 if it was not done in time.
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
        let clothes = Clothes {
            around: if step >= Step::Around { AROUND } else { 0 },
            confirms: step >= Step::Confirmations,
            chatter: (step >= Step::Chatter).then_some(facts.chatter),
            pace: (step >= Step::Pace).then_some(facts.pace),
        };
        let chatter = seed.stream(Purpose::Node(CHATTER + node as u32));
        Ok(OverMac::new(mac, Dressed::new(inner, clothes, chatter)))
    }
}

/// A dressed node on 802.11.
type Station = OverMac<Dot11, Dressed>;

#[cfg(test)]
mod tests;
