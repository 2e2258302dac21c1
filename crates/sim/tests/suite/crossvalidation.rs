//! Scenario (a) of the physics report against ns-3, which ran it on other topologies of the same kind.

use chappe_core::{Address, OverMac, Purpose, Rate, Seed};
use chappe_mac::dot11::{Config, Dot11};
use chappe_sim::{AirTime, Medium, Profile, Simulator, World, topology};
use chappe_testkit::Saturated;

/// Goal: the channel as a whole behaves as ns-3's. Method: 50 nodes, 10 saturated broadcasters, 30 topologies, 5 s
/// each. ns-3 3.37 and 3.44 on eight runs over six topologies (3.1): 26,444 to 37,157 frames in 60 s, 4.31 to 5.91
/// receptions per frame. The means over our topologies must lie inside these ranges, and nearly all single ones near.
#[test]
fn saturated_broadcast_looks_like_ns3() {
    let profile = Profile::ns3_rayleigh();
    let mut runs = Vec::new();
    for seed in 1..=30 {
        let seed = Seed(seed);
        let positions = topology::random(50, 1000.0, 1000.0, seed);
        let medium = Medium::geometric(&positions, &profile, seed).unwrap();
        let node = |i: u16| {
            let mac = Dot11::new(
                Config::dot11b(Rate::Dsss2),
                Address::node(i),
                seed.stream(Purpose::Node(i.into())),
            );
            let link = match i {
                0..10 => Saturated::towards(Address::BROADCAST, 1500),
                _ => Saturated::idle(),
            };
            Box::new(OverMac::new(mac, link))
        };
        let mut simulator =
            Simulator::new(World::new(medium), (0..50).map(node).collect(), seed, ()).unwrap();
        simulator.run_until(AirTime::from_secs(5));
        let counters = simulator.counters();
        let per_minute = counters.frames as f64 * 12.0;
        runs.push((
            per_minute,
            counters.receptions as f64 / counters.frames as f64,
        ));
    }
    let mean = |of: fn(&(f64, f64)) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
    let (frames, receptions) = (mean(|run| run.0), mean(|run| run.1));
    assert!((26_444.0..37_157.0).contains(&frames), "{frames}");
    assert!((4.31..5.91).contains(&receptions), "{receptions}");
    let odd = runs
        .iter()
        .filter(|run| !(22_000.0..43_000.0).contains(&run.0) || !(3.5..7.2).contains(&run.1));
    assert!(odd.count() <= 1, "{runs:?}");
}
