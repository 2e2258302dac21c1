//! A scenario's network with a network interface on each station: `chappe emu` runs it in real time, and the simulator
//! predicts its throughput.
//!
//! This crate joins the emulator, which knows no MAC, with the DCF or EDCA. Node `n` has the IPv4 address 10.17.0.(n+1), and the
//! hardware address that its radio has in the simulator.
//!
//! ```
//! use chappe_core::Duration;
//! use chappe_lab_emu::{Emulation, Flow, Load, Options};
//! use chappe_scenario::idle::IDLE;
//! use chappe_scenario::plan::NetworkPlan;
//!
//! let text = "[network]\nlinks = [[0, 0.9], [0.9, 0]]\n[radio]\nrate = \"11 Mbit/s\"\n";
//! let plan = NetworkPlan::parse(&[&IDLE], "pair", text).expect("a valid scenario");
//! let emulation = Emulation::new(&plan, Options::default()).expect("a network of two nodes");
//! assert_eq!(emulation.hosts().len(), 2);
//!
//! let (skip, lasts) = (Duration::from_millis(100), Duration::from_secs(1));
//! let flow = Flow { from: 0, to: 1, skip, lasts };
//! let goodput_bps = emulation.predict(Load::Tcp, flow, 1).expect("a run");
//! assert!(goodput_bps > 1e6);
//! ```
//!
//! | module | content |
//! |---|---|
//! | this one | the network's stations, hosts and routes ([`Emulation`]) |
//! | `capture` | an optional file for Wireshark ([`Capture`]) |
//! | `predict` | goodput of UDP and TCP in the simulator ([`Load`], [`Flow`]) |
//! | `named` | paths between two hosts by name ([`NamedPath`]) |
//! | [`model`] | simulated hosts: forwarding, a saturating UDP sender, Linux's TCP |

mod capture;
pub mod model;
mod named;
mod predict;

use std::net::Ipv4Addr;

use chappe_core::{Address, OverMac, Purpose, Seed, Stream};
use chappe_emu::{Bridge, Host, Joint, Shape};
use chappe_mac::dot11::{Config, Edca};
use chappe_sim::{AirTime, Medium, Recorder, Simulator, World};

use chappe_lab::run::RunError;
use chappe_scenario::InputError;
use chappe_scenario::plan::NetworkPlan;

pub use capture::Capture;
pub use chappe_scenario::routes::Routes;
pub use named::NamedPath;
pub use predict::{Flow, Load};

/// Channel access with a host's interface on it.
pub type Station = OverMac<Edca, Bridge>;

/// The largest number of nodes: an IPv4 network with a 24-bit prefix has 254 addresses, a few of which stay free.
pub const NODES_MAX: usize = 250;

/// Prefix length of the nodes' addresses.
const PREFIX: u8 = 24;

/// Octets of an 802.11 data frame around LLC and its payload: MAC header and check sequence.
const AROUND: usize = 24 + 4;

/// The least delivery ratio of a node that reports list as a neighbour.
const NEIGHBOUR: f64 = 0.01;

/// Options of an emulation, from the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The length of a station's queue in frames.
    pub queue: usize,
    /// The MTU in octets; the largest that the radio carries if not given.
    pub mtu: Option<usize>,
    /// Whether hosts get static routes to nodes that they do not hear.
    pub routes: bool,
    /// The kind of interface between hosts and emulator.
    pub joint: Joint,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            queue: 64,
            mtu: None,
            routes: true,
            joint: Joint::Veth,
        }
    }
}

/// A network that is ready to be emulated or simulated.
#[derive(Clone, Debug)]
pub struct Emulation {
    /// The title of the scenario.
    pub title: String,
    /// The seed of all random numbers.
    pub seed: u64,
    /// The MTU of all interfaces in octets.
    pub mtu: usize,
    /// Delivery ratios of packets of that size without interference: row-major, from the row's node to the column's.
    pub delivery: Vec<f64>,
    /// The next hop from each node to each other.
    pub routes: Routes,
    options: Options,
    card: Card,
    world: World,
}

/// The card of each node.
#[derive(Clone, Copy, Debug)]
struct Card {
    mac: Config,
    /// Whether it has EDCA's access categories, and so a queue for each.
    categories: bool,
    mtu: usize,
    queue: usize,
}

impl Emulation {
    /// Creates the network of a plan. Fails if the plan's seed gives no valid network, or the number of nodes or the MTU is
    /// out of range.
    pub fn new(plan: &NetworkPlan, options: Options) -> Result<Emulation, InputError> {
        // The bridge writes LLC and SNAP itself, with the EtherType of each frame.
        let mac = Config {
            llc: None,
            overhear: false,
            ..plan.mac
        };
        let most = Bridge::mtu_of(mac.caps().frame_max);
        let mtu = options.mtu.unwrap_or(most);
        if !(MTU_LEAST..=most).contains(&mtu) {
            let message = format!("an MTU of {mtu} octets is not possible: {MTU_LEAST} to {most}");
            return Err(InputError::new("--mtu", message));
        }
        let nodes = plan.topology.nodes();
        if !(2..=NODES_MAX).contains(&nodes) {
            let message = format!("{nodes} nodes; 2 to {NODES_MAX} can be emulated");
            return Err(plan.error(message));
        }
        let octets = Bridge::on_air(mtu) + AROUND;
        let medium = plan.medium(octets)?;
        let delivery = delivery(&medium, |from, to| medium.prr(from, to, plan.mode, octets));
        let places = medium.positions().to_vec();
        let places = (!places.is_empty()).then_some(&places[..]);
        let faults = plan.faults.iter();
        let faults = faults
            .map(|(at, fault)| (AirTime::ZERO + *at, fault.strike(places)))
            .collect();
        let world = World {
            faults,
            ..World::new(medium)
        };
        Ok(Emulation {
            title: plan.title.clone(),
            seed: plan.seed,
            mtu,
            routes: Routes::by_etx(nodes, &delivery),
            delivery,
            options,
            card: Card {
                mac,
                categories: plan.categories,
                mtu,
                queue: options.queue,
            },
            world,
        })
    }

    /// The number of nodes in the network.
    pub fn nodes(&self) -> usize {
        self.world.medium.nodes()
    }

    /// The options of this emulation.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The IPv4 address of a node.
    pub fn ipv4(&self, node: usize) -> Ipv4Addr {
        Ipv4Addr::new(10, 17, 0, (node + 1) as u8)
    }

    /// The share of full-size frames from `from` that `to` receives.
    pub fn prr(&self, from: usize, to: usize) -> f64 {
        let place = from * self.nodes() + to;
        self.delivery.get(place).copied().unwrap_or(0.0)
    }

    /// The nodes that hear `node`, and the share of its full-size frames that each receives.
    pub fn neighbours(&self, node: usize) -> impl Iterator<Item = (usize, f64)> {
        (0..self.nodes())
            .map(move |to| (to, self.prr(node, to)))
            .filter(|(_, prr)| *prr >= NEIGHBOUR)
    }

    /// What lies between the stations' antennas.
    pub fn medium(&self) -> &Medium {
        &self.world.medium
    }

    /// Creates the simulator of the stations, at time zero. `recorder` hears of its frames.
    pub fn simulator<R: Recorder>(&self, recorder: R) -> Result<Simulator<Station, R>, RunError> {
        let factory = StationFactory {
            card: self.card,
            seed: self.seed,
        };
        let stations = (0..self.nodes()).map(|node| factory.station(node, 0));
        let (world, stations) = (self.world.clone(), stations.collect());
        let mut simulator = Simulator::new(world, stations, Seed(self.seed), recorder)
            .map_err(|error| RunError::Defect(error.to_string()))?;
        let mut lives = 0;
        simulator.set_reviver(move |node| {
            // A restarted station does not repeat the back-offs of an earlier life.
            lives += 1;
            factory.station(node, lives)
        });
        Ok(simulator)
    }

    /// The hosts, one for each station.
    pub fn hosts(&self) -> Vec<Host> {
        (0..self.nodes()).map(|node| self.host(node)).collect()
    }

    /// The parameters that all hosts share.
    pub fn shape(&self) -> Shape {
        Shape {
            prefix: PREFIX,
            mtu: self.mtu,
            forwards: true,
            joint: self.options.joint,
        }
    }

    fn host(&self, node: usize) -> Host {
        // A neighbour needs no route: its address is on the interface's own network.
        let far = |&to: &usize| self.options.routes && to != node;
        let over = |to: usize| {
            let via = self.routes.next(node, to).filter(|&via| via != to)?;
            Some((self.ipv4(to), self.ipv4(via)))
        };
        Host {
            address: Address::node(node as u16),
            ipv4: self.ipv4(node),
            routes: (0..self.nodes()).filter(far).filter_map(over).collect(),
        }
    }
}

/// The least MTU of IPv6 (RFC 8200, section 5).
const MTU_LEAST: usize = 1280;

/// Creates stations, at the start and after a crash.
#[derive(Clone, Copy, Debug)]
struct StationFactory {
    card: Card,
    seed: u64,
}

impl Card {
    fn mac(&self, address: Address, random: Stream) -> Edca {
        Edca::or_dcf(self.mac, self.categories, address, random)
    }

    fn bridge(&self, address: Address) -> Bridge {
        match self.categories {
            true => Bridge::with_categories(address, self.mtu, self.queue),
            false => Bridge::new(address, self.mtu, self.queue),
        }
    }
}

impl StationFactory {
    fn station(&self, node: usize, life: u64) -> Box<Station> {
        let address = Address::node(node as u16);
        let seed = match life {
            0 => Seed(self.seed),
            _ => Seed(self.seed).child(life),
        };
        let random = seed.stream(Purpose::Node(node as u32));
        let (mac, bridge) = (self.card.mac(address, random), self.card.bridge(address));
        Box::new(OverMac::new(mac, bridge))
    }
}

fn delivery(medium: &Medium, prr: impl Fn(usize, usize) -> f64) -> Vec<f64> {
    let nodes = medium.nodes();
    let mut delivery = vec![0.0; nodes * nodes];
    for from in 0..nodes {
        for to in medium.hearers(from) {
            delivery[from * nodes + to] = prr(from, to);
        }
    }
    delivery
}

#[cfg(test)]
mod tests;
