//! `chappe mesh` beside babeld and static routes on emulated radios, with the kernel's TCP: goodput, delay under load, start,
//! crash, segments sent again, processor time. In real time; each cell takes half a minute.
//!
//! ```text
//! cargo run --release -p chappe-mesh --example beside_babeld -- line diamond --seeds 10 --from 1 --cubic
//! ```
//!
//! `--help` names all words. Of the networks `five` is measured by iperf3. `wire` is two daemons on a cable, at 100 and 400 Mbit/s for
//! five seconds each, beside programs that only copy packets between TUN device and cable. The cells of a seed follow each other, so
//! that routers meet the same load of the machine. babeld, iperf3 and ping are Debian packages (`babeld`, `iperf3`, `iputils-ping`).

#[path = "../tests/suite/rivals/mod.rs"]
mod rivals;

use std::process::Command;

use chappe_testkit::Words;
use rivals::{Access, Between, Called, Cell, Place, Router, Seen, Traffic, apart, called};

const USAGE: &str = "\
beside_babeld [NETWORK...] [--cubic] [--bbr] [--alone] [--edca|--video] [--seeds 10] [--from 1] [--seconds 10]
       beside_babeld wire [--rounds 1] [--rate MBIT_S]
networks: line, diamond, five, twelve; all of them if none is named
--alone: the mesh without its rivals
--edca: cards with EDCA's access categories; else the DCF
--video: the same with TCP as video, for all routers";

struct Cells {
    places: Vec<Place>,
    from: u64,
    seeds: u64,
    seconds: u64,
    congestion: Vec<String>,
    routers: Vec<Router>,
    access: Access,
}

fn main() {
    let Called::User = called() else {
        return;
    };
    let mut words = Words::of_process(USAGE);
    match words.flag("wire") {
        true => {
            let rounds = words.option("--rounds").unwrap_or(1);
            let rate = words.option("--rate");
            words.end();
            on_a_wire(rounds, &rate.map_or(vec![100, 400], |rate| vec![rate]));
        }
        false => measure(&cells(words)),
    }
}

/// The cells that the words ask for.
fn cells(mut words: Words) -> Cells {
    let (cubic, bbr) = (words.flag("--cubic"), words.flag("--bbr"));
    let alone = words.flag("--alone");
    let access = match (words.flag("--video"), words.flag("--edca")) {
        (true, _) => Access::Video,
        (false, true) => Access::Edca,
        (false, false) => Access::Dcf,
    };
    let from = words.option("--from").unwrap_or(1);
    let seeds = words.option("--seeds").unwrap_or(10);
    let seconds = words.option("--seconds").unwrap_or(10);
    let named = words.rest().into_iter().map(|word| {
        let place = Place::named(&word);
        place.unwrap_or_else(|| words.refuse(&word, "is no network"))
    });
    let mut places: Vec<Place> = named.collect();
    if places.is_empty() {
        places = Place::ALL.to_vec();
    }
    let asked = [("cubic", cubic || !bbr), ("bbr", bbr || !cubic)];
    let asked = asked.into_iter().filter(|(_, asked)| *asked);
    Cells {
        places,
        from,
        seeds,
        seconds,
        congestion: asked.map(|(name, _)| name.into()).collect(),
        routers: routers(alone),
        access,
    }
}

/// The routers to measure: those that are here.
fn routers(alone: bool) -> Vec<Router> {
    let babel = Command::new("babeld").arg("-V").output().is_ok();
    if !babel && !alone {
        println!("babeld is not here: apt-get install babeld");
    }
    let here = |router: &Router| match router {
        Router::Mesh => true,
        Router::Babel => babel && !alone,
        Router::Static => !alone,
    };
    Router::ALL.into_iter().filter(here).collect()
}

/// What a packet costs on a cable: the daemon, and programs that only copy packets between device and cable, in turn.
fn on_a_wire(rounds: u64, rates: &[u64]) {
    let program = std::env::current_exe().expect("this program");
    for _ in 0..rounds {
        for &rate in rates {
            for traffic in Traffic::ALL {
                for between in Between::ALL {
                    let words = ["--wire", between.name(), traffic.name(), &rate.to_string()];
                    let output = Command::new(&program).args(words).output();
                    let output = output.expect("a measurement");
                    print!(
                        "{rate} Mbit/s of {}, {}: {}",
                        traffic.name(),
                        between.name(),
                        String::from_utf8_lossy(&output.stdout)
                    );
                }
            }
        }
    }
}

fn measure(cells: &Cells) {
    for &place in &cells.places {
        for congestion in &cells.congestion {
            compare(cells, place, congestion);
        }
    }
}

fn compare(order: &Cells, place: Place, congestion: &str) {
    let access = order.access.name();
    println!(
        "{}, {congestion}, {access}, {} s",
        place.name(),
        order.seconds
    );
    println!(
        "{:8} {:>4} | kbit/s of each flow | ping p95 ms | first s | gap s | segments again needless | us/packet | late ms",
        "router", "seed"
    );
    let mut all: Vec<Vec<Seen>> = vec![Vec::new(); order.routers.len()];
    for seed in order.from..order.from + order.seeds {
        for (router, runs) in order.routers.iter().zip(&mut all) {
            let cell = Cell {
                place,
                router: *router,
                congestion: congestion.into(),
                seed,
                seconds: order.seconds,
                patience_s: 60,
                access: order.access,
                crash: place == Place::Diamond && *router != Router::Static,
            };
            let seen = apart(&cell).unwrap_or_default();
            row(router.name(), seed, &seen);
            runs.push(seen);
        }
    }
    let up = |seen: &Seen| seen.first_s.is_finite();
    for (router, runs) in order.routers.iter().zip(&all) {
        let some: Vec<Seen> = runs.iter().filter(|seen| up(seen)).cloned().collect();
        let none = runs.len() - some.len();
        summary(router.name(), &some, none);
        if *router != Router::Mesh {
            let pairs = all[0].iter().zip(runs).filter(|(a, b)| up(a) && up(b));
            let ratios = pairs.map(|(a, b)| (a.geometric() / b.geometric()).ln());
            println!(
                "  mesh / {}: {}",
                router.name(),
                factor(&ratios.collect::<Vec<_>>())
            );
        }
    }
    println!();
}

fn row(name: &str, seed: u64, seen: &Seen) {
    let flows: Vec<String> = seen.kbps.iter().map(|kbps| format!("{kbps:.0}")).collect();
    let [sent, again, needless] = seen.segments;
    println!(
        "{name:8} {seed:>4} | {} | {:.0} | {:.1} | {:.2} | {sent:.0} {again:.0} {needless:.0} | {:.0} | {:.2}",
        flows.join(" "),
        1e3 * seen.ping_p95_s,
        seen.first_s,
        seen.gap_s,
        seen.processor_us,
        1e3 * seen.late_p99_s
    );
}

fn summary(name: &str, runs: &[Seen], none: usize) {
    if none > 0 {
        println!("  {name}: no answer within a minute on {none} seeds, which the following omits");
    }
    let of = |value: fn(&Seen) -> f64| interval(&runs.iter().map(value).collect::<Vec<_>>());
    println!(
        "  {name}: {} kbit/s, ping p95 {} ms, first {} s, gap {} s, again {} %, needless {} %",
        of(Seen::geometric),
        of(|seen| 1e3 * seen.ping_p95_s),
        of(|seen| seen.first_s),
        of(|seen| seen.gap_s),
        of(|seen| 100.0 * seen.segments[1] / seen.segments[0].max(1.0)),
        of(|seen| 100.0 * seen.segments[2] / seen.segments[0].max(1.0))
    );
    println!("  {name}: {}", pings(runs));
}

/// How long the pings of all runs took that were answered: quantiles, and the share above a tenth of a second.
fn pings(runs: &[Seen]) -> String {
    let mut all: Vec<f64> = runs.iter().flat_map(|seen| seen.pings_s.clone()).collect();
    all.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let at = (all.len() as f64 * share) as usize;
        all.get(at)
            .or(all.last())
            .map_or(f64::NAN, |took| 1e3 * took)
    };
    let [half, most, few, last] = [0.5, 0.9, 0.95, 0.99].map(at);
    let late = all.iter().filter(|&&took| took > 0.1).count();
    format!(
        "all {} pings: median {half:.0} ms, 90 % {most:.0}, 95 % {few:.0}, 99 % {last:.0}; {late} above 100 ms",
        all.len()
    )
}

/// The mean with its 95 % interval, and the extremes. A ping that took longer than all that were answered counts as ten seconds.
fn interval(values: &[f64]) -> String {
    let values: Vec<f64> = values.iter().map(|value| value.min(1e4)).collect();
    let (mean, half) = mean(&values);
    let (least, most) = extremes(&values);
    format!(
        "{mean:.2} ± {half:.2} ({least:.2} to {most:.2}, n={})",
        values.len()
    )
}

/// The geometric mean of ratios with its 95 % interval, from their logarithms.
fn factor(logs: &[f64]) -> String {
    let (mean, half) = mean(logs);
    let (least, most) = extremes(logs);
    format!(
        "{:.2} times ({:.2} to {:.2} at 95 %; single seeds {:.2} to {:.2}, n={})",
        mean.exp(),
        (mean - half).exp(),
        (mean + half).exp(),
        least.exp(),
        most.exp(),
        logs.len()
    )
}

/// The mean, and half the width of its 95 % interval (Student's t).
fn mean(values: &[f64]) -> (f64, f64) {
    // Two-sided 95 % quantiles of Student's t for 1 to 9 degrees of freedom; 2.1 for 10 to 19 is within 6 %.
    const T: [f64; 9] = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26];
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let square: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let t = T
        .get(values.len().saturating_sub(2))
        .copied()
        .unwrap_or(2.1);
    (mean, t * (square / (n - 1.0).max(1.0) / n).sqrt())
}

fn extremes(values: &[f64]) -> (f64, f64) {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    (
        least,
        values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    )
}
