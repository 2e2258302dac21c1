//! A mesh in the simulator: routers over a MAC, sources that always have something to send, packets counted where they end.
#![allow(dead_code, reason = "each test and example takes of it what it needs")]

use chappe_core::{
    Address, Caps, Duration, Instant, LinkNode, Mac, OverMac, Purpose, Rate, Seed, Stream,
};
use chappe_dpclo::{Router, Settings};
use chappe_mac::dot11::{Category, Config, Dot11, Edca};
use chappe_mac::zmac::{self, Schedule};
use chappe_sim::{AirTime, Medium, Simulator, World};

use super::loaded::{Loaded, Pace};
use super::slotted::Slotted;

/// The parts of a run that are the same for every MAC.
pub struct Mesh {
    pub medium: Medium,
    pub caps: Caps,
    pub settings: Settings,
    /// Sources and their sinks.
    pub flows: Vec<(u16, u16)>,
    /// Packets a second of each source, at even intervals; without them sources always have something to send.
    pub rates: Vec<f64>,
    /// Sources begin, counting begins, the run ends, in seconds since routing began.
    pub times_s: [u64; 3],
    pub seed: u64,
}

/// How stations share the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Dcf,
    Edca,
    /// ZMAC+ with time slots that DRAND finds on the air; they are set after `slots_s` seconds.
    Zmac {
        slots_s: u64,
        /// The windows, the slot and the notification; the station's part is ignored.
        contention: zmac::Config,
    },
}

impl Access {
    /// ZMAC+ as its configuration is usually.
    pub fn zmac(slots_s: u64) -> Access {
        Access::Zmac {
            slots_s,
            contention: zmac::Config::of_rate(Rate::Dsss2),
        }
    }

    /// The same with notifications for the station that suffers alone and savings in claims, as the improved variant wants it.
    pub fn zmac_sparing(slots_s: u64) -> Access {
        Access::Zmac {
            slots_s,
            contention: zmac::Config::of_rate(Rate::Dsss2).sparing(),
        }
    }
}

/// When the start begins and ends, in seconds of load.
const START_S: [u64; 2] = [5, 10];

/// What a run gave: packets a second and mean delay in seconds of every flow, packets a second in the start, the longest time without a
/// packet in seconds, and the routers as they are then.
pub struct Played {
    pub flows: Vec<(f64, f64)>,
    pub starts: Vec<f64>,
    pub gaps: Vec<f64>,
    pub routers: Vec<Router>,
}

/// Plays nodes over a channel access until `end_s` seconds after they began, and returns them as they are then. `make` gets a
/// node's number, when it begins, and random numbers of its own.
pub fn play<N: LinkNode + Clone>(
    (medium, seed): (&Medium, u64),
    (access, station): (Access, Config),
    end_s: u64,
    make: impl Fn(u16, Instant, Stream) -> N,
) -> Vec<N> {
    let field = Field {
        medium,
        seed,
        end_s,
        make: &make,
    };
    match access {
        Access::Dcf => field.over(
            0,
            |_, _| {},
            |address, random| Dot11::new(station, address, random),
        ),
        Access::Edca => field.over(
            0,
            |_, _| {},
            |address, random| Edca::edca(station, Category::DSSS, address, random),
        ),
        Access::Zmac {
            slots_s,
            contention,
        } => {
            let plus = zmac::Config {
                station,
                ..contention
            };
            field.over(slots_s, Dot11::set_schedule, |address, random| {
                Dot11::zmac_plus(plus, Schedule::new(None), address, random)
            })
        }
    }
}

/// What a run has whatever its MAC is.
struct Field<'a, F> {
    medium: &'a Medium,
    seed: u64,
    end_s: u64,
    make: &'a F,
}

impl<N: LinkNode + Clone, F: Fn(u16, Instant, Stream) -> N> Field<'_, F> {
    fn over<M: Mac>(
        &self,
        slots_s: u64,
        give: impl Fn(&mut M, Schedule),
        mac: impl Fn(Address, Stream) -> M,
    ) -> Vec<N> {
        let station = |me: u16| {
            let random = |apart: u32| Seed(self.seed).stream(Purpose::Node(u32::from(me) + apart));
            let inner = (self.make)(me, seconds(slots_s), random(1000));
            let address = Address::node(me);
            let link = match slots_s {
                0 => Slotted::without(inner),
                start => Slotted::new(address, random(2000), inner, seconds(start)),
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
        simulator.run_until(AirTime::from_secs(slots_s + self.end_s));
        let nodes = simulator.nodes();
        nodes.map(|node| node.link.inner.clone()).collect()
    }
}

impl Mesh {
    /// Plays the whole run with this channel access.
    pub fn over(&self, access: Access, station: Config) -> Played {
        let nodes = play(
            (&self.medium, self.seed),
            (access, station),
            self.times_s[2],
            |me, start, random| self.loaded(access, me, start, random),
        );
        Played {
            flows: self.flows_of(&nodes),
            starts: self.starts_of(&nodes),
            gaps: self.gaps_of(&nodes),
            routers: nodes.into_iter().map(|node| node.router).collect(),
        }
    }

    fn loaded(&self, access: Access, me: u16, start: Instant, random: Stream) -> Loaded {
        let [begin, counted, _] = self.times_s;
        let after = |seconds: u64| start + Duration::from_secs(seconds);
        let caps = Caps {
            hastens: access == Access::Edca && Category::hastens(&Category::DSSS),
            ..self.caps
        };
        let router = Router::new(self.settings, me, 0, &caps, start, random);
        let own = self.flows.iter().position(|&(from, _)| from == me);
        let rate = own.and_then(|own| self.rates.get(own));
        Loaded {
            router: router.expect("settings are valid"),
            sink: own.map(|own| self.flows[own].1),
            pace: rate.map(|rate| Pace::new(*rate, after(begin))),
            limit: self.settings.queues.limit,
            begin: after(begin),
            counted: after(counted),
            start: START_S.map(|at| after(begin + at)),
            got: Vec::new(),
        }
    }

    fn flows_of(&self, nodes: &[Loaded]) -> Vec<(f64, f64)> {
        let [_, counted, end] = self.times_s;
        let flow = |&(source, sink): &(u16, u16)| {
            let (packets, delay) = nodes[usize::from(sink)].from(source);
            (packets as f64 / (end - counted) as f64, delay)
        };
        self.flows.iter().map(flow).collect()
    }

    fn gaps_of(&self, nodes: &[Loaded]) -> Vec<f64> {
        let [_, counted, end] = self.times_s;
        let gap = |&(source, sink): &(u16, u16)| {
            let sink = &nodes[usize::from(sink)];
            let end = sink.counted + Duration::from_secs(end - counted);
            sink.gap(source, end).as_secs_f64()
        };
        self.flows.iter().map(gap).collect()
    }

    fn starts_of(&self, nodes: &[Loaded]) -> Vec<f64> {
        let [from, to] = START_S;
        let rate = |&(source, sink): &(u16, u16)| {
            nodes[usize::from(sink)].early(source) as f64 / (to - from) as f64
        };
        self.flows.iter().map(rate).collect()
    }
}

fn seconds(seconds: u64) -> Instant {
    Instant::from_millis(1000 * seconds)
}
