//! How fast the simulator is, on the scenario that ns-3 was measured with.
//!
//! Scenario (a): 50 nodes in 1000 x 1000 m, two-ray ground and true Rayleigh fading at 2.4 GHz, 15 dBm, reception
//! threshold -73.9 dBm, carrier sense -84.5 dBm; nodes 0 to 9 broadcast 1500 octets at 2 Mbit/s whenever the 802.11
//! DCF lets them, 60 s. The MAC is complete (`chappe_mac::dot11`); nothing is recorded. 1000 nodes: the same
//! density, one node in five saturated.
//!
//! ```text
//! cargo bench -p chappe-sim --bench broadcast [-- quick | small | large]
//! ```
//!
//! CPU time is the thread's own; where the system does not say it, the wall clock stands in.
//! Allocations are counted over the measured part. Those that remain come when a pool reaches a new maximum.

use std::time::Instant as Wall;

use chappe_core::{Address, Dbm, Duration, OverMac, Purpose, Rate, Seed};
use chappe_mac::dot11::{Config, Dot11};
use chappe_sim::{AirTime, Loss, Medium, Profile, Simulator, World, topology};
use chappe_testkit::Saturated;
use chappe_testkit::allocation::{self, Counting};
use chappe_testkit::processor::thread_time;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// GloMoSim's radio at Pacifier's 250 m.
fn pacifier() -> Profile {
    Profile {
        power: Dbm(7.87),
        power_max: Dbm(7.87),
        ..Profile::glomosim()
    }
}

struct Scenario {
    profile: Profile,
    nodes: usize,
    side: f64,
    senders: usize,
    seconds: u64,
}

fn run(scenario: &Scenario, seed: u64) {
    let seed = Seed(seed);
    let positions = topology::random(scenario.nodes, scenario.side, scenario.side, seed);
    let begun = Wall::now();
    let medium = Medium::geometric(&positions, &scenario.profile, seed).unwrap();
    let (links, setup) = (medium.links(), begun.elapsed());
    let node = |i: usize| {
        let link = match i < scenario.senders {
            true => Saturated::towards(Address::BROADCAST, 1500),
            false => Saturated::idle(),
        };
        let mac = Dot11::new(
            Config::dot11b(Rate::Dsss2),
            Address::node(i as u16),
            seed.stream(Purpose::Node(i as u32)),
        );
        Box::new(OverMac::new(mac, link))
    };
    let nodes = (0..scenario.nodes).map(node).collect();
    let mut simulator = Simulator::new(World::new(medium), nodes, seed, ()).unwrap();
    // The first seconds fill the pools.
    let warm = AirTime::from_nanos(scenario.seconds * 100_000_000);
    simulator.run_until(warm);
    let (before, counted) = (allocation::count(), simulator.counters().clone());
    let (wall, cpu) = (Wall::now(), thread_time());
    let simulated = scenario.seconds;
    simulator.run_until(warm + Duration::from_secs(simulated));
    let allocations = allocation::count() - before;
    let (wall, cpu) = (
        wall.elapsed().as_secs_f64(),
        thread_time()
            .zip(cpu)
            .map(|(now, then)| (now - then).as_secs_f64()),
    );
    let counters = simulator.counters();
    let frames = counters.frames - counted.frames;
    let receptions = counters.receptions - counted.receptions;
    let pairs = counters.arrivals - counted.arrivals;
    let spent = cpu.unwrap_or(wall);
    let memory = simulator.memory();
    println!(
        "{:>5} nodes seed {} | {:>8.2} sim s/CPU s ({:>8.2} wall) | {:>8} frames {:>9.0} frames/s | {:.2} rx/frame | {:>5.1} ns/pair | {} allocations | {} links {:.0} B/link {} B/node {} B in {} slots | setup {:.1} ms | {:016x}",
        scenario.nodes,
        seed.0,
        simulated as f64 / spent,
        simulated as f64 / wall,
        frames,
        frames as f64 / spent,
        receptions as f64 / frames as f64,
        spent * 1e9 / pairs as f64,
        allocations,
        links,
        memory.links as f64 / links as f64,
        memory.per_node,
        memory.frames,
        memory.slots,
        setup.as_secs_f64() * 1e3,
        simulator.digest(),
    );
    let lost = |why: Loss| counters.lost.of(why) as f64 / counters.frames as f64;
    println!(
        "      per frame: too weak {:.2}, noise {:.3}, collision {:.2}, preamble missed {:.2}, transmitting {:.2}; arrivals {:.2}; events {:.2}, node calls {:.2}",
        lost(Loss::TooWeak),
        lost(Loss::Noise),
        lost(Loss::Collision),
        lost(Loss::PreambleMissed),
        lost(Loss::Transmitting),
        counters.arrivals as f64 / counters.frames as f64,
        counters.events as f64 / counters.frames as f64,
        counters.calls as f64 / counters.frames as f64,
    );
}

fn main() {
    let has = |word: &str| std::env::args().any(|argument| argument == word);
    let (quick, small, large) = (has("quick"), !has("large"), !has("small"));
    let a = |profile| Scenario {
        profile,
        nodes: 50,
        side: 1000.0,
        senders: 10,
        seconds: 60,
    };
    for seed in 1..=if quick { 2 } else { 6 } {
        small.then(|| run(&a(Profile::ns3_rayleigh()), seed));
    }
    for profile in [
        Profile::chappe_physical(),
        pacifier(),
        Profile::ns2_threshold(),
    ] {
        small.then(|| {
            println!("the same under {}:", profile.name);
            run(&a(profile), 1);
        });
    }
    let big = |nodes, side, senders, seconds| Scenario {
        profile: Profile::ns3_rayleigh(),
        nodes,
        side,
        senders,
        seconds,
    };
    for seed in 1..=if quick { 1 } else { 3 } {
        large.then(|| run(&big(1000, 4472.0, 200, if quick { 1 } else { 10 }), seed));
    }
    if large && !quick {
        run(&big(10_000, 14_142.0, 2000, 1), 1);
    }
}
