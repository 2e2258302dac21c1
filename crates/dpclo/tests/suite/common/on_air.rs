//! A mesh in the simulator: routers over a MAC, sources that always have something to send, packets counted where they end.
#![allow(dead_code, reason = "each test and example takes of it what it needs")]

use chappe_core::{Address, Caps, Duration, Instant, Mac, OverMac, Purpose, Rate, Seed, Stream};
use chappe_dpclo::{Router, Settings};
use chappe_mac::dot11::{Category, Config, Dot11, Edca};
use chappe_mac::zmac::{self, Schedule};
use chappe_sim::{AirTime, Medium, Simulator, World};

use super::loaded::Loaded;
use super::slotted::Slotted;

/// The parts of a run that are the same for every MAC.
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

/// How stations share the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Dcf,
    Edca,
    /// ZMAC+ with time slots that DRAND finds on the air; they are set after `slots_s` seconds.
    Zmac {
        slots_s: u64,
        /// Whether nodes notify of contention. Without it every node may use every time slot at all times.
        notify: bool,
        /// Tno, in back-off slots: a node that does not own the time slot draws fewer.
        window: u16,
        /// Whether a long wait for the channel is a reason to notify, beside losses.
        notify_waits: bool,
    },
}

/// What a run gave: packets a second and mean delay in seconds of every flow, and the routers as they are then.
pub struct Played {
    pub flows: Vec<(f64, f64)>,
    pub routers: Vec<Router>,
}

impl Mesh {
    /// Plays the whole run with this channel access.
    pub fn over(&self, access: Access, station: Config) -> Played {
        match access {
            Access::Dcf => self.play(
                0,
                |_, _| {},
                |address, random| Dot11::new(station, address, random),
            ),
            Access::Edca => self.play(
                0,
                |_, _| {},
                |address, random| Edca::edca(station, Category::DSSS, address, random),
            ),
            Access::Zmac {
                slots_s,
                notify,
                window,
                notify_waits,
            } => {
                let usual = zmac::Config::of_rate(Rate::Dsss2);
                let plus = zmac::Config {
                    station,
                    window,
                    ecn: usual.ecn.filter(|_| notify).map(|ecn| zmac::Ecn {
                        wait: match notify_waits {
                            true => ecn.wait,
                            false => Duration::from_secs(3600),
                        },
                        ..ecn
                    }),
                    ..usual
                };
                self.play(slots_s, Dot11::set_schedule, |address, random| {
                    Dot11::zmac_plus(plus, Schedule::new(None), address, random)
                })
            }
        }
    }

    fn play<M: Mac>(
        &self,
        slots_s: u64,
        give: impl Fn(&mut M, Schedule),
        mac: impl Fn(Address, Stream) -> M,
    ) -> Played {
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
        let nodes = simulator.nodes();
        Played {
            flows: self.flows_of(&simulator),
            routers: nodes.map(|node| node.link.loaded.router.clone()).collect(),
        }
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

    fn flows_of<M: Mac>(&self, simulator: &Simulator<OverMac<M, Slotted>>) -> Vec<(f64, f64)> {
        let [_, counted, end] = self.times_s;
        let flow = |&(source, sink): &(u16, u16)| {
            let (packets, delay) = simulator.node(usize::from(sink)).link.loaded.from(source);
            (packets as f64 / (end - counted) as f64, delay)
        };
        self.flows.iter().map(flow).collect()
    }
}

fn seconds(seconds: u64) -> Instant {
    Instant::from_millis(1000 * seconds)
}
