//! A mesh in the simulator: routers over a MAC, sources that always have something to send, packets counted where they end.
#![allow(dead_code, reason = "each test and example takes of it what it needs")]

use chappe_core::{Address, Caps, Instant, Mac, OverMac, Purpose, Seed, Stream};
use chappe_dpclo::{Router, Settings};
use chappe_mac::zmac::Schedule;
use chappe_sim::{AirTime, Medium, Simulator, World};

use super::loaded::Loaded;
use super::slotted::Slotted;

/// A node of the mesh.
pub type Node<M> = OverMac<M, Slotted>;

/// What is the same for every MAC.
pub struct Mesh {
    pub medium: Medium,
    pub caps: Caps,
    pub settings: Settings,
    /// Sources and their sinks.
    pub flows: Vec<(u16, u16)>,
    /// Sources begin, counting begins, the run ends, in seconds since routing began.
    pub times_s: [u64; 3],
    pub seed: u64,
}

impl Mesh {
    /// The whole run over a MAC without time slots.
    pub fn over<M: Mac>(&self, mac: impl Fn(Address, Stream) -> M) -> Simulator<Node<M>> {
        self.play(0, |_, _| {}, mac)
    }

    /// The whole run over a MAC with time slots: DRAND finds them on the air, and they stand after `slots_s` seconds.
    pub fn over_slots<M: Mac>(
        &self,
        slots_s: u64,
        give: impl Fn(&mut M, Schedule),
        mac: impl Fn(Address, Stream) -> M,
    ) -> Simulator<Node<M>> {
        self.play(slots_s, give, mac)
    }

    fn play<M: Mac>(
        &self,
        slots_s: u64,
        give: impl Fn(&mut M, Schedule),
        mac: impl Fn(Address, Stream) -> M,
    ) -> Simulator<Node<M>> {
        let station = |me: u16| {
            let random = |apart: u32| Seed(self.seed).stream(Purpose::Node(u32::from(me) + apart));
            let loaded = self.loaded(me, slots_s, random(1000));
            let address = Address::node(me);
            let link = match slots_s {
                0 => Slotted::without(loaded),
                start => Slotted::new(address, random(2000), loaded, seconds(start)),
            };
            Box::new(OverMac::new(mac(address, random(0)), link))
        };
        let nodes = self.medium.nodes();
        let stations = (0..nodes as u16).map(station).collect();
        let world = World::new(self.medium.clone());
        let simulator = Simulator::new(world, stations, Seed(self.seed), ());
        let mut simulator = simulator.expect("a world of as many nodes");
        simulator.run_until(AirTime::from_secs(slots_s));
        for node in (0..nodes).filter(|_| slots_s > 0) {
            simulator.with_node(node, |node, _| {
                let drand = node.link.drand.as_ref().filter(|drand| drand.is_settled());
                let schedule = drand.and_then(|drand| drand.schedule());
                give(&mut node.mac, schedule.expect("DRAND has settled"));
            });
        }
        simulator.run_until(AirTime::from_secs(slots_s + self.times_s[2]));
        simulator
    }

    fn loaded(&self, me: u16, slots_s: u64, random: Stream) -> Loaded {
        let [begin, counted, _] = self.times_s;
        let start = seconds(slots_s);
        let router = Router::new(self.settings, me, 0, &self.caps, start, random);
        Loaded {
            router: router.expect("settings are valid"),
            sink: self
                .flows
                .iter()
                .find(|&&(from, _)| from == me)
                .map(|&(_, to)| to),
            limit: self.settings.queues.limit,
            begin: seconds(slots_s + begin),
            counted: seconds(slots_s + counted),
            got: Vec::new(),
        }
    }

    /// Packets a second and mean delay in seconds of every flow.
    pub fn flows_of<M: Mac>(&self, simulator: &Simulator<Node<M>>) -> Vec<(f64, f64)> {
        let [_, counted, end] = self.times_s;
        let flow = |&(source, sink): &(u16, u16)| {
            let (packets, delay) = simulator.node(usize::from(sink)).link.loaded.from(source);
            (packets as f64 / (end - counted) as f64, delay)
        };
        self.flows.iter().map(flow).collect()
    }
}

/// The routers of a run, as they are now.
pub fn routers<M: Mac>(simulator: &Simulator<Node<M>>) -> Vec<Router> {
    let nodes = simulator.nodes();
    nodes.map(|node| node.link.loaded.router.clone()).collect()
}

fn seconds(seconds: u64) -> Instant {
    Instant::from_millis(1000 * seconds)
}
