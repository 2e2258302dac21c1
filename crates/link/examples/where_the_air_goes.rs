//! The use of the airtime: a transfer through the link in virtual time, and the cost of each part.
//!
//! `cargo run --release -p chappe-link --example where_the_air_goes [SECONDS [SEEDS [WINDOW [ethernet]]]]`; a WINDOW of 0 segments is
//! BBR's.

#[path = "../tests/suite/air/mod.rs"]
mod air;

use chappe_testkit::Words;

use air::{Air, PAYLOAD, run};

fn main() {
    let mut words =
        Words::of_process("where_the_air_goes [SECONDS [SEEDS [WINDOW in segments]]] [ethernet]");
    let ethernet = words.flag("ethernet");
    let mut number = |usual: u64| words.next("number").unwrap_or(usual);
    let (secs, seeds, window) = (number(20), number(2), number(130));
    words.end();
    println!(
        "loss burst |  Mbit/s  share |  forth   back   idle | first again repair  note octets | back/s octets | useless overrun stall ms (>200 ms a minute) | round trip, least"
    );
    for burst in [0.0, 4.0] {
        for loss in [0.0, 0.05, 0.1, 0.2, 0.3] {
            if burst > 0.0 && loss == 0.0 {
                continue;
            }
            for seed in 1..=seeds {
                let mut air = Air::usual(loss, burst);
                (air.window, air.bbr) = (window as usize * PAYLOAD, window == 0);
                if let Some(residual) = std::env::var("RESIDUAL")
                    .ok()
                    .and_then(|text| text.parse().ok())
                {
                    air.service.residual = residual;
                }
                if let Some(deadline) = std::env::var("DEADLINE")
                    .ok()
                    .and_then(|text| text.parse().ok())
                {
                    air.service.deadline = Some(chappe_core::Duration::from_millis(deadline));
                }
                air.below = if ethernet { 14 } else { 42 };
                let books = run(air, seed, secs);
                println!(
                    "{:3.0}% {burst:4.0}  | {:7.3} {:6.1}% | {:5.1}% {:5.1}% {:5.1}% | {:.3} {:.3}  {:.3} {:.3} {:6.0} | {:6.1} {:6.0} | {:6.2}% {:6} {:6.0} {:5.1} | {:.0} {:.0}",
                    loss * 100.0,
                    books.goodput / 1e6,
                    books.share * 100.0,
                    books.forth * 100.0,
                    books.back * 100.0,
                    books.idle * 100.0,
                    books.first,
                    books.again,
                    books.repairs,
                    books.notes,
                    books.octets,
                    books.back_rate,
                    books.back_octets,
                    books.useless * 100.0,
                    books.overrun,
                    books.stall.as_secs_f64() * 1e3,
                    books.stalls,
                    books.round_trip[0] * 1e3,
                    books.round_trip[1] * 1e3,
                );
            }
        }
    }
}
