//! Slots on the air: how much fits, how well they stay together, how they begin.

mod air;
mod pair;

use air::{Air, Path, light};
use chappe_core::{Address, Duration, Purpose, Seed};
use chappe_wildnet::{Config, Link, Radio, Recovery, Service, Site, SlotConfig};

/// Two sites of one radio each.
fn link(slots: SlotConfig, config: Config, km: f64, loss: f64, seed: u64) -> Air<Radio> {
    let addresses = [Address::node(1), Address::node(2)];
    let radio = |i: usize| {
        let random = |purpose| Seed(seed).stream(Purpose::Node(purpose + 10 * i as u32));
        let site = Site::new(slots, 1, random(0));
        let link = Link::new(config, i as u8).unwrap();
        Radio::new(link, site, 0, (addresses[i], addresses[1 - i]), random(1))
    };
    let paths = [(0, 1), (1, 0)].map(|(from, to)| Path { from, to, delay: light(km), loss });
    Air::new(vec![radio(0), radio(1)], paths.to_vec(), seed)
}

/// Octets of UDP payload that a packet of 1440 + 28 stands for.
const PACKET: usize = 1468;

/// Keeps the queues of the `senders` full and empties the receivers; counts what arrives at each.
fn saturate(air: &mut Air<Radio>, senders: &[usize], heard: &mut [usize]) {
    for node in 0..air.nodes.len() {
        let mut packet = [0; 2400];
        while air.nodes[node].link.deliver(&mut packet).is_some() {
            heard[node] += 1;
        }
        if senders.contains(&node) {
            air.with(node, |radio, now| while radio.link.room(1) > 0 {
                radio.link.offer(now, 1, 0, &[7; PACKET]);
            });
        }
    }
}

fn plain() -> Config {
    Config { recovery: Recovery::Acks, services: [Service::retries(None); 4], frame_max: 1532, ..Config::slots() }
}

/// Goal: slots of T = 20 ms hold 13 packets, so UDP one way gets 13 * 1440 * 8 / (2 T + 2 tau): 3.74, 3.69, 3.62 Mbit/s at
/// 0, 80, 200 km (specs 3.1, set C), flat within 4 %.
#[test]
fn utilisation_follows_the_formula() {
    for (km, expected) in [(8.0, 3.74), (80.0, 3.69), (200.0, 3.62)] {
        let slots = SlotConfig::dot11b(Duration::from_millis(20));
        let mut air = link(slots, plain(), km, 0.0, 1);
        let mut heard = vec![0; 2];
        let secs = 10;
        air.run(Duration::from_secs(1), Duration::from_millis(2), |air| saturate(air, &[0], &mut heard));
        heard.fill(0);
        air.run(Duration::from_secs(1 + secs), Duration::from_millis(2), |air| saturate(air, &[0], &mut heard));
        let mbps = heard[1] as f64 * 1440.0 * 8.0 / secs as f64 / 1e6;
        println!("{km} km: {mbps:.3} Mbit/s, expected {expected}; {:?} {:?}", air.nodes[0].slots(), air.nodes[0].link.counters());
        assert!((mbps / expected - 1.0).abs() < 0.03, "{km} km: {mbps}");
    }
}
