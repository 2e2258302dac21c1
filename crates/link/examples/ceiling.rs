//! The cost of a packet: kernel TCP through the link, and the processor time of both ends.
//!
//! `cargo run --release -p chappe-link --example ceiling [SECONDS [RATE in Mbit/s]]` measures on a wire without losses. The
//! throughput of a busy machine says little. The processor time of an end, which is one thread, shows what one core could
//! carry.
//!
//! With `parity` as the last argument it measures over a medium that loses three frames of ten, with a deadline too near
//! for a repeat, so that every block gets its repairs at once. The difference from a run without losses is the cost of
//! coding and decoding.

#[path = "../tests/suite/medium/mod.rs"]
mod medium;
#[path = "../tests/suite/medium/tunnels.rs"]
mod tunnels;

use std::sync::atomic::Ordering;

use chappe_core::{Bitrate, Duration};
use chappe_testkit::Words;
use chappe_wildnet::Service;
use medium::{Air, Field, inner, isolated, tcp};
use tunnels::{Ends, Running};

fn main() {
    let mut words = Words::of_process("ceiling [SECONDS [RATE in Mbit/s]] [parity]");
    let parity = words.flag("parity");
    let secs = words.next("number of seconds").unwrap_or(5.0);
    let rate = words.next("rate in Mbit/s");
    let rate = rate.map(|mbit: f64| Bitrate((mbit * 1e6) as u64));
    words.end();
    isolated(|| {
        if parity {
            for loss in [0.0, 0.3] {
                println!("over a medium, losses of {:.0} %:", loss * 100.0);
                coded(secs, rate.unwrap_or(PARITY_RATE), loss);
            }
            return;
        }
        for offloads in [false, true] {
            let with = if offloads { "with" } else { "without" };
            println!("{with} segmentation offload:");
            let ends = Ends {
                rate,
                offloads,
                ..Ends::usual()
            };
            measure(secs, &Field::direct(), &ends);
        }
    });
}

/// A pace that the medium, a thread of this program, carries with room.
const PARITY_RATE: Bitrate = Bitrate(60_000_000);

fn coded(secs: f64, rate: Bitrate, loss: f64) {
    let delay = Duration::from_millis(2);
    let air = Air {
        rate: Bitrate(rate.0 * 4),
        delay,
        ..Air::usual(loss)
    };
    let service = Service {
        // Nothing can be asked for again in time.
        deadline: Some(delay),
        ..Ends::usual().service
    };
    let ends = Ends {
        rate: Some(rate),
        offloads: false,
        service,
        ..Ends::usual()
    };
    measure(secs, &Field::new(air, 1), &ends);
}

/// What an end has done: nanoseconds of processor, frames sent and received, octets delivered, new bodies, repairs, repeats, rounds of
/// its loop.
const COUNTS: [&str; 6] = [
    "datagrams_sent",
    "datagrams_received",
    "octets_delivered",
    "bodies",
    "repairs",
    "repeats",
];

fn count(host: &Running) -> [f64; 8] {
    let mut counts = [0.0; 8];
    counts[0] = host.busy.load(Ordering::Relaxed) as f64;
    let rounds = host
        .show()
        .unmatched
        .into_iter()
        .find(|one| one.0 == "loop_rounds");
    counts[7] = rounds.map_or(0.0, |one| one.1 as f64);
    for (count, name) in counts[1..7].iter_mut().zip(COUNTS) {
        *count = host.counter(name) as f64;
    }
    counts
}

fn measure(secs: f64, field: &Field, ends: &Ends) {
    let hosts = [0, 1].map(|host| Running::start(field, host, ends));
    let before = hosts.each_ref().map(count);
    let (goodput, right) = tcp(field, inner(1), "cubic", secs);
    assert!(right);
    let after = hosts.each_ref().map(count);
    println!("kernel TCP through the link: {goodput:.0} Mbit/s");
    let changes = [0, 1].map(|host| {
        let mut change = after[host];
        change
            .iter_mut()
            .zip(before[host])
            .for_each(|(a, b)| *a -= b);
        change
    });
    let [_, _, _, _, bodies, repairs, repeats, _] = changes[0];
    println!(
        "{bodies:.0} packets, {:.2} repairs and {:.2} repeats for each",
        repairs / bodies,
        repeats / bodies
    );
    let carried = changes[1][3];
    for (name, [busy, sent, received, .., rounds]) in
        ["sending end", "receiving end"].iter().zip(changes)
    {
        println!(
            "{name:<14} {:.2} us of processor for each packet, {:.2} for each frame (sent or received), {:.2} wake-ups, {:.2} frames to a wake-up, {:.0} % of a core; one core could carry {:.0} Mbit/s",
            busy / bodies / 1e3,
            busy / (sent + received) / 1e3,
            rounds / bodies,
            (sent + received) / rounds,
            busy / (secs + 1.0) / 1e7,
            carried * 8.0 / busy * 1e3,
        );
    }
}
