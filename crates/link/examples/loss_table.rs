//! Kernel TCP through the link and without it, on a lossy half-duplex medium of 6 Mbit/s and 20 ms, in namespaces.
//!
//! `cargo run --release -p chappe-link --example loss_table [SECONDS [RUNS [ROW [LOSSES]]]]` prints the table of docs/link.md
//! (`bench/link/table.sh` does so with the arguments of the page). It needs no root where user namespaces are allowed, and
//! no netem. The runs of a cell differ in the seed of the losses; all rows use the same seeds.

#[path = "../tests/suite/medium/mod.rs"]
mod medium;
#[path = "../tests/suite/medium/tunnels.rs"]
mod tunnels;

use std::io::Write;

use chappe_testkit::Words;

use medium::{Air, Field, address, inner, isolated, tcp};
use tunnels::{Ends, Running};

const LOSSES: [f64; 5] = [0.0, 0.05, 0.1, 0.2, 0.3];

/// What carries TCP: the bare path, or a link over UDP or Ethernet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Plain,
    Udp,
    Ethernet,
}

const ROWS: [(&str, Way, &str); 5] = [
    ("cubic", Way::Plain, "cubic"),
    ("BBR", Way::Plain, "bbr"),
    ("cubic, link on UDP", Way::Udp, "cubic"),
    ("BBR, link on UDP", Way::Udp, "bbr"),
    ("cubic, link on Ethernet", Way::Ethernet, "cubic"),
];

/// Two-sided 95 % points of Student's distribution for 1 to 9 degrees of freedom.
const STUDENT: [f64; 9] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262,
];

fn main() {
    let mut words = Words::of_process("loss_table [SECONDS [RUNS [ROW [LOSSES, such as 20,30]]]]");
    let secs = words.next("number of seconds").unwrap_or(6.0);
    let runs = words.next("number of runs").unwrap_or(3u64).clamp(1, 10);
    let only: String = words.next("row").unwrap_or_default();
    let losses: String = words.next("list of losses").unwrap_or_default();
    words.end();
    let losses: Vec<f64> = match losses.is_empty() {
        true => LOSSES.to_vec(),
        false => percents(&losses),
    };
    isolated(|| table(secs, runs, &only, &losses));
}

/// Losses as the fourth argument gives them: `20,30`.
fn percents(text: &str) -> Vec<f64> {
    let percent = |part: &str| {
        part.trim()
            .parse::<f64>()
            .ok()
            .filter(|percent| (0.0..=90.0).contains(percent))
            .unwrap_or_else(|| panic!("{part:?} is no loss in percent from 0 to 90, as in `20,30`"))
    };
    text.split(',').map(|part| percent(part) / 100.0).collect()
}

fn table(secs: f64, runs: u64, only: &str, losses: &[f64]) {
    let usable = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let usable = usable.unwrap_or_default();
    let (clean, in_time) = measure(Way::Plain, "cubic", Air::usual(0.0), secs, runs);
    let (capacity, mut late) = (mean(&clean).0, !in_time);
    println!(
        "plain cubic without loss, C: {capacity:.2} Mbit/s; {runs} runs of {secs} s for each number"
    );
    println!("goodput in Mbit/s, and its share of (1 - p) C with a 95 % interval");
    for burst in [0.0, 4.0] {
        let kind = match burst > 0.0 {
            true => "losses in bursts of 4",
            false => "independent losses",
        };
        let head = |loss: &f64| format!("{:>18}", format!("{:.0} %", loss * 100.0));
        let heads: String = losses.iter().map(head).collect();
        println!("\n{kind:<24}{heads}");
        for (name, way, congestion) in ROWS {
            if !name.contains(only) {
                continue;
            }
            if !usable.split_whitespace().any(|known| known == congestion) {
                println!("{name:<24}  this kernel has no {congestion}");
                continue;
            }
            print!("{name:<24}");
            for &loss in losses {
                let air = Air {
                    burst,
                    ..Air::usual(loss)
                };
                let (goodputs, in_time) = measure(way, congestion, air, secs, runs);
                let (mean, half) = mean(&goodputs);
                let share = 100.0 / (1.0 - loss) / capacity;
                let mark = if in_time { "" } else { "*" };
                late |= !in_time;
                let cell = format!(
                    "{mean:.2} {:.0} ± {:.0} %{mark}",
                    mean * share,
                    half * share
                );
                print!("{cell:>18}");
                let _ = std::io::stdout().flush();
            }
            println!();
        }
    }
    if late {
        println!(
            "\n* this machine was too busy to keep the medium's time, three times: no measurement"
        );
    }
}

/// The mean and half of its 95 % interval.
fn mean(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let Some(point) = values.len().checked_sub(2).and_then(|at| STUDENT.get(at)) else {
        return (mean, 0.0);
    };
    (mean, point * (squares / (count - 1.0) / count).sqrt())
}

/// Goodput in Mbit/s of each run, and whether the computer kept time. A run in which it did not is repeated, at most three
/// times.
fn measure(way: Way, congestion: &str, air: Air, secs: f64, runs: u64) -> (Vec<f64>, bool) {
    let mut in_time = true;
    let mut run = |seed| {
        let mut tries_left = 3;
        loop {
            tries_left -= 1;
            let field = Field::new(air, seed);
            let goodput = carried(&field, way, congestion, secs, seed);
            let late = field.stood_still(secs);
            if !late || tries_left == 0 {
                in_time &= !late;
                return goodput;
            }
        }
    };
    let goodputs = (1..=runs).map(&mut run).collect();
    (goodputs, in_time)
}

fn carried(field: &Field, way: Way, congestion: &str, secs: f64, seed: u64) -> f64 {
    if way == Way::Plain {
        return tcp(field, address(1), congestion, secs).0;
    }
    let ends = Ends {
        ethernet: way == Way::Ethernet,
        ..Ends::usual()
    };
    let hosts = [0, 1].map(|host| Running::start(field, host, &ends));
    let (goodput, right) = tcp(field, inner(1), congestion, secs);
    assert!(right, "TCP's octets have changed on the way");
    if std::env::var_os("VERBOSE").is_some() {
        eprintln!("seed {seed}: {goodput:.2} Mbit/s");
        hosts
            .iter()
            .for_each(|host| eprintln!("{}", host.show().json()));
    }
    goodput
}
