//! A low-power network: links, routing tree, and what every node runs. It makes the simulator's nodes.

use std::net::{IpAddr, Ipv6Addr, SocketAddrV6};
use std::sync::Arc;

use chappe_core::{Address, Duration, OverMac, Purpose, Seed};
use chappe_mac::dot15d4::{self, Dot15d4, Sleep};
use chappe_sim::{AirTime, Fault, Medium, Recorder, Simulator, World};
use chappe_tcplp::host::{Host, Services, port};
use chappe_tcplp::lowpan::red::Thresholds;
use chappe_tcplp::lowpan::{Config, Interface, Route, Table, TcpHeaders};
use chappe_tcplp::tcp::{self, Endpoint, Local, Memory, NewReno, Range, Secret, Sent, Socket};
use chappe_thermometer::Setup;
use chappe_wire::sixlowpan::Context;

use crate::gateway::Gateway;
use crate::program::Program;
use crate::station::{FRAMES, NODES_MAX, Station};

/// The description of a network, from which a run is made.
#[derive(Clone, Debug)]
pub struct Network {
    /// The channels between the nodes.
    pub medium: Medium,
    /// The seed of everything random: the same seed gives the same run.
    pub seed: u64,
    /// Faults and their times.
    pub faults: Vec<(AirTime, Fault)>,
    /// The number of the border router.
    pub border: usize,
    /// Each node's next hop towards the border; none for the border and for nodes that are cut off.
    pub parents: Vec<Option<usize>>,
    /// Link-layer parameters of all nodes.
    pub mac: dot15d4::Config,
    /// Sleepy leaves and their sleep parameters. The parent holds their frames.
    pub leaves: Vec<(usize, Sleep)>,
    /// Whether the nodes share a compression context for the prefix; otherwise addresses are carried in line.
    pub contexts: bool,
    /// Whether the border and the motes compress TCP headers ([`TcpHeaders`]).
    pub short: bool,
    /// The pause of each node as a source, after a frame that has relays ahead of it ([`Config::pace`]); none for nodes
    /// beyond the end of the list.
    pub pace: Vec<Duration>,
    /// TCP parameters of the motes.
    pub tcp: tcp::Config,
    /// How long acknowledgements of sleepy leaves may wait; those of other motes wait for `tcp.delayed_ack`.
    pub leaf_ack_delay: Duration,
    /// The motes' send and receive buffers, in segments.
    pub window: usize,
    /// The network's prefix, of 64 bits.
    pub prefix: Ipv6Addr,
    /// Motes that are TCP clients, and the server to which each reports what it measures ([`Services::report_to`]). One server for a
    /// mote: the last one counts. The border router reports nothing.
    pub reports: Vec<(usize, SocketAddrV6)>,
    /// Leaves that run the thermometer's program in place of the usual services. They forward nothing.
    pub thermometers: Vec<usize>,
}

/// The host's address in a network with this prefix: number 1 of it, which no node has.
pub fn host_address(prefix: Ipv6Addr) -> Ipv6Addr {
    Ipv6Addr::from(u128::from(prefix) | 1)
}

impl Network {
    /// The number of nodes, the border included.
    pub fn nodes(&self) -> usize {
        self.parents.len()
    }

    /// The IPv6 address of a node.
    pub fn address(&self, node: usize) -> Ipv6Addr {
        Config::new(Address::node(node as u16), self.prefix, 0).global()
    }

    /// The host's address in the network: [`host_address`].
    pub fn kernel(&self) -> Ipv6Addr {
        host_address(self.prefix)
    }

    /// The nodes from `node` to the border, both included; `None` if there is no path.
    pub fn path(&self, node: usize) -> Option<Vec<usize>> {
        let mut path = vec![node];
        while *path.last()? != self.border {
            let parent = self.parents.get(*path.last()?).copied().flatten()?;
            // `parents` comes from the caller and may contain a loop.
            if path.contains(&parent) {
                return None;
            }
            path.push(parent);
        }
        Some(path)
    }

    /// The TCP parameters of a mote.
    fn tcp_of(&self, node: usize) -> tcp::Config {
        let delayed_ack = match sleep(self, node) {
            Some(_) => self.leaf_ack_delay,
            None => self.tcp.delayed_ack,
        };
        tcp::Config {
            delayed_ack,
            ..self.tcp
        }
    }

    /// The next hop from `here` to `to`: down the tree if `here` is on `to`'s path to the border, else up.
    fn next_hop(&self, here: usize, to: usize) -> Option<usize> {
        let path = self.path(to)?;
        let at = path.iter().position(|&node| node == here);
        match at {
            Some(0) => None,
            Some(at) => path.get(at - 1).copied(),
            None => self.parents.get(here).copied().flatten(),
        }
    }

    /// The simulator of this network, at time zero.
    pub fn simulator<R: Recorder>(
        &self,
        recorder: R,
    ) -> Result<Simulator<Station, R>, chappe_sim::Error> {
        let make = Arc::new(Make::new(self));
        let stations = (0..self.nodes()).map(|node| make.station(node, 0));
        let stations = stations.collect();
        let mut world = World::new(self.medium.clone());
        world.faults = self.faults.clone();
        world.frame_max = chappe_wire::dot15d4::PSDU_MAX;
        let mut simulator = Simulator::new(world, stations, Seed(self.seed), recorder)?;
        let mut lives = 0;
        simulator.set_reviver(move |node| {
            lives += 1;
            make.station(node, lives)
        });
        Ok(simulator)
    }
}

/// Makes stations, also after a crash. Sockets borrow their memory, and no owner outlives the simulator's nodes, so it is
/// leaked: some 20 KB for each mote and each restart.
struct Make {
    network: Network,
    contexts: &'static [Context],
    /// Each node's routing table.
    tables: Vec<Table<NODES_MAX>>,
}

impl Make {
    fn new(network: &Network) -> Make {
        let context = Context {
            id: 0,
            prefix: network.prefix,
            len: 64,
        };
        let contexts: &'static [Context] = match network.contexts {
            true => Box::leak(Box::new([context])),
            false => &[],
        };
        let nodes = 0..network.nodes();
        Make {
            contexts,
            tables: nodes.map(|node| table(network, node)).collect(),
            network: network.clone(),
        }
    }

    fn station(&self, node: usize, life: u64) -> Box<Station> {
        let network = &self.network;
        let seed = match life {
            0 => Seed(network.seed),
            _ => Seed(network.seed).child(life),
        };
        let stream = |of: u32| seed.stream(Purpose::Node(node as u32 * 4 + of));
        let here = Address::node(node as u16);
        let mut mac_config = network.mac;
        mac_config.sleep = sleep(network, node);
        let mut mac = Dot15d4::new(mac_config, here, stream(0));
        for &(leaf, _) in &network.leaves {
            if network.parents.get(leaf) == Some(&Some(node)) {
                mac.add_child(Address::node(leaf as u16));
            }
        }
        let config = Config {
            contexts: self.contexts,
            pace: network.pace.get(node).copied().unwrap_or_default(),
            red: Some(Thresholds::of(FRAMES as u16)),
            ..Config::new(here, network.prefix, network.mac.caps(0).frame_max)
        };
        let routes = self.tables[node];
        if node == network.border {
            let own = (config.global(), config.link_local());
            let reached = (0..network.nodes()).filter(|&node| network.path(node).is_some());
            let reached = reached.map(|node| node as u16);
            let gateway = Gateway::new(own, network.kernel(), reached, stream(2));
            let headers = network.short.then(TcpHeaders::default);
            let interface = Interface::with_headers(config, gateway, routes, stream(1), headers);
            return Box::new(Station::Border(OverMac::new(mac, interface)));
        }
        let parent = network.parents.get(node).copied().flatten();
        if let Some(parent) = parent.filter(|_| network.thermometers.contains(&node)) {
            let setup = Setup {
                number: node as u16,
                parent: parent as u16,
                prefix: network.prefix,
                contexts: self.contexts,
                mac: mac_config,
                secret: octets(network.seed, node, life),
            };
            let headers = network.short.then(TcpHeaders::default);
            return Box::new(Station::Program(Program::thermometer(&setup, headers)));
        }
        let local: &'static Local = Box::leak(Box::new(Local {
            address: IpAddr::V6(config.global()),
            secret: secret(network.seed, node, life),
            config: network.tcp_of(node),
        }));
        let sockets = std::array::from_fn(|_| socket(local, network.window));
        let mut services = Services::new(node as u16);
        for (_, server) in network.reports.iter().filter(|(mote, _)| *mote == node) {
            let server = Endpoint::new(IpAddr::V6(*server.ip()), server.port());
            services.report_to(server, local);
        }
        let mut host = Host::new(local, config.link_local(), sockets, services);
        for port in port::TCP {
            host.listen(port);
        }
        let headers = network.short.then(TcpHeaders::default);
        let interface = Interface::with_headers(config, host, routes, stream(1), headers);
        Box::new(Station::Mote(OverMac::new(mac, interface)))
    }
}

fn sleep(network: &Network, node: usize) -> Option<Sleep> {
    let found = network.leaves.iter().find(|(leaf, _)| *leaf == node);
    found.map(|(_, sleep)| *sleep)
}

/// A simulated node's secret, from the seed: the same seed must give the same run, and a simulation has no attackers.
fn secret(seed: u64, node: usize, life: u64) -> Secret {
    Secret::new(octets(seed, node, life))
}

fn octets(seed: u64, node: usize, life: u64) -> [u8; 16] {
    let mut stream = Seed(seed)
        .child(1000 + life)
        .stream(Purpose::Node(node as u32));
    let mut octets = [0; 16];
    stream.fill(&mut octets);
    octets
}

fn socket(local: &'static Local, window: usize) -> Socket<'static> {
    let options = if local.config.timestamps { 12 } else { 0 };
    let payload = usize::from(local.config.mss).saturating_sub(options).max(1);
    let octets = payload * window.max(1);
    // One entry allows one segment in flight. Twice the window leaves room for segments that are retransmitted in parts.
    let flight = if window <= 1 { 1 } else { window * 2 };
    let memory = Memory {
        send: vec![0; octets].leak(),
        receive: vec![0; octets].leak(),
        ranges: vec![Range::default(); window.max(4)].leak(),
        flight: vec![Sent::default(); flight].leak(),
    };
    // Only empty buffers are refused, and these have at least one octet.
    Socket::new(local, memory, NewReno).unwrap_or_else(|why| unreachable!("{why:?}"))
}

fn table(network: &Network, here: usize) -> Table<NODES_MAX> {
    let number = |node: usize| Address::node(node as u16);
    let up = network.parents.get(here).copied().flatten();
    let otherwise = match (here == network.border, up) {
        // The gateway handles unreachable nodes and everything outside.
        (true, _) => Route::Here,
        (false, Some(parent)) => Route::Via(number(parent)),
        (false, None) => Route::Nowhere,
    };
    let mut table = Table::new(number(here), network.prefix, otherwise);
    for &(leaf, _) in &network.leaves {
        if network.parents.get(leaf) == Some(&Some(here)) {
            table.add_child(number(leaf));
        }
    }
    for to in (0..network.nodes()).filter(|&to| to != here) {
        // Destinations reached through the parent take the default route.
        if let Some(next) = network.next_hop(here, to).filter(|&next| Some(next) != up) {
            table.add(number(to), number(next));
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use chappe_sim::Matrix;

    use super::*;

    #[test]
    fn leaves_that_sleep_have_their_own_delay_of_acknowledgements() {
        let links = Matrix::silent(3).with_link(0, 1, 1.0).with_link(1, 2, 1.0);
        let tcp = tcp::Config {
            delayed_ack: Duration::from_millis(200),
            ..tcp::Config::STANDARD
        };
        let network = Network {
            medium: Medium::matrix(&links).expect("the links are ratios"),
            seed: 1,
            faults: Vec::new(),
            border: 0,
            parents: vec![None, Some(0), Some(1)],
            mac: dot15d4::Config::HAMILTON,
            leaves: vec![(2, Sleep::tcplp(Address::node(1)))],
            contexts: true,
            short: true,
            pace: Vec::new(),
            tcp,
            leaf_ack_delay: Duration::from_millis(100),
            window: 4,
            prefix: "fd00:1:2:3::".parse().expect("an address"),
            reports: Vec::new(),
            thermometers: Vec::new(),
        };
        let delays = [1, 2].map(|node| network.tcp_of(node).delayed_ack);
        assert_eq!(delays, [200, 100].map(Duration::from_millis));
    }
}
