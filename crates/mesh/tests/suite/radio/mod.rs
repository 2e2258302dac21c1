//! A mesh over simulated 802.11b in virtual time: the same station as in `chappe emu` below each node, Linux's TCP above.
//!
//! What differs from the emulator: nodes hand frames to their card at once, and hellos, keys and confirmations of
//! `chappe-live` are not sent. The same seed gives the same run on any machine.
#![allow(dead_code, reason = "each program uses a part")]

mod card;
mod ends;
pub mod measure;
mod plain;

use chappe_core::{
    Address, Bitrate, Dbm, Duration, Instant, LinkNode, OverMac, Purpose, RadioNode, Rate, Seed,
};
use chappe_live::Membership;
use chappe_mac::dot11::{Config, Edca};
use chappe_mesh::air::Air;
use chappe_mesh::node::{Node, mtu_of};
use chappe_mesh::packet::Net;
use chappe_mesh::settings::{Hop, NodeConfig};
use chappe_scenario::idle::IDLE;
use chappe_scenario::plan::NetworkPlan;
use chappe_sim::{AirTime, Counters, Matrix, Medium, Profile, Recorder, Simulator, World};

pub use card::Card;
pub use ends::{Flow, Pings, Programs};
pub use plain::Plain;

/// Octets of the SDU of a `chappe-live` frame on an interface of the emulator.
pub const FRAME_MAX: usize = 2242;

/// Where nodes are, and who hears whom.
#[derive(Clone, Debug)]
pub struct Places {
    pub medium: Medium,
    /// Whether cards have EDCA's access categories.
    pub categories: bool,
    /// Whether data contend as video there.
    pub video: bool,
}

impl Places {
    /// `examples/mesh-line.toml`: three hops of 80 %, and one frame of ten over two hops.
    pub fn line() -> Places {
        let ratio = |apart: usize| match apart {
            1 => 0.8,
            2 => 0.1,
            _ => 0.0,
        };
        Places::measured(4, |from, to| ratio(from.abs_diff(to)))
    }

    /// `examples/mesh-diamond.toml`: two relays between two ends.
    pub fn diamond() -> Places {
        Places::measured(4, |from, to| match from.abs_diff(to) {
            3 => 0.1,
            _ => 0.8,
        })
    }

    /// `examples/mesh-five.toml`: two relays side by side, one behind them, and two ends that do not hear each other.
    pub fn five() -> Places {
        let text = include_str!("../../../../../examples/mesh-five.toml");
        Places::planned("mesh-five", text)
    }

    /// Nodes at random in a square, as dense as those of `examples/mesh-12.toml`: twelve on 1.44 square kilometres.
    pub fn random(nodes: usize, seed: u64) -> Places {
        let side = 1200.0 * (nodes as f64 / 12.0).sqrt();
        let positions = chappe_sim::topology::random(nodes, side, side, Seed(seed));
        let profile = Profile {
            power: Dbm(20.0),
            ..Profile::chappe_physical()
        };
        Places::on(Medium::geometric(&positions, &profile, Seed(seed)).unwrap())
    }

    /// `examples/mesh-12-flows.toml`: the twelve nodes of the emulator's measurements.
    pub fn twelve() -> Places {
        let text = include_str!("../../../../../examples/mesh-12-flows.toml");
        Places::planned("mesh-12-flows", text)
    }

    fn planned(name: &str, text: &str) -> Places {
        let plan = NetworkPlan::parse(&[&IDLE], name, text).unwrap();
        Places::on(plan.medium(FRAME_MAX).unwrap())
    }

    /// Every link that delivers a frame of twenty is sensed, too.
    fn measured(nodes: usize, ratio: impl Fn(usize, usize) -> f64) -> Places {
        let mut matrix = Matrix::silent(nodes);
        for from in 0..nodes {
            for to in (0..nodes).filter(|&to| to != from) {
                matrix.prr[from][to] = ratio(from, to);
                matrix.senses[from][to] = ratio(from, to) >= 0.05;
            }
        }
        Places::on(Medium::matrix(&matrix).unwrap())
    }

    fn on(medium: Medium) -> Places {
        Places {
            medium,
            categories: false,
            video: false,
        }
    }

    /// The same with EDCA's access categories, if so, and with data as video, if so.
    pub fn with_categories(self, categories: bool, video: bool) -> Places {
        Places {
            categories,
            video,
            ..self
        }
    }
}

/// What runs on a node, above its MAC.
pub trait Host: LinkNode + Sized {
    /// The longest packet in octets.
    fn mtu() -> usize;
    fn programs(&mut self) -> &mut Programs;
    /// Handles what the programs have to send.
    fn work(&mut self, now: Instant);
}

impl Host for Card {
    fn mtu() -> usize {
        mtu_of(FRAME_MAX)
    }
    fn programs(&mut self) -> &mut Programs {
        &mut self.programs
    }
    fn work(&mut self, now: Instant) {
        Card::work(self, now);
    }
}

impl Host for Plain {
    fn mtu() -> usize {
        plain::MTU
    }
    fn programs(&mut self) -> &mut Programs {
        &mut self.programs
    }
    fn work(&mut self, now: Instant) {
        Plain::work(self, now);
    }
}

/// Nodes on the air: those of a mesh, or hosts with static routes.
pub struct Radios<R: Recorder = (), H: Host = Card> {
    pub simulator: Simulator<OverMac<Edca, H>, R>,
}

impl Radios {
    /// The nodes of a mesh, which start within a tenth of a second.
    pub fn new(places: &Places, hop: Hop, seed: u64) -> Radios {
        Radios::recorded(places, hop, seed, ())
    }
}

impl Radios<(), Plain> {
    /// Hosts with static routes.
    pub fn plain(places: &Places, seed: u64) -> Radios<(), Plain> {
        Radios::on(places, seed, (), |place| Plain::new(places, place))
    }
}

impl<R: Recorder> Radios<R> {
    /// The nodes of a mesh, with every frame reported to `recorder`.
    pub fn recorded(places: &Places, hop: Hop, seed: u64, recorder: R) -> Radios<R> {
        let nodes = places.medium.nodes();
        Radios::on(places, seed, recorder, |place| {
            let config = NodeConfig {
                number: place as u16 + 1,
                networks: vec![Net::parse("10.77.0.0/16").unwrap()],
                behind: Vec::new(),
                air: Air::dot11b(Bitrate(11_000_000)),
                hop,
                // The default of `chappe mesh`: users of small meshes do not change it.
                size: 32.max(nodes as u16),
                mtu: mtu_of(FRAME_MAX),
                groups: false,
                video: places.video,
            };
            let own = Seed(seed).child(place as u64 + 1);
            let mut node = Node::new(config, FRAME_MAX, Instant::ZERO, own, 1000).unwrap();
            node.join(Membership::example(place as u16 + 1, nodes as u16 + 1, 7));
            Card::new(node, places.categories)
        })
    }

    /// Keeps the host's queue at one node full of packets for another until then. Packets that arrive there meanwhile.
    pub fn flood(&mut self, from: usize, to: usize, until: Duration) -> u64 {
        let mut packet = vec![0; mtu_of(FRAME_MAX)];
        (packet[0], packet[9]) = (0x45, 17);
        packet[12..20].copy_from_slice(&[10, 77, 0, from as u8 + 1, 10, 77, 0, to as u8 + 1]);
        let before = self.card(to).node.counters().0.delivered;
        while self.simulator.now() < AirTime::ZERO + until {
            self.with(from, |card, now| {
                while card.node.host().waiting() < 20_000 {
                    card.node.offer(now, &packet);
                }
            });
            let step = AirTime::ZERO + Duration::from_nanos(self.simulator.now().nanos());
            self.simulator.run_until(step + Duration::from_millis(2));
        }
        self.card(to).node.counters().0.delivered - before
    }
}

impl<R: Recorder, H: Host> Radios<R, H> {
    fn on(places: &Places, seed: u64, recorder: R, host: impl Fn(usize) -> H) -> Radios<R, H> {
        let station = |place: usize| {
            let mac = Config {
                llc: None,
                ..Config::dot11b(Rate::Cck11)
            };
            let address = Address::node(place as u16 + 1);
            let random = Seed(seed).stream(Purpose::Node(place as u32));
            let mac = Edca::or_dcf(mac, places.categories, address, random);
            Box::new(OverMac::new(mac, host(place)))
        };
        let stations = (0..places.medium.nodes()).map(station).collect();
        let world = World::new(places.medium.clone());
        Radios {
            simulator: Simulator::new(world, stations, Seed(seed), recorder).unwrap(),
        }
    }

    /// Changes a host between two events of the air.
    pub fn with<T>(&mut self, place: usize, change: impl FnOnce(&mut H, Instant) -> T) -> T {
        self.simulator.with_node(place, |station, now| {
            let changed = change(&mut station.link, now);
            station.handle_timeout(now);
            changed
        })
    }

    pub fn card(&self, place: usize) -> &H {
        &self.simulator.node(place).link
    }

    /// A TCP connection with unlimited data, from now on.
    pub fn connect(&mut self, from: usize, to: usize) {
        let add = |host: &mut H, now, flow| {
            host.programs().flows.push(flow);
            host.work(now);
        };
        self.with(to, |host, now| {
            add(host, now, Flow::receiver(to, from, H::mtu()))
        });
        self.with(from, |host, now| {
            add(host, now, Flow::sender(from, to, H::mtu()))
        });
    }

    /// Pings from one node to another at even intervals, from now on.
    pub fn ping(&mut self, from: usize, to: usize, every: Duration) {
        self.with(from, |host, now| {
            host.programs().pings = Pings::new(now, from, to, every);
            host.work(now);
        });
    }

    pub fn run(&mut self, until: Duration) {
        self.simulator.run_until(AirTime::ZERO + until);
    }

    pub fn counters(&self) -> &Counters {
        self.simulator.counters()
    }
}

/// The quantile of values; `NaN` of none.
pub fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let at = (values.len() as f64 * share) as usize;
    values
        .get(at)
        .or(values.last())
        .copied()
        .unwrap_or(f64::NAN)
}
