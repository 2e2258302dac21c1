//! The paper's large network: 108 nodes on 1250 m by 1250 m, seven sources, one sink, over 802.11b.
//!
//! ```text
//! cargo run --release -p chappe-dpclo --example many_to_one -- [SEED] [dcf|edca|zmac] [SCHEME|all] [SETTING=VALUE]...
//! ```
//!
//! Rates in packets of 200 octets a second and mean delays in seconds, sources ordered by distance, farthest first. Radios
//! are ns-2's: 250 m to be heard, 550 m to be sensed, 2 Mbit/s. Places are drawn until all nodes are connected. Over ZMAC+ the
//! nodes find their time slots by DRAND in the first minute. Settings that can be changed: see `set`.

#[path = "../tests/common/loaded.rs"]
mod loaded;
#[path = "../tests/common/slotted.rs"]
mod slotted;

use chappe_core::{Address, Instant, Mac, Mode, OverMac, Purpose, Rate, Seed, Stream};
use chappe_dpclo::{KMax, Losses, Router, Settings};
use chappe_mac::dot11::{Category, Config, Dot11, Edca};
use chappe_mac::zmac::{self, Schedule};
use chappe_sim::{AirTime, Medium, Profile, Simulator, World, topology};
use loaded::Loaded;
use slotted::Slotted;

const NODES: u16 = 108;
const SIDE_M: f64 = 1250.0;
/// Over ZMAC+ time slots stand by then, in seconds.
const SLOTS_S: u64 = 60;
/// Sources begin, counting begins, the run ends, in seconds since routing began. The paper: sources from 200 s to 300 s.
const TIMES_S: [u64; 3] = [60, 80, 180];

/// Where the nodes are, and who sends.
struct Scene {
    medium: Medium,
    sink: u16,
    /// Sources with their hops to the sink, farthest first.
    sources: Vec<(u16, u16)>,
}

/// One scheme in one scene.
struct Run<'a> {
    scene: &'a Scene,
    settings: Settings,
    seed: u64,
}

#[allow(
    clippy::disallowed_methods,
    reason = "a program on the host, with arguments"
)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let seed: u64 = arguments.next().map_or(Ok(1), |seed| seed.parse())?;
    let access = arguments.next().unwrap_or("dcf".into());
    let wanted = arguments.next().filter(|wanted| wanted != "all");
    let changes: Vec<String> = arguments.collect();
    let scene = scene(seed)?;
    let hops: Vec<u16> = scene.sources.iter().map(|&(_, hops)| hops).collect();
    println!("seed {seed}, {access}, hops {hops:?} {}", changes.join(" "));
    for (name, mut settings) in schemes() {
        if wanted.as_ref().is_some_and(|wanted| wanted != name) {
            continue;
        }
        for change in &changes {
            set(&mut settings, change)?;
        }
        let run = Run {
            scene: &scene,
            settings,
            seed,
        };
        let plus = zmac::Config {
            station: config(),
            ..zmac::Config::dot11b(Rate::Dsss2)
        };
        let line = match access.as_str() {
            "zmac" => run.over(SLOTS_S, Dot11::set_schedule, |address, random| {
                Dot11::zmac_plus(plus, Schedule::new(None), address, random)
            })?,
            "edca" => run.over(0, no_slots, |address, random| {
                Edca::edca(config(), Category::DSSS, address, random)
            })?,
            _ => run.over(0, no_slots, |address, random| {
                Dot11::new(config(), address, random)
            })?,
        };
        println!("{name:>8}: {line}");
    }
    Ok(())
}

fn schemes() -> [(&'static str, Settings); 6] {
    let mut single = Settings::paper();
    single.next_hops.limit = KMax::Fixed(1);
    [
        ("dpclo", Settings::paper()),
        ("single", single),
        ("chappe", Settings::chappe()),
        ("fusion", Settings::fusion()),
        ("dclo", Settings::dclo()),
        ("shortest", Settings::shortest_path()),
    ]
}

/// Changes one value of the settings.
fn set(settings: &mut Settings, change: &str) -> Result<(), Box<dyn std::error::Error>> {
    let (name, value) = change.split_once('=').ok_or("want SETTING=VALUE")?;
    let value: f64 = value.parse()?;
    match name {
        "limit" => settings.queues.limit = value as u16,
        "bias" => settings.extras.bias = value,
        "smoothing" => settings.extras.smoothing = value,
        _ => return Err(format!("no setting '{name}' here: limit, bias, smoothing").into()),
    }
    Ok(())
}

fn config() -> Config {
    Config {
        overhear: true,
        ..Config::dot11b(Rate::Dsss2)
    }
}

fn no_slots<M>(_: &mut M, _: Schedule) {}

/// The sink is the node nearest to a corner; sources are spread over the distances that occur.
fn scene(seed: u64) -> Result<Scene, Box<dyn std::error::Error>> {
    let profile = Profile::ns2_threshold();
    let (mode, octets) = (Mode::long(Rate::Dsss2), 252);
    for draw in 0..1000 {
        let places = topology::random(usize::from(NODES), SIDE_M, SIDE_M, Seed(seed).child(draw));
        let medium = Medium::geometric(&places, &profile, Seed(seed))?;
        if !topology::connected(&medium, mode, octets, 0.5) {
            continue;
        }
        let from_corner = |&node: &u16| {
            let place = &places[usize::from(node)];
            (libm::hypot(place.x, place.y) * 1000.0) as u64
        };
        let sink = (0..NODES).min_by_key(from_corner).unwrap_or(0);
        let hops = hops(&medium, sink, (mode, octets));
        let mut order: Vec<(u16, u16)> = (0..NODES)
            .filter(|&node| node != sink)
            .map(|node| (node, hops[usize::from(node)]))
            .collect();
        order.sort_by_key(|&(node, hops)| (std::cmp::Reverse(hops), node));
        let sources = (0..7).map(|n| order[n * (order.len() - 1) / 6]).collect();
        return Ok(Scene {
            medium,
            sink,
            sources,
        });
    }
    Err("no connected draw".into())
}

fn hops(medium: &Medium, sink: u16, (mode, octets): (Mode, usize)) -> Vec<u16> {
    let mut hops = vec![u16::MAX; medium.nodes()];
    let mut edge = vec![usize::from(sink)];
    hops[usize::from(sink)] = 0;
    while !edge.is_empty() {
        let mut next = Vec::new();
        for from in edge {
            for to in medium.hearers(from) {
                if hops[to] == u16::MAX && medium.prr(from, to, mode, octets) > 0.5 {
                    hops[to] = hops[from] + 1;
                    next.push(to);
                }
            }
        }
        edge = next;
    }
    hops
}

impl Run<'_> {
    /// The whole run over one MAC. `slots_s`: when time slots stand and are given to it, 0 if it has none.
    fn over<M: Mac>(
        &self,
        slots_s: u64,
        give: impl Fn(&mut M, Schedule),
        mac: impl Fn(Address, Stream) -> M,
    ) -> Result<String, Box<dyn std::error::Error>> {
        let mut stations = Vec::new();
        for me in 0..NODES {
            let random = |apart: u32| Seed(self.seed).stream(Purpose::Node(u32::from(me) + apart));
            let loaded = self.loaded(me, slots_s, random(1000))?;
            let link = match slots_s {
                0 => Slotted::without(loaded),
                start => Slotted::new(Address::node(me), random(2000), loaded, seconds(start)),
            };
            stations.push(Box::new(OverMac::new(
                mac(Address::node(me), random(0)),
                link,
            )));
        }
        let world = World::new(self.scene.medium.clone());
        let mut simulator = Simulator::new(world, stations, Seed(self.seed), ())?;
        if slots_s > 0 {
            simulator.run_until(AirTime::from_secs(slots_s));
            for node in 0..usize::from(NODES) {
                simulator
                    .with_node(node, |node, _| {
                        let drand = node.link.drand.as_ref();
                        let settled = drand.filter(|drand| drand.is_settled());
                        settled
                            .and_then(|drand| drand.schedule())
                            .map(|schedule| give(&mut node.mac, schedule))
                    })
                    .ok_or("DRAND has not settled")?;
            }
        }
        simulator.run_until(AirTime::from_secs(slots_s + TIMES_S[2]));
        let routers: Vec<&Router> = simulator
            .nodes()
            .map(|node| &node.link.loaded.router)
            .collect();
        let sink = &simulator.node(usize::from(self.scene.sink)).link.loaded;
        Ok(self.report(sink, &routers))
    }

    fn loaded(
        &self,
        me: u16,
        slots_s: u64,
        random: Stream,
    ) -> Result<Loaded, Box<dyn std::error::Error>> {
        let mut settings = self.settings;
        settings.room.payload = 200;
        let start = seconds(slots_s);
        let router = Router::new(settings, me, 0, &config().caps(), start, random)?;
        let is_source = self.scene.sources.iter().any(|&(node, _)| node == me);
        Ok(Loaded {
            router,
            sink: is_source.then_some(self.scene.sink),
            limit: settings.queues.limit,
            begin: seconds(slots_s + TIMES_S[0]),
            counted: seconds(slots_s + TIMES_S[1]),
            got: Vec::new(),
        })
    }

    fn report(&self, sink: &Loaded, routers: &[&Router]) -> String {
        let span = (TIMES_S[2] - TIMES_S[1]) as f64;
        let flows: Vec<(f64, f64)> = self
            .scene
            .sources
            .iter()
            .map(|&(source, _)| sink.from(source))
            .map(|(packets, delay)| (packets as f64 / span, delay))
            .collect();
        let total: f64 = flows.iter().map(|flow| flow.0).sum();
        let squares: f64 = flows.iter().map(|flow| flow.0 * flow.0).sum();
        let jain = total * total / (flows.len() as f64 * squares.max(1e-9));
        let logs: f64 = flows.iter().map(|flow| libm::log(flow.0.max(1e-3))).sum();
        let geometric = libm::exp(logs / flows.len() as f64);
        let each: Vec<String> = flows
            .iter()
            .map(|(rate, delay)| format!("{rate:.1}/{delay:.2}"))
            .collect();
        let sum = |of: fn(&Losses) -> u64| -> u64 {
            let losses = routers.iter().map(|router| router.counters().losses);
            losses.map(|losses| of(&losses)).sum()
        };
        let accepted: u64 = routers.iter().map(|node| node.counters().accepted).sum();
        let full = sum(|losses| losses.queue_full);
        let out_of_reach = routers.iter().filter(|router| {
            router.number() != self.scene.sink && router.distance(self.scene.sink).is_none()
        });
        format!(
            "total {total:.1}, Jain {jain:.3}, geometric {geometric:.2}, {}; accepted {accepted}, lost {} (link {}, queue full \
             {full}: {:.2} %, age {}), without a route {}",
            each.join(" "),
            sum(Losses::total),
            sum(|losses| losses.link),
            100.0 * full as f64 / accepted.max(1) as f64,
            sum(|losses| losses.age),
            out_of_reach.count()
        )
    }
}

fn seconds(seconds: u64) -> Instant {
    Instant::from_millis(1000 * seconds)
}
