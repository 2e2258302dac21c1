//! The mesh over simulated 802.11b with a model of Linux's TCP, in virtual time: nothing depends on the machine.
//!
//! ```text
//! cargo run --release -p chappe-mesh --example in_virtual_time -- [line] [diamond] [--seeds 20]
//! cargo run --release -p chappe-mesh --example in_virtual_time -- twelve      # four flows on twelve nodes
//! cargo run --release -p chappe-mesh --example in_virtual_time -- control     # what 200 nodes send when no one uses them
//! ```

#[path = "../tests/suite/radio/mod.rs"]
mod radio;

use chappe_core::Duration;
use chappe_mesh::settings::Hop;
use radio::measure::{Measured, ceilings};
use radio::{Places, Radios, quantile};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let has = |name: &str| words.iter().any(|word| word == name);
    let seeds = words.iter().position(|word| word == "--seeds");
    let seeds = seeds.and_then(|at| words.get(at + 1)?.parse().ok());
    if has("control") {
        return (1..=seeds.unwrap_or(1)).for_each(control);
    }
    if has("twelve") {
        return twelve(seeds.unwrap_or(10));
    }
    let none = !has("line") && !has("diamond");
    if none || has("line") {
        compare("line", &Places::line(), seeds.unwrap_or(20), 3.0);
    }
    if none || has("diamond") {
        compare("diamond", &Places::diamond(), seeds.unwrap_or(20), 2.0);
    }
}

fn compare(name: &str, places: &Places, seeds: u64, hops: f64) {
    let [broadcast, without, unicast] = ceilings(hops, 0.8);
    println!(
        "{name}: at most {broadcast:.0} kbit/s by broadcasts, {without:.0} without back-off, {unicast:.0} by unicasts"
    );
    println!("seed | TCP kbit/s  flood | ping ms median, 95 % | first s | sent again %");
    let all: Vec<Measured> = (1..=seeds).map(|seed| Measured::of(places, seed)).collect();
    for (seed, one) in (1..).zip(&all) {
        row(&format!("{seed:4}"), one);
    }
    let mean = |value: fn(&Measured) -> f64| all.iter().map(value).sum::<f64>() / all.len() as f64;
    row(
        "mean",
        &Measured {
            tcp_kbps: mean(|one| one.tcp_kbps),
            flood_kbps: mean(|one| one.flood_kbps),
            ping_s: (mean(|one| one.ping_s.0), mean(|one| one.ping_s.1)),
            first_s: mean(|one| one.first_s),
            again: mean(|one| one.again),
        },
    );
}

/// Four TCP flows on twelve nodes at random, another network for each seed, with pings beside the first.
fn twelve(seeds: u64) {
    println!(
        "seed | TCP kbit/s of each flow, geometric mean | ping ms median, 95 %, answered of 60"
    );
    let (mut logs, mut late) = (0.0, Vec::new());
    for seed in 1..=seeds {
        let mut radios = Radios::new(&Places::random(12, seed), Hop::Broadcast, seed);
        radios.run(Duration::from_secs(8));
        let flows = [(0, 6), (1, 7), (2, 8), (3, 9)];
        for (from, to) in flows {
            radios.connect(from, to);
        }
        radios.run(Duration::from_secs(10));
        let octets = |radios: &Radios| flows.map(|(_, to)| radios.card(to).flows[0].octets());
        let before = octets(&radios);
        radios.ping(0, 6, Duration::from_millis(200));
        radios.run(Duration::from_secs(22));
        let after = octets(&radios);
        let kbps = [0, 1, 2, 3].map(|flow| (after[flow] - before[flow]) as f64 * 8e-3 / 12.0);
        let log = kbps.iter().map(|kbps| kbps.max(0.1).ln()).sum::<f64>() / 4.0;
        let mut times = radios.card(0).pings.round_trips.clone();
        let (median, most) = (quantile(&mut times, 0.5), quantile(&mut times, 0.95));
        println!(
            "{seed:4} | {kbps:6.0?} {:6.0} | {:6.0} {:6.0} {}",
            log.exp(),
            1e3 * median,
            1e3 * most,
            times.len()
        );
        logs += log / seeds as f64;
        late.push(most);
    }
    println!(
        "mean | {:.0} kbit/s | 95 % of the pings: median of the networks {:.0} ms, {:.0} ms at most",
        logs.exp(),
        1e3 * quantile(&mut late, 0.5),
        1e3 * quantile(&mut late, 1.0)
    );
}

fn row(name: &str, one: &Measured) {
    println!(
        "{name} | {:10.0} {:6.0} | {:6.0} {:13.0} | {:7.2} | {:.1}",
        one.tcp_kbps,
        one.flood_kbps,
        1e3 * one.ping_s.0,
        1e3 * one.ping_s.1,
        one.first_s,
        100.0 * one.again
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
