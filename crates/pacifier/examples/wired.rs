//! Tables of transfers on the networks of `chappe cast`: time and transmissions beside the least that any batch code
//! needs with a source alone. The first table compares Pacifier and the improved variant; the others delay the improved
//! variant's frames at their listeners.
//!
//! `cargo run --release -p chappe-pacifier --example wired`

#[path = "../tests/suite/common/mod.rs"]
mod common;

use chappe_core::Duration;
use common::graph;
use common::wired::{AROUND, PAYLOAD, carry, carry_late, improved, least, pacifier, star};

fn main() {
    transfers();
    chain();
    late();
    busy();
}

/// 5 MB to hosts with separate segments, and over one shared channel.
fn transfers() {
    let chain = graph(4, &[(0, 1, 0.7), (1, 2, 0.7), (2, 3, 0.7)]);
    let cases = [
        ("star 1, 30 %", star(1, 0.7), vec![1], least(1, 0.7)),
        ("star 3, 10 %", star(3, 0.9), vec![1, 2, 3], least(3, 0.9)),
        (
            "star 10, 10 %",
            star(10, 0.9),
            (1..11).collect(),
            least(10, 0.9),
        ),
        (
            "star 10, 30 %",
            star(10, 0.7),
            (1..11).collect(),
            least(10, 0.7),
        ),
        ("chain 3, 30 %", chain, vec![3], 3.0 / 0.7),
    ];
    for shared in [false, true] {
        for (name, links, receivers, least) in &cases {
            for (variant, config) in [("Pacifier", pacifier()), ("improved", improved())] {
                for seed in 0..3 {
                    let got = carry(&config, (links, receivers), shared, 5_000_000, seed);
                    let seconds = got.seconds.unwrap_or(f64::NAN);
                    let medium = if shared { "shared" } else { "separate" };
                    println!(
                        "{medium:8} {name:13} {variant}, seed {seed}: {seconds:6.2} s, a source alone {:.2} s; \
                         transmissions x{:.2}, least x{least:.2}, source x{:.2}; heard for each gain {:.2}; {} reports",
                        got.floor,
                        got.redundancy,
                        got.source_redundancy,
                        got.heard_per_gain,
                        got.reports.iter().sum::<u64>(),
                    );
                }
            }
        }
    }
}

/// 20 MB over three segments that lose 30 %: what each host sends, and the least time that it needs if each of its frames is as long
/// and one in 0.7 is enough. In the second one frames are as long as those of `chappe cast`, over UDP and with an echo.
fn chain() {
    let links = graph(4, &[(0, 1, 0.7), (1, 2, 0.7), (2, 3, 0.7)]);
    for seed in 0..3 {
        let got = carry(&improved(), (&links, &[3]), false, 20_000_000, seed);
        println!(
            "20 MB, chain 3, 30 %, seed {seed}: {:.2} s",
            got.seconds.unwrap_or(f64::NAN)
        );
        for host in 0..3 {
            let least = |payload: f64, octets: f64| {
                let frames = (20e6 / payload).ceil() / 0.7;
                frames * octets * 8.0 / 20e6
            };
            let octets = got.octets[host];
            let header = octets - (AROUND + PAYLOAD) as f64;
            println!(
                "  host {host}: {:.3} frames for a packet, of {octets:.0} octets; at least {:.2} s, with chappe cast's frames {:.2} s",
                got.data[host] as f64 / (20e6 / PAYLOAD as f64),
                least(PAYLOAD as f64, octets),
                least(CAST.0, CAST.0 + header + CAST.1),
            );
        }
    }
}

/// The payload of `chappe cast` at an MTU of 1500, and the octets of its layers: header, echo and seal of `live`, UDP, IP, Ethernet.
const CAST: (f64, f64) = (1351.0, (14 + 9 + 16 + 8 + 20 + 14) as f64);

/// Frames that spend 0 to 100 ms in queues.
fn late() {
    let chain = graph(4, &[(0, 1, 0.7), (1, 2, 0.7), (2, 3, 0.7)]);
    let cases = [
        ("star 3, 10 %", star(3, 0.9), (1..4).collect()),
        ("star 10, 10 %", star(10, 0.9), (1..11).collect()),
        ("star 10, 30 %", star(10, 0.7), (1..11).collect()),
        ("chain 3, 30 %", chain, vec![3]),
    ];
    for (name, links, receivers) in &cases {
        let receivers: &Vec<u16> = receivers;
        for millis in [0, 2, 10, 30, 100] {
            for seed in 0..3 {
                let late = (false, Duration::from_millis(millis), Duration::ZERO);
                let got = carry_late(&improved(), (links, receivers), late, 2_000_000, seed);
                println!(
                    "{name}, {millis:3} ms, seed {seed}: {:6.2} s, a source alone {:.2} s; transmissions x{:.2}, source x{:.2}; \
                     {} reports",
                    got.seconds.unwrap_or(f64::NAN),
                    got.floor,
                    got.redundancy,
                    got.source_redundancy,
                    got.reports.iter().sum::<u64>(),
                );
            }
        }
    }
}

/// Hosts that take 0 to 600 us for each frame.
fn busy() {
    let (links, to) = (star(10, 0.9), (1..11).collect::<Vec<u16>>());
    for micros in [0, 100, 200, 300, 400, 450, 500, 600] {
        for seed in 0..2 {
            let latency = Duration::from_millis(2);
            let late = (false, latency, Duration::from_micros(micros));
            let got = carry_late(&improved(), (&links, &to), late, 2_000_000, seed);
            println!(
                "{micros:3} us for a frame, seed {seed}: {:.2} s; transmissions x{:.2}",
                got.seconds.unwrap_or(f64::NAN),
                got.redundancy
            );
        }
    }
}
