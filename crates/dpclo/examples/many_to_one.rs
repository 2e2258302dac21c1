//! The paper's large network: 108 nodes on 1250 m by 1250 m, seven sources, one sink, over 802.11b.
//!
//! ```text
//! cargo run --release -p chappe-dpclo --example many_to_one -- [SEED] [dcf|edca] [SCHEME]
//! ```
//!
//! Rates in packets of 200 octets a second and mean delays in seconds, sources ordered by distance, farthest first. Radios
//! are ns-2's: 250 m to be heard, 550 m to be sensed, 2 Mbit/s. Places are drawn until all nodes are connected.

#[path = "../tests/common/loaded.rs"]
mod loaded;

use chappe_core::{Address, Duration, Instant, Mac, Mode, OverMac, Purpose, Rate, Seed, Stream};
use chappe_dpclo::{KMax, Losses, Router, Settings};
use chappe_mac::dot11::{Category, Config, Dot11, Edca};
use chappe_sim::{AirTime, Medium, Profile, Simulator, World, topology};
use loaded::Loaded;

const NODES: u16 = 108;
const SIDE_M: f64 = 1250.0;
/// Sources begin, counting begins, the run ends, in seconds. The paper: sources from 200 s to 300 s.
const TIMES_S: [u64; 3] = [60, 80, 180];

/// Where the nodes are, and who sends.
struct Scene {
    medium: Medium,
    sink: u16,
    /// Sources with their hops to the sink, farthest first.
    sources: Vec<(u16, u16)>,
}

#[allow(
    clippy::disallowed_methods,
    reason = "a program on the host, with arguments"
)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let seed: u64 = arguments.next().map_or(Ok(1), |seed| seed.parse())?;
    let access = arguments.next().unwrap_or("dcf".into());
    let wanted = arguments.next();
    let scene = scene(seed)?;
    let hops: Vec<u16> = scene.sources.iter().map(|&(_, hops)| hops).collect();
    println!("seed {seed}, {access}, hops {hops:?}");
    for (name, settings) in schemes() {
        if wanted.as_ref().is_some_and(|wanted| wanted != name) {
            continue;
        }
        let line = match access.as_str() {
            "edca" => run(&scene, settings, seed, |address, random| {
                Edca::edca(config(), Category::DSSS, address, random)
            })?,
            _ => run(&scene, settings, seed, |address, random| {
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

fn config() -> Config {
    Config {
        overhear: true,
        ..Config::dot11b(Rate::Dsss2)
    }
}

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

fn run<M: Mac>(
    scene: &Scene,
    settings: Settings,
    seed: u64,
    mac: impl Fn(Address, Stream) -> M,
) -> Result<String, Box<dyn std::error::Error>> {
    let [begin, counted, end] = TIMES_S;
    let mut settings = settings;
    settings.room.payload = 200;
    let mut stations = Vec::new();
    for me in 0..NODES {
        let random = |apart: u32| Seed(seed).stream(Purpose::Node(u32::from(me) + apart));
        let router = Router::new(
            settings,
            me,
            0,
            &config().caps(),
            Instant::ZERO,
            random(1000),
        )?;
        let link = Loaded {
            router,
            sink: scene
                .sources
                .iter()
                .any(|&(node, _)| node == me)
                .then_some(scene.sink),
            limit: settings.queues.limit,
            begin: Instant::from_millis(1000 * begin),
            counted: Instant::from_millis(1000 * counted),
            got: Vec::new(),
        };
        stations.push(Box::new(OverMac::new(
            mac(Address::node(me), random(0)),
            link,
        )));
    }
    let world = World::new(scene.medium.clone());
    let mut simulator = Simulator::new(world, stations, Seed(seed), ())?;
    simulator.run_until(AirTime::ZERO + Duration::from_secs(end));
    let span = (end - counted) as f64;
    let sink = &simulator.node(usize::from(scene.sink)).link;
    let flows: Vec<(f64, f64)> = scene
        .sources
        .iter()
        .map(|&(source, _)| sink.from(source))
        .map(|(packets, delay)| (packets as f64 / span, delay))
        .collect();
    let total: f64 = flows.iter().map(|flow| flow.0).sum();
    let squares: f64 = flows.iter().map(|flow| flow.0 * flow.0).sum();
    let jain = total * total / (flows.len() as f64 * squares.max(1e-9));
    let each: Vec<String> = flows
        .iter()
        .map(|(rate, delay)| format!("{rate:.1}/{delay:.2}"))
        .collect();
    let reach = (0..NODES).filter(|&node| {
        let router = &simulator.node(usize::from(node)).link.router;
        node != scene.sink && router.distance(scene.sink).is_none()
    });
    let lost = |of: fn(&Losses) -> u64| -> u64 {
        let losses = simulator
            .nodes()
            .map(|node| node.link.router.counters().losses);
        losses.map(|losses| of(&losses)).sum()
    };
    Ok(format!(
        "total {total:.1}, Jain {jain:.2}, {}; lost {} (link {}, queue full {}, age {}), without a route {}",
        each.join(" "),
        lost(Losses::total),
        lost(|losses| losses.link),
        lost(|losses| losses.queue_full),
        lost(|losses| losses.age),
        reach.count()
    ))
}
