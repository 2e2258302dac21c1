//! The goodput of a transfer through the link on many paths, in virtual time: nothing depends on the machine but how long it takes.
//!
//! `cargo run --release -p chappe-link --example matrix [WORD...]` measures the cells whose names contain all words, for example
//! `matrix 300ms 5%` or `matrix -100Mbit/s` (a `-` leaves out), and judges each; `matrix short` takes the twelve that the tests run. `matrix seeds=3` measures
//! each cell with three seeds, and judges the mean; `first=101` takes the seeds from 101 on. `matrix window=16` lets TCP have sixteen times under way what the path holds
//! instead of four. `matrix table` prints all as one table, and the worst cells. A cell is met if the
//! transfer gets 95 % of (1 - p) C for the losses that there were, and 97 % of the better of plain cubic, which is simulated, and
//! plain BBR, which is computed (`tests/suite/air/cells.rs`; `rivals.rs` says what other tunnels get). `matrix trace 100Mbit/s 600ms 5%` prints each half second of cells. Cells are measured on all processors.

#[path = "../tests/suite/air/mod.rs"]
mod air;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use chappe_testkit::Words;

use air::Air;
use air::cells::{Cell, Row, all, short};

/// Cells of the list of the worst ones.
const WORST: usize = 20;

fn main() {
    let mut words = Words::of_process(
        "matrix [seeds=N] [first=N] [window=TIMES] [trace|table] [short] [WORD or -WORD...]",
    );
    let seeds = words.key("seeds=").unwrap_or(1u64).max(1);
    let first = words.key("first=").unwrap_or(1u64);
    let window = words.key("window=");
    let (traced, table) = (words.flag("trace"), words.flag("table"));
    let quick = words.flag("short");
    let names = words.rest();
    let cells = if quick { short() } else { all() };
    let named = |cell: &Cell| {
        names.iter().all(|word| match word.strip_prefix('-') {
            Some(word) => !cell.name.contains(word),
            None => cell.name.contains(word.as_str()),
        })
    };
    let mut cells: Vec<Cell> = cells.into_iter().filter(named).collect();
    for cell in cells.iter_mut().filter(|_| window.is_some()) {
        cell.air.window = cell.air.window_of(window.unwrap_or_default());
    }
    if cells.is_empty() {
        words.refuse(&names.join(" "), "names no cell");
    }
    if traced {
        cells.iter().for_each(|cell| trace(cell, first));
        return;
    }
    let begun = Instant::now();
    let judged = measure(&cells, first..first + seeds);
    if table {
        print_table(&judged);
    } else {
        print_list(&judged);
        print_pings(&judged);
    }
    print_found(&judged);
    print_clean(&judged);
    let met = judged.iter().filter(|judged| judged.is_met()).count();
    println!(
        "{met} of {} cells met with {seeds} seed{}; it took {:.0} s",
        judged.len(),
        if seeds == 1 { "" } else { "s" },
        begun.elapsed().as_secs_f64()
    );
}

/// Prints what becomes of a cell each half second: where the loss of efficiency goes.
fn trace(cell: &Cell, seed: u64) {
    const STEP: u64 = 500;
    println!("{}", cell.name);
    println!(
        "   s | Mbit/s, pace, pace back, packets that wait there | TCP under way, bodies open, oldest sent, held there, lost | idle %, new again repair fill %, dropped by the queue"
    );
    let mut run = air::Run::new(cell.air, seed);
    let end = 2_000 + cell.air.delay.nanos() / 1_000_000 * 20 + cell.secs * 1_000;
    let mut before = run.tally();
    for step in 1..=end / STEP {
        run.until(chappe_core::Instant::from_millis(step * STEP));
        let now = run.tally();
        let new = |place: usize| (now[place] - before[place]) as f64;
        let (report, frames) = (run.peers[0].link().report(), new(4).max(1.0));
        println!(
            "{:4.1} | {:6.2} {:6.2} {:6.2} {:5} | {:5} {:5} {:2} {:5} {:4} | {:4.1}, {:4.1} {:4.1} {:4.1} {:4.1}, {}",
            step as f64 * STEP as f64 / 1e3,
            new(0) * 8.0 / 1e3 / STEP as f64,
            run.peers[0].rate().0 as f64 / 1e6,
            run.peers[1].rate().0 as f64 / 1e6,
            run.peers[1].waiting(),
            run.under_way(),
            report.open,
            report.oldest_transmissions,
            run.peers[1].link().report().held,
            run.peers[0].link().lost_count(),
            100.0 - new(1) * 8.0 / (cell.air.rate.0 as f64 * STEP as f64 / 1e5),
            new(6) / frames * 100.0,
            new(7) / frames * 100.0,
            new(8) / frames * 100.0,
            new(12) / frames * 100.0,
            new(3),
        );
        before = now;
    }
}

/// A cell with a row for each seed.
struct Judged {
    rows: Vec<Row>,
}

impl Judged {
    fn mean(&self, of: fn(&Row) -> f64) -> f64 {
        self.rows.iter().map(of).sum::<f64>() / self.rows.len() as f64
    }

    fn least(&self) -> f64 {
        self.rows.iter().map(Row::share).fold(f64::MAX, f64::min)
    }

    fn is_met(&self) -> bool {
        self.mean(Row::of_goal) >= 1.0
    }

    fn name(&self) -> &str {
        &self.rows[0].cell.name
    }
}

/// Measures all cells, the longest first, on as many threads as there are processors.
fn measure(cells: &[Cell], seeds: std::ops::Range<u64>) -> Vec<Judged> {
    let mut order: Vec<usize> = (0..cells.len()).collect();
    order.sort_by_key(|&at| {
        let cell = &cells[at];
        std::cmp::Reverse(cell.air.rate.0 * cell.secs)
    });
    let mut rows = on_all_processors(order.len(), |place| {
        let at = order[place];
        let rows: Vec<Row> = seeds.clone().map(|seed| cells[at].measure(seed)).collect();
        (at, rows)
    });
    rows.sort_by_key(|row| row.0);
    rows.into_iter().map(|(_, rows)| Judged { rows }).collect()
}

/// Does `count` pieces of work on as many threads as there are processors, and returns what they make, in their order.
fn on_all_processors<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let turn = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= count {
                return;
            }
            let made = work(at);
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            done.push((at, made));
            eprint!("\r{} of {count} ", done.len());
        }
    };
    let threads = thread::available_parallelism().map_or(1, |count| count.get());
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(turn))));
    eprintln!();
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|done| done.0);
    done.into_iter().map(|done| done.1).collect()
}

/// Prints a row for each cell, or the mean and the least share where there are several seeds.
fn print_list(judged: &[Judged]) {
    let several = judged.first().is_some_and(|judged| judged.rows.len() > 1);
    match several {
        true => println!("{:36} | of (1-p)C: mean, least | verdict", "path"),
        false => println!(
            "{:36} | Mbit/s  of (1-p)C |  cubic    BBR | frames for a new one (least): again repair fill |  pace | ping ms mean, 95 %, lost | verdict",
            "path"
        ),
    }
    for judged in judged {
        match several {
            true => println!(
                "{:36} | {:14.1} {:6.1} % | {}",
                judged.name(),
                judged.mean(Row::share) * 100.0,
                judged.least() * 100.0,
                if judged.is_met() { "met" } else { "NOT MET" }
            ),
            false => println!("{}", judged.rows[0]),
        }
    }
}

/// What differs between the lines of the table.
struct Kind {
    what: &'static str,
    is: fn(&Air) -> bool,
}

const KINDS: [Kind; 5] = [
    Kind {
        what: "independent",
        is: |air| air.told && air.burst == 0.0 && air.jitter.nanos() == 0,
    },
    Kind {
        what: "in bursts of 4",
        is: |air| air.told && air.burst > 0.0,
    },
    Kind {
        what: "jitter 10 ms",
        is: |air| air.told && air.jitter.nanos() == 10_000_000,
    },
    Kind {
        what: "jitter 30 ms",
        is: |air| air.told && air.jitter.nanos() == 30_000_000,
    },
    Kind {
        what: "rate not given",
        is: |air| !air.told,
    },
];

/// Whether neither the path changes nor its hosts stand still or get their turns late.
fn is_steady(air: &Air) -> bool {
    air.steps.is_empty() && air.stall.is_none() && air.late.is_none()
}

/// Prints the shares in per cent as a table in Markdown, a cell that is missed in bold; then the paths that have no place in it, and
/// the worst cells.
fn print_table(judged: &[Judged]) {
    let plain = |judged: &&Judged| {
        let air = &judged.rows[0].cell.air;
        air.back == Some(air.rate) && is_steady(air)
    };
    let said = |judged: &Judged| {
        let share = format!("{:.0}", judged.mean(Row::share) * 100.0);
        match judged.is_met() {
            true => share,
            false => format!("**{share}**"),
        }
    };
    let columns = [1, 6, 100].map(|rate| [2, 20, 100, 300, 600].map(|trip| (rate, trip)));
    let columns = columns.as_flattened();
    let heads = columns
        .iter()
        .map(|(rate, trip)| format!(" {rate}, {trip} |"));
    let heads: String = heads.collect();
    println!("| losses, % |{heads}");
    println!("|---|{}", "---|".repeat(columns.len()));
    for kind in KINDS {
        for loss in [0, 1, 5, 15, 30] {
            let cell = |&(rate, trip): &(u64, u64)| {
                let at = judged.iter().filter(plain).find(|judged| {
                    let air = &judged.rows[0].cell.air;
                    let place = (
                        air.rate.0 / 1_000_000,
                        air.delay.nanos() / 500_000,
                        (air.loss * 100.0).round() as u64,
                    );
                    (kind.is)(air) && place == (rate, trip, loss)
                });
                at.map(said)
            };
            let row: Vec<Option<String>> = columns.iter().map(cell).collect();
            if row.iter().any(Option::is_some) {
                let row = row.into_iter().map(Option::unwrap_or_default);
                let row: String = row.map(|cell| format!(" {cell} |")).collect();
                println!("| {loss} {} |{row}", kind.what);
            }
        }
    }
    print_rivals(&heads, columns);
    print_pings(judged);
    println!();
    for judged in judged.iter().filter(|judged| !plain(judged)) {
        println!("| {} | {} |", judged.name(), said(judged));
    }
    let mut missed: Vec<&Judged> = judged.iter().filter(|judged| !judged.is_met()).collect();
    missed.sort_by(|a, b| a.mean(Row::of_goal).total_cmp(&b.mean(Row::of_goal)));
    println!();
    for judged in missed.into_iter().take(WORST) {
        println!(
            "| {} | {:.1} |",
            judged.name(),
            judged.mean(Row::share) * 100.0
        );
    }
}

/// What TCP gets through a tunnel on a path, bit/s.
type Gets = fn(&Cell) -> f64;

/// Prints what TCP would get through other tunnels, in per cent of (1 - p) C: at most, or for kcptun as simulated.
fn print_rivals(heads: &str, columns: &[(u64, u64)]) {
    println!();
    println!("| losses, %: tunnel |{heads}");
    println!("|---|{}", "---|".repeat(columns.len()));
    let tunnels = [
        ("WireGuard", air::rivals::wireguard as Gets),
        ("UDPspeeder 20:10", air::rivals::udpspeeder),
        ("kcptun", air::kcptun::defaults),
        ("kcptun, fast3, window fitted", air::kcptun::fitted),
    ];
    let mut lines = Vec::new();
    for bursts in [false, true] {
        for loss in [0, 1, 5, 15, 30] {
            if bursts && loss == 0 {
                continue;
            }
            lines.extend(tunnels.map(|tunnel| (bursts, loss, tunnel)));
        }
    }
    let rows = on_all_processors(lines.len(), |at| {
        let (bursts, loss, (name, gets)) = lines[at];
        let share = |&(rate, round_trip): &(u64, u64)| {
            let cell = Cell::new(rate, round_trip, loss);
            let cell = if bursts { cell.bursts() } else { cell };
            format!(" {:.0} |", gets(&cell) / cell.bound * 100.0)
        };
        let row: String = columns.iter().map(share).collect();
        let kind = if bursts {
            "in bursts of 4"
        } else {
            "independent"
        };
        format!("| {loss} {kind}: {name} |{row}")
    });
    rows.iter().for_each(|row| println!("{row}"));
}

/// How many points a path without a given rate may stay behind the same one with it.
const FOUND: f64 = 3.0;

/// Prints how far the link stays behind where it has to find the rate, and on which path that is most.
fn print_found(judged: &[Judged]) {
    let behind = |found: &Judged| {
        let given = found.name().strip_suffix(" found")?;
        let given = judged.iter().find(|judged| judged.name() == given)?;
        let points = 100.0 * (given.mean(Row::share) - found.mean(Row::share));
        Some((points, found.name().to_string()))
    };
    let pairs: Vec<(f64, String)> = judged.iter().filter_map(behind).collect();
    let within = pairs.iter().filter(|(points, _)| *points <= FOUND).count();
    if let Some((points, path)) = pairs.iter().max_by(|a, b| a.0.total_cmp(&b.0)) {
        println!(
            "without a given rate: {within} of {} paths at most {FOUND} points behind the same with it; {points:.1} on {path}",
            pairs.len()
        );
    }
}

/// Share of C that a path without losses must carry, whatever plain TCP gets there.
const CLEAN: f64 = 0.98;

/// Prints how many quiet paths without losses carry what is asked of them.
fn print_clean(judged: &[Judged]) {
    let quiet = |judged: &&Judged| {
        let air = &judged.rows[0].cell.air;
        air.loss == 0.0 && air.jitter.nanos() == 0 && is_steady(air)
    };
    let shares = judged.iter().filter(quiet);
    let shares: Vec<(f64, &str)> = shares
        .map(|judged| (judged.mean(Row::share), judged.name()))
        .collect();
    let met = shares.iter().filter(|(share, _)| *share >= CLEAN).count();
    if let Some((share, path)) = shares.iter().min_by(|a, b| a.0.total_cmp(&b.0)) {
        println!(
            "without losses: {met} of {} paths carry {:.0} % of C; {:.1} on {path}",
            shares.len(),
            100.0 * CLEAN,
            100.0 * share
        );
    }
}

/// Share of the pings that must be in time.
const IN_TIME: f64 = 0.95;

/// Prints how many cells keep a ping short, the pings of all seeds together, and those that do not, with what the path allows.
fn print_pings(judged: &[Judged]) {
    let pings: Vec<(&Judged, usize, usize)> = (judged.iter())
        .filter_map(|judged| {
            let pings = judged.rows.iter().map(Row::pings_in_time);
            let pings: Option<Vec<(usize, usize)>> = pings.collect();
            let sum = |of: fn(&(usize, usize)) -> usize| pings.iter().flatten().map(of).sum();
            let (came, sent): (usize, usize) = (sum(|pings| pings.0), sum(|pings| pings.1));
            pings.is_some().then_some((judged, came, sent))
        })
        .collect();
    let share = |came: usize, sent: usize| came as f64 / sent.max(1) as f64;
    let missed = pings
        .iter()
        .filter(|pings| share(pings.1, pings.2) < IN_TIME);
    println!();
    println!("| pings late | in time, % | of | possible, % | |");
    println!("|---|---|---|---|---|");
    let (mut count, mut forbidden) = (0, 0);
    for &(judged, came, sent) in missed {
        let possible = judged.rows[0].cell.pings_possible();
        (count, forbidden) = (count + 1, forbidden + usize::from(possible < IN_TIME));
        println!(
            "| {} | {:.0} | {sent} | {:.0} | {} |",
            judged.name(),
            share(came, sent) * 100.0,
            possible * 100.0,
            match possible < IN_TIME {
                true => "forbidden",
                false => "missed",
            }
        );
    }
    println!(
        "pings beside the transfer: {} of {} cells without jitter met, {} missed, {forbidden} forbidden by the path",
        pings.len() - count,
        pings.len(),
        count - forbidden,
    );
}
