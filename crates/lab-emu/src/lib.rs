//! A scenario's network with a network interface on each station: what `chappe emu` runs in real time, and what the
//! simulator predicts of it.
//!
//! This is where the emulator, which knows no MAC, meets the DCF. Node `n` is 10.17.0.(n+1), with the hardware address
//! that its radio has in the simulator.

mod film;
pub mod model;
mod predict;

use std::net::Ipv4Addr;

use chappe_core::{Address, OverMac, Purpose, Seed};
use chappe_emu::{Bridge, Host, Joint, Shape};
use chappe_mac::dot11::{Config, Dot11};
use chappe_sim::{AirTime, Medium, Simulator, World};

use chappe_lab::run::RunError;
use chappe_scenario::InputError;
use chappe_scenario::plan::NetworkPlan;

pub use chappe_scenario::routes::Routes;
pub use film::Film;
pub use predict::{Flow, Load};

/// Channel access with a host's interface on it.
pub type Station = OverMac<Dot11, Bridge>;

/// Most nodes: what an IPv4 network of 24 bits has addresses for, less a few.
pub const NODES_MAX: usize = 250;

/// Bits of the nodes' addresses that are those of the network.
const PREFIX: u8 = 24;

/// Octets of an 802.11 data frame around LLC and what follows it: header and check sequence.
const AROUND: usize = 24 + 4;

/// Delivery ratio from which a node is shown as a neighbour.
const NEIGHBOUR: f64 = 0.01;

/// What the command line says about an emulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Frames that may wait at a station.
    pub queue: usize,
    /// Largest packet, if not what the radio carries.
    pub mtu: Option<usize>,
    /// Whether hosts get routes to those that they do not hear.
    pub routes: bool,
    /// What joins the hosts to the emulator.
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
    /// The scenario's title.
    pub title: String,
    /// What decides all that is random.
    pub seed: u64,
    /// Largest packet in octets.
    pub mtu: usize,
    /// Delivery ratios of packets of that size without interference: row-major, from each node to each.
    pub delivery: Vec<f64>,
    /// Who hands on what for whom.
    pub routes: Routes,
    options: Options,
    mac: Config,
    world: World,
}

impl Emulation {
    /// The network of a plan. Fails if it cannot be made with the plan's seed or has too many nodes.
    pub fn new(plan: &NetworkPlan, options: Options) -> Result<Emulation, InputError> {
        // The bridge writes LLC and SNAP itself, with the type that the frame has.
        let mac = Config {
            llc: None,
            overhear: false,
            ..plan.mac
        };
        let most = Bridge::mtu_of(mac.caps().frame_max);
        let mtu = options.mtu.unwrap_or(most);
        if !(MTU_LEAST..=most).contains(&mtu) {
            let message = format!("an MTU of {mtu} octets: {MTU_LEAST} to {most} can be had");
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
            mac,
            world,
        })
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        self.world.medium.nodes()
    }

    /// What was asked for.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The IPv4 address of a node.
    pub fn ipv4(&self, node: usize) -> Ipv4Addr {
        Ipv4Addr::new(10, 17, 0, (node + 1) as u8)
    }

    /// The share of full-size frames that `to` receives from `from`.
    pub fn prr(&self, from: usize, to: usize) -> f64 {
        let place = from * self.nodes() + to;
        self.delivery.get(place).copied().unwrap_or(0.0)
    }

    /// Who hears `node`, and the share of its full-size frames that each of them receives.
    pub fn neighbours(&self, node: usize) -> impl Iterator<Item = (usize, f64)> {
        (0..self.nodes())
            .map(move |to| (to, self.prr(node, to)))
            .filter(|(_, prr)| *prr >= NEIGHBOUR)
    }

    /// The stations with their air, at the start of time; what happens there goes into `film`.
    pub fn simulator(&self, film: Film) -> Result<Simulator<Station, Film>, RunError> {
        let make = Make {
            mac: self.mac,
            mtu: self.mtu,
            queue: self.options.queue,
            seed: self.seed,
        };
        let stations = (0..self.nodes()).map(|node| make.station(node, 0));
        let (world, stations) = (self.world.clone(), stations.collect());
        let mut simulator = Simulator::new(world, stations, Seed(self.seed), film)
            .map_err(|error| RunError::Defect(error.to_string()))?;
        let mut lives = 0;
        simulator.set_reviver(move |node| {
            lives += 1;
            make.station(node, lives)
        });
        Ok(simulator)
    }

    /// The hosts, one for each station.
    pub fn hosts(&self) -> Vec<Host> {
        (0..self.nodes()).map(|node| self.host(node)).collect()
    }

    /// What the hosts share.
    pub fn shape(&self) -> Shape {
        Shape {
            prefix: PREFIX,
            mtu: self.mtu,
            forwards: true,
            joint: self.options.joint,
        }
    }

    fn host(&self, node: usize) -> Host {
        // A neighbour needs no route: it is on the interface's own network.
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

/// The least MTU that IPv6 works with (RFC 8200, section 5).
const MTU_LEAST: usize = 1280;

/// Makes stations, again after a crash.
#[derive(Clone, Copy, Debug)]
struct Make {
    mac: Config,
    mtu: usize,
    queue: usize,
    seed: u64,
}

impl Make {
    fn station(&self, node: usize, life: u64) -> Box<Station> {
        let address = Address::node(node as u16);
        let seed = match life {
            0 => Seed(self.seed),
            _ => Seed(self.seed).child(life),
        };
        let random = seed.stream(Purpose::Node(node as u32));
        let bridge = Bridge::new(address, self.mtu, self.queue);
        Box::new(OverMac::new(Dot11::new(self.mac, address, random), bridge))
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
