//! The network that TCPlp's experiments run on: motes with 802.15.4 radios, a border router, a host behind it.
//!
//! ```
//! use chappe_core::{Duration, Seed};
//! use chappe_lab_tcplp::app::App;
//! use chappe_lab_tcplp::experiment::Experiment;
//!
//! // Three perfect hops; node 3 sends to node 0 without end.
//! let experiment = Experiment::row(3);
//! let mut memory = experiment.memory();
//! let apps = |node| App::sending(if node == 3 { u64::MAX } else { 0 });
//! let mut lln = experiment.start(&mut memory, Seed(1), apps)?;
//! lln.connect(3, 0);
//! lln.run(Duration::from_secs(2));
//! let before = lln.counts();
//! lln.run(Duration::from_secs(10));
//! let counts = lln.counts().since(&before);
//! assert!(lln.bulk(0).received > 10_000 && counts.frames() > 200);
//! # Ok::<(), chappe_lab::run::RunError>(())
//! ```
//!
//! An [`Experiment`] is data: the links ([`Air`]), the tree of next hops, the link layer, TCP's buffers and options, the
//! nodes that sleep, the losses that are injected. Its fields are public. [`Experiment::start`] makes the nodes
//! ([`station`](super::station)) and puts them into a simulator; [`Experiment::memory`] makes the memory that their sockets
//! borrow. The result is an [`Lln`]. Each node runs an [`App`].
//!
//! **The cloud.** With a [`Wire`], node 0 is a border router. Its host is behind a cable with a delay, has the address
//! [`CLOUD`], and has buffers and options that differ from the motes'. Without a wire, node 0 is a mote like the others.
//!
//! **Injected loss** ([`Experiment::lose`]) drops whole packets at a host, after the link has delivered and reassembled
//! them: the loss of segments in the paper's sense, independent of the radio.
//!
//! Equal experiments with equal seeds run equally. [`FigureContext`](chappe_lab::context::FigureContext) runs several seeds in parallel.

use std::net::Ipv6Addr;

use chappe_core::{Address, Dbm, Duration, OverMac, Purpose, Seed};
use chappe_lab::carry::Record;
use chappe_lab::run::RunError;
use chappe_mac::dot15d4::{self, Dot15d4, Sleep};
use chappe_sim::{AirTime, Fault, LinkLoss, Matrix, Medium, Position, Profile, Simulator, World};
use chappe_tcplp::host::Host;
use chappe_tcplp::lowpan::red::Thresholds;
use chappe_tcplp::lowpan::{Config, Interface, TcpHeaders};

use super::addresses::{CLOUD, CONTEXTS, PORT, PREFIX};
use super::app::App;
use super::lln::Lln;
use super::socket_memory::{HostMemory, SocketMemory};
use super::station::{Gate, Node, Paths, QUEUE};
use super::times::Times;
use super::transport::{MSS, Transport, WINDOW};

/// The links between nodes.
#[derive(Clone, Debug)]
pub enum Air {
    /// Links with their delivery ratios, the same both ways. Nodes without a link do not sense each other, so that every
    /// second neighbour is a hidden terminal; any overlap destroys both frames.
    Links(Vec<(usize, usize, f64)>),
    /// A medium that was made elsewhere, for as many nodes as the experiment has.
    Given(Box<Medium>),
    /// Positions, and a radio ([`Profile::NAMES_DOT15D4`]) at this power.
    Places {
        /// Where the nodes are, in metres.
        at: Vec<Position>,
        /// The name of the simulator's radio profile.
        profile: &'static str,
        /// The transmit power of every node.
        power: Dbm,
        /// Whether distance alone decides: no multipath and no shadowing, so that equal distances are equal links.
        alike: bool,
    },
}

/// The cable between the border router and the host behind it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wire {
    /// The delay in one direction.
    pub delay: Duration,
    /// TCP of the host behind the cable.
    pub transport: Transport,
}

/// A network and the stacks of its nodes, without the applications and the seed.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The links between nodes.
    pub air: Air,
    /// The next hop of each node towards node 0; node 0's own entry is ignored.
    pub parents: Vec<usize>,
    /// The cable to the cloud, if node 0 is a border router.
    pub wire: Option<Wire>,
    /// The link layer of all nodes.
    pub mac: dot15d4::Config,
    /// The nodes that sleep, and how. Each one's parent holds its frames.
    pub leaves: Vec<(usize, Sleep)>,
    /// Whether the nodes share a context for [`PREFIX`]; otherwise addresses go in line.
    pub contexts: bool,
    /// Whether both ends of the mesh compress TCP headers.
    pub headers: bool,
    /// Silence of a source after each of its frames that has relays ahead; see [`Config::pace_over`].
    pub pace: Duration,
    /// Whether relays run RED: mark, and drop early.
    pub red: bool,
    /// TCP of the motes.
    pub transport: Transport,
    /// TCP of single motes that differ from [`Experiment::transport`].
    pub transports: Vec<(usize, Transport)>,
    /// Shares of packets that node 0's host loses: of those to it, and of those from it.
    pub lose: (f64, f64),
    /// Losses of links in addition to those of the radio.
    pub link_losses: Vec<LinkLoss>,
    /// Crashes, restarts and other faults, and when they strike.
    pub faults: Vec<(AirTime, Fault)>,
}

impl Wire {
    /// The paper's server (8): a round trip of 12 ms.
    pub fn paper(mss: u16) -> Wire {
        Wire {
            delay: Duration::from_millis(6),
            transport: Transport::server(mss),
        }
    }
}

impl Experiment {
    /// A row of `hops` perfect links from node 0 to the last node; no other nodes sense each other. TCPlp's radio timing,
    /// link retry delays, segments and windows; no border router.
    pub fn row(hops: usize) -> Experiment {
        let links = (0..hops).map(|node| (node, node + 1, 1.0)).collect();
        let parents = (0..=hops).map(|node: usize| node.saturating_sub(1));
        Experiment::new(Air::Links(links), parents.collect())
    }

    /// A row of motes `metres` apart with TCPlp's radio at its -8 dBm. At 30 m neighbours have a link margin of some
    /// decibels; second neighbours sense each other's frames more often than they decode them.
    pub fn corridor(hops: usize, metres: f64) -> Experiment {
        let air = Air::Places {
            at: chappe_sim::topology::line(hops + 1, metres),
            profile: "at86rf233-indoor",
            power: Dbm(-8.0),
            alike: true,
        };
        let parents = (0..=hops).map(|node: usize| node.saturating_sub(1));
        Experiment::new(air, parents.collect())
    }

    /// TCPlp on any tree: `parents` has the next hop of each node towards node 0.
    pub fn new(air: Air, parents: Vec<usize>) -> Experiment {
        Experiment {
            air,
            parents,
            wire: None,
            mac: dot15d4::Config::HAMILTON,
            leaves: Vec::new(),
            contexts: false,
            headers: false,
            pace: Duration::ZERO,
            red: true,
            transport: Transport::tcplp(MSS, WINDOW),
            transports: Vec::new(),
            lose: (0.0, 0.0),
            link_losses: Vec::new(),
            faults: Vec::new(),
        }
    }

    /// The number of nodes.
    pub fn nodes(&self) -> usize {
        self.parents.len()
    }

    /// Hops from a node to node 0. If the parents form a loop, the result is the number of nodes.
    pub fn hops(&self, node: usize) -> usize {
        let (mut at, mut hops) = (node, 0);
        while at != 0 && hops < self.nodes() {
            (at, hops) = (self.parents.get(at).copied().unwrap_or(0), hops + 1);
        }
        hops
    }

    /// The address of a node's host.
    pub fn address(&self, node: usize) -> Ipv6Addr {
        match (node, self.wire) {
            (0, Some(_)) => CLOUD,
            _ => Config::new(Address::node(node as u16), PREFIX, 0).global(),
        }
    }

    /// TCP of a node's host.
    pub fn transport_of(&self, node: usize) -> Transport {
        match (node, self.wire) {
            (0, Some(wire)) => wire.transport,
            _ => self
                .transports
                .iter()
                .find(|(of, _)| *of == node)
                .map_or(self.transport, |(_, transport)| *transport),
        }
    }

    /// The memory that the sockets of one run borrow.
    pub fn memory(&self) -> SocketMemory {
        SocketMemory::new(
            (0..self.nodes()).map(|node| (self.address(node), self.transport_of(node))),
        )
    }

    /// The same with sources that pause after each frame until it is out of their way, and with the standard's most link
    /// retries.
    ///
    /// A full frame keeps its neighbourhood busy for 7.2 ms a hop (the paper's Figure 4a); load, mean back-off, assessment
    /// and turnaround come before it.
    pub fn paced(mut self) -> Experiment {
        let hops = (0..self.nodes()).map(|node| self.hops(node)).max();
        let us = Duration::from_micros;
        let lead = us(960 + 1120 + 128 + 192);
        self.pace = Config::pace_over(hops.unwrap_or(1).min(255) as u8, us(7200), lead);
        self.mac.retries = 7;
        self
    }

    /// Makes the nodes, each with the application that `app` returns for it, at time zero.
    pub fn start<'a>(
        &self,
        memory: &'a mut SocketMemory,
        seed: Seed,
        app: impl FnMut(usize) -> App,
    ) -> Result<Lln<'a>, RunError> {
        self.record(memory, seed, app, Record::Trial(Times::default()))
    }

    /// The same with a recorder of the frames on the air.
    pub fn record<'a>(
        &self,
        memory: &'a mut SocketMemory,
        seed: Seed,
        app: impl FnMut(usize) -> App,
        record: Record<Times>,
    ) -> Result<Lln<'a>, RunError> {
        let apps = (0..self.nodes()).map(app).collect();
        self.launch(memory, seed, apps, record)
    }

    fn launch<'a>(
        &self,
        memory: &'a mut SocketMemory,
        seed: Seed,
        apps: Vec<App>,
        record: Record<Times>,
    ) -> Result<Lln<'a>, RunError> {
        let nodes = memory.each().zip(apps).enumerate();
        let nodes = nodes.map(|(node, (memory, app))| Box::new(self.node(node, memory, seed, app)));
        let nodes = nodes.collect();
        let defect = |error: chappe_sim::Error| RunError::Defect(error.to_string());
        let mut world = World::new(self.medium(seed).map_err(defect)?);
        world.link_losses = self.link_losses.clone();
        world.faults = self.faults.clone();
        world.frame_max = chappe_wire::dot15d4::PSDU_MAX;
        let simulator = Simulator::new(world, nodes, seed, record).map_err(defect)?;
        let addresses = (0..self.nodes()).map(|node| self.address(node)).collect();
        Ok(Lln::new(simulator, addresses))
    }

    /// The medium between the antennas.
    pub fn medium(&self, seed: Seed) -> Result<Medium, chappe_sim::Error> {
        match &self.air {
            Air::Given(medium) => Ok((**medium).clone()),
            Air::Links(links) => {
                let silent = Matrix::silent(self.nodes());
                let matrix = links
                    .iter()
                    .fold(silent, |matrix, &(a, b, prr)| matrix.with_link(a, b, prr));
                Medium::matrix(&matrix)
            }
            Air::Places {
                at,
                profile,
                power,
                alike,
            } => {
                let named = Profile::named(profile);
                let mut profile = named.unwrap_or_else(|| unreachable!("no radio {profile}"));
                profile.power = *power;
                if *alike {
                    profile.shadowing = chappe_core::Db(0.0);
                    if let Some(radio) = &mut profile.dot15d4 {
                        radio.selectivity = None;
                    }
                }
                Medium::geometric(at, &profile, seed)
            }
        }
    }

    /// One node with all its layers.
    pub fn node<'a>(
        &self,
        number: usize,
        memory: &'a mut HostMemory,
        seed: Seed,
        app: App,
    ) -> Node<'a> {
        let here = Address::node(number as u16);
        // MAC, 6LoWPAN and injected loss draw from streams of their own, so that a change of one does not move the others.
        let stream = |of: u32| seed.stream(Purpose::Node(number as u32 * 4 + of));
        let mut mac_config = self.mac;
        mac_config.sleep = self.sleep(number);
        let config = Config {
            contexts: if self.contexts { &CONTEXTS } else { &[] },
            pace: self.pace,
            red: self.red.then_some(Thresholds::of(QUEUE as u16)),
            ..Config::new(here, PREFIX, self.mac.caps(0).frame_max)
        };
        let (local, sockets) = memory.sockets();
        let mut host = Host::new(local, config.link_local(), sockets, app);
        host.listen(PORT);
        // With a wire, node 0's host is the one in the cloud. Motes have no cable.
        let delay = self
            .wire
            .filter(|_| number == 0)
            .map_or(Duration::ZERO, |wire| wire.delay);
        let lose = if number == 0 { self.lose } else { (0.0, 0.0) };
        let gate = Gate::new(host, delay, lose, stream(2));
        let mut mac = Dot15d4::new(mac_config, here, stream(0));
        let paths = Paths::new(number, &self.parents, &self.children(number));
        for child in self.children(number) {
            mac.add_child(Address::node(child as u16));
        }
        let headers = self.headers.then(TcpHeaders::default);
        let stack = Interface::with_headers(config, gate, paths, stream(1), headers);
        OverMac::new(mac, stack)
    }

    /// How a node sleeps, if it does.
    pub fn sleep(&self, node: usize) -> Option<Sleep> {
        let found = self.leaves.iter().find(|(leaf, _)| *leaf == node);
        found.map(|(_, sleep)| *sleep)
    }

    /// The sleeping leaves that a node holds frames for.
    fn children(&self, node: usize) -> Vec<usize> {
        let leaves = self.leaves.iter().map(|(leaf, _)| *leaf);
        leaves
            .filter(|&leaf| self.parents.get(leaf) == Some(&node))
            .collect()
    }
}
