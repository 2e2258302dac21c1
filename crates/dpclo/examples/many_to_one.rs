//! The paper's large network: 108 nodes on 1250 m by 1250 m, seven sources, one sink, over 802.11b.
//!
//! ```text
//! cargo run --release -p chappe-dpclo --example many_to_one -- [SEED] [dcf|edca|edca-deaf|zmac|zmac-open|zmac-short|zmac-lossy|bound] [SCHEME|all] [SETTING=VALUE]...
//! ```
//!
//! Rates in packets of 200 octets a second and mean delays in seconds, sources ordered by distance, farthest first. Radios
//! are ns-2's: 250 m to be heard, 550 m to be sensed, 2 Mbit/s. Places are drawn until all nodes are connected. Over ZMAC+ the
//! nodes find their time slots by DRAND in the first minute. Settings that can be changed: see `set`. `bound` instead of a MAC
//! prints what the best routes and schedule carry: when links whose ends are within 550 m cannot be used at the same time, and
//! when only senders that sense each other and data that would be destroyed exclude each other. `zmac-open` has no notification of
//! contention; over `zmac-short` nodes wait for 8 to 16 back-off slots in the time slots of others, instead of 8 to 32;
//! over `zmac-lossy` nodes notify of losses, and not of long waits.

#[path = "../tests/suite/common/loaded.rs"]
mod loaded;
#[path = "../tests/suite/common/on_air.rs"]
mod on_air;
#[path = "../tests/suite/common/slotted.rs"]
mod slotted;

use chappe_bound::graph::Graph;
use chappe_bound::{Conflict, MeshFlow, MeshLink, MeshOptions, Objective, mesh_bound};
use chappe_core::{Duration, Mode, Rate, Seed};
use chappe_dpclo::{Counters, KMax, Losses, PriceLaw, RateLaw, Router, Settings};
use chappe_mac::dot11::Config;
use chappe_sim::{Medium, Profile, topology};
use on_air::{Access, Mesh};

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

#[allow(
    clippy::disallowed_methods,
    reason = "a program on the host, with arguments"
)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let seed: u64 = arguments.next().map_or(Ok(1), |seed| seed.parse())?;
    let mac = arguments.next().unwrap_or("dcf".into());
    let wanted = arguments.next().filter(|wanted| wanted != "all");
    let changes: Vec<String> = arguments.collect();
    let scene = scene(seed)?;
    let hops: Vec<u16> = scene.sources.iter().map(|&(_, hops)| hops).collect();
    println!("seed {seed}, {mac}, hops {hops:?} {}", changes.join(" "));
    if mac == "bound" {
        return bounds(&scene);
    }
    for (name, mut settings) in schemes() {
        if wanted.as_ref().is_some_and(|wanted| wanted != name) {
            continue;
        }
        let (mut times_s, mut random) = (TIMES_S, seed);
        for change in &changes {
            match change.split_once('=') {
                // Seconds from the sources' begin to counting, and from there to the end.
                Some(("after", seconds)) => {
                    times_s[1] = times_s[0] + seconds.parse::<u64>()?;
                    times_s[2] = times_s[2].max(times_s[1] + 1);
                }
                // The same network with other random numbers in nodes and channel.
                Some(("random", other)) => random = other.parse()?,
                Some(("for", seconds)) => times_s[2] = times_s[1] + seconds.parse::<u64>()?,
                _ => set(&mut settings, change)?,
            }
        }
        settings.room.payload = 200;
        let mesh = Mesh {
            medium: scene.medium.clone(),
            caps: config(&mac).caps(),
            settings,
            flows: scene
                .sources
                .iter()
                .map(|&(node, _)| (node, scene.sink))
                .collect(),
            times_s,
            seed: random,
        };
        let played = mesh.over(access(&mac)?, config(&mac));
        let line = report(&scene, &played.flows, &played.routers);
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
        ("improved", Settings::improved()),
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
        "reserve" => settings.queues.reserve = value as u16,
        "credits" => settings.extras.credits = value as u8,
        "reports" => {
            let reports = settings.extras.reports.as_mut();
            reports.ok_or("this scheme has no reports")?.share = value;
        }
        "gain" => {
            settings.rate = RateLaw::Price(PriceLaw {
                gain: value,
                interval: Duration::from_millis(100),
            });
        }
        "load" | "rise" | "fall" | "queue" | "queue-gain" | "gain-of-load" | "floor" | "double"
        | "around" => {
            let RateLaw::Airtime(law) = &mut settings.rate else {
                return Err("this scheme has no prices of airtime".into());
            };
            match name {
                "load" => law.load = value,

                "rise" => law.rise = value,
                "fall" => law.fall = value,
                "queue" => law.queue = value,
                "queue-gain" => law.queue_gain = value,
                "floor" => law.floor = value,
                // In microseconds.
                "around" => law.around = Duration::from_secs_f64(value * 1e-6),
                "double" => law.double = Duration::from_secs_f64(value),
                _ => law.gain = value,
            }
        }
        "age" => {
            settings.extras.age_weight =
                Some(Duration::from_millis(value as u64)).filter(|age| *age > Duration::ZERO)
        }
        "count" => settings.extras.count_sent = value > 0.0,
        "feasible" => settings.next_hops.feasible_only = value > 0.0,
        "attempts" => {
            settings.probes.attempts = Settings::improved().probes.attempts.filter(|_| value > 0.0)
        }
        "high" => settings.next_hops.high = value,
        "by-queue" => settings.priorities.by_queue = value > 0.0,
        "urgent" => settings.priorities.high = value,
        "medium" => settings.priorities.medium = value,
        "k" => settings.next_hops.limit = KMax::Fixed(value as u8),
        "bias" => settings.extras.bias = value,
        "smoothing" => settings.extras.smoothing = value,
        _ => {
            return Err(format!(
                "no setting '{name}' here: age, attempts, bias, count, credits, feasible, gain, high, k, limit, reports, reserve, smoothing"
            )
            .into());
        }
    }
    Ok(())
}

/// "Deaf" stations do not hand up frames to others.
fn config(mac: &str) -> Config {
    Config {
        overhear: !mac.ends_with("-deaf"),
        ..Config::dot11b(Rate::Dsss2)
    }
}

fn access(name: &str) -> Result<Access, String> {
    match name {
        "dcf" => Ok(Access::Dcf),
        "edca" | "edca-deaf" => Ok(Access::Edca),
        "zmac" | "zmac-open" | "zmac-short" | "zmac-lossy" => Ok(Access::Zmac {
            slots_s: SLOTS_S,
            notify: name != "zmac-open",
            window: match name {
                "zmac-short" => 16,
                _ => 32,
            },
            notify_waits: name != "zmac-lossy",
        }),
        _ => Err(format!(
            "no MAC '{name}': dcf, edca, edca-deaf, zmac, zmac-open, zmac-short, zmac-lossy"
        )),
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

/// The max-min and the proportionally fair optimum, under two rules for which links exclude each other. A link alone carries
/// 533.6 packets a second: 252 octets at 2 Mbit/s, SIFS, ACK, DIFS and 15.5 slots of back-off.
fn bounds(scene: &Scene) -> Result<(), Box<dyn std::error::Error>> {
    const LINK: f64 = 533.6;
    let places = scene.medium.positions();
    let metres =
        |a: usize, b: usize| libm::hypot(places[a].x - places[b].x, places[a].y - places[b].y);
    let pairs = (0..places.len()).flat_map(|a| (0..places.len()).map(move |b| (a, b)));
    let links = pairs.filter(|&(a, b)| a != b && metres(a, b) <= 250.0);
    let links: Vec<MeshLink> = links
        .map(|(from, to)| MeshLink {
            from,
            to,
            rate_bps: LINK,
        })
        .collect();
    let apart =
        chappe_bound::Mesh::new(places.len(), links.clone(), Conflict::Symmetric, |a, b| {
            metres(a, b) <= 550.0
        })?;
    // Senders that sense each other, and data that another sender's signal destroys: less than 10 dB weaker, after the
    // fourth power of distance.
    let destroys =
        |from: usize, link: &MeshLink| metres(from, link.to) < 1.7783 * metres(link.from, link.to);
    let mut conflicts = Graph::new(links.len());
    for (b, other) in links.iter().enumerate() {
        for (a, link) in links[..b].iter().enumerate() {
            let ends = [other.from, other.to];
            if ends.contains(&link.from)
                || ends.contains(&link.to)
                || metres(link.from, other.from) <= 550.0
                || destroys(link.from, other)
                || destroys(other.from, link)
            {
                conflicts.connect(a, b);
            }
        }
    }
    let aware = chappe_bound::Mesh::with_conflicts(places.len(), links, conflicts)?;
    let sink = usize::from(scene.sink);
    let flow = |&(source, _): &(u16, u16)| MeshFlow {
        source: usize::from(source),
        sink,
    };
    let flows: Vec<MeshFlow> = scene.sources.iter().map(flow).collect();
    for (rule, mesh) in [("550 m apart", apart), ("interference", aware)] {
        for objective in [Objective::MaxMin, Objective::SumLog] {
            let best = mesh_bound(&mesh, &flows, objective, &MeshOptions::default())?;
            let rates = &best.rates_bps;
            let logs: f64 = rates.iter().map(|&rate| libm::log(rate)).sum();
            println!(
                "{rule}, {objective:?}: total {:.1}, Jain {:.3}, geometric {:.2}, gap {:.4}, {rates:.1?}",
                best.total_bps(),
                best.jain(),
                libm::exp(logs / rates.len() as f64),
                best.gap
            );
        }
    }
    Ok(())
}

fn report(scene: &Scene, flows: &[(f64, f64)], routers: &[Router]) -> String {
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
    let count =
        |of: fn(&Counters) -> u64| -> u64 { routers.iter().map(|node| of(&node.counters())).sum() };
    let accepted = count(|counters| counters.accepted);
    let full = sum(|losses| losses.queue_full);
    let reports = count(|counters| counters.reports_sent);
    let out_of_reach = routers
        .iter()
        .filter(|router| router.number() != scene.sink && router.distance(scene.sink).is_none());
    format!(
        "total {total:.1}, Jain {jain:.3}, geometric {geometric:.2}, {}; accepted {accepted}, lost {} (link {}, queue full \
         {full}: {:.2} %, hop limit {}, age {}), {:.2} transmissions a delivered packet, without a route {}, {reports} reports",
        each.join(" "),
        sum(Losses::total) - sum(|losses| losses.copies),
        sum(|losses| losses.link),
        100.0 * full as f64 / accepted.max(1) as f64,
        sum(|losses| losses.hop_limit),
        sum(|losses| losses.age),
        count(|counters| counters.attempts) as f64
            / count(|counters| counters.delivered).max(1) as f64,
        out_of_reach.count()
    )
}
