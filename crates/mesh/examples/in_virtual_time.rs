//! The mesh over simulated 802.11b with a model of Linux's TCP, in virtual time: nothing depends on the machine.
//!
//! ```text
//! cargo run --release -p chappe-mesh --example in_virtual_time -- [line] [diamond] [five] [--edca|--video] [--seeds 20] [--from 1]
//! cargo run --release -p chappe-mesh --example in_virtual_time -- twelve [--shipped] [--edca|--video] [--seeds 10] [--from 1] [--unicast]     # four flows on twelve nodes, and over static routes
//! cargo run --release -p chappe-mesh --example in_virtual_time -- ceiling [--shipped] [--seeds 10] [--from 1]     # what no routing and no schedule exceeds there
//! cargo run --release -p chappe-mesh --example in_virtual_time -- control     # what 200 nodes send when no one uses them
//! ```
//!
//! With `--edca` cards have the access categories of EDCA, and with `--video` all data contend as video there, those over static routes, too. With `--shipped` the twelve nodes are those of `examples/mesh-12-flows.toml`, for each seed; else each seed has a network of its own.

#[path = "../tests/suite/flows.rs"]
mod flows;
#[path = "../tests/suite/radio/mod.rs"]
mod radio;

use std::ops::Range;

use chappe_bound::graph::Graph;
use chappe_bound::{Mesh, MeshFlow, MeshLink, MeshOptions, Objective, mesh_bound};
use chappe_core::{Bitrate, Duration, Mode, Rate};
use chappe_mesh::air::Air;
use chappe_mesh::node::mtu_of;
use chappe_mesh::settings::Hop;
use chappe_testkit::Words;
use flows::TWELVE;
use radio::measure::{ACK_S, BACKOFF_S, Measured, ceilings};
use radio::{FRAME_MAX, Host, Pings, Places, Plain, Radios, quantile};

const USAGE: &str = "in_virtual_time [line] [diamond] [five] [--edca|--video] [--seeds N] [--from SEED] | twelve [--shipped] [--edca|--video] [--seeds N] [--from SEED] [--unicast] | ceiling [--shipped] [--seeds N] [--from SEED] | control [--seeds N]";

fn main() {
    let mut words = Words::of_process(USAGE);
    let seeds = words.option("--seeds");
    let [control_only, twelve_only, ceiling_only, shipped] =
        ["control", "twelve", "ceiling", "--shipped"].map(|name| words.flag(name));
    let [edca, video] = ["--edca", "--video"].map(|name| words.flag(name));
    let edca = edca || video;
    if edca && (control_only || ceiling_only) {
        words.refuse("--edca or --video", "is for TCP only");
    }
    if control_only {
        words.end();
        return (1..=seeds.unwrap_or(1)).for_each(control);
    }
    if shipped && !twelve_only && !ceiling_only {
        words.refuse("--shipped", "is for twelve and ceiling only");
    }
    let places = |seed| {
        let places = match shipped {
            true => Places::twelve(),
            false => Places::random(12, seed),
        };
        places.with_categories(edca, video)
    };
    if ceiling_only {
        let from = words.option("--from").unwrap_or(1);
        words.end();
        // One network needs no second look.
        let count = seeds.unwrap_or(10).min(if shipped { 1 } else { u64::MAX });
        return (from..from + count).for_each(|seed| ceiling(&places(seed), seed));
    }
    if twelve_only {
        let from = words.option("--from").unwrap_or(1);
        let hop = match words.flag("--unicast") {
            true => Hop::Unicast,
            false => Hop::Broadcast,
        };
        words.end();
        return twelve(hop, places, from, seeds.unwrap_or(10));
    }
    let [line, diamond, five] = ["line", "diamond", "five"].map(|name| words.flag(name));
    let from = words.option("--from").unwrap_or(1);
    words.end();
    let both = !line && !diamond && !five;
    let seeds = from..from + seeds.unwrap_or(20);
    for (name, chosen, places, hops) in [
        ("line", both || line, Places::line(), 3.0),
        ("diamond", both || diamond, Places::diamond(), 2.0),
        ("five", five, Places::five(), 3.0),
    ] {
        if chosen {
            let places = places.with_categories(edca, video);
            compare(name, &places, seeds.clone(), hops);
        }
    }
}

fn compare(name: &str, places: &Places, seeds: Range<u64>, hops: f64) {
    let [broadcast, without, unicast] = ceilings(hops, 0.8);
    println!(
        "{name}: at most {broadcast:.0} kbit/s by broadcasts, {without:.0} without back-off, {unicast:.0} by unicasts"
    );
    println!(
        "seed | TCP kbit/s  flood | ping ms median, 95 % | first s | sent again % | s without a route"
    );
    let each = seeds.clone().map(|seed| Measured::of(places, seed));
    let all: Vec<Measured> = each.collect();
    for (seed, one) in seeds.zip(&all) {
        row(&format!("{seed:4}"), one);
    }
    let mean = |value: fn(&Measured) -> f64| all.iter().map(value).sum::<f64>() / all.len() as f64;
    row(
        "mean",
        &Measured {
            tcp_kbps: mean(|one| one.tcp_kbps),
            flood_kbps: mean(|one| one.flood_kbps),
            ping_s: (mean(|one| one.ping_s.0), mean(|one| one.ping_s.1)),
            stood_s: mean(|one| one.stood_s),
            first_s: mean(|one| one.first_s),
            again: mean(|one| one.again),
        },
    );
}

/// The goodput of four TCP flows in kbit/s, and the pings beside the first in seconds.
struct Four {
    kbps: [f64; 4],
    pings: Vec<f64>,
}

impl Four {
    /// Pings go over each path first, as in `beside_babeld`. Ten seconds after the start twelve are counted.
    fn of<H: Host>(mut radios: Radios<(), H>) -> Four {
        for (flow, (from, to)) in (0..).zip(TWELVE) {
            let begin = Duration::from_millis(2000 + 300 * flow);
            radios.run(begin);
            radios.ping(from, to, Duration::from_millis(100));
            radios.run(begin + Duration::from_millis(300));
            radios.with(from, |host, _| host.programs().pings = Pings::default());
        }
        radios.run(Duration::from_secs(8));
        for (from, to) in TWELVE {
            radios.connect(from, to);
        }
        radios.run(Duration::from_secs(10));
        let octets = |radios: &mut Radios<(), H>| {
            TWELVE.map(|(_, to)| radios.with(to, |host, _| host.programs().flows[0].octets()))
        };
        let before = octets(&mut radios);
        let (first, to) = TWELVE[0];
        radios.ping(first, to, Duration::from_millis(200));
        radios.run(Duration::from_secs(22));
        let after = octets(&mut radios);
        Four {
            kbps: [0, 1, 2, 3].map(|flow| (after[flow] - before[flow]) as f64 * 8e-3 / 12.0),
            pings: radios.with(first, |host, _| host.programs().pings.round_trips.clone()),
        }
    }

    /// The logarithm of the geometric mean; a flow counts for a tenth of a kbit/s at least.
    fn log(&self) -> f64 {
        self.kbps.map(|kbps| kbps.max(0.1).ln()).iter().sum::<f64>() / 4.0
    }

    /// The quantile of the pings' times in milliseconds. Those without an answer count as the longest.
    fn ping_ms(&self, share: f64) -> f64 {
        let mut times = self.pings.clone();
        times.resize(times.len().max(60), f64::INFINITY);
        1e3 * quantile(&mut times, share)
    }
}

/// Four TCP flows on twelve nodes at random, another network for each seed, over the mesh and over static routes.
fn twelve(hop: Hop, places: impl Fn(u64) -> Places, from: u64, seeds: u64) {
    println!(
        "seed | TCP kbit/s of each flow, geometric mean | ping ms median, 95 % | static routes: the same | factor"
    );
    let (mut logs, mut late) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    for seed in from..from + seeds {
        let places = places(seed);
        let both = [
            Four::of(Radios::new(&places, hop, seed)),
            Four::of(Radios::plain(&places, seed)),
        ];
        print!("{seed:4} |");
        for (at, four) in both.iter().enumerate() {
            print!(
                " {:6.0?} {:6.0} | {:6.0} {:6.0} |",
                four.kbps,
                four.log().exp(),
                four.ping_ms(0.5),
                four.ping_ms(0.95)
            );
            logs[at].push(four.log());
            late[at].push(four.ping_ms(0.95));
        }
        println!(" {:.2}", (both[0].log() - both[1].log()).exp());
    }
    let mean = |logs: &[f64]| logs.iter().sum::<f64>() / logs.len() as f64;
    for (name, at) in [("mesh", 0), ("static routes", 1)] {
        println!(
            "{name}: {:.0} kbit/s; 95 % of the pings: {:.0} ms on the median network, {:.0} ms on the worst",
            mean(&logs[at]).exp(),
            quantile(&mut late[at], 0.5),
            quantile(&mut late[at], 1.0)
        );
    }
    let mut factors: Vec<f64> = (logs[0].iter().zip(&logs[1]))
        .map(|(mesh, plain)| mesh - plain)
        .collect();
    let (mean, most) = (mean(&factors), factors.len() as f64);
    let spread = factors
        .iter()
        .map(|factor| (factor - mean).powi(2))
        .sum::<f64>();
    let half = 1.96 * (spread / (most * (most - 1.0))).sqrt();
    println!(
        "factor: {:.2} in the geometric mean ({:.2} to {:.2}), {:.2} on the worst network",
        mean.exp(),
        (mean - half).exp(),
        (mean + half).exp(),
        quantile(&mut factors, 0.0).exp()
    );
}

/// The rates of largest geometric mean over all routings and all schedules of links. Of two nodes that sense each other mostly, one sends at a time; nothing
/// but data is on the air, and no frame collides.
fn ceiling(places: &Places, seed: u64) {
    let full = Plain::mtu();
    // The least that TCP needs beside its segments: at the end of each burst its receiver answers with one frame, and the relays' answers ride
    // in full frames. Goodput is without the headers of IP and TCP.
    let air = Air::dot11b(Bitrate(11_000_000));
    let answer_s = air.exchange(SEGMENT_HEADERS).as_secs_f64() / f64::from(air.burst_max());
    for (name, octets, extra, answer_s) in [
        ("unicasts, mean back-off", full, BACKOFF_S + ACK_S, 0.0),
        ("broadcasts, mean back-off", full, BACKOFF_S, 0.0),
        ("broadcasts, no back-off", full, 0.0, 0.0),
        (
            "TCP over the mesh, mean back-off",
            mtu_of(FRAME_MAX) - SEGMENT_HEADERS,
            BACKOFF_S,
            answer_s,
        ),
    ] {
        let mesh = links(places, (octets, extra), answer_s);
        let flows = TWELVE.map(|(source, sink)| MeshFlow { source, sink });
        let options = MeshOptions::default();
        let bound = mesh_bound(&mesh, &flows, Objective::SumLog, &options).expect("a bound");
        let kbps: Vec<f64> = bound.rates_bps.iter().map(|rate| rate / 1e3).collect();
        println!(
            "{seed:4} | {name:32} | at most {:.0} kbit/s in the geometric mean | as by {kbps:.0?}",
            (bound.bound / TWELVE.len() as f64).exp() / 1e3
        );
    }
}

/// Octets of the headers of IP and TCP, with time stamps.
const SEGMENT_HEADERS: usize = 52;

/// All links, with what they carry of full frames that have so many octets of use, and take so many seconds more than their octets, preamble and
/// space. Those to the end of a flow take `answer_s` more for each frame.
fn links(places: &Places, (used, extra_s): (usize, f64), answer_s: f64) -> Mesh {
    let (medium, nodes) = (&places.medium, places.medium.nodes());
    let air = Air::dot11b(Bitrate(11_000_000));
    let takes = air.exchange(FRAME_MAX).as_secs_f64() - BACKOFF_S + extra_s;
    let bits = used as f64 * 8.0;
    let ends = TWELVE.map(|(_, sink)| sink);
    let pairs = (0..nodes * nodes).map(|pair| (pair / nodes, pair % nodes));
    let octets = Plain::mtu() + air.below;
    let links = pairs.filter_map(|(from, to)| {
        let ratio = medium.prr(from, to, Mode::long(Rate::Cck11), octets);
        let answer_s = if ends.contains(&to) { answer_s } else { 0.0 };
        let rate_bps = bits / (takes / ratio + answer_s);
        (from != to && ratio > 0.02).then_some(MeshLink { from, to, rate_bps })
    });
    let links: Vec<MeshLink> = links.collect();
    let mut conflicts = Graph::new(links.len());
    for (b, other) in links.iter().enumerate() {
        for (a, link) in links[..b].iter().enumerate() {
            let ends = [other.from, other.to];
            let shared = ends.contains(&link.from) || ends.contains(&link.to);
            if shared || medium.sense_probability(link.from, other.from) > 0.5 {
                conflicts.connect(a, b);
            }
        }
    }
    Mesh::with_conflicts(nodes, links, conflicts).expect("links")
}

fn row(name: &str, one: &Measured) {
    println!(
        "{name} | {:10.0} {:6.0} | {:6.0} {:13.0} | {:7.2} | {:12.1} | {:.2}",
        one.tcp_kbps,
        one.flood_kbps,
        1e3 * one.ping_s.0,
        1e3 * one.ping_s.1,
        one.first_s,
        100.0 * one.again,
        one.stood_s
    );
}

/// The share of the channel that an idle mesh of 200 nodes takes, as each node senses it.
fn control(seed: u64) {
    let places = Places::random(200, seed);
    let mut radios = Radios::new(&places, Hop::Broadcast, seed);
    let (from, to) = (60, 120);
    radios.run(Duration::from_secs(from));
    let before = radios.counters().clone();
    radios.run(Duration::from_secs(to));
    let span = (to - from) as f64;
    let spent: Vec<f64> = (radios.counters().nodes.iter().zip(&before.nodes))
        .map(|(now, then)| (now.airtime.as_secs_f64() - then.airtime.as_secs_f64()) / span)
        .collect();
    let sensed = |node: usize| -> f64 {
        let around = (0..200)
            .filter(|&other| other == node || places.medium.sense_probability(other, node) > 0.5);
        around.map(|other| spent[other]).sum()
    };
    let mut shares: Vec<f64> = (0..200).map(sensed).collect();
    let known = |place: usize| radios.card(place).node.router().destinations().count();
    let routes: usize = (0..200).map(known).sum();
    let reached = |place: usize| {
        let router = radios.card(place).node.router();
        let numbers = router.destinations();
        numbers
            .filter(|&known| router.distance(known).is_some())
            .count()
    };
    let reached: usize = (0..200).map(reached).sum();
    let frames: u64 = (radios.counters().nodes.iter().zip(&before.nodes))
        .map(|(now, then)| now.frames - then.frames)
        .sum();
    let mean = shares.iter().sum::<f64>() / 200.0;
    println!(
        "200 nodes, {span} s without traffic: control takes {:.2} % of the air in the mean, {:.2} % at 95 % of the nodes, {:.2} % at most; {:.0} destinations known to each, {:.1} with a route; {:.2} frames a second from each",
        100.0 * mean,
        100.0 * quantile(&mut shares, 0.95),
        100.0 * quantile(&mut shares, 1.0),
        routes as f64 / 200.0,
        reached as f64 / 200.0,
        frames as f64 / 200.0 / span
    );
}
