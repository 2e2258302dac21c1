//! Kernel TCP through the link and without it, on a lossy half-duplex medium of 6 Mbit/s and 20 ms, in namespaces.
//!
//! `cargo run --release -p chappe-link --example loss_table [SECONDS [ROW]]` prints the table of docs/link.md. It needs no root where
//! user namespaces are allowed, and no netem.

#[path = "../tests/medium/mod.rs"]
mod medium;
#[path = "../tests/medium/tunnels.rs"]
mod tunnels;

use medium::{Air, Field, address, inner, isolated, tcp};
use tunnels::{Ends, Running};

const LOSSES: [f64; 5] = [0.0, 0.05, 0.1, 0.2, 0.3];

fn main() {
    let secs = std::env::args()
        .nth(1)
        .and_then(|secs| secs.parse().ok())
        .unwrap_or(10.0);
    isolated(|| table(secs));
}

fn table(secs: f64) {
    let plain = |congestion: &str, air: Air| {
        let field = Field::new(air, 1);
        tcp(&field, address(1), congestion, secs).0
    };
    let capacity = plain("cubic", Air::usual(0.0));
    println!("plain TCP without loss, C: {capacity:.2} Mbit/s\n");
    println!("goodput in Mbit/s (share of (1 - p) C)");
    let only = std::env::args().nth(2);
    for burst in [0.0, 4.0] {
        let losses = if burst > 0.0 {
            "in bursts of 4"
        } else {
            "independent"
        };
        println!(
            "\nlosses {losses:<22} {}",
            LOSSES
                .map(|loss| format!("{:>14}", format!("{:.0} %", loss * 100.0)))
                .concat()
        );
        for (name, ethernet, congestion) in [
            ("cubic", None, "cubic"),
            ("bbr", None, "bbr"),
            ("cubic, link on UDP", Some(false), "cubic"),
            ("bbr, link on UDP", Some(false), "bbr"),
            ("cubic, link on Ethernet", Some(true), "cubic"),
        ] {
            if only
                .as_ref()
                .is_some_and(|only| !name.contains(only.as_str()))
            {
                continue;
            }
            print!("{name:<29} ");
            for loss in LOSSES {
                let air = Air {
                    burst,
                    ..Air::usual(loss)
                };
                let goodput = match ethernet {
                    None => plain(congestion, air),
                    Some(ethernet) => through(air, ethernet, congestion, secs),
                };
                let share = |goodput: f64| {
                    format!(
                        "{goodput:.2} ({:.0} %)",
                        goodput / (1.0 - loss) / capacity * 100.0
                    )
                };
                print!("{:>14}", share(goodput));
                use std::io::Write;
                let _ = std::io::stdout().flush();
            }
            println!();
        }
    }
}

fn through(air: Air, ethernet: bool, congestion: &str, secs: f64) -> f64 {
    let field = Field::new(air, 1);
    let ends = Ends {
        ethernet,
        ..Ends::usual()
    };
    let hosts = [0, 1].map(|host| Running::start(&field, host, &ends));
    let (goodput, right) = tcp(&field, inner(1), congestion, secs);
    assert!(right, "TCP's octets have changed on the way");
    if std::env::var_os("VERBOSE").is_some() {
        eprintln!("{}\n{}", hosts[0].show().text(), hosts[0].show().json());
        eprintln!("{}", hosts[1].show().json());
    }
    goodput
}
