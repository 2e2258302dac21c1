//! What a packet costs: kernel TCP through the link on a wire without losses, and the processor time of both ends.
//!
//! `cargo run --release -p chappe-link --example ceiling [SECONDS [RATE in Mbit/s]]`. The throughput of a busy machine says little;
//! the processor time of an end, which is one thread, says what one core could carry.

#[path = "../tests/medium/mod.rs"]
mod medium;
#[path = "../tests/medium/tunnels.rs"]
mod tunnels;

use std::sync::atomic::Ordering;

use chappe_core::Bitrate;
use medium::{Field, inner, isolated, tcp};
use tunnels::{Ends, Running};

fn main() {
    let mut arguments = std::env::args()
        .skip(1)
        .filter_map(|text| text.parse::<f64>().ok());
    let secs = arguments.next().unwrap_or(5.0);
    let rate = arguments.next().map(|mbit| Bitrate((mbit * 1e6) as u64));
    isolated(|| {
        for offloads in [false, true] {
            println!(
                "{} segmentation offload:",
                if offloads { "with" } else { "without" }
            );
            measure(secs, rate, offloads);
        }
    });
}

fn measure(secs: f64, rate: Option<Bitrate>, offloads: bool) {
    {
        let field = Field::direct();
        let ends = Ends {
            rate,
            offloads,
            ..Ends::usual()
        };
        let hosts = [0, 1].map(|host| Running::start(&field, host, &ends));
        let count = || {
            hosts.each_ref().map(|host| {
                let of = |name| host.counter(name) as f64;
                let octets = host.show().peers[0]
                    .counters
                    .iter()
                    .find(|one| one.0 == "octets_delivered")
                    .map_or(0, |one| one.1);
                [
                    host.busy.load(Ordering::Relaxed) as f64,
                    of("datagrams_sent"),
                    of("datagrams_received"),
                    octets as f64,
                    of("packets_offered"),
                ]
            })
        };
        let before = count();
        let (goodput, right) = tcp(&field, inner(1), "cubic", secs);
        assert!(right);
        let after = count();
        println!("kernel TCP through the link: {goodput:.0} Mbit/s");
        let carried = after[1][3] - before[1][3];
        for (name, host) in [("sending end", 0), ("receiving end", 1)] {
            let change: Vec<f64> = (0..5)
                .map(|place| after[host][place] - before[host][place])
                .collect();
            let frames = change[1] + change[2];
            println!(
                "{name:<14} {:.2} us of processor for each frame (sent or received), {:.0} % of a core; one core could carry {:.0} Mbit/s",
                change[0] / frames / 1e3,
                change[0] / (secs + 1.0) / 1e7,
                carried * 8.0 / change[0] * 1e3,
            );
        }
    }
}
